"""A lakehouse is looked at before anything runs: what is wrong is named with its path, and nothing
is made or changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.targets.lakehouse import PLUGIN, catalog, checks, looks
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.errors import code_of
from replicators.targets.lakehouse.params import LakehouseParams, places
from replicators.targets.lakehouse.writer import LakehouseWriter


def _everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p): (p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in folder.rglob("*")
    }


def _params(folder: Path, **values: str) -> LakehouseParams:
    known = {"warehouse": f"{folder}/w", "catalog_uri": f"sqlite:///{folder}/c.db", **values}
    return LakehouseParams(**known)  # type: ignore[arg-type]


def _reported(problem: Problem | None) -> str:
    assert problem is not None
    return f"{problem.code} {problem.message.text}"


def _catalog(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.execute(
            "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, "
            "metadata_location, "
            "previous_metadata_location, iceberg_type)"
        )
    made.close()


@pytest.mark.parametrize("is_made", [False, True])
def test_a_look_changes_nothing(tmp_path: Path, is_made: bool) -> None:
    """Guards *Makes and changes nothing* on the page; the test of a connection made folders, a file
    and its header."""
    place = tmp_path / "lake"
    params = _params(place)
    if is_made:
        (place / "w").mkdir(parents=True)
        _catalog(place / "c.db")
    before = _everything(tmp_path)
    checks = LakehouseChecks(params)
    assert [p for p in checks.connection() if p.severity == "ERROR"] == []
    assert checks.tables([], "r1") == []
    assert catalog.is_there(params) is is_made
    assert _everything(tmp_path) == before


def test_the_file_of_a_catalog_in_wal_mode_is_looked_at_without_a_change(tmp_path: Path) -> None:
    """Guards the read-only look where SQLite keeps files beside the database."""
    _catalog(tmp_path / "c.db")
    with sqlite3.connect(tmp_path / "c.db") as made:
        made.execute("PRAGMA journal_mode=WAL")
    made.close()
    before = _everything(tmp_path)
    assert catalog.is_there(_params(tmp_path))
    assert _everything(tmp_path) == before


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file of another kind": (lambda p: p.write_text("not a database"), "not a SQLite database"),
    "a folder": (lambda p: p.mkdir(), "it is a folder, not a SQLite database"),
    "a pipe": (os.mkfifo, "it is no regular file"),
    "a device": (lambda p: p.symlink_to("/dev/zero"), "it is no regular file"),
    "a link to nowhere": (lambda p: p.symlink_to("/nowhere/at/all"), "a link that leads nowhere"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_catalog_that_is_no_database_is_named(tmp_path: Path, name: str) -> None:
    """Guards `looks.database`: a pipe would be waited for, a device never ends; both were "does not
    answer"."""
    make, said = CASES[name]
    make(tmp_path / "c.db")
    (tmp_path / "w").mkdir()
    (found,) = LakehouseChecks(_params(tmp_path)).connection()
    assert _reported(found).startswith("target:place-unusable")
    assert said in found.message.text and f"`{tmp_path}/c.db`" in found.message.text


def test_an_empty_file_may_become_a_catalog(tmp_path: Path) -> None:
    (tmp_path / "c.db").touch()
    assert looks.database(str(tmp_path / "c.db")) is None


def test_a_place_below_a_file_or_a_dead_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "a file, or lies below one" in _reported(looks.folder(f"{tmp_path}/file"))
    assert "a file, or lies below one" in _reported(looks.folder(f"{tmp_path}/file/a/b"))
    assert "a link that leads nowhere" in _reported(looks.folder(f"{tmp_path}/link"))
    assert "a link that leads nowhere" in _reported(looks.folder(f"{tmp_path}/link/a"))
    assert "can't open it" in _reported(looks.folder(f"{tmp_path}/{'x' * 300}"))


def test_what_is_missing_is_reported_unless_only_the_last_folder_is(tmp_path: Path) -> None:
    """Guards the note by which a misspelt path is seen; a new folder beside others is what people
    mean."""
    assert looks.folder(f"{tmp_path}/new") is None
    reported = _reported(looks.folder(f"{tmp_path}/mispelt/lake"))
    assert reported.startswith("target:folder-made") and f"only `{tmp_path}` is" in reported


