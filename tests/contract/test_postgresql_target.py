"""PostgreSQL as a target keeps the promises of every target, on the newest server, and
on the oldest with `--long`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.source import code_of
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin, TargetTable
from tests.contract.sql_targets import NeutralRows, SqlTargetFixtures
from tests.servers import Database
from tests.sql_modes import SqlModes
from tests.sql_views import Opened, Shown, SqlViews, Statement

pytestmark = [
    pytest.mark.contract,
    pytest.mark.integration,
    pytest.mark.timeout(180),
    pytest.mark.oldest_postgresql(is_long=True),
]


class PostgresqlFixtures(SqlTargetFixtures):
    """Into a database of each test's own, as a role that may make schemas and nothing else."""

    name = "postgresql"

    @pytest.fixture
    def params(self, plugin: TargetPlugin, database: Database) -> Any:
        database.execute("DROP ROLE IF EXISTS plain_writer")
        given = database.user("plain_writer")
        database.execute(f"GRANT CREATE ON DATABASE {database.name} TO plain_writer")
        return parse(plugin.params, given)

    @pytest.fixture
    def neutral(self, database: Database) -> NeutralRows:
        def rows(schema: TableSchema) -> list[dict[str, Any]]:
            with database.connect() as connection:
                found = connection.execute(f'SELECT * FROM "{schema.id.schema}"."{schema.id.name}"')
                names = [d.name for d in found.description or ()]
                return [dict(zip(names, row, strict=True)) for row in found]

        return rows


class TestPostgresqlTarget(PostgresqlFixtures, TargetContract):
    """Staging, token, generations, owners."""


class TestPostgresqlMerging(PostgresqlFixtures, MergeContract):
    """Modes, columns and fences."""

    @pytest.fixture
    def replaced_by_hand(self, database: Database) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            table = f'"{schema.id.schema}"."{schema.id.name}"'
            database.execute(f'CREATE TABLE {table[:-1]}_new" (LIKE {table})')
            database.execute(f"DROP TABLE {table}")
            database.execute(f'ALTER TABLE {table[:-1]}_new" RENAME TO "{schema.id.name}"')
            database.execute(f"GRANT ALL ON {table} TO plain_writer")

        return replaced


class TestPostgresqlReading(PostgresqlFixtures, ReadingContract):
    """Rows that are read back."""


class TestPostgresqlModes(PostgresqlFixtures, SqlModes):
    """Every mode against a naive replay."""


class TestPostgresqlViews(PostgresqlFixtures, SqlViews):
    """Views of the living rows."""

    @pytest.fixture
    def shown(self, database: Database) -> Shown:
        return lambda name: [
            dict(row)
            for (row,) in database.execute(
                f'SELECT to_json(v) FROM (SELECT * FROM contract."{name}" ORDER BY 1) v'
            )
        ]

    @pytest.fixture
    def statement(self, database: Database) -> Statement:
        return lambda text: _done(database, text.replace("{", 'contract."').replace("}", '"'))

    def test_rights_on_a_view_stay_when_it_is_made_anew(
        self, viewing: Opened, wide: TableSchema, database: Database
    ) -> None:
        """Guards people's rights and comments: PostgreSQL drops them with the view, which has to
        go before a column that it shows."""
        name, mode = f'contract."{wide.id.name}_current"', Mode.SOFT_DELETE
        writer = viewing()
        live = self.copy(writer, wide, TargetTable(wide.id, "r1", 1, mode=mode), 1)
        database.execute(f"GRANT SELECT ON {name} TO pg_monitor")
        database.execute(f"COMMENT ON VIEW {name} IS 'ours'")
        database.execute(f"COMMENT ON COLUMN {name}.name IS 'a name'")
        database.execute(f"COMMENT ON COLUMN {name}.note IS 'goes'")
        narrow = replace(wide, columns=wide.columns[:2])
        writer.evolve(live, wide, narrow)
        self.copy(writer, narrow, replace(live, generation=2), 2)
        facts = f"""
        SELECT has_table_privilege('pg_monitor', '{name}', 'SELECT'),
               has_table_privilege('pg_monitor', '{name}', 'INSERT'),
               obj_description('{name}'::regclass), col_description('{name}'::regclass, 2)
        """
        assert database.execute(facts) == [(True, False, "ours", "a name")]

    def test_a_view_that_others_depend_on_stays_or_stops_the_change(
        self, viewing: Opened, wide: TableSchema, shown: Shown, database: Database
    ) -> None:
        """Guards views that people made over ours: a column is added and a copy replaced below
        them. A column that they may show stays, and so does everything else of that change."""
        name, mode = f"{wide.id.name}_current", Mode.HISTORY
        writer = viewing()
        live = self.copy(writer, wide, TargetTable(wide.id, "r1", 1, mode=mode), 1)
        database.execute(f'CREATE VIEW contract.people AS SELECT name FROM contract."{name}"')
        more = replace(wide.columns[2], name="more", ordinal=4)
        wider = replace(wide, columns=(*wide.columns, more))
        writer.evolve(live, wide, wider)
        assert list(shown(name)[0]) == ["id", "name", "note", "more"]
        live = self.copy(writer, wider, replace(live, generation=2), 2)
        assert shown("people") == [{"name": "n2"}]
        refused = code_of(lambda: writer.evolve(live, wider, wide))
        assert refused == "target:postgresql-dependent"
        assert list(shown(name)[0]) == ["id", "name", "note", "more"]
        database.execute("DROP VIEW contract.people")
        writer.evolve(live, wider, wide)
        assert list(shown(name)[0]) == ["id", "name", "note"]


def _done(database: Database, text: str) -> None:
    database.execute(text)
