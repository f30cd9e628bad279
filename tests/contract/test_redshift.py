"""Redshift as a target keeps the promises of every target, seen on a PostgreSQL server that plays
it and an S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from replicators.targets.redshift.connection import connect
from tests.contract.sql_targets import NeutralRows, SqlTargetFixtures
from tests.redshift_server import LOADER, RedshiftServer, fresh_redshift_database
from tests.redshift_target import neutral_rows, params_of
from tests.servers import Database
from tests.sql_modes import SqlModes
from tests.sql_views import Shown, SqlViews, Statement

pytestmark = [pytest.mark.contract, pytest.mark.integration, pytest.mark.timeout(180)]


class RedshiftFixtures(SqlTargetFixtures):
    """Into a database of each test's own, as a user that may make schemas and nothing else."""

    name = "redshift"

    @pytest.fixture
    def copies(self, redshift: RedshiftServer) -> Iterator[Database]:
        with fresh_redshift_database(redshift) as made:
            yield made

    @pytest.fixture
    def params(self, plugin: TargetPlugin, redshift: RedshiftServer, copies: Database) -> Any:
        return parse(plugin.params, params_of(redshift, copies, LOADER))

    @pytest.fixture
    def neutral(self, params: Any) -> NeutralRows:
        return lambda schema: neutral_rows(params, schema)


class TestRedshiftTarget(RedshiftFixtures, TargetContract):
    """Staging, token, generations, owners."""


@pytest.mark.long
class TestRedshiftMerging(RedshiftFixtures, MergeContract, ReadingContract):
    """Modes, columns, fences, and rows that are read back."""

    fixes_version = False

    @pytest.fixture
    def replaced_by_hand(self, params: Any) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            table, other = f'contract."{schema.id.name}"', f'"{schema.id.name}_new"'
            with closing(connect(params)) as connection:
                for text in (
                    f"CREATE TABLE contract.{other} AS SELECT * FROM {table} WHERE FALSE",
                    f"DROP TABLE {table}",
                    f'ALTER TABLE contract.{other} RENAME TO "{schema.id.name}"',
                ):
                    connection.execute(text.encode())

        return replaced


@pytest.mark.long
class TestRedshiftModes(RedshiftFixtures, SqlModes):
    """Every mode against a naive replay."""


@pytest.mark.long
class TestRedshiftViews(RedshiftFixtures, SqlViews):
    """Views of the living rows."""

    widens = False

    @pytest.fixture
    def shown(self, copies: Database) -> Shown:
        def rows(name: str) -> list[dict[str, Any]]:
            with copies.connect(row_factory=psycopg.rows.dict_row) as connection:
                found = connection.execute(f'SELECT * FROM contract."{name}" ORDER BY 1')
                return list(found.fetchall())

        return rows

    @pytest.fixture
    def statement(self, copies: Database) -> Statement:
        def run(text: str) -> None:
            copies.execute(text.replace("{", 'contract."').replace("}", '"'))

        return run
