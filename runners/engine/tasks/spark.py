"""The one place where a Spark session is made. DataFrame API only: nothing here or elsewhere
touches an RDD."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.settings import RunnerSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]

_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.python.worker.reuse": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.shuffle.spill.maxSizeInBytesForSpillThreshold": "128m",  # few large rows fill the heap
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.ui.explainMode": "simple",  # nobody sees the plans that Spark describes
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": (Path(__file__).parent / "pools.xml").as_uri(),
}
_PER_SESSION = ("spark.sql.", "spark.hadoop.", "spark.databricks.")
_STATIC = frozenset({"spark.sql.extensions", "spark.sql.ui.retainedExecutions"})
"""What a session can have for itself over Spark Connect, and what of that its server alone has."""
DECODE_POOL = "decode"
"""The pool's name in `pools.xml`. All other jobs share the default pool, first in first out."""
_POOL = "spark.scheduler.pool"
_JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m "
    "-XX:MaxMetaspaceSize=320m "
    "-Dderby.system.home=/nonexistent"
)

QUIET_SHARING = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def class_archive(jars_dir: str) -> Path:
    """Where set-up keeps the JVM's classes (`class_sharing`): beside the jars."""
    return Path(jars_dir).absolute() / "classes.jsa"


def class_options(jars_dir: str) -> str:
    """The JVM's options to use that archive; empty where there is none."""
    archive = class_archive(jars_dir)
    return f"-XX:SharedArchiveFile={archive} {QUIET_SHARING}" if archive.is_file() else ""


def driver_address(settings: RunnerSettings) -> dict[str, str]:
    """The address at which executors find the driver, and where it listens. An executor on another
    machine can't reach 127.0.0.1. So without a setting only a local master uses that address; for
    others Spark finds the machine's own."""
    is_here = settings.spark_master.startswith("local")
    host = settings.spark_driver_host or ("127.0.0.1" if is_here else "")
    bind = settings.spark_driver_bind_address or (
        "127.0.0.1" if is_here and not settings.spark_driver_host else ""
    )
    found = {"spark.driver.host": host, "spark.driver.bindAddress": bind}
    return {name: value for name, value in found.items() if value}


def chosen_conf(text: str) -> dict[str, str]:
    """The settings of `spark_conf`. `run:spark-conf` where a part is not `spark.name=value`."""
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise ReplicationError("run:spark-conf", part=name.strip())
        found[name.strip()] = value.strip()
    return found


def executor_conf(settings: RunnerSettings) -> dict[str, str]:
    """What executors get. Spark's own cluster manager counts cores; others count executors."""
    cores, count = settings.spark_executor_cores, settings.spark_executor_count
    found = {
        "spark.executor.memory": settings.spark_executor_memory,
        "spark.executor.cores": str(cores or ""),
        "spark.executor.instances": str(count or ""),
    }
    if settings.spark_master.startswith("spark://") and cores and count:
        found["spark.cores.max"] = str(cores * count)
    return {name: value for name, value in found.items() if value}


@contextmanager
def in_pool(spark: SparkSession, pool: str) -> Iterator[None]:
    """Meanwhile, jobs of this thread go to that pool of the scheduler. Does nothing with Spark
    Connect, whose server has its own."""
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        yield
        return
    context = spark.sparkContext
    context.setLocalProperty(_POOL, pool)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, None)


def jvm_ended(spark: Any, within_seconds: float = 0.5) -> bool:
    """Whether the session's JVM has ended, or ends within that time: the one that this process
    started, or the shared one. Never true of another Spark Connect server. A JVM's socket closes
    some moments before its process is seen to have ended."""
    place = getattr(spark, "shared_place", None)
    if place is not None:
        return bool(place.has_ended(within_seconds))
    gateway = getattr(getattr(spark, "_sc", None), "_gateway", None)
    process = getattr(gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(within_seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def require_jvm(spark: Any) -> None:
    """`run:spark-lost` where the session's JVM has ended."""
    if jvm_ended(spark, 0):
        raise ReplicationError("run:spark-lost")


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java").exists() if home else shutil.which("java") is not None
    if not found:
        raise ReplicationError("run:java-missing")


def _jar_paths(folder: str, prefixes: tuple[str, ...]) -> list[str]:
    """The jars whose names begin with one of `prefixes`; every prefix must be there."""
    found: list[str] = []
    for prefix in prefixes:
        names = sorted(Path(folder).glob(f"{prefix}*.jar"))
        if not names:
            raise ReplicationError("run:jars-missing", folder=folder)
        found += [str(p.absolute()) for p in names]
    return found


@contextmanager
def _lent(variables: Mapping[str, str]) -> Iterator[None]:
    """A process that starts meanwhile has these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def open_session(
    settings: RunnerSettings,
    name: str,
    jars: tuple[str, ...],
    conf: dict[str, str],
    properties: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process: local, a cluster's, or Spark Connect. Takes about 6 s.
    `properties` are Java properties for the driver's JVM, where that JVM is ours; `variables` are
    for its environment alone.
    `run:java-missing`, `run:jars-missing`, `run:spark`."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    os.environ["PYTHONPATH"] = path
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if settings.spark_remote:
        builder = builder.remote(settings.spark_remote)
    else:
        _require_java()
        if settings.spark_master.startswith("local-cluster"):
            import pyspark

            os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        builder = builder.master(settings.spark_master)
        builder = builder.config("spark.jars", ",".join(_jar_paths(settings.jars_dir, jars)))
        builder = builder.config("spark.driver.memory", settings.spark_driver_memory)
        for key, value in {**driver_address(settings), **executor_conf(settings)}.items():
            builder = builder.config(key, value)
        java_options = (
            _JAVA_OPTIONS,
            class_options(settings.jars_dir),
            settings.spark_java_options,
        )
        builder = builder.config(
            "spark.driver.extraJavaOptions", " ".join(filter(None, java_options))
        )
        builder = builder.config("spark.executorEnv.PYTHONPATH", path)
        if settings.spark_local_dir:
            builder = builder.config("spark.local.dir", settings.spark_local_dir)
    wanted = {**_CONF, **conf, **chosen_conf(settings.spark_conf)}
    if settings.spark_remote:
        wanted = {k: v for k, v in wanted.items() if k.startswith(_PER_SESSION)}
        wanted = {k: v for k, v in wanted.items() if k not in _STATIC}
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        with _lent(variables or {}):
            session = builder.getOrCreate()
        for key, value in (properties or {}).items():
            session._jvm.System.setProperty(key, value)
        return session
    except ReplicationError:
        raise
    except Exception as err:
        raise ReplicationError("run:spark") from err
