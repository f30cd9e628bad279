"""What VACUUM of a Delta table is shown of the files that lie there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from replicators.connectors.storage import Storage
from replicators.connectors.target import KeptVersion
from replicators.targets.lakehouse.delta import MARKS, Delta
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.stores import Store
from replicators.targets.lakehouse.vacuum import inventory, vector_file
from replicators.targets.lakehouse.versions import written_marks

VECTOR = "deletion_vector_3fa2549c-b049-40eb-b12b-afa0bccbd246.bin"
"""As a MERGE of Delta 4.4 named it, beside the text in its commit."""
HERE = Storage(Store())


def test_a_deletion_vectors_file_is_found_from_its_text_in_the_log() -> None:
    """Guards `vacuum.vector_file`: a vector whose name is decoded wrongly is not spared, and the
    kept version would show rows that were deleted."""
    assert vector_file("kCzbEUT}aCU}92JYVX.)") == VECTOR
    assert vector_file("abkCzbEUT}aCU}92JYVX.)") == f"ab/{VECTOR}"


def test_all_files_but_the_spared_ones_and_the_log_are_listed(tmp_path: Path) -> None:
    """A file of the log in it would be one that VACUUM may remove; a spared one in it would be
    removed."""
    names = ("_delta_log/0.json", "aB/spared.parquet", "aB/old 1.parquet", VECTOR)
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"four")
    listed = inventory(
        Storage(Store()), str(tmp_path), frozenset({"aB/spared.parquet"})
    ).to_pylist()
    assert {r["path"] for r in listed} == {f"file:{tmp_path}/aB/old 1.parquet",
        f"file:{tmp_path}/{VECTOR}"}  # fmt: skip
    assert all((r["length"], r["isDir"]) == (4, False) for r in listed)
    assert all(r["modificationTime"] > 1_700_000_000_000 for r in listed)


def test_an_empty_folder_has_an_empty_inventory(tmp_path: Path) -> None:
    """Guards the empty case of `vacuum.inventory`, whose Arrow table has no rows to take its types
    from."""
    assert inventory(HERE, str(tmp_path), frozenset()).num_rows == 0


def test_a_kept_version_is_given_up_only_where_its_log_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `Delta._sequence`: taken for gone while the storage did not answer, every version that
    is kept for rewinds was forgotten, and its files removed in the same turn."""
    delta = Delta(LakehouseParams(warehouse=str(tmp_path), format="delta"))
    names = ("shop", "orders")
    for number in range(3):
        write_deltalake(delta.folder(names), pa.table({"a": [number]}), mode="append")
    DeltaTable(delta.folder(names)).create_checkpoint()
    Path(delta.folder(names), "_delta_log", f"{1:020}.json").unlink()
    marks = written_marks([KeptVersion("1", 10, 1.0)])
    newest = SimpleNamespace(metadata=lambda: SimpleNamespace(configuration={MARKS: marks}))
    assert delta._marks(names, newest, "r1/u/1") == ()

    def away(*_: object) -> None:
        raise OSError("Generic S3 error: error sending request")

    monkeypatch.setattr(delta, "_opened", away)
    with pytest.raises(OSError, match="Generic S3 error"):
        delta._marks(names, newest, "r1/u/1")
