"""The COPY of Redshift that a files target writes beside the manifest of a closed bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.contract.sink import Change, batch, resolved
from replicators.connectors.model.changes import Op
from replicators.connectors.params import InvalidParams
from replicators.targets.files.params import FilesParams
from replicators.targets.files.redshift import SCRIPT, columns, script
from replicators.targets.files.writer import FilesSink
from runners.engine.tasks.local import LocalTasks
from tests.unit.targets.test_files_sink import SCHEMA, TABLE

ROLE = "arn:aws:iam::123456789012:role/replicator-copy"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def test_a_bucket_has_its_copy_before_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards loaders: whoever sees a manifest finds the COPY, also after a crash between both. The
    root is a folder here; only its text is a bucket's."""
    params = FilesParams(location="s3://lake", copy_role=ROLE)
    monkeypatch.setattr(FilesParams, "root", property(lambda _: str(tmp_path)))
    sink = FilesSink(params, LocalTasks(2))
    sink.begin(TABLE, SCHEMA)
    sink.deliver(TABLE, batch([Change(11, Op.INSERT, 1, "a", 1)], SCHEMA, 10))
    sink.resolved(TABLE, resolved(14, 150))
    (manifest,) = tmp_path.rglob("_manifest.json")
    text = (manifest.parent / SCRIPT).read_text()
    assert text.startswith("-- 1 changes. Run it once")
    assert f"FROM '{manifest}'\nIAM_ROLE '{ROLE}' FORMAT AS PARQUET SERIALIZETOJSON" in text
    assert (manifest.parent / SCRIPT).stat().st_mtime_ns <= manifest.stat().st_mtime_ns


def test_the_columns_are_those_of_the_bucket() -> None:
    """Guards COPY, which takes columns by their place: all of a bucket's files must have them."""
    keyed: dict[str, Any] = {"key": ["id"], "has_whole_old_rows": False}
    whole = {"key": [], "has_whole_old_rows": True}
    assert (columns([keyed], has_before=True) or [])[-3:] == ["key", "old_key", "after"]
    assert (columns([whole], has_before=True) or [])[-2:] == ["after", "before"]
    assert (columns([whole], has_before=False) or [])[-2:] == ["_unsent", "after"]
    mixed = columns([keyed, whole], has_before=True)
    assert mixed is None and 'COPY "' not in script(("s", "t"), "s3://m", ROLE, mixed, 1)
    text = script(("s", 't"x'), "s3://it's", "default", ["_sequence", "after"], 3)
    assert '"s"."t""x_changes" ("_sequence" BIGINT, "after" SUPER)' in text
    assert "FROM 's3://it\\'s'\nIAM_ROLE default FORMAT" in text


def test_a_copy_is_only_for_parquet_in_a_bucket() -> None:
    for wrong in ({"location": "/data"}, {"location": "s3://b", "format": "JSON lines"}):
        with pytest.raises(InvalidParams, match="only for Parquet files in s3://"):
            FilesParams(**wrong, copy_role=ROLE)
    assert FilesParams(location="s3://b", copy_role=ROLE).codec == "snappy"
    assert FilesParams(location="s3://b").codec == "zstd"
