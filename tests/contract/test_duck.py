"""A SQL target keeps the promises of every merge target, seen in DuckDB: the algorithm is the one
of every SQL target (`connectors/sql/target.py`), only client and dialect differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract, TargetFixtures
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin
from tests.local.duck import PLUGIN, DuckClient, DuckParams, names, writer
from tests.sql_views import Shown, SqlViews, Statement

pytestmark = pytest.mark.contract


class DuckFixtures(TargetFixtures):
    """Supplies DuckDB."""

    publishes_at_once = True

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return PLUGIN

    @pytest.fixture
    def params(self, tmp_path: Path) -> Iterator[DuckParams]:
        path = str(tmp_path / "duck.db")
        with duckdb.connect(path):  # it stays open, so that each call opens it at once
            yield DuckParams(path, str(tmp_path / "files"), self.publishes_at_once)

    @pytest.fixture
    def dead_params(self, tmp_path: Path) -> DuckParams:
        (tmp_path / "file").write_text("a file where the folder should be")
        return DuckParams(str(tmp_path / "file" / "duck.db"), str(tmp_path / "file"))

    @pytest.fixture
    def writer(self, params: DuckParams) -> MergeTarget:
        return writer(params)

    @pytest.fixture
    def read(self, params: DuckParams) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            return [tuple(r.values()) for r in DuckClient(params.path).records(names(schema.id))]

        return rows


class TestDuck(DuckFixtures, TargetContract, MergeContract, ReadingContract):
    """Publishes in one transaction with the progress row."""

    @pytest.fixture
    def another(self, params: DuckParams) -> Callable[[], MergeTarget]:
        return lambda: writer(params)

    @pytest.fixture
    def replaced_by_hand(self, params: DuckParams) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            client = DuckClient(params.path)
            client.make(names(schema.id), schema, job="by hand")

        return replaced


class TestDuckInTwoSteps(DuckFixtures, TargetContract):
    """Publishes first, and then changes the progress row."""

    publishes_at_once = False


class DuckViews(DuckFixtures, SqlViews):
    """Supplies views in DuckDB."""

    has_checks = False

    @pytest.fixture
    def shown(self, params: DuckParams) -> Shown:
        return lambda name: DuckClient(params.path).records(("contract", name))

    @pytest.fixture
    def statement(self, params: DuckParams) -> Statement:
        def run(text: str) -> None:
            with DuckClient(params.path).opened() as db:
                db.execute(text.replace("{", 'contract."').replace("}", '"'))

        return run


@pytest.mark.long
class TestDuckViews(DuckViews):
    """Views of the living rows, changed in the transaction that changes their table."""


class TestDuckViewsInTwoSteps(DuckViews):
    """Views that are made after their table was changed."""

    publishes_at_once = False
