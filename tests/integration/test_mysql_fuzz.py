"""Mutated real logs of both servers: no crash, no read past an end, no row where a checksum is wrong."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.mysql_source import following, runs
from tests.integration.test_mysql_values import COMMON, MARIADB, MYSQL
from tests.mysql_servers import fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SEGMENTS = int(os.environ.get("FUZZ_SEGMENTS", "1500"))
SEED = os.environ.get("SEED", "1")


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
def test_mutated_events_are_borne(
    request: pytest.FixtureRequest, tmp_path: Path, flavour: str
) -> None:
    """Guards every bound of the compiled loops: in a process where numba checks each index."""
    with fresh_sql_database(request.getfixturevalue(flavour)) as database:
        cases = COMMON | (
            MARIADB if flavour == "mariadb" else {**MYSQL, "json": [("'[1, {\"a\": 2.5}]'", None)]}
        )
        columns = ", ".join(
            f"c{i} {kind} {'' if 'null' in kind else 'null'}" for i, kind in enumerate(cases)
        )
        small = {
            n: v
            for n, v in enumerate(cases.values())
            if len(v[0][0]) < 60 and "repeat" not in v[0][0]
        }
        database.execute(
            f"CREATE TABLE t (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4 ROW_FORMAT=DYNAMIC",
            "CREATE TABLE plain (id int PRIMARY KEY, v varchar(300), n bigint)",
        )
        with following(database, "t", "plain") as follower, database.connect() as connection:
            cursor = connection.cursor()
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            names = ", ".join(f"c{n}" for n in small)
            values = ", ".join(v[0][0] for v in small.values())
            for i in range(3):
                cursor.execute(f"INSERT INTO t (id, {names}) VALUES ({i}, {values})")
            cursor.execute("INSERT INTO plain VALUES (1, 'a', 2), (2, repeat('b', 300), NULL)")
            cursor.execute("UPDATE t SET id = id + 10, c0 = 1")
            cursor.execute("UPDATE plain SET v = 'c'")
            cursor.execute("DELETE FROM t WHERE id = 11")
            cursor.execute("TRUNCATE TABLE plain")
            ((context, body),) = runs(follower.blocks())
            tables = [t.to_json() for t in follower.tables]
    path = tmp_path / "segment.json"
    segment = {
        "context": context,
        "tables": tables,
        "body": base64.b64encode(body.tobytes()).decode(),
    }
    path.write_text(json.dumps(segment))
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_mysql", str(path), str(SEGMENTS), SEED],
        env=environment, capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["table"] > SEGMENTS // 4
    assert seen["log:segment-corrupt"] > SEGMENTS // 4
