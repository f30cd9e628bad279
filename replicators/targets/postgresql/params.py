"""Parameters of a PostgreSQL target, as a person fills them in; no connection is made here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.params import param
from replicators.connectors.postgres.params import host, password, places, port, tls
from replicators.connectors.view_fields import current_views, view_suffix

__all__ = ["PostgresqlTargetParams", "places"]
_ORIGIN = re.compile(r"[a-z][a-z0-9_]{0,59}")


def _schema_fault(text: str) -> str:
    if len(text.encode()) > 63:
        return "must be at most 63 bytes long: PostgreSQL keeps no longer names"
    if text.startswith("pg_"):
        return "must not begin with pg_: PostgreSQL keeps such names for itself"
    return ""


def _origin_fault(text: str) -> str:
    if not text or _ORIGIN.fullmatch(text):
        return ""
    return "must have 1 to 60 lower-case letters, digits and underscores, and begin with a letter"


@dataclass(frozen=True, slots=True)
class PostgresqlTargetParams:
    """A database on a PostgreSQL server, and the user that writes it."""

    host: str = host(is_movable=True)
    database: str = param("Database", help="The database that holds the copies.")
    user: str = param(
        "User", help="A role that may log in, and make schemas and tables.", addresses=True
    )
    port: int = port()
    password: str = password()
    sslmode: str = tls(is_movable=True)
    schema: str = param(
        "Schema",
        help="Where the tables appear; empty: one schema for each schema of the source.",
        default="",
        check=_schema_fault,
    )
    origin: str = param(
        "Two-way: replication origin",
        help="For a database that others write to as well and that is replicated back: the name "
        "with which each write is marked, so that the way back leaves it out. Where both sides "
        "changed a row, the later commit wins. Mirrors with a key only. Empty: off.",
        default="",
        check=_origin_fault,
    )
    current_views: bool = current_views()
    view_suffix: str = view_suffix()
