"""Opens the Spark session of a run, and gets ready beside it what the run needs right afterwards: the target's modules while the JVM starts,
Spark's Python workers while source and target are opened. A start uses one core, all in all. What fails beside it fails again, and is told,
where it is needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.spark import open_session
from runners.engine.spark_daemon import MODULES, load_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("replicator.opening")

WORKERS = 2
_TASKS = ("runners.engine.decode", "runners.engine.folding", "runners.engine.snapshot")


def open_for(job: Job, settings: RunnerSettings) -> SparkSession:
    """The session, as `open_session` opens it."""
    params = job.target_params
    _beside("imports", load_all, job.target.modules(params))
    conf = {**job.target.spark_conf(params), **workers_conf(job)}
    spark = open_session(settings, job.name, job.target.jars(params), conf)
    _beside("workers", _begin, spark)
    return spark


def workers_conf(job: Job) -> dict[str, str]:
    """Spark settings by which its Python workers begin with everything that the job's tasks import."""
    names = (*_TASKS, *job.source.task_modules)
    return {
        "spark.python.daemon.module": "runners.engine.spark_daemon",
        f"spark.executorEnv.{MODULES}": ",".join(names),
    }


def _beside(name: str, act: Callable[[Any], None], about: Any) -> None:
    threading.Thread(target=act, args=(about,), name=name, daemon=True).start()


def _begin(spark: SparkSession) -> None:
    try:
        spark.range(0, WORKERS, 1, WORKERS).mapInArrow(_as_it_is, "id bigint").collect()
    except Exception as err:  # noqa: BLE001 - the run may have ended meanwhile
        logger.debug("No workers beforehand: %s", err)


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
