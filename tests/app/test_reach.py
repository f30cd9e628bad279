"""A connection leads only where it may: never to the program's own files and database, nor to where
a machine's credentials lie."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from assessments.services import assess, connection_test, describe_table, list_tables, log_fault
from drafts.services import DeployRefused, draft_create, draft_deploy
from replicators import reach
from replicators.config import ReplicatorConfig, parse_params, plugin_of
from replicators.connectors.addresses import Place
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.message import Retry
from replicators.models import Replicator
from runners.management.commands import run_replicator
from runners.models import Run
from tests.app.factories import config_fields, make_replicator, make_run
from tests.app.wizarding import press

pytestmark = pytest.mark.django_db
METADATA = "169.254.169.254"


@pytest.fixture(autouse=True)
def own(settings: Any, tmp_path: Path) -> Path:
    """The program's own folder, with its database and a key."""
    place = tmp_path / "own"
    (place / "log").mkdir(parents=True)
    for name in ("app.sqlite3", "secret_key"):
        (place / name).write_text("x")
    settings.VAR_DIR = place
    settings.REACH_FOLDERS, settings.REACH_HOSTS = [], []
    return place


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Which addresses each host has; other hosts have none."""
    known: dict[str, list[str]] = {}

    def resolved(host: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, 0)) for a in known[host]]

    monkeypatch.setattr(reach.socket, "getaddrinfo", resolved)
    return known


def lake(**values: str) -> Any:
    return parse_params("target", "lakehouse", {"format": "delta", **values})


def refusal(kind: str, params: Any, role: str = "target") -> str:
    """Why it is refused; empty where it is not."""
    try:
        reach.require_reach(plugin_of(role, kind), params)
    except ReplicationError as err:
        return str(err.facts["reason"]) if err.code == "config:place-refused" else err.code
    return ""


def host_refusal(host: str) -> str:
    return refusal("mysql", parse_params("source", "mysql", {"host": host, "user": "u"}), "source")


OWN = "belongs to this program itself"


def test_the_programs_own_files_are_refused_by_every_name(own: Path, tmp_path: Path) -> None:
    """Guards links, hard links, dots and folders that hold or lie in ours."""
    (tmp_path / "link").symlink_to(own)
    os.link(own / "app.sqlite3", tmp_path / "hard.db")
    (tmp_path / "soft.db").symlink_to(own / "app.sqlite3")
    for folder in ("own", "own/new/w", "link", "link/w", "x/../own", "own/log"):
        assert refusal("lakehouse", lake(warehouse=f"{tmp_path}/{folder}")) == OWN, folder
    assert refusal("lakehouse", lake(warehouse=f"file://{tmp_path}/own")) == OWN
    assert refusal("lakehouse", lake(warehouse=str(tmp_path))).startswith("holds files of")
    assert refusal("lakehouse", lake(warehouse="/")).startswith("holds files of")
    for file in ("own/app.sqlite3", "own/new.db", "hard.db", "soft.db", "x/../own/secret_key"):
        params = lake(format="iceberg", warehouse=f"{tmp_path}/w",
            catalog_uri=f"sqlite:///{tmp_path}/{file}")  # fmt: skip
        assert refusal("lakehouse", params) == OWN, file
    assert refusal("lakehouse", lake(warehouse=f"{tmp_path}/owner")) == ""


def test_database_log_keys_and_code_are_among_them(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text("x")
    monkeypatch.setenv("SECRET_KEY_FILE", str(key))
    found = set(reach.own_paths())
    log = os.path.realpath(settings.RUNNER.log_url)
    kept = {str(key), log, str(settings.RUN_LOG_DIR), f"{settings.BASE_DIR}/replicators"}
    assert kept <= found


def test_only_allowed_folders_are_taken_where_some_are_named(settings: Any, tmp_path: Path) -> None:
    """Guards `REPLICATOR_ALLOWED_FOLDERS` against links that lead out of it."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "out").symlink_to("/usr")
    settings.REACH_FOLDERS = [str(allowed)]
    assert refusal("lakehouse", lake(warehouse=f"{allowed}/w")) == ""
    for outside in (f"{tmp_path}/other", f"{allowed}/out/w", f"{allowed}/../other", f"{allowed}2"):
        assert refusal("lakehouse", lake(warehouse=outside)).startswith("lies outside"), outside


def test_a_file_that_is_waited_for_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        values = {"host": "127.0.0.1", "user": "u", "tls": "verify-full", "tls_ca": path}
        assert refusal("mysql", parse_params("source", "mysql", values),
            "source") == "is no regular file"  # fmt: skip


@pytest.mark.parametrize(
    "host", [METADATA, "2852039166", "0xa9fea9fe", "::ffff:169.254.169.254", "fe80::1",
    "fd00:ec2::254"]
)  # fmt: skip
def test_link_local_addresses_are_refused_however_they_are_written(host: str) -> None:
    assert "link-local" in host_refusal(host)


def test_a_name_that_leads_there_is_refused(names: dict[str, list[str]]) -> None:
    """Guards the look behind names: one of several addresses is enough."""
    names |= {"innocent.example": ["10.0.0.1", METADATA], "db.example": ["10.0.0.1"]}
    assert "link-local" in host_refusal("innocent.example")
    assert "link-local" in host_refusal("Innocent.EXAMPLE.")
    assert host_refusal("db.example") == host_refusal("unknown.example") == ""