def test_rights_are_asked_for_without_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the rights; the tests may run as a user who has all of them."""
    _catalog(tmp_path / "c.db")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not write to it" in _reported(looks.folder(str(tmp_path)))
    assert f"may not make it in `{tmp_path}`" in _reported(looks.folder(f"{tmp_path}/new"))
    assert "may not write to it" in _reported(looks.database(f"{tmp_path}/c.db"))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"warehouse": "/data/w"}, [("folder", "/data/w"), ("file", "/c.db")]),
        ({"warehouse": "file:///data/w%20x"}, [("folder", "/data/w x"), ("file", "/c.db")]),
        ({"warehouse": "s3://bucket/w"}, [("file", "/c.db")]),
        ({"warehouse": "s3://b?endpoint_override=http%3A%2F%2Fevil%3A80"},
        [("host", "evil"), ("file", "/c.db")]),
        ({"warehouse": "s3://b?endpoint_override=evil"}, [("host", "evil"), ("file", "/c.db")]),
        ({"warehouse": "hdfs://name:8020/w"}, [("host", "name"), ("file", "/c.db")]),
        ({"warehouse": "abfss://lake@account.dfs.core.windows.net/w"},
        [("host", "account.dfs.core.windows.net"), ("file", "/c.db")]),
        ({"warehouse": "/w", "format": "delta", "catalog_uri": ""}, [("folder", "/w")]),
        ({"warehouse": "/w", "catalog_uri": "postgresql://me@[fe80::1]/c?sslrootcert=/x.pem"},
         [("folder", "/w"), ("host", "fe80::1"), ("file", "/x.pem")]),
        ({"warehouse": "/w", "catalog_uri": "postgresql:///c"},
        [("folder", "/w"), ("host", "localhost")]),
    ],
)  # fmt: skip
def test_the_places_of_a_lakehouse_are_reported(
    values: dict[str, str], found: list[tuple[str, str]]
) -> None:
    """Guards what is judged before anything is opened, also of addresses that an earlier version
    stored."""
    params = LakehouseParams(**{"catalog_uri": "sqlite:////c.db", **values})  # type: ignore[arg-type]
    assert [(p.kind, p.value) for p in places(params)] == found


BUCKET = {"warehouse": "s3://bucket/lake", "format": "delta"}


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({**BUCKET, "s3_access_key": "a"}, "s3_secret_key"),
        ({**BUCKET, "s3_secret_key": "s"}, "s3_access_key"),
        ({**BUCKET, "s3_access_key": "a", "s3_secret_key": "s\n[other]"}, "s3_secret_key"),
        ({**BUCKET, "s3_endpoint": "host:9000"}, "s3_endpoint"),
        ({**BUCKET, "s3_endpoint": "http://key:word@host"}, "s3_endpoint"),
        ({**BUCKET, "s3_endpoint": "http://host:9000/?a=b"}, "s3_endpoint"),
        ({**BUCKET, "warehouse": "/data/lake", "s3_region": "eu-central-1"}, "s3_region"),
    ],
)
def test_a_fault_in_a_buckets_fields_is_named(values: dict[str, str], faulty: str) -> None:
    """Guards the fields of a bucket: a key without the other one is not used by anything, and a
    line break would end its line in the file of keys."""
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, values)
    assert list(caught.value.errors) == [faulty]


def test_the_endpoint_of_a_bucket_is_a_place() -> None:
    """Guards the limits of hosts: an endpoint leads this program to a server."""
    params = LakehouseParams(**BUCKET, s3_endpoint="http://10.0.0.9:9000")
    assert [(p.kind, p.value, p.port) for p in places(params)] == [("host", "10.0.0.9", 9000)]


SERVER = {"warehouse": "/w", "catalog": "rest", "catalog_uri": "https://lake.example/api/catalog"}
LOGIN = {"catalog_user": "me", "catalog_password": "p:w"}


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({**SERVER, "catalog_uri": ""}, "catalog_uri"),
        ({**SERVER, "catalog_uri": "sqlite:////c.db"}, "catalog_uri"),
        ({**SERVER, "catalog_uri": "https://me@lake.example"}, "catalog_uri"),
        ({**SERVER, "catalog_uri": "https://lake.example?warehouse=w"}, "catalog_uri"),
        ({**SERVER, "catalog_user": "me"}, "catalog_password"),
        ({**SERVER, "catalog_password": "w"}, "catalog_user"),
        ({**SERVER, **LOGIN, "catalog_user": "a:b"}, "catalog_user"),
        ({**SERVER, **LOGIN, "catalog_password": "a\nb"}, "catalog_password"),
        ({**SERVER, **LOGIN, "catalog_token": "t"}, "catalog_token"),
        ({**SERVER, "catalog_token_uri": "lake.example/token"}, "catalog_token_uri"),
        ({**SERVER, "catalog": "jdbc", "catalog_uri": "sqlite:////c.db", "catalog_token": "t"},
         "catalog_token"),
        ({**SERVER, "catalog": "nessie"}, "catalog"),
    ],
)  # fmt: skip
def test_a_fault_in_a_rest_catalogs_fields_is_named(values: dict[str, str], faulty: str) -> None:
    """Guards the fields of a catalog's server: a half of a login, or a secret that its own place in
    a request would end, fails in a run with no word of the field."""
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, values)
    assert list(caught.value.errors) == [faulty]


def test_the_servers_of_a_rest_catalog_are_places() -> None:
    """Guards the limits of hosts: both addresses lead this program to a server, and secrets go
    there."""
    params = LakehouseParams(**SERVER, **LOGIN, catalog_token_uri="http://10.0.0.9:8080/token")
    found = [(p.kind, p.value, p.port) for p in places(params)]
    assert found == [("folder", "/w", 0), ("host", "lake.example", 443), ("host", "10.0.0.9", 8080)]


@pytest.mark.parametrize(
    ("login", "named"),
    [
        (LOGIN, {"credential": "env:REPLICATOR_CATALOG_CREDENTIAL"}),
        ({"catalog_token": "p:w"}, {"token": "env:REPLICATOR_CATALOG_TOKEN"}),
        ({}, {"rest.auth.type": "none"}),
    ],
)
def test_no_setting_has_the_secret_of_a_rest_catalog(
    login: dict[str, str], named: dict[str, str]
) -> None:
    """Guards `spark_conf`: its settings are seen by whoever sees Spark's pages."""
    params = LakehouseParams(**SERVER, **login, catalog_warehouse="main")
    conf = PLUGIN.spark_conf(params)
    own = {k.removeprefix("spark.sql.catalog.lakehouse."): v for k, v in conf.items()}
    assert own.items() >= {"type": "rest", "warehouse": "main", **named}.items()
    assert not any("p:w" in value for value in conf.values())
    variables = PLUGIN.driver_environment(params)
    assert [f"env:{name}" for name in variables] == [v for v in named.values() if "env:" in v]
    assert "p:w" not in repr(params)
    assert "p:w" not in repr(params.server)
    assert PLUGIN.driver_properties(params, "/nonexistent") == {}


