"""One Spark session for all tests that need one in their own process, with the conf of both
lakehouse formats."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.params import LakehouseParams
from runners.engine.tasks.spark import class_options

ROOT = Path(__file__).resolve().parents[1]


def lakehouse_params(root: Path, form: str, **values: Any) -> LakehouseParams:
    """Params of a lakehouse of either format under `root`."""
    return LakehouseParams(
        warehouse=str(root / form),
        catalog_uri=f"sqlite:///{root}/catalog.db",
        format=form,
        **values,
    )


@pytest.fixture(scope="session")
def lakehouse_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of catalog and warehouses."""
    return tmp_path_factory.mktemp("lakehouse")


@pytest.fixture(scope="session")
def spark(lakehouse_root: Path) -> Iterator[Any]:
    """A local session on two cores."""
    jars_dir = Path(os.environ.get("REPLICATOR_JARS_DIR", ROOT / "var" / "jars"))
    if not jars_dir.is_dir():
        pytest.skip("the lakehouse jars are not there: run `make setup`")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    conf: dict[str, str] = {}
    jars: set[str] = set()
    for form in ("iceberg", "delta"):
        params = lakehouse_params(lakehouse_root, form)
        for name, value in PLUGIN.spark_conf(params).items():
            both = name == "spark.sql.extensions" and name in conf
            conf[name] = f"{conf[name]},{value}" if both else value
        names = (*PLUGIN.jars(params), "postgresql", "spark-avro_2.13")
        jars |= {str(p) for n in names for p in jars_dir.glob(f"{n}-[0-9]*.jar")}
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars", ",".join(jars))
    )
    conf |= {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
        f"-XX:ReservedCodeCacheSize=160m {class_options(str(jars_dir))}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(lakehouse_root / "default"),
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
