"""Runs SQL on a lakehouse's tables by a Spark session that knows nothing of the product: what
somebody else does to them. A process of its own, since a process has one session only.

    python -m tests.lake_sql '{"warehouse": ...}' "DELETE FROM lake.shop.items WHERE id = 1" ...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROWS = "rows: "
ROOT = Path(__file__).resolve().parents[1]


def lake_sql(params: Mapping[str, Any], *statements: str) -> None:
    """Run the statements, one after the other."""
    command = [sys.executable, "-m", "tests.lake_sql", json.dumps(params), *statements]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)


def lake_rows(params: Mapping[str, Any], *queries: str) -> list[list[dict[str, Any]]]:
    """The rows of each query, with texts in place of what JSON does not have."""
    command = [sys.executable, "-m", "tests.lake_sql", json.dumps(params), *queries]
    done = subprocess.run(command, cwd=ROOT, check=True, timeout=300, stdout=subprocess.PIPE)
    lines = done.stdout.decode().splitlines()
    return [json.loads(line.removeprefix(_ROWS)) for line in lines if line.startswith(_ROWS)]


def main(values: Mapping[str, Any], statements: list[str]) -> None:
    from replicators.connectors.params import parse
    from replicators.targets.lakehouse import PLUGIN
    from runners.engine.settings import RunnerSettings
    from runners.engine.tasks.spark import open_session

    params = parse(PLUGIN.params, values)
    folder = os.environ.get("REPLICATOR_JARS_DIR", str(ROOT / "var" / "jars"))
    settings = RunnerSettings(jars_dir=folder, spark_master="local[1]")
    spark = open_session(settings, "sql", PLUGIN.jars(params), PLUGIN.spark_conf(params))
    for statement in statements:
        rows = [row.asDict() for row in spark.sql(statement).collect()]
        sys.stdout.write(f"{_ROWS}{json.dumps(rows, default=str)}\n")
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
