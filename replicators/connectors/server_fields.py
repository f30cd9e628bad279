"""Fields that the params of every database server have; no connection is made here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replicators.connectors.params import param


def host(help: str, check: Callable[[str], str], *, is_movable: bool = False) -> Any:
    """The server's host. `check`: what is wrong with the text, as a sentence; empty where nothing
    is."""
    return param("Host", help=help, addresses=True, is_movable=is_movable, check=check)


def port(default: int) -> Any:
    """The server's port."""
    return param("Port", default=default, minimum=1, maximum=65535, addresses=True)


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
