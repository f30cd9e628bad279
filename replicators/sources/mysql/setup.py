"""What an administrator does at a MySQL or MariaDB server before it can be followed. Text only;
makes no connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.mysql import sql
from replicators.connectors.setup import SetupStep


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps, with the names that are filled in so far; never with a password."""
    user = f"{sql.literal(str(values.get('user') or 'replicator'))}@'%'"
    database = sql.name(str(values.get("database") or "my_database"))
    plain = database.replace("`", "")  # in the sentence backticks mark code
    return (
        SetupStep(
            "Let the log hold whole rows with their columns' names",
            "The log itself is on by default in MySQL; for MariaDB put `log_bin` into its "
            "configuration and restart it. "
            "Put these settings there too, so that they outlive a restart. Sessions that are "
            "open keep the old format.",
            (
                "SET GLOBAL binlog_format = 'ROW';",
                "SET GLOBAL binlog_row_image = 'FULL';",
                "SET GLOBAL binlog_row_metadata = 'FULL';",
            ),
        ),
        SetupStep(
            "Keep the log for some days",
            "A replicator that was paused for longer than this has to copy everything again. On "
            "MariaDB 10.5: "
            "`SET GLOBAL expire_logs_days = 7;`. On Amazon RDS: "
            "`CALL mysql.rds_set_configuration('binlog retention hours', 168);`",
            ("SET GLOBAL binlog_expire_logs_seconds = 604800;",),
        ),
        SetupStep(
            "Make a user that may read the log and the tables",
            "Repeat the last one for each database. From MySQL, tables without a key and the "
            "modes history and append also need "
            f"`GRANT LOCK TABLES ON {plain}.* TO {user};`: the table is locked for the moment in "
            "which its copy begins.",
            (
                f"CREATE USER {user} IDENTIFIED BY 'choose one';",
                f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user};",
                f"GRANT SELECT ON {database}.* TO {user};",
            ),
        ),
    )
