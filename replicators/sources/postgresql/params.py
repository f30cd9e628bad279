"""Parameters of a PostgreSQL server, as a person fills them in; no connection is made here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.params import param
from replicators.connectors.postgres.params import host, password, places, port, tls

__all__ = ["PostgresqlParams", "places"]


ANY = "any"


def _origins_fault(text: str) -> str:
    names = [n.strip() for n in text.split(",")]
    if text and not all(names):
        return "must be names with single commas between them, or any"
    if ANY in names and len(names) > 1:
        return "must be any alone, or names"
    return ""


@dataclass(frozen=True, slots=True)
class PostgresqlParams:
    """A database on a PostgreSQL server, and the user that reads it."""

    host: str = host()
    database: str = param("Database", help="The database whose tables are copied.")
    user: str = param("User", help="A role that may log in and replicate.", addresses=True)
    port: int = port()
    password: str = password()
    sslmode: str = tls()
    skip_origins: str = param(
        "Leave out origins",
        help="Changes that were written with one of these replication origins are not read: names "
        "with commas between them, or any. With two databases that replicate into each other: "
        "any. Empty: every change is read.",
        default="",
        check=_origins_fault,
    )

    @property
    def skipped_origins(self) -> frozenset[str]:
        """The names that `skip_origins` lists; `ANY` stands for all."""
        return frozenset(n.strip() for n in self.skip_origins.split(",") if n.strip())
