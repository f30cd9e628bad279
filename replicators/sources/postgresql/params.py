"""Parameters of a PostgreSQL server, as a person fills them in; no connection is made here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.params import param
from replicators.connectors.postgres.params import host, password, places, port, tls

__all__ = ["PostgresqlParams", "places"]


@dataclass(frozen=True, slots=True)
class PostgresqlParams:
    """A database on a PostgreSQL server, and the user that reads it."""

    host: str = host()
    database: str = param("Database", help="The database whose tables are copied.")
    user: str = param("User", help="A role that may log in and replicate.", addresses=True)
    port: int = port()
    password: str = password()
    sslmode: str = tls()
