"""BigQuery keeps the promises of every merge target, seen in the emulator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud.bigquery import Client

from demo.bigquery import EmbeddedBigQuery
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin
from replicators.targets.bigquery import PLUGIN, naming
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.writer import BigQueryWriter
from tests.sql_modes import Records, SqlModes

pytestmark = pytest.mark.contract
_NUMBERS = itertools.count(1)


def rows_of(client: Client, params: BigQueryParams, schema: TableSchema) -> list[dict[str, Any]]:
    """The rows of a live table, in no order."""
    name = "`.`".join(naming.names(params, schema.id))
    return [dict(r) for r in client.query_and_wait(f"SELECT * FROM `{name}`")]


@pytest.fixture
def params(bigquery: EmbeddedBigQuery) -> BigQueryParams:
    """A dataset of this test's own, which exists."""
    dataset = f"contract_{next(_NUMBERS)}"
    found = BigQueryParams(project="contract", dataset=dataset, endpoint=bigquery.url)
    with open_client(found) as made:
        made.create_dataset(dataset)
    return found


@pytest.fixture
def client(params: BigQueryParams) -> Iterator[Client]:
    made = open_client(params)
    yield made
    made.close()


@pytest.fixture
def writer(params: BigQueryParams, tmp_path: Path) -> Iterator[MergeTarget]:
    made = BigQueryWriter(params, str(tmp_path / "files"))
    yield made
    made.close()


class TestBigQuery(TargetContract):
    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return PLUGIN

    @pytest.fixture
    def dead_params(self) -> BigQueryParams:
        return BigQueryParams(project="contract", endpoint="http://127.0.0.1:1")

    @pytest.fixture
    def read(
        self, client: Client, params: BigQueryParams
    ) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        return lambda schema: sorted(tuple(r.values()) for r in rows_of(client, params, schema))


class TestModes(SqlModes):
    """Every mode in the emulator against a naive replay."""

    @pytest.fixture
    def records(self, client: Client, params: BigQueryParams) -> Records:
        return lambda schema: rows_of(client, params, schema)
