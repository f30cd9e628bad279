"""The parameters that lead to a MySQL or MariaDB server; no connection is made here."""

from __future__ import annotations

from typing import Any, Protocol

from replicators.connectors import server_fields
from replicators.connectors.addresses import Place, host_fault
from replicators.connectors.params import param
from replicators.connectors.server_fields import password, tls

__all__ = ["Server", "authority", "host", "password", "places", "port", "tls"]


class Server(Protocol):
    """Params with the fields that this module makes."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def tls_ca(self) -> str: ...


def host(*, is_movable: bool = False) -> Any:
    """The server's host."""
    text = "Name or address of the server."
    return server_fields.host(text, host_fault, is_movable=is_movable)


def port() -> Any:
    """The server's port."""
    return server_fields.port(3306)


def authority(*, is_movable: bool = False) -> Any:
    """The authorities that `verify-full` trusts."""
    return param(
        "TLS authority",
        help="A file with the certificates that are trusted; empty: those of this machine.",
        default="",
        addresses=True,
        is_movable=is_movable,
    )


def places(params: Server) -> tuple[Place, ...]:
    """The server, and the file of certificates."""
    server = Place("host", params.host, "Host", params.port)
    return (server, Place("file", params.tls_ca, "TLS authority")) if params.tls_ca else (server,)
