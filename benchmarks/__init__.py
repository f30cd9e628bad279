"""Measures the engine against its peers on one machine. `python -m benchmarks [line ...]`; the lines are in `LINES`."""

from __future__ import annotations

# Line -> (module, what it measures). Each runs in a process of its own.
LINES = {
    "capture": ("capture", "the log into raw segments, beside pg_recvlogical into a file"),
    "capture-decode": ("capture", "the same with change files durable"),
    "decode": ("decode", "raw segments in Spark to change files"),
    "binlog-decode": ("binlog", "MariaDB's log, raw segments to columns on one core"),
    "changes-mysql": ("changes", "MySQL's log to durable change files, beside Debezium"),
    "changes-postgresql": ("changes", "the same of PostgreSQL"),
    "snapshot": ("snapshot", "a first copy, beside Spark's own JDBC reader"),
    "snapshot-mysql": ("snapshot", "the same from MySQL"),
    "merge-iceberg": ("merge", "1,000 clustered keys into a large table, beside a plain MERGE"),
    "merge-delta": ("merge", "the same into a Delta table"),
    "growth-size": (
        "growth_size",
        "the same 1,000 changes into tables of 1, 10 and 40 million rows",
    ),
    "backlog": (
        "backlog",
        "1.6 million changes that wait, into the lakehouse, beside foreachBatch",
    ),
    "lag": ("lag", "from the commit at the source to the commit at the target"),
    "lag-mysql": (
        "lag_mysql",
        "the same from MySQL at 2,000 changes a second, beside Debezium's own lag",
    ),
    "memory": ("memory", "of a run, through one large transaction"),
    "tables-page": ("tables_page", "a click on the wizard's page of tables, with 2,000 of them"),
    "growth": ("growth", "the last merges of many, beside the first"),
    "soak-iceberg-sqlite": ("soak", "what a run holds after an hour of the demo's traffic"),
    "soak-iceberg-postgresql": ("soak", "the same with the catalog in PostgreSQL"),
    "soak-delta": ("soak", "the same into Delta"),
}
BY_NAME_ONLY = frozenset(line for line, (module, _) in LINES.items() if module == "soak")
"""What takes an hour is measured where it is asked for by its name, for as long as SOAK_MINUTES says."""
