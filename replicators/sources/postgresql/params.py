"""Parameters of a PostgreSQL server, as a person fills them in; no connection is made here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.addresses import Place, host_fault
from replicators.connectors.params import param


def _host_fault(text: str) -> str:
    """A socket is known by its folder."""
    return "" if text.startswith("/") and ":" not in text else host_fault(text)


@dataclass(frozen=True, slots=True)
class PostgresqlParams:
    """A database on a PostgreSQL server, and the user that reads it."""

    host: str = param(
        "Host", help="Name or address of the server, or the folder of its socket.", addresses=True
    )
    database: str = param("Database", help="The database whose tables are copied.")
    user: str = param("User", help="A role that may log in and replicate.", addresses=True)
    port: int = param("Port", default=5432, minimum=1, maximum=65535, addresses=True)
    password: str = param("Password", default="", secret=True)
    sslmode: str = param(
        "TLS",
        help="verify-full also checks the server's certificate and name.",
        default="prefer",
        choices=("disable", "prefer", "require", "verify-full"),
        addresses=True,
    )


def places(params: PostgresqlParams) -> tuple[Place, ...]:
    """The database at each named host."""
    hosts = [host.strip() for host in params.host.split(",")]
    return tuple(Place("host", host, "Host", params.port, params.database) for host in hosts)
