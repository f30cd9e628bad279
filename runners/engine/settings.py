"""The engine's knobs, in one frozen object; the engine never reads Django's settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """Times in seconds, sizes in bytes. Each is an environment variable `REPLICATOR_<NAME>`."""

    log_url: str = "var/log"
    log_spool_dir: str = ""
    spark_master: str = "local[2]"
    spark_remote: str = ""
    spark_driver_memory: str = "1g"
    spark_driver_host: str = ""
    spark_driver_bind_address: str = ""
    spark_local_dir: str = ""
    spark_java_options: str = ""
    spark_executor_memory: str = ""
    spark_executor_cores: int = 0
    spark_executor_count: int = 0
    spark_conf: str = ""
    spark_shared_master: str = "local[8]"
    spark_shared_memory: str = "2g"
    spark_shared_worker_bytes: int = 2 << 30
    spark_shared_dir: str = "var/shared-spark"
    jars_dir: str = "var/jars"
    seal_seconds: float = 1.0
    seal_bytes: int = 64 << 20
    task_bytes: int = 64 << 20
    merge_seconds: float = 1.0
    round_seconds: float = 5.0
    watermark_seconds: float = 10.0
    merge_parallel: int = 4
    rows_per_chunk: int = 250_000
    row_limit_bytes: int = 32 << 20
    log_limit_bytes: int = 50 << 30
    table_limit_bytes: int = 20 << 30
    disk_reserve_bytes: int = 1 << 30
    stalled_seconds: float = 600.0
    keep_seconds: float = 24 * 3600.0
    retry_seconds: float = 24 * 3600.0
    heartbeat_seconds: float = 5.0
    catalog_seconds: float = 60.0
    snapshot_wait_seconds: float = 120.0
    step_deadline_seconds: float = 900.0
    lease_seconds: float = 120.0
    maintain_every_commits: int = 50
