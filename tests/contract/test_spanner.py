"""Spanner as a target keeps the promises of every target, seen in a small server of its protocol's
messages (`tests/spanner_server.py`). The real service never saw it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from replicators.targets.spanner.service import Service
from tests.contract.sql_targets import NeutralRows, SqlTargetFixtures
from tests.spanner_server import SpannerServer
from tests.spanner_target import neutral_rows, params_of
from tests.sql_modes import SqlModes

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]
_NUMBERS = itertools.count(1)


class SpannerFixtures(SqlTargetFixtures):
    """Into a database of each test's own."""

    name = "spanner"

    @pytest.fixture
    def params(self, plugin: TargetPlugin, spanner: SpannerServer) -> Any:
        return parse(plugin.params, params_of(spanner, f"contract-{next(_NUMBERS)}"))

    def at_port(self, params: Any, port: int) -> Any:
        return dataclasses.replace(params, endpoint=f"http://127.0.0.1:{port}")

    @pytest.fixture
    def neutral(self, params: Any, spanner: SpannerServer) -> NeutralRows:
        return lambda schema: neutral_rows(spanner, params.database, schema)


class TestSpannerTarget(SpannerFixtures, TargetContract):
    """Staging, token, generations, owners."""


@pytest.mark.long
class TestSpannerMerging(SpannerFixtures, MergeContract, ReadingContract):
    """Modes, columns, fences, and rows that are read back."""

    fixes_version = False

    @pytest.fixture
    def replaced_by_hand(self, params: Any) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            place = f"`{schema.id.name}`"
            columns = ", ".join(f"`{c.name}` STRING(MAX)" for c in schema.columns[1:])
            made = f"CREATE TABLE {place} (`id` INT64,\n{columns.replace(', ', f',{chr(10)}')})"
            Service(params).change(f"DROP TABLE {place}", f"{made} PRIMARY KEY (`id`)")

        return replaced


@pytest.mark.long
class TestSpannerModes(SpannerFixtures, SqlModes):
    """Every mode against a naive replay."""


@pytest.mark.long
class TestSpannerJournal(TestSpannerModes):
    """The same where no merge fits into one commit."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("replicators.connectors.sql.keyed.KeyedClient.most_cells", 12)
