"""What an administrator does at a MySQL or MariaDB server before tables can be copied into it. Text
only; makes no connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.mysql import sql
from replicators.connectors.setup import SetupStep
from replicators.targets.mysql.params import TEMPORARY_RIGHT, rights


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps, with the names that are filled in so far; never with a password."""
    user = f"{sql.literal(str(values.get('user') or 'replicator'))}@'%'"
    database = str(values.get("database") or "")
    has_views = str(values.get("current_views") or "").lower() in {"true", "on", "1"}
    needed = (*rights(has_views=has_views), TEMPORARY_RIGHT)
    where = sql.name(database) if database else "my_database"
    return (
        SetupStep(
            "Let a commit reach the disk",
            "These are the defaults. With other values a crash of the server may lose a commit "
            "that it acknowledged. Then the tables stop, and need a fresh copy.",
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 1;", "SET GLOBAL sync_binlog = 1;"),
        ),
        SetupStep(
            "Make a user that may write",
            "Repeat the last one for each database that gets copies. The database is made if it "
            "does not exist. Without CREATE TEMPORARY TABLES merges work too, but take longer.",
            (
                f"CREATE USER {user} IDENTIFIED BY 'choose one';",
                f"GRANT {', '.join(needed)} ON {where}.* TO {user};",
            ),
        ),
    )