def test_iceberg_alone_keeps_manifests_in_memory() -> None:
    for form in ("iceberg", "delta"):
        params = LakehouseParams("s3://lake/w", form, catalog_uri="sqlite:////w/c.db")
        conf = PLUGIN.spark_conf(params)
        cached = [name for name in conf if name.endswith(".io.manifest.cache-enabled")]
        assert bool(cached) == (form == "iceberg")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("exceptions.NotAuthorizedException: Not authorized: token", "catalog-refused"),
        ("UnauthorizedError: NotAuthorizedException", "catalog-refused"),
        ("exceptions.ForbiddenException: Forbidden: no right", "catalog-rights"),
        ("exceptions.CommitStateUnknownException: Service failed: 504: x", "unreachable"),
        ("exceptions.CommitFailedException: Requirement failed", "conflict"),
        ("exceptions.ServiceUnavailableException: Service failed", "catalog-unreachable"),
        ("exceptions.RESTException: Error occurred while processing", "catalog-unreachable"),
        ("HTTPConnectionPool: Max retries exceeded (refused)", "catalog-unreachable"),
    ],
)  # fmt: skip
def test_an_answer_of_a_rest_catalog_has_a_code(text: str, code: str) -> None:
    """Guards the texts of Iceberg's client: an answer that is lost must be asked for again, and one
    that says no must name what it refuses."""
    assert code_of(RuntimeError(text)) == f"target:{code}"


def test_a_run_makes_the_folder_of_its_catalog(tmp_path: Path) -> None:
    """Guards the writer: SQLite makes its file, and not the folder that the look found missing."""
    params = _params(tmp_path / "new" / "lake")
    LakehouseWriter(params, spark=None)
    assert [p.name for p in (tmp_path / "new" / "lake").iterdir()] == []
    (tmp_path / "file").touch()
    with pytest.raises(ReplicationError) as caught:
        LakehouseWriter(_params(tmp_path / "file"), spark=None)
    assert caught.value.code == "target:place-unusable"


def test_a_store_whose_classes_spark_may_lack_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the warning: a bucket that answered passed the test, and the run failed for want of
    Spark's classes for it."""
    monkeypatch.setattr(checks, "store", lambda url: None)
    params = LakehouseParams(warehouse="hdfs://name/w", format="delta")
    found = [(p.code, p.severity) for p in LakehouseChecks(params).connection()]
    assert found == [("target:store-classes", Severity.WARNING)]
