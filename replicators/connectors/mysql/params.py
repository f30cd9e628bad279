"""The parameters that lead to a MySQL or MariaDB server; no connection is made here."""

from __future__ import annotations

from typing import Any, Protocol

from replicators.connectors.addresses import Place, host_fault
from replicators.connectors.params import param


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
    return param(
        "Host",
        help="Name or address of the server.",
        addresses=True,
        is_movable=is_movable,
        check=host_fault,
    )


def port() -> Any:
    """The server's port."""
    return param("Port", default=3306, minimum=1, maximum=65535, addresses=True)


def password() -> Any:
    """The user's password."""
    return param("Password", default="", secret=True)


def tls(*, is_movable: bool = False) -> Any:
    """How the connection is encrypted."""
    return param(
        "TLS",
        help="verify-full also checks the server's certificate and name.",
        default="prefer",
        choices=("disable", "prefer", "require", "verify-full"),
        addresses=True,
        is_movable=is_movable,
    )


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
