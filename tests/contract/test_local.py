"""The local target of the tests keeps the promises of every merge target, so that what is tested
with it holds of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin
from tests.local.tables import LocalTable
from tests.local.target import PLUGIN, LocalParams, LocalWriter

pytestmark = pytest.mark.contract


class TestLocal(TargetContract, MergeContract):
    """Read by Arrow."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return PLUGIN

    @pytest.fixture
    def params(self, tmp_path: Path) -> LocalParams:
        return LocalParams(str(tmp_path / "tables"))

    @pytest.fixture
    def dead_params(self, tmp_path: Path) -> LocalParams:
        (tmp_path / "file").write_text("a file where the folder should be")
        return LocalParams(str(tmp_path / "file"))

    @pytest.fixture
    def writer(self, params: LocalParams) -> MergeTarget:
        return LocalWriter(params)

    @pytest.fixture
    def read(self, params: LocalParams) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            table = LocalTable(Path(params.folder) / schema.id.schema / schema.id.name)
            return sorted(tuple(r.values()) for r in table.rows().to_pylist())

        return rows

    @pytest.fixture
    def another(self, params: LocalParams) -> Callable[[], MergeTarget]:
        return lambda: LocalWriter(params)

    @pytest.fixture
    def replaced_by_hand(self, params: LocalParams) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            table = LocalTable(Path(params.folder) / schema.id.schema / schema.id.name)
            table.commit(table.rows().slice(0, 0), owner="", uuid="")

        return replaced
