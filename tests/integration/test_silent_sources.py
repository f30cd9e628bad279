"""A real web process whose people look into servers that stay silent."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.limits import Limit, limited
from setup import processes
from tests.fakes.silent import SilentServer
from tests.mysql_servers import fresh_sql_database

ROOT = Path(__file__).parents[2]
LOOKS = 50
LOOK_SECONDS = 3
_TOKEN = """
from django.contrib.auth.models import Group, User
from replicators.tokens import token_create
user = User.objects.create_user("editor")
user.groups.add(Group.objects.get(name="editor"))
print("token", token_create(user=user, name="t")[1])
"""


@dataclass(frozen=True, slots=True)
class Web:
    """Its address, an editor's token, and its database."""

    url: str
    token: str
    database: Path


def answered(url: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """Status and headers."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(url, data, headers if token else {})
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, found.headers
    except urllib.error.HTTPError as err:
        return err.code, err.headers


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Production, as `make serve` starts it."""
    place = tmp_path_factory.mktemp("web")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
        "DEBUG": "false",
        "HTTPS": "false",
        "SECRET_KEY": "x" * 60,
        "REPLICATOR_SECRET_KEY": "y" * 60,
        "REPLICATOR_VAR_DIR": str(place),
        "DATABASE_URL": f"sqlite:///{place}/app.sqlite3",
        "REPLICATOR_LOOK_SECONDS": str(LOOK_SECONDS),
        "REPLICATOR_WEB_WAIT_SECONDS": "0.5",
    }
    environment.pop("REDIS_URL", None)

    def manage(*arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        ).stdout

    manage("migrate", "-v0")
    token = manage("shell", "-v0", "-c", _TOKEN).split()[-1]
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(processes.web(f"127.0.0.1:{port}"), cwd=ROOT, env=environment)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                answered(f"http://127.0.0.1:{port}/healthz")
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
        yield Web(f"http://127.0.0.1:{port}", token, place / "app.sqlite3")
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.integration
@pytest.mark.parametrize("kind", [pytest.param("postgresql", marks=pytest.mark.long), "mysql"])
def test_the_web_process_answers_while_fifty_looks_hang(web: Web, kind: str) -> None:
    """Guards `assessments.looks`: eight such requests took the web process down, its health page
    too. Four are asked for, as many as may be; the others are refused at once, and all are answered
    in time. Then the process looks into servers as before."""
    url, token = web.url, web.token
    found: list[tuple[int, Any]] = []
    with getattr(SilentServer, kind)() as server:
        params = {"host": "127.0.0.1", "port": server.port, "user": "u", "database": "d"}
        body = {"kind": kind, "params": params}
        began = time.monotonic()
        asked = [
            threading.Thread(
                target=lambda: found.append(answered(f"{url}/api/v1/sources/tables/", body, token))
            )
            for _ in range(LOOKS)
        ]
        for thread in asked:
            thread.start()
        while server.asked < 4:
            assert time.monotonic() - began < 30, f"{server.asked} looks went on"
        assert any(thread.is_alive() for thread in asked)
        for path in ("/healthz", "/readyz", "/api/v1/replicators/"):
            before = time.monotonic()
            assert answered(f"{url}{path}", token=token)[0] == 200
            assert time.monotonic() - before < LOOK_SECONDS / 2, "it waited for a look"
        for thread in asked:
            thread.join(60)
        counts = Counter(status for status, _ in found)
        assert set(counts) == {503, 504} and sum(counts.values()) == LOOKS, counts
        assert all(h["Retry-After"] == "5" for status, h in found if status == 503)
        for _ in range(counts[504]):
            assert server.gone.acquire(timeout=10), "a connection stayed"
        assert answered(f"{url}/api/v1/sources/tables/", body, token)[0] == 504


@pytest.mark.integration
def test_what_can_not_be_written_now_is_reported_with_a_time_to_come_again(web: Web) -> None:
    """Guards `project.unavailable` and `wsgi`: a locked database was a fault of ours, after half a
    minute."""
    url = f"{web.url}/api/v1/drafts/"
    with closing(sqlite3.connect(web.database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        status, headers = answered(url, {"name": "a"}, web.token)
        assert (status, headers["Retry-After"]) == (503, "5")
        assert time.monotonic() - began < 15
    assert answered(url, {"name": "a"}, web.token)[0] == 201


def reported_postgresql(request: pytest.FixtureRequest) -> str:
    from replicators.sources.postgresql.connections import connect
    from replicators.sources.postgresql.params import PostgresqlParams

    params = PostgresqlParams(**request.getfixturevalue("database").params)
    with connect(params) as connection:
        return str(connection.execute("SHOW statement_timeout").fetchall()[0][0])


def reported_sql(name: str) -> Callable[[pytest.FixtureRequest], float]:
    def reported(request: pytest.FixtureRequest) -> float:
        from replicators.sources.mysql.connections import connect, query
        from replicators.sources.mysql.params import MysqlParams

        with fresh_sql_database(request.getfixturevalue(name)) as made:
            variable = "max_execution_time" if name == "mysql" else "max_statement_time"
            with connect(MysqlParams(**made.params)) as connection:
                return float(query(connection, f"SELECT @@session.{variable}")[0][0])

    return reported


@pytest.mark.integration
@pytest.mark.parametrize(
    ("reported", "in_a_look", "in_a_run"),
    [
        (reported_postgresql, "31s", "0"),
        (reported_sql("mariadb"), 31.0, 0.0),
        (reported_sql("mysql"), 31_000.0, 0.0),
    ],
    ids=["postgresql", "mariadb", "mysql"],
)
def test_a_server_ends_the_statement_of_a_look_itself_and_never_one_of_a_run(
    request: pytest.FixtureRequest,
    reported: Callable[[pytest.FixtureRequest], Any],
    in_a_look: Any,
    in_a_run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `limits.statement_seconds`: the server would go on with what nobody waits for any
    more."""
    assert reported(request) == in_a_run
    limit = Limit(30)
    monkeypatch.setattr(limit, "left", lambda: 30.0)
    with limited(limit):
        assert reported(request) == in_a_look
