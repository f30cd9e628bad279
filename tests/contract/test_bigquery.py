"""BigQuery keeps the promises of every merge target, seen in the emulator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from google.cloud.bigquery import Client

from demo.bigquery import EmbeddedBigQuery
from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin, TargetTable
from replicators.targets.bigquery import PLUGIN, naming
from replicators.targets.bigquery.client import BigQueryClient
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.writer import BigQueryWriter
from tests.sql_modes import Records, SqlModes
from tests.sql_views import IsThere, Opened, Shown, SqlViews, Statement

pytestmark = pytest.mark.contract
_NUMBERS = itertools.count(1)


def rows_of(client: Client, params: BigQueryParams, schema: TableSchema) -> list[dict[str, Any]]:
    """The rows of a live table, in no order."""
    name = "`.`".join(naming.names(params, schema.id))
    return [dict(r) for r in client.query_and_wait(f"SELECT * FROM `{name}`")]


class Emulated:
    """Supplies the emulator, and a dataset of each test's own."""

    @pytest.fixture
    def params(self, bigquery: EmbeddedBigQuery) -> BigQueryParams:
        dataset = f"contract_{next(_NUMBERS)}"
        found = BigQueryParams(project="contract", dataset=dataset, endpoint=bigquery.url)
        with open_client(found) as made:
            made.create_dataset(dataset)
        return found

    @pytest.fixture
    def client(self, params: BigQueryParams) -> Iterator[Client]:
        with open_client(params) as made:
            yield made

    @pytest.fixture
    def writer(self, params: BigQueryParams, tmp_path: Path) -> Iterator[MergeTarget]:
        with closing(BigQueryWriter(params, str(tmp_path / "files"))) as made:
            yield made


class TestBigQuery(Emulated, MergeContract, ReadingContract):
    fixes_version = False

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return PLUGIN

    @pytest.fixture
    def dead_params(self) -> BigQueryParams:
        return BigQueryParams(project="contract", endpoint="http://127.0.0.1:1")

    @pytest.fixture
    def another(
        self, params: BigQueryParams, tmp_path: Path
    ) -> Iterator[Callable[[], MergeTarget]]:
        with ExitStack() as opened:

            def made() -> MergeTarget:
                writer = BigQueryWriter(params, str(tmp_path / "files"))
                return opened.enter_context(closing(writer))

            yield made

    @pytest.fixture
    def replaced_by_hand(self, params: BigQueryParams) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            with closing(BigQueryClient(open_client(params), params)) as client:
                client.make(naming.names(params, schema.id), schema, job="by_hand")

        return replaced

    @pytest.fixture
    def read(
        self, client: Client, params: BigQueryParams
    ) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        """BigQuery shows an array that was NULL as an empty one."""

        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            found = rows_of(client, params, schema)
            shown = [tuple(None if v == [] else v for v in r.values()) for r in found]
            return sorted(shown, key=lambda row: [(v is None, v) for v in row])

        return rows


@pytest.mark.long
class TestModes(Emulated, SqlModes):
    """Every mode in the emulator against a naive replay."""

    @pytest.fixture
    def records(self, client: Client, params: BigQueryParams) -> Records:
        return lambda schema: rows_of(client, params, schema)


@pytest.mark.long
class TestViews(Emulated, SqlViews):
    """Views of the living rows in the emulator."""

    @pytest.fixture
    def is_there(self, params: BigQueryParams) -> IsThere:
        """The emulator still answers queries of a view that was dropped."""

        def looked(name: str) -> bool:
            with closing(BigQueryClient(open_client(params), params)) as client:
                return client.table((params.project, params.dataset, name)) is not None

        return looked

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return PLUGIN

    @pytest.fixture
    def shown(self, client: Client, params: BigQueryParams) -> Shown:
        place = f"`{params.project}`.`{params.dataset}`"
        return lambda name: [
            dict(r) for r in client.query_and_wait(f"SELECT * FROM {place}.`{name}` ORDER BY 1")
        ]

    @pytest.fixture
    def statement(self, client: Client, params: BigQueryParams) -> Statement:
        place = f"`{params.project}`.`{params.dataset}`"

        def run(text: str) -> None:
            client.query_and_wait(text.replace("{", f"{place}.`").replace("}", "`"))

        return run

    def test_a_view_leaves_the_sequence_column_out(
        self, viewing: Opened, wide: TableSchema, shown: Shown
    ) -> None:
        """Guards `SqlPlaces.hidden`: the column is ours, though no mode adds it."""
        table = TargetTable(wide.id, "r1", 1, mode=Mode.SOFT_DELETE)
        self.copy(viewing(sequence_column=True), wide, table, 1)
        assert shown(f"{wide.id.name}_current") == [{"id": 1, "name": "n1", "note": None}]
