"""Parameters of a MySQL or MariaDB server, as a person fills them in; no connection is made
here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.mysql.params import authority, host, password, places, port, tls
from replicators.connectors.params import param

__all__ = ["MysqlParams", "places"]


@dataclass(frozen=True, slots=True)
class MysqlParams:
    """A MySQL or MariaDB server, and the user that reads it."""

    host: str = host()
    user: str = param("User", help="A user that may read the tables and replicate.", addresses=True)
    port: int = port()
    password: str = password()
    database: str = param(
        "Database", help="Offer only tables of this database; empty: of all.", default=""
    )
    tls: str = tls()
    tls_ca: str = authority()
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
