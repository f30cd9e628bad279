"""The meaning of every environment variable. docs/configuration.md and .env.example are made from
it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable with its default and one line of help."""

    name: str
    default: str
    help: str


VARIABLES = (
    Variable("DEBUG", "false", "Development mode: never in production. `make dev` sets it."),
    Variable("SECRET_KEY", "", "Signs sessions. Required, unless DEBUG is true: then it is made "
                               "in var/."),
    Variable(
        "REPLICATOR_SECRET_KEY", "",
        "Encrypts stored secrets. Required, unless DEBUG is true: then it is made in var/. "
        "Losing it loses them.",
    ),
    Variable("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]",
    "Host names under which the pages are served."),
    Variable("CSRF_TRUSTED_ORIGINS", "", "Origins such as https://replicators.example.com behind "
                                         "a proxy."),
    Variable(
        "HTTPS", "not DEBUG",
        "Redirects to HTTPS, secure cookies, HSTS. Set false only where nobody but this machine "
        "reaches the pages.",
    ),
    Variable("HSTS_SECONDS", "365d", "How long browsers insist on HTTPS."),
    Variable("BEHIND_PROXY", "false", "Trust X-Forwarded-Proto, and the last address of "
                                      "X-Forwarded-For, of the proxy in front."),
    Variable("DATABASE_URL", "sqlite:///var/replicators.sqlite3",
    "The application's own database."),
    Variable("REDIS_URL", "", "The broker of the workers. Without it pages work and nothing "
                              "starts."),
    Variable("LOG_LEVEL", "INFO", "Level of the processes' own logs."),
    Variable("BIND", "127.0.0.1:8000", "Where `make serve` listens."),
    Variable("WEB_THREADS", "8", "Requests that `make serve` answers at a time; two at least."),
    Variable(
        "WEB_WAITERS", "64",
        "Subscribers that may wait for changes at a time in a web process, besides WEB_THREADS. "
        "Past it an answer comes at once.",
    ),
    Variable(
        "REPLICATOR_WEB_WAIT_SECONDS", "5",
        "How long a page waits for the application's own database that is locked (SQLite) or "
        "away. Then the answer is 503.",
    ),
    Variable(
        "REPLICATOR_LOOKS", "half of WEB_THREADS",
        "Looks into sources and targets (a test, a list of tables, an assessment) at a time, in "
        "each web process. Past it the answer is 503.",
    ),
    Variable("REPLICATOR_LOOK_SECONDS", "30", "How long a look may take; an assessment looks "
                                              "into the source, then into the target."),
    Variable("REPLICATOR_VAR_DIR", "var", "Folder of keys, SQLite and run logs. No warehouse or "
                                          "catalog may lie in it."),
    Variable("REPLICATOR_RUN_LOG_DIR", "var/run-logs", "Folder of the output of runs' processes."),
    Variable("REPLICATOR_MAX_RUNS", "4", "Runs at a time, on all machines together."),
    Variable(
        "REPLICATOR_WORKER_RUNS", "REPLICATOR_MAX_RUNS",
        "Runs at a time that the `runs` worker of one machine watches. Set it where there are "
        "several machines.",
    ),
    Variable(
        "REPLICATOR_SPARK", "own",
        "Whether a run has a Spark of its `own`, or runs of a machine have one together "
        "(`shared`); a replicator's option wins.",
    ),
    Variable("REPLICATOR_MAX_VERIFICATIONS", "1", "Verifications at a time, on all machines "
                                                  "together. Each has a process beside the run."),
    Variable(
        "REPLICATOR_VERIFICATION_SECONDS", "90d",
        "How long ended verifications are kept, with the rows that they found. The last one of "
        "each replicator stays.",
    ),
    Variable("REPLICATOR_STOP_GRACE_SECONDS", "20", "Time a run has to stop by itself before it "
                                                    "is ended."),
    Variable(
        "REPLICATOR_ACTIVITY_SECONDS", "365d",
        "How long activity and ended runs are kept. The last run of each replicator stays.",
    ),
    Variable(
        "REPLICATOR_AUDIT_SECONDS", "0",
        "How long rows of the audit trail are kept, such as 3650d. 0 keeps them for ever. That "
        "rows went is a row of its own.",
    ),
    Variable("REPLICATOR_TOKEN_SECONDS", "90d", "After what time an API token ends unless its "
                                                "maker says otherwise; whole days count."),
    Variable(
        "REPLICATOR_TOKEN_MAX_SECONDS", "365d",
        "After what time an API token ends at the latest. 0: there may be some that never end.",
    ),
    Variable(
        "REPLICATOR_ALLOWED_FOLDERS", "",
        "Folders, by commas, in which warehouses, SQLite catalogs and certificates of "
        "connections may lie; links are resolved. Empty: "
        "anywhere. The program's own files (its folder var, database, change log, keys, code) "
        "are refused always.",
    ),
    Variable(
        "REPLICATOR_ALLOWED_HOSTS", "",
        "Hosts, by commas, that connections may lead to: names, `*.example.com`, addresses, "
        "networks such as 10.0.0.0/8, folders of "
        "sockets. Empty: all but link-local addresses (169.254.0.0/16, fe80::/10), where cloud "
        "machines find credentials of their own. "
        "The program's own database is refused always. Hosts of object stores that this "
        "program's environment names are not asked about.",
    ),
    Variable("REPLICATOR_SHOW_HIDDEN_PLUGINS", "false", "Show connectors made for tests."),
)  # fmt: skip

