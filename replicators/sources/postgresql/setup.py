"""What an administrator does at a PostgreSQL server before it can be followed. Text only; makes no
connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.setup import SetupStep
from replicators.sources.postgresql import sql


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps, with the names that are filled in so far; never with a password."""
    user = str(values.get("user") or "replicator")
    role, database = sql.name(user), sql.name(str(values.get("database") or "my_database"))
    return (
        SetupStep(
            "Turn on the logical log",
            "Restart the server afterwards. Managed services have a setting instead: "
            "`rds.logical_replication` (Amazon RDS), "
            "`cloudsql.logical_decoding` (Google Cloud SQL).",
            (
                "ALTER SYSTEM SET wal_level = 'logical';",
                "ALTER SYSTEM SET max_slot_wal_keep_size = '50GB';  -- as much as the disk can "
                "spare",
            ),
        ),
        SetupStep(
            "Make a user that may replicate",
            "On Amazon RDS leave `REPLICATION` out and run "
            f"`GRANT rds_replication TO {role};` instead.",
            (f"CREATE ROLE {role} WITH LOGIN REPLICATION PASSWORD 'choose one';",),
        ),
        SetupStep(
            "Let it read the tables",
            "Repeat the last two for each schema.",
            (
                f"GRANT CONNECT ON DATABASE {database} TO {role};",
                f"GRANT USAGE ON SCHEMA public TO {role};",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};",
            ),
        ),
        SetupStep(
            "Let it publish them",
            "Only an owner may publish a table, so the user joins the role that owns them.",
            (
                f"GRANT CREATE ON DATABASE {database} TO {role};",
                f"GRANT owner_of_the_tables TO {role};",
            ),
        ),
    )
