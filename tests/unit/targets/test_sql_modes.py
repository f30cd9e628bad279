"""Every mode of the SQL targets in DuckDB, which has real SQL and needs no server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from replicators.connectors.target import MergeTarget
from tests.local.duck import DuckClient, DuckParams, names, writer
from tests.sql_modes import Records, SqlModes


class TestDuck(SqlModes):
    """DuckDB's MERGE has everything that a mode needs."""

    @pytest.fixture
    def params(self, tmp_path: Path) -> Iterator[DuckParams]:
        found = DuckParams(str(tmp_path / "duck.db"), str(tmp_path / "files"))
        with duckdb.connect(found.path):  # it stays open, so that each call opens it at once
            yield found

    @pytest.fixture
    def writer(self, params: DuckParams) -> MergeTarget:
        return writer(params)

    @pytest.fixture
    def records(self, params: DuckParams) -> Records:
        return lambda schema: DuckClient(params.path).records(names(schema.id))