def test_hosts_are_taken_by_name_pattern_and_network(
    settings: Any, names: dict[str, list[str]]
) -> None:
    """Guards `REPLICATOR_ALLOWED_HOSTS`: of several addresses all must lie in the networks; what is
    named is taken as it is."""
    names |= {"a.db.example": ["1.1.1.1"], "in.x": ["10.1.1.1"], "both.x": ["10.1.1.1", "1.1.1.1"]}
    settings.REACH_HOSTS = ["*.DB.example", "10.0.0.0/8", METADATA, "/run/mysqld"]
    taken = ("a.db.example", "in.x", METADATA)
    refused = ("db.example", "both.x", "evil-db.example", "unknown.x", "1.1.1.1")
    assert [host_refusal(h) for h in taken] == [""] * len(taken)
    assert all("not among the hosts" in host_refusal(h) for h in refused)
    assert message_of("config:place-refused").retry is Retry.AFTER_FIX, "unknown.x may be back soon"
    sockets = [_socket_refusal(f) for f in ("/run/mysqld", "/tmp")]
    assert sockets[0] == "" and "not among the hosts" in sockets[1]


def _socket_refusal(folder: str) -> str:
    values = {"host": folder, "user": "u", "database": "d"}
    return refusal("postgresql", parse_params("source", "postgresql", values), "source")


def test_the_programs_own_database_server_is_refused_only_with_its_database(
    settings: Any, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names |= {"own-db": ["10.0.0.9"], "alias": ["10.0.0.9"], "other": ["10.0.0.8"]}
    engine = {"ENGINE": "django.db.backends.postgresql", "NAME": "app", "HOST": "own-db",
        "PORT": ""}  # fmt: skip
    monkeypatch.setitem(settings.DATABASES, "default", engine)

    def fault(host: str, port: int, database: str) -> str:
        return reach._host_fault(Place("host", host, "Host", port, database))

    assert fault("own-db", 5432, "app") == fault("alias", 5432,
        "app") == "is this program's own database"  # fmt: skip
    own = "is this program's own database"
    engine["HOST"] = ""
    names |= {"localhost": ["127.0.0.1"]}
    assert fault("/run/postgresql", 5432, "app") == fault("localhost", 5432, "app") == own
    engine["HOST"] = "own-db"
    assert [fault("own-db", 5433, "app"), fault("alias", 5432, "shop"),
        fault("other", 5432, "app")] == [""] * 3  # fmt: skip


MYSQL = {"host": METADATA, "user": "u"}
TABLE = TableId("shop", "orders")


def test_every_look_asks_before_it_opens_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards test, list, describe, the look for a log, and the assessment."""

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("it was connected to")

    monkeypatch.setattr("pymysql.connections.Connection.connect", opened)
    (problem,) = connection_test(role="source", kind="mysql", params=MYSQL)
    assert problem.code == "config:place-refused" and METADATA in problem.message.text
    looks = (
        lambda: list_tables(kind="mysql", params=MYSQL),
        lambda: describe_table(kind="mysql", params=MYSQL, table=TABLE),
    )
    for look in looks:
        with pytest.raises(ReplicationError) as caught:
            look()
        assert caught.value.code == "config:place-refused"
    params = parse_params("source", "mysql", MYSQL)
    assert log_fault(kind="mysql", params=params, name="x", position=Position(1)) is None
    config = ReplicatorConfig.parse(config_fields(source_kind="mysql", source_params=MYSQL))
    assert "config:place-refused" in {p.code for p in assess(config).problems}


def test_a_draft_with_such_a_place_is_not_deployed(own: Path) -> None:
    target = {"format": "delta", "warehouse": str(own / "w")}
    fields = config_fields(target_kind="lakehouse", target_params=target)
    with pytest.raises(DeployRefused) as caught:
        draft_deploy(draft=draft_create(actor=None, **fields), actor=None)
    assert "config:place-refused" in {p.code for p in caught.value.problems}
    assert not (own / "w").exists() and not Replicator.objects.exists()


def test_a_change_to_such_a_place_is_refused(api: Client, settings: Any) -> None:
    """Guards the change of what was deployed, also before its log began."""
    settings.REACH_HOSTS = ["127.0.0.1"]
    values = {"host": "127.0.0.1", "user": "u"}
    found = make_replicator(source_kind="mysql", source_params=values)
    body = {"source_params": {"host": METADATA}}
    refused = api.patch(f"/api/v1/replicators/{found.pk}/", body, "application/json")
    assert (refused.status_code, refused.json()["code"]) == (400, "config:place-refused")
    found.refresh_from_db()
    assert found.source_params["host"] == "127.0.0.1"


def test_a_run_asks_when_it_starts(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Guards settings that were made narrower, and names that lead elsewhere since the deploy."""
    values = {"host": "127.0.0.1", "user": "u"}
    run = make_run(make_replicator(source_kind="mysql", source_params=values))
    settings.REACH_HOSTS = ["elsewhere.example"]
    started: list[Any] = []
    monkeypatch.setattr("runners.engine.run.run_engine", lambda *a, **_: started.append(a))
    monkeypatch.setattr(run_replicator, "started_at", lambda pid: 0.0)
    assert run_replicator._run(str(run.pk), run.lease,
        threading.Event()) == run_replicator.EXIT_ERROR  # fmt: skip
    assert Run.objects.get(pk=run.pk).error_code == "config:place-refused" and not started


def test_the_page_says_why(browser: Client, own: Path) -> None:
    draft = draft_create(actor=None, **config_fields())
    typed = {
        "target_kind": "lakehouse",
        "target.format": "iceberg",
        "target.warehouse": str(own.parent / "w"),
        "target.catalog_uri": f"sqlite:///{own}/app.sqlite3",
        "target.catalog_name": "lake",
    }
    html = press(browser, draft, "target", "test", htmx=True, **typed).content.decode()
    assert 'data-code="config:place-refused"' in html and OWN in html
    assert "Makes and changes nothing" in html
