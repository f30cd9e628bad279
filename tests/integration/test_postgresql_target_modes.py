"""Every mode of the PostgreSQL target, by the statements for servers of each version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replicators.connectors.target import MergeTarget
from tests.postgres_target import reader_of, writer_of, writer_params
from tests.servers import Database
from tests.sql_modes import Records, SqlModes

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
WITHOUT_MERGE, WITHOUT_BY_SOURCE, NEWEST = 14, 15, 18


class _Modes(SqlModes):
    version = NEWEST

    @pytest.fixture
    def writer(self, database: Database, tmp_path: Path) -> Iterator[MergeTarget]:
        made = writer_of(writer_params(database), tmp_path, version=self.version)
        yield made
        made.close()

    @pytest.fixture
    def records(self, database: Database) -> Records:
        return reader_of(database)


class _OneSeed(_Modes):
    @pytest.fixture(params=[3, *(pytest.param(s, marks=pytest.mark.long) for s in (0, 5))])
    def seed(self, request: pytest.FixtureRequest) -> int:
        return int(request.param)


class TestNewest(_OneSeed):
    """MERGE with everything that a mode needs."""


class TestWithoutMerge(_Modes):
    """PostgreSQL 14: UPDATE, DELETE and INSERT of one transaction. Newer servers take them too."""

    version = WITHOUT_MERGE


@pytest.mark.oldest_postgresql
class TestWithoutBySource(_OneSeed):
    """PostgreSQL 15 and 16: MERGE without NOT MATCHED BY SOURCE, on a real server of that
    version."""

    version = WITHOUT_BY_SOURCE
