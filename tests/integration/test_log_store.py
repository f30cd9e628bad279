"""The change log in an object store: a real S3 server, the engine's own reading and writing
(CORRECTNESS 27)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pytest

from replicators.connectors import files, looks
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.changelog.segments import ChangeLog, read_segment, root_of, write_error
from tests.stores import ObjectStore, object_store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]
ODD = TableId("sch ema", "t%2F/ä")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as made:
        yield made


@pytest.fixture
def log(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangeLog:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    files._folder.cache_clear()
    return ChangeLog(store.url, tmp_path.name, "a1", str(tmp_path))


def spooled(tmp_path: Path) -> list[str]:
    return [p.name for p in (tmp_path / "replicator-spool").rglob("*") if p.is_file()]


def test_a_segment_grows_here_and_is_there_whole_once_it_is_sealed(
    log: ChangeLog, tmp_path: Path
) -> None:
    """Guards the local spool and the one object at seal (`SegmentFile.seal`): half a segment is
    never seen in the store."""
    file = log.begin_segment(7, {"tables": [1]})
    file.append(b"x" * 9_000_000)
    assert list(files.listed(log.segments)) == []
    assert spooled(tmp_path) == ["000000000007-a1.part"]
    sealed = file.seal()
    assert list(files.listed(log.segments)) == [(sealed.path, sealed.size_bytes)]
    assert spooled(tmp_path) == []
    head, body = read_segment(sealed.path, sealed.crc32, 7)
    assert (head, len(body)) == ({"tables": [1]}, 9_000_000)
    assert body.flags.writeable
    assert log.highest_number() == 7


def test_damage_and_loss_are_seen_and_a_store_that_is_away_is_neither(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the checksum in `read_segment`, and `raise_if_away`, the difference between a file
    that is gone and a store that doesn't answer: only the first may cost a re-sync."""
    sealed = log.begin_segment(1, {}).seal()
    for path, crc in ((sealed.path, sealed.crc32 ^ 1), (sealed.path + "x", sealed.crc32)):
        with pytest.raises(ReplicationError) as caught:
            read_segment(path, crc, 1)
        assert caught.value.code == "log:segment-corrupt"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    files._folder.cache_clear()
    with pytest.raises(ReplicationError) as caught:
        read_segment(sealed.path, sealed.crc32, 1)
    assert caught.value.code == write_error(OSError("no answer")).code == "log:store"
    files._folder.cache_clear()


def test_what_is_not_listed_is_swept_and_the_sum_of_sizes_holds(
    log: ChangeLog, store: ObjectStore, tmp_path: Path
) -> None:
    """Guards `ChangeLog.sweep` and `unlink` over a store's listing, the spool's leavings included:
    fails where what a crash left stays, or counts in the log's size."""
    kept = log.begin_segment(1, {}).seal()
    log.begin_segment(2, {}).seal()
    log.begin_segment(3, {}).append(b"abc")
    change = f"{log.change_prefix(1)}-x.parquet"
    files.write(change, b"12345", is_durable=True)
    files.write(log.merge_path(ODD, 5), b"1")
    again = ChangeLog(store.url, tmp_path.name, "a2", str(tmp_path))
    assert again.sweep([kept.path, change]) == 3
    assert spooled(tmp_path) == []
    assert again.size_bytes == kept.size_bytes + 5
    again.unlink([change, change])
    assert again.size_bytes == kept.size_bytes
    files.remove_folder(root_of(store.url, tmp_path.name))
    assert again.highest_number() == 0


def test_tables_are_written_and_read_under_any_name(log: ChangeLog) -> None:
    """Guards `files._place`: a file's name is never read as a URL; a percent sign in it stays
    one."""
    table = pa.table({"id": [1, 2]})
    path = f"{log.merge_path(ODD, 9)}-0.parquet"
    files.write_table(table, path)
    assert files.read_table(path) == table
    assert zlib.crc32(files.read(path)) == zlib.crc32(files.read(path).to_pybytes())
    assert [p for p, _ in files.listed(log.merges)] == [path]


def test_another_kind_of_store_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    """Guards `files.can_be_opened` in `ChangeLog`: an address that nobody can open is refused by
    name at the start, not by the first segment."""
    with pytest.raises(ReplicationError) as caught:
        ChangeLog("ftp://host/logs", "r", "a", str(tmp_path))
    assert "abfs" in str(caught.value)


def test_a_look_at_a_warehouse_in_a_store_leaves_nothing_there(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards *Makes and changes nothing*: an object that is written and removed leaves the mark of
    its folder behind."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=store.endpoint)
    client.put_object(Bucket=store.bucket, Key="lake/shop/orders/1.parquet", Body=b"x")

    def keys() -> list[str]:
        return [o["Key"] for o in client.list_objects_v2(Bucket=store.bucket)["Contents"]]

    before = keys()
    for place in ("lake", "lake/new", ""):
        looks.store(f"s3a://{store.bucket}/{place}".rstrip("/"))
    with pytest.raises(OSError, match="elsewhere"):
        looks.store("s3a://elsewhere/lake")
    assert keys() == before