ENGINE_HELP = {
    "log_url": "Where the change log lies: a folder, or a URL of an object store (s3, gs, abfs, "
    "hdfs), whose credentials are read from the environment as that store's own tools "
    "do.",
    "log_spool_dir": "A local folder where segments grow before they are sent to an object "
    "store. Empty: the system's temporary folder.",
    "spark_master": "Spark's master: local[n], a cluster's URL.",
    "spark_remote": "A Spark Connect URL (sc://...) in place of a master.",
    "spark_driver_memory": "Memory of the JVM of a run.",
    "spark_driver_host": "Name or address under which Spark's executors find the machine of a "
    "run. Empty: 127.0.0.1 with a local master, else what Spark finds.",
    "spark_driver_bind_address": "Address on which a run's Spark listens. Empty: 127.0.0.1 with "
    "a local master, else that of the driver's host.",
    "spark_local_dir": "Where runs make their scratch folders for Spark; empty: the system's "
    "temporary folder.",
    "spark_java_options": "More options for Spark's JVM, behind ours.",
    "spark_executor_memory": "Memory of each executor, such as 2g. Empty: Spark's default. A local "
    "master has no executors.",
    "spark_executor_cores": "Cores of each executor; 0: Spark's default.",
    "spark_executor_count": "Executors of a run; 0: as the cluster gives.",
    "spark_conf": "More settings of Spark, such as `spark.a=1; spark.b=2`. They win over all "
    "others. Spark passes them on in arguments of processes: they must not hold secrets.",
    "spark_shared_master": "Master of the Spark that small replicators of a machine share: "
    "local[n], where n tasks of all of them run at a time. More than cores, as tasks are small.",
    "spark_shared_memory": "Memory of the JVM that small replicators of a machine share.",
    "spark_shared_worker_bytes": "Memory that a Python worker of the shared Spark may have; a task "
    "that needs more fails. There are as many workers as tasks at a time. 0: no limit.",
    "spark_shared_dir": "Folder in which runs find the Spark that they share; each machine has its "
    "own below it.",
    "jars_dir": "Folder of the jars that `make setup` fetches, and of the classes that it "
    "archives.",
    "seal_seconds": "Age at which a raw segment is sealed; a replicator's option wins.",
    "seal_bytes": "Size at which a raw segment is sealed.",
    "task_bytes": "Bytes of change files that one task takes.",
    "merge_seconds": "Time between two merges of a table; a replicator's option wins.",
    "round_seconds": "Least time between two watermarks (moments at which all tables of the "
    "target are level).",
    "watermark_seconds": "Least time between two rows of the target's table "
    "`replicator_progress`; 0: none are written.",
    "merge_parallel": "Tables merged at a time.",
    "rows_per_chunk": "Rows of a snapshot's chunk.",
    "row_limit_bytes": "Bytes of texts, bytes and lists of one row above which it is not copied: "
    "its table stops, or the row is quarantined where rows are. Spark's JVM "
    "has a row many times; with a higher limit give "
    "`REPLICATOR_SPARK_DRIVER_MEMORY` twenty times as much more.",
    "log_limit_bytes": "Size of a replicator's change log at which reading waits.",
    "table_limit_bytes": "Backlog of a table at which it is stopped and needs a re-sync.",
    "disk_reserve_bytes": "Free space on the log's disk below which reading waits.",
    "stalled_seconds": "How long reading waits for room before a replicator does what its option "
    "*While stalled* says.",
    "keep_seconds": "How long merged changes are kept; a replicator's option wins.",
    "retry_seconds": "How long a failing table is tried again; a replicator's option wins.",
    "heartbeat_seconds": "Time between two marks written into the source's log.",
    "catalog_seconds": "Time between two looks into the source's catalog, for what its log does "
    "not tell.",
    "snapshot_wait_seconds": "How long a copy waits for transactions that are open at the source "
    "before it is tried again.",
    "step_deadline_seconds": "Time after which a step counts as stuck and the run is ended.",
    "lease_seconds": "Length of a run's lease. A run waits six tenths of it for its own "
    "database; the run of a machine that is lost is started again after it.",
    "maintain_every_commits": "Commits of a target table between two compactions.",
}
