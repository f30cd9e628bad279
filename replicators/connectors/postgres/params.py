"""The parameters that lead to a PostgreSQL database; no connection is made here."""

from __future__ import annotations

from typing import Any, Protocol

from replicators.connectors import server_fields
from replicators.connectors.addresses import Place, host_fault
from replicators.connectors.server_fields import password, tls

__all__ = ["Server", "facts", "host", "password", "places", "port", "tls"]


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
    text = "Name or address of the server, or the folder of its socket."
    return server_fields.host(text, _host_fault, is_movable=is_movable)


def port() -> Any:
    """The server's port."""
    return server_fields.port(5432)


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
