"""Reads open tables by a DuckDB that knows nothing of the product, in a process and an environment
of its own: its extensions come as wheels, and none is downloaded."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from setup.steps import DUCKDB

_CODE = """
import glob, json, os, sys
import duckdb
kind, place = sys.argv[1:]
own = os.path.dirname(os.path.dirname(duckdb.__file__))
opened = duckdb.connect(config={"autoinstall_known_extensions": "false"})
for name in ("avro", "iceberg", "delta"):
    (path,) = glob.glob(f"{own}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")
    opened.execute(f"LOAD '{path}'")
found = opened.execute(f"SELECT * FROM {kind}_scan(?)", [place])
names = [d[0] for d in found.description]
print(json.dumps([dict(zip(names, row)) for row in found.fetchall()], default=str))
"""


def duckdb_rows(kind: str, place: str) -> list[dict[str, Any]]:
    """The rows of an Iceberg table (`iceberg`, by its metadata file) or of a Delta table (`delta`,
    by its folder), with texts in place of what JSON does not have."""
    python = DUCKDB / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"{DUCKDB} is missing: `make setup-tests` installs it.")
    command = [str(python), "-c", _CODE, kind, place]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
