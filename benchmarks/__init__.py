"""Measures the engine and its peers on one machine: `python -m benchmarks [line ...]`. `LINES` has
the lines."""

from __future__ import annotations

# Line -> (module, what it measures). Each runs in a process of its own.
LINES = {
    "capture": ("capture", "the log into raw segments, beside pg_recvlogical into a file"),
    "capture-decode": ("capture", "the log into raw segments and durable change files"),
    "decode": ("decode", "raw segments into change files, in Spark"),
    "binlog-decode": ("binlog", "MariaDB's log into columns, on one core"),
    "changes-mysql": ("changes", "MySQL's log into durable change files, beside Debezium"),
    "changes-postgresql": (
        "changes",
        "PostgreSQL's log into durable change files, beside Debezium",
    ),
    "snapshot": (
        "snapshot",
        "a first copy of a PostgreSQL table, beside Spark's JDBC reader and others",
    ),
    "snapshot-mysql": ("snapshot", "a first copy of a MySQL table, beside the same readers"),
    "merge-iceberg": (
        "merge",
        "1,000 keys that lie together, into a large Iceberg table, beside a plain MERGE",
    ),
    "merge-delta": (
        "merge",
        "1,000 keys that lie together, into a large Delta table, beside a plain MERGE",
    ),
    "growth-size": (
        "growth_size",
        "1,000 changes into tables of 1, 10 and 40 million rows",
    ),
    "backlog": (
        "backlog",
        "1.6 million waiting changes into the lakehouse, beside Debezium and foreachBatch",
    ),
    "lag": ("lag", "the time from a commit at PostgreSQL to the commit at the target"),
    "lag-mysql": (
        "lag_mysql",
        "the time from a commit at MySQL to the commit at the target, at 2,000 changes a second",
    ),
    "lag-s3": ("on_s3", "the lag with the lakehouse on an S3 server, beside this machine's disk"),
    "backlog-s3": (
        "on_s3",
        "1.6 million waiting changes into a lakehouse on an S3 server, beside this machine's disk",
    ),
    "postgresql-copy": (
        "copy_into",
        "a first copy of a PostgreSQL table into another server, beside logical replication and "
        "dlt",
    ),
    "postgresql-backlog": (
        "backlog_into",
        "1.6 million waiting changes into another server, beside logical replication and dlt",
    ),
    "postgresql-lag": (
        "lag_postgresql",
        "the time from a commit at PostgreSQL to the commit at another server",
    ),
    "postgresql-together": (
        "together",
        "all tables merged in one transaction of PostgreSQL, beside each by itself",
    ),
    "bigquery-copy": (
        "copy_into",
        "a first copy of a PostgreSQL table into an emulator of BigQuery, beside dlt",
    ),
    "bigquery-backlog": (
        "backlog_into",
        "1.6 million waiting changes into an emulator of BigQuery, beside dlt",
    ),
    "mysql-copy": (
        "copy_into",
        "a first copy of a PostgreSQL table into a MySQL server, beside dlt",
    ),
    "snowflake-copy": (
        "copy_into",
        "a first copy of a PostgreSQL table into an emulator of Snowflake, beside dlt",
    ),
    "redshift-copy": (
        "copy_into",
        "a first copy of a PostgreSQL table into a server that plays Redshift, beside dlt",
    ),
    "spanner-copy": (
        "copy_into",
        "a first copy of a PostgreSQL table into a server that plays Spanner, beside a loop with "
        "the client library",
    ),
    "mysql-backlog": (
        "backlog_into",
        "1.6 million waiting changes into a MySQL server, beside dlt",
    ),
    "snowflake-backlog": (
        "backlog_into",
        "400,000 waiting changes into an emulator of Snowflake, beside dlt",
    ),
    "redshift-backlog": (
        "backlog_into",
        "400,000 waiting changes into a server that plays Redshift, beside dlt",
    ),
    "spanner-backlog": (
        "backlog_into",
        "160,000 waiting changes into a server that plays Spanner, beside a loop with the client "
        "library",
    ),
    "feed-encode": (
        "feed_encode",
        "changes into the messages of a feed, in JSON and Avro, beside a call for each row",
    ),
    "kafka-backlog": (
        "kafka_into",
        "1.6 million changes from the change log into Kafka, in JSON, beside Debezium",
    ),
    "kafka-lag": (
        "kafka_lag",
        "the time from a commit at PostgreSQL to a consumer of Kafka, at 1,000 changes a second",
    ),
    "elasticsearch-backlog": (
        "search_into",
        "320,000 changes from the change log into OpenSearch, beside its plain client",
    ),
    "compare": (
        "compare",
        "two days of a data set compared by hashes, beside the seed's method",
    ),
    "compare-size": (
        "compare",
        "the same with 1, 10 and 40 million rows: a row's cost must not grow",
    ),
    "verify": (
        "verify",
        "rows of PostgreSQL compared with their copy in Iceberg, beside DMS's way and data-diff",
    ),
    "subscribers": ("subscribers", "50 subscribers that wait for changes at the web process"),
    "memory": ("memory", "the memory of a run, through one large transaction"),
    "shared-memory": (
        "shared_memory",
        "the memory of many small replicators that share a Spark, and how late their changes are",
    ),
    "executors": (
        "executors",
        "decoding and a first copy by two of Spark's executors, beside one",
    ),
    "tables-page": ("tables_page", "a click on the wizard's page of tables, with 2,000 of them"),
    "growth": ("growth", "the last of many merges, beside the first"),
    "soak-iceberg-sqlite": ("soak", "what a run holds after an hour of the demo's traffic"),
    "soak-iceberg-postgresql": (
        "soak",
        "what a run holds after an hour, with the catalog in PostgreSQL",
    ),
    "soak-delta": ("soak", "what a run holds after an hour, into Delta"),
}
BY_NAME_ONLY = frozenset(line for line, (module, _) in LINES.items() if module == "soak")
"""Lines that take an hour. Each is measured only where its name is given, for SOAK_MINUTES."""
