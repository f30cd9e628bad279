"""A line's working environment: folder, scale, plugins, Spark session. Knows no line."""

from __future__ import annotations

import logging
import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replicators.connectors import registry
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.opening import workers_conf
from runners.engine.tasks.spark import open_session

ROOT = Path(__file__).resolve().parents[1]
SOURCE = registry.sources()["postgresql"]
TARGET = registry.targets()["lakehouse"]
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
logger = logging.getLogger("benchmarks")


def scaled(rows: int, step: int = 1) -> int:
    """`rows` at this run's scale: a multiple of `step`, and at least one `step`."""
    return max(step, int(rows * SCALE) // step * step)


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """An empty folder of the line's own, removed afterwards. BENCH_DIR sets its parent (default
    var/bench)."""
    path = Path(os.environ.get("BENCH_DIR", ROOT / "var" / "bench")).absolute() / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def settings(place: Path, **values: Any) -> RunnerSettings:
    """The engine's default settings, on two cores, in `place`."""
    return RunnerSettings(
        log_url=str(place / "log"),
        jars_dir=os.environ.get("REPLICATOR_JARS_DIR", str(ROOT / "var" / "jars")),
        spark_local_dir=str(place / "spark"),
        **values,
    )


def source_params(server: Any, database: str = "postgres") -> Any:
    """The source plugin's params for an embedded server."""
    return parse(SOURCE.params, server.params(database))


def target_values(place: Path, form: str = "iceberg", **values: Any) -> dict[str, Any]:
    """A lakehouse in `place`, as a person would enter it in the form."""
    return {
        "format": form,
        "catalog_name": "bench",
        "catalog_uri": f"sqlite:///{place}/catalog.db",
        "warehouse": str(place / "warehouse"),
        "namespace": "bench",
        **values,
    }


def target_params(place: Path, form: str = "iceberg", **values: Any) -> Any:
    """The target plugin's params for `target_values`."""
    return parse(TARGET.params, target_values(place, form, **values))


@contextmanager
def spark(
    place: Path, target: Any, *jars: str, plugin: TargetPlugin = TARGET, **values: Any
) -> Iterator[Any]:
    """A session as the engine makes it, with the tasks' compiled loops in its workers, but with
    the JVM's default compilation: settings that suit our small merges must not slow down a peer in
    the same session. `jars` are added to the target's; `values` are settings of the engine."""
    usual = settings(place, spark_java_options="-XX:TieredStopAtLevel=4", **values)
    conf = {**plugin.spark_conf(target), **workers_conf(SOURCE, plugin)}
    session = open_session(usual, "benchmarks", plugin.jars(target) + jars, conf)
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def describe(params: Any, *tables: TableId) -> list[TableSchema]:
    """The schemas of source tables."""
    with SOURCE.catalog(params) as catalog:
        return list(catalog.describe([TableSelection(t) for t in tables]).values())


def iceberg_table(target: Any, *names: str) -> Any:
    """A table as an outside reader opens it."""
    from pyiceberg.catalog.sql import SqlCatalog

    files = target.store.iceberg_properties()
    catalog = SqlCatalog(
        target.catalog_name, uri=target.catalog_uri, warehouse=target.warehouse_url, **files
    )
    return catalog.load_table(names)


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)
