"""What another tool does to the tables of an Iceberg target: SQL in a Spark of its own, which knows
nothing of replicators."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from runners.engine.tasks.spark import class_options

ROOT = Path(__file__).resolve().parents[2]
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def run_sql(target: dict[str, Any], *statements: str) -> None:
    """Run the statements, in a process of its own; `{}` in them stands for the namespace's path."""
    given = json.dumps([target, list(statements)])
    command = [sys.executable, "-m", "tests.e2e.another_tool", given]
    subprocess.run(command, cwd=ROOT, check=True, timeout=180)


def main() -> None:
    """Run what the argument says."""
    from pyspark.sql import SparkSession

    target, statements = json.loads(sys.argv[1])
    name = target["catalog_name"]
    jars = [str(p) for n in ("iceberg-spark-runtime", "sqlite") for p in _jars(n)]
    one = f"spark.sql.catalog.{name}"
    conf = {
        "spark.jars": ",".join(jars),
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": f"{QUICK} {class_options(str(ROOT / 'var' / 'jars'))}",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        one: "org.apache.iceberg.spark.SparkCatalog",
        f"{one}.type": "jdbc",
        f"{one}.uri": "jdbc:" + target["catalog_uri"].replace(":///", ":"),
        f"{one}.jdbc.schema-version": "V1",
        f"{one}.warehouse": target["warehouse"],
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for statement in statements:
        spark.sql(statement.replace("{}", f"{name}.{target['namespace']}"))
    spark.stop()


def _jars(name: str) -> list[Path]:
    found = sorted((ROOT / "var" / "jars").glob(f"{name}*.jar"))
    assert found, f"no {name} in var/jars: run `make setup`"
    return found


if __name__ == "__main__":
    main()
