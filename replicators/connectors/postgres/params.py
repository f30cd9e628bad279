"""The parameters that lead to a PostgreSQL database; no connection is made here."""

from __future__ import annotations

from typing import Any, Protocol

from replicators.connectors.addresses import Place, host_fault
from replicators.connectors.params import param

TLS_MODES = ("disable", "prefer", "require", "verify-full")


class Server(Protocol):
    """Params with the fields that this module makes."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def database(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def password(self) -> str: ...
    @property
    def sslmode(self) -> str: ...


def _host_fault(text: str) -> str:
    """A socket is known by its folder."""
    return "" if text.startswith("/") and ":" not in text else host_fault(text)


def host(*, is_movable: bool = False) -> Any:
    """The server's host."""
    return param(
        "Host",
        help="Name or address of the server, or the folder of its socket.",
        addresses=True,
        is_movable=is_movable,
        check=_host_fault,
    )


def port() -> Any:
    """The server's port."""
    return param("Port", default=5432, minimum=1, maximum=65535, addresses=True)


def password() -> Any:
    """The user's password."""
    return param("Password", default="", secret=True)


def tls(*, is_movable: bool = False) -> Any:
    """How the connection is encrypted."""
    return param(
        "TLS",
        help="verify-full also checks the server's certificate and name.",
        default="prefer",
        choices=TLS_MODES,
        addresses=True,
        is_movable=is_movable,
    )


def places(server: Server) -> tuple[Place, ...]:
    """The database at each named host."""
    hosts = [name.strip() for name in server.host.split(",")]
    return tuple(Place("host", name, "Host", server.port, server.database) for name in hosts)


def facts(server: Server) -> dict[str, object]:
    """The named values of messages about the connection; no secret is among them."""
    return {
        "host": server.host,
        "port": server.port,
        "database": server.database,
        "user": server.user,
        "sslmode": server.sslmode,
        "seconds": 10,
    }
