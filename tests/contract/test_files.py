"""The files target keeps the promises of every sink, in both formats; read by its manifests
alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.sink import Seen, SinkContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import TargetPlugin
from replicators.targets.files.params import FilesParams
from runners.engine.tasks.local import LocalTasks
from tests import replayed

pytestmark = [pytest.mark.contract]


@pytest.mark.parametrize("form", ["Parquet", "JSON lines"])
class TestFiles(SinkContract):
    """In a folder, on local tasks."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["files"]

    @pytest.fixture
    def params(self, tmp_path: Path, form: str) -> FilesParams:
        return FilesParams(location=f"{tmp_path}/changes", format=form)

    @pytest.fixture
    def dead_params(self, tmp_path: Path, form: str) -> FilesParams:
        (tmp_path / "file").write_text("a file where the folder should be")
        return FilesParams(location=f"{tmp_path}/file", format=form)

    @pytest.fixture
    def tasks(self, monkeypatch: pytest.MonkeyPatch) -> LocalTasks:
        monkeypatch.setattr("replicators.targets.files.writer.ROWS_HERE", 100)
        return LocalTasks(3)

    @pytest.fixture
    def read(self, params: FilesParams) -> Callable[[TableSchema], list[Seen]]:
        def look(schema: TableSchema) -> list[Seen]:
            table = Path(params.root) / f"{schema.id.schema}.{schema.id.name}"
            whole = replayed.generations(table)
            return [seen(r) for r in replayed.records(whole[-1])] if whole else []

        return look


def seen(record: dict[str, Any]) -> Seen:
    after = record["after"] or {}
    key = record["key"] or {"id": None}
    return Seen(record["_sequence"], record["_operation"], key["id"], after.get("note"))
