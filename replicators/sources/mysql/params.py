"""Parameters of a MySQL or MariaDB server, as a person fills them in; no connection is made
here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.addresses import Place, host_fault
from replicators.connectors.params import param


@dataclass(frozen=True, slots=True)
class MysqlParams:
    """A MySQL or MariaDB server, and the user that reads it."""

    host: str = param(
        "Host", help="Name or address of the server.", addresses=True, check=host_fault
    )
    user: str = param("User", help="A user that may read the tables and replicate.", addresses=True)
    port: int = param("Port", default=3306, minimum=1, maximum=65535, addresses=True)
    password: str = param("Password", default="", secret=True)
    database: str = param(
        "Database", help="Offer only tables of this database; empty: of all.", default=""
    )
    tls: str = param(
        "TLS",
        help="verify-full also checks the server's certificate and name.",
        default="prefer",
        choices=("disable", "prefer", "require", "verify-full"),
        addresses=True,
    )
    tls_ca: str = param(
        "TLS authority",
        help="A file with the certificates that are trusted; empty: those of this machine.",
        default="",
        addresses=True,
    )
    zero_dates: str = param(
        "Zero dates",
        help="What 0000-00-00 and dates without month or day become. With fail the table stops "
        "there, or the row is quarantined;"
        " one in a key stops it with null too. Other dates that no calendar has, as 2021-02-31 "
        "or one of year 0, are text with"
        " text, and are treated as with fail otherwise.",
        default="null",
        choices=("null", "text", "fail"),
    )
    server_id: int = param(
        "Server id",
        help="The number under which this program reads the log; 0: one that is free is chosen.",
        default=0,
        minimum=0,
        maximum=4294967295,
    )


def places(params: MysqlParams) -> tuple[Place, ...]:
    """The server, and the file of certificates."""
    server = Place("host", params.host, "Host", params.port)
    return (server, Place("file", params.tls_ca, "TLS authority")) if params.tls_ca else (server,)
