"""The files target in an object store: a real S3 server, downloaded and read as a loader would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from replicators.connectors import files
from replicators.connectors.contract.sink import Change, as_seen, batch, resolved, snapshot
from replicators.connectors.model.changes import Op
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable
from replicators.targets.files.checks import FilesChecks
from replicators.targets.files.params import FilesParams
from replicators.targets.files.writer import FilesSink
from runners.engine.tasks.local import LocalTasks
from tests import replayed
from tests.contract.test_files import seen
from tests.stores import ObjectStore, object_store
from tests.unit.targets.test_files_sink import SCHEMA, TABLE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def _server() -> Iterator[ObjectStore]:
    with object_store() as made:
        yield made


@pytest.fixture
def store(_server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name, value in _server.environment.items():
        monkeypatch.setenv(name, value)
    files._folder.cache_clear()
    return _server


def download(store: ObjectStore, folder: Path) -> Path:
    client = boto3.client("s3", endpoint_url=store.endpoint)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=store.bucket):
        for found in page.get("Contents", ()):
            if not found["Key"].endswith("/"):
                path = folder / found["Key"]
                path.parent.mkdir(parents=True, exist_ok=True)
                client.download_file(store.bucket, found["Key"], str(path))
    return folder / "lake" / "shop.orders"


def test_closed_buckets_in_a_store_hold_every_change_once(
    store: ObjectStore, tmp_path: Path
) -> None:
    """Guards the target where a file is one object: what an unrecorded delivery left goes, buckets
    close, a new copy and the removal of a table work, and whose it is is seen."""
    params = FilesParams(location=f"s3a://{store.bucket}/lake", format="JSON lines")
    changes = [Change(11 + i, Op.UPDATE, i % 3, f"v{i}", at=i * 2) for i in range(90)]

    def sink() -> FilesSink:
        return FilesSink(params, LocalTasks(2))

    for _ in range(2):
        sink().begin(TABLE, SCHEMA)
        sink().deliver(TABLE, snapshot([(1, "a")], SCHEMA, 1, 10))
    sink().deliver(TABLE, batch(changes[:60], SCHEMA, 10, 2))
    sink().deliver(TABLE, batch(changes[:40], SCHEMA, 10, 3))
    sink().resolved(TABLE, resolved(50, 70))
    sink().deliver(TABLE, batch(changes[40:], SCHEMA, 50, 2, resolved=70))
    last = sink()
    last.resolved(TABLE, resolved(100, 100_000))
    (whole,) = replayed.generations(download(store, tmp_path / "1"))
    found = list(map(seen, replayed.records(whole)))
    assert found[1:] == as_seen(changes)
    urls = [e["url"] for m in replayed.manifests(whole) for e in m["entries"]]
    assert all(files.read(url).size for url in urls)
    assert urls[0].startswith(f"s3://{store.bucket}/lake/shop.orders/g000001/2024-11-24/")

    with FilesChecks(params) as checks:
        assert checks.connection() == []
        assert checks.tables([SCHEMA], "r1") == []
        assert [p.code for p in checks.tables([SCHEMA], "r2")] == ["target:table-taken"]
    last.drop(TargetTable(SCHEMA.id, "r2", 1))
    assert len(urls) == len([u for u in urls if files.is_there(u)])
    last.drop(TABLE)
    assert not any(files.is_there(u) for u in urls)
    sink().begin(TargetTable(SCHEMA.id, "r2", 1), SCHEMA)


def test_a_store_that_is_away_is_said(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the codes of a store's errors: no bucket, no answer, no right."""
    none = FilesParams(location="s3://elsewhere/lake")
    with FilesChecks(none) as checks:
        assert [p.code for p in checks.connection()] == ["target:unreachable"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    files._folder.cache_clear()
    away = FilesParams(location=f"s3://{store.bucket}/lake")
    with pytest.raises(ReplicationError) as caught:
        FilesSink(away, LocalTasks(1)).begin(TABLE, SCHEMA)
    assert caught.value.code == "target:unreachable"
    files._folder.cache_clear()
