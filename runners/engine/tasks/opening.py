"""Opens the Spark session of a run. Beside that it prepares what the run needs right afterwards:
the target's modules while the JVM starts, Spark's Python workers while source and target are
opened. A start uses one core, all in all. A preparation that fails, fails again where its result is
needed, and is reported there."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.scratch import scratch_dir
from runners.engine.tasks.sharing.client import impatient, joined
from runners.engine.tasks.spark import jvm_ended, open_session
from runners.engine.tasks.worker import MODULES, load_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicators.connectors.source import SourcePlugin
    from replicators.connectors.target import TargetPlugin

logger = logging.getLogger("replicator.opening")

WORKERS = 2
TASKS = (
    "runners.engine.tasks.on_spark",
    "runners.engine.decode.job",
    "runners.engine.fold.plan",
    "runners.engine.snapshot.chunks",
)
"""What the tasks of every run import."""


@contextmanager
def opened_for(
    job: Job,
    settings: RunnerSettings,
    task_modules: tuple[str, ...] = (),
    *,
    is_shared: bool = False,
) -> Iterator[SparkSession]:
    """The session, as `open_session` opens it; it is stopped at the end. `run:spark-lost` replaces
    an error that was raised because the session's JVM has ended. `task_modules`: what tasks import
    besides what a run's tasks do. `is_shared`: on the machine's shared Spark, for one session of a
    replicator."""
    params = job.target_params
    _beside("imports", load_all, job.target.modules(params))
    if is_shared:
        conf = job.target.spark_conf(params)
        with on_shared(settings, job.replicator, conf) as spark:
            yield spark
        return
    workers = workers_conf(job.source, job.target, task_modules)
    conf = {**job.target.spark_conf(params), **workers}
    local = with_scratch(settings)
    with properties_for(job, settings) as properties:
        jars = (*job.target.jars(params), *job.source.jars(job.source_params))
        variables = job.target.driver_environment(params)
        names = tuple(dict.fromkeys(jars))
        spark = open_session(local, job.name, names, conf, properties, variables)
        _beside("workers", _begin, spark)
        with _ended_well(spark):
            yield spark


@contextmanager
def properties_for(job: Job, settings: RunnerSettings) -> Iterator[Mapping[str, str]]:
    """The target's `driver_properties`. The files that they name lie in a folder that only this
    user may enter, and are removed at the end. If a killed process left some, they go with its
    scratch folder. None over Spark Connect, whose server has its own."""
    if settings.spark_remote:
        yield {}
        return
    is_here = settings.spark_master.startswith("local")
    try:
        scratch = scratch_dir(settings.spark_local_dir if is_here else "")
        folder = mkdtemp(prefix="private-", dir=scratch)
    except OSError as err:
        raise ReplicationError("run:spark") from err
    try:
        yield job.target.driver_properties(job.target_params, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_scratch(settings: RunnerSettings) -> RunnerSettings:
    """The settings with the run's own scratch folder, where Spark runs on this machine. `run:spark`
    where none can be made."""
    if settings.spark_remote or not settings.spark_master.startswith("local"):
        return settings
    try:
        return replace(settings, spark_local_dir=scratch_dir(settings.spark_local_dir))
    except OSError as err:
        raise ReplicationError("run:spark") from err


def workers_conf(
    source: SourcePlugin, target: TargetPlugin, more: tuple[str, ...] = ()
) -> dict[str, str]:
    """Spark settings that make its Python workers begin with everything that the tasks of a run
    from this source into this target import, and with `more`."""
    names = (*TASKS, *source.task_modules, *target.task_modules, *more)
    return {
        "spark.python.daemon.module": "runners.engine.tasks.worker",
        f"spark.executorEnv.{MODULES}": ",".join(names),
    }


@contextmanager
def on_shared(
    settings: RunnerSettings, owner: str, conf: Mapping[str, str]
) -> Iterator[SparkSession]:
    """The one session of this owner on the machine's shared Spark, which has all jars and the
    modules of all tasks."""
    with joined(settings.spark_shared_dir, owner) as place:
        there = replace(settings, spark_remote=place.url)
        spark: Any = impatient(open_session(there, owner, (), dict(conf)))
        spark.shared_place = place
        spark.turn = place.turn
        with _ended_well(spark):
            yield spark


@contextmanager
def _ended_well(spark: Any) -> Iterator[None]:
    """Stop the session at the end. `run:spark-lost` replaces an error that was raised because its
    JVM has ended."""
    try:
        yield
    except Exception as err:
        if jvm_ended(spark):
            raise ReplicationError("run:spark-lost") from err
        raise
    finally:
        if not jvm_ended(spark, 0):
            spark.stop()


def _beside(name: str, act: Callable[[Any], None], about: Any) -> None:
    threading.Thread(target=act, args=(about,), name=name, daemon=True).start()


def _begin(spark: SparkSession) -> None:
    try:
        spark.range(0, WORKERS, 1, WORKERS).mapInArrow(_as_it_is, "id bigint").collect()
    except Exception as err:  # noqa: BLE001 - the run may have ended meanwhile
        logger.debug("No workers beforehand: %s", err)


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
