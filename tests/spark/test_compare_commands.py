"""The commands of the README and of docs/compare.md, as a person types them. Each starts a JVM."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from decimal import Decimal
from pathlib import Path

import fastavro
import pytest

from setup.machine import ROOT

pytestmark = pytest.mark.spark

_BLOCK = re.compile(r"```sh\n(\. \.venv/bin/activate\n.*?)```", re.S)
RESULT = "I        2,000\n  U        4,000\n  D        2,000\n  X            0\n  N        4,000\n"


def commands(page: str) -> str:
    found = _BLOCK.findall((ROOT / page).read_text())
    assert len(found) == 1
    return str(found[0])


def bash(text: str) -> subprocess.CompletedProcess[str]:
    """What the commands wrote. Where they take too long, their JVMs end too."""
    argv = ["bash", "-ec", text]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=280)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


@pytest.mark.long
def test_the_readmes_two_days_give_the_seeds_counts(tmp_path: Path) -> None:
    """Then the second day comes again, by the other command."""
    typed = commands("README.md")
    assert typed == commands("docs/compare.md")
    here = typed.replace("var/days", str(tmp_path / "days"))
    found = bash(here)
    assert found.returncode == 0, found.stderr[-3000:]
    assert "2019-06-18: 10,000 rows were compared.\n  I       10,000\n" in found.stdout
    assert f"2019-06-19: 10,000 rows were compared.\n  {RESULT}" in found.stdout
    days = tmp_path / "days"
    again = bash(
        ". .venv/bin/activate; python manage.py compare "
        f"{days}/config.yaml {days}/data/day2 2019-06-19"
    )
    assert again.returncode == 0, again.stderr[-3000:]
    assert "2019-06-19 was compared before. Nothing was changed." in again.stdout
    assert RESULT in again.stdout


def test_a_faulty_configuration_is_named_by_line_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("keys: {id: int}\nkind: ful\n")
    for command in ("python cdc.py", "python manage.py compare"):
        asked = f"{tmp_path}/config.yaml {tmp_path} 2019-06-18"
        found = bash(f". .venv/bin/activate; {command} {asked}")
        assert found.returncode == 1
        assert f"{tmp_path}/config.yaml: line 1: `current` is missing" in found.stderr
        assert "line 2: `kind` must be one of full, delta" in found.stderr


AVRO = """
format: parquet
keys: {id: bigint}
non_keys: {name: string, share: "decimal(10,2)"}
current: {path: {folder}/current}
history: {path: {folder}/history}
input: {format: avro}
"""
_SHARE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def _avro(folder: Path, rows: list[tuple[int, str, str]]) -> None:
    fields = [("id", "long"), ("name", "string"), ("share", _SHARE)]
    schema = {
        "type": "record",
        "name": "people",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    folder.mkdir(parents=True)
    with (folder / "one.avro").open("wb") as out:
        records = [{"id": n, "name": name, "share": Decimal(share)} for n, name, share in rows]
        fastavro.writer(out, fastavro.parse_schema(schema), records)


@pytest.mark.long
def test_days_in_avro_need_no_packages(tmp_path: Path) -> None:
    """Guards the jar of Avro: Spark has no reader of its own, and would stop with a name of a
    package that a machine without the internet can't fetch."""
    (tmp_path / "config.yaml").write_text(AVRO.replace("{folder}", str(tmp_path)))
    _avro(tmp_path / "day1", [(1, "a", "1.50"), (2, "b", "2.00")])
    _avro(tmp_path / "day2", [(1, "a", "1.75"), (3, "c", "3.00")])
    typed = " && ".join(
        f"python cdc.py {tmp_path}/config.yaml {tmp_path}/{day} {date}"
        for day, date in (("day1", "2026-01-01"), ("day2", "2026-01-02"))
    )
    found = bash(f". .venv/bin/activate; {typed}")
    assert found.returncode == 0, found.stderr[-3000:]
    counts = re.findall(r"([IUDXN]) +(\d+)", found.stdout.partition("2026-01-02")[2])
    assert dict(counts) == {"I": "1", "U": "1", "D": "1", "X": "0", "N": "0"}


HIVE = """\
kind: full
keys: {{id: int}}
non_keys: {{name: string}}
current: {{path: {0}/current, table: shop.people}}
history: {{path: {0}/history, table: shop.people_history}}
catalog: {{type: hive, warehouse: {0}/warehouse}}
"""
READ = """\
import sys
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]").enableHiveSupport()
    .config("spark.sql.warehouse.dir", sys.argv[1]).getOrCreate()
)
people = "SELECT id, name, OPERATION FROM shop.people ORDER BY id"
print([tuple(r) for r in spark.sql(people).collect()])
print([r[0] for r in spark.sql("SHOW PARTITIONS shop.people_history").collect()])
print(spark.table("shop.people_history").count())
"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_parquet_tables_are_known_in_a_hive_metastore(tmp_path: Path) -> None:
    """Guards the registration in Spark's own Hive metastore: another session reads the new current
    set by its name, and the history has a partition for each date."""
    (tmp_path / "config.yaml").write_text(HIVE.format(tmp_path))
    days = {"2019-06-18": "id,name\n1,Ann\n2,Bob\n", "2019-06-19": "id,name\n1,Ann\n2,Bo\n3,Cy\n"}
    for name, text in days.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "people.csv").write_text(text)
        asked = f"{tmp_path}/config.yaml {tmp_path}/{name} {name}"
        found = bash(
            f". .venv/bin/activate; export PYTHONPATH=$PWD; cd {tmp_path}; "
            f'spark-submit --conf spark.ui.enabled=false "$OLDPWD/cdc.py" {asked}'
        )
        assert found.returncode == 0, found.stderr[-3000:]
    (tmp_path / "read.py").write_text(READ)
    read = bash(
        f". .venv/bin/activate; cd {tmp_path}; python read.py {tmp_path}/warehouse 2>/dev/null"
    )
    assert read.stdout.splitlines() == [
        "[(1, 'Ann', 'N'), (2, 'Bo', 'U'), (3, 'Cy', 'I')]",
        "['EFF_START_DATE=2019-06-18', 'EFF_START_DATE=2019-06-19']",
        "4",
    ]
