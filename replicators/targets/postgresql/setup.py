"""What an administrator does at a PostgreSQL server before tables can be copied into it. Text only;
makes no connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.postgres import sql
from replicators.connectors.setup import SetupStep


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps, with the names that are filled in so far; never with a password."""
    role = sql.name(str(values.get("user") or "replicator"))
    database = sql.name(str(values.get("database") or "my_database"))
    schema = str(values.get("schema") or "")
    rights = (
        (f"CREATE SCHEMA IF NOT EXISTS {sql.name(schema)} AUTHORIZATION {role};",)
        if schema
        else (f"GRANT CREATE ON DATABASE {database} TO {role};",)
    )
    where = "The schema is its own." if schema else "It makes a schema for each of the source's."
    return (
        SetupStep(
            "Make a database",
            "Leave this out for a database that is there. Its encoding has to be UTF8.",
            (f"CREATE DATABASE {database} ENCODING 'UTF8' TEMPLATE template0;",),
        ),
        SetupStep(
            "Make a user that may write",
            "It owns the tables that it makes. It needs no right on any other table.",
            (
                f"CREATE ROLE {role} WITH LOGIN PASSWORD 'choose one';",
                f"GRANT CONNECT ON DATABASE {database} TO {role};",
            ),
        ),
        SetupStep("Let it make tables", f"{where} Run this in the target's database.", rights),
        *(_two_way(role) if values.get("origin") else ()),
    )


def _two_way(role: str) -> tuple[SetupStep, ...]:
    """What a database needs that is replicated back."""
    functions = ("create(text)", "session_setup(text)", "session_reset()")
    return (
        SetupStep(
            "Keep the times of commits",
            "Restart the server afterwards. Each replicator also takes one of "
            "`max_replication_slots` (from PostgreSQL 18 on `max_active_replication_origins`).",
            ("ALTER SYSTEM SET track_commit_timestamp = on;",),
        ),
        SetupStep(
            "Let it mark its writes",
            "Run this in the target's database, as an administrator.",
            tuple(
                f"GRANT EXECUTE ON FUNCTION pg_replication_origin_{name} TO {role};"
                for name in functions
            ),
        ),
    )
