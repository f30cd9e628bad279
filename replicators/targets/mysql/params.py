"""Parameters of a MySQL or MariaDB target, as a person fills them in; no connection is made
here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.mysql.params import authority, host, password, places, port, tls
from replicators.connectors.params import param
from replicators.connectors.view_fields import current_views, view_suffix

__all__ = ["MysqlTargetParams", "places"]

LONGEST = 64


def _database_fault(text: str) -> str:
    if len(text) > LONGEST:
        return f"must have at most {LONGEST} characters: MySQL keeps no longer names"
    if text.endswith(" "):
        return "must not end with a blank: MySQL has no such names"
    return ""


@dataclass(frozen=True, slots=True)
class MysqlTargetParams:
    """A MySQL or MariaDB server, and the user that writes it."""

    host: str = host(is_movable=True)
    user: str = param("User", help="A user that may make and write tables.", addresses=True)
    port: int = port()
    password: str = password()
    database: str = param(
        "Database",
        help="Where the tables appear; empty: one database for each schema of the source.",
        default="",
        check=_database_fault,
    )
    tls: str = tls(is_movable=True)
    tls_ca: str = authority(is_movable=True)
    current_views: bool = current_views()
    view_suffix: str = view_suffix()


RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX")
"""What the user needs on each database that gets copies."""
TEMPORARY_RIGHT = "CREATE TEMPORARY TABLES"
"""What it should have too: without it merges stage their rows in tables that the server logs."""
VIEW_RIGHT = "CREATE VIEW"
"""What it also needs where views are made."""


def rights(*, has_views: bool) -> tuple[str, ...]:
    """What the user needs on each database."""
    return (*RIGHTS, VIEW_RIGHT) if has_views else RIGHTS
