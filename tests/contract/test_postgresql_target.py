"""PostgreSQL as a target keeps the promises of every target, on the newest server, and
on the oldest with `--long`."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.source import code_of
from replicators.connectors.contract.target import TargetContract, TargetFixtures
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import MergeTarget, TargetPlugin, TargetTable
from runners.engine.tasks.local import LocalTasks
from tests.servers import Database
from tests.sql_modes import Records, SqlModes
from tests.sql_views import Opened, Shown, SqlViews, Statement

pytestmark = [
    pytest.mark.contract,
    pytest.mark.integration,
    pytest.mark.timeout(180),
    pytest.mark.oldest_postgresql(is_long=True),
]


class PostgresqlFixtures(TargetFixtures):
    """Into a database of each test's own, as a role that may make schemas and nothing else."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["postgresql"]

    @pytest.fixture
    def params(self, plugin: TargetPlugin, database: Database) -> Any:
        database.execute("DROP ROLE IF EXISTS plain_writer")
        given = database.user("plain_writer")
        database.execute(f"GRANT CREATE ON DATABASE {database.name} TO plain_writer")
        return parse(plugin.params, given)

    @pytest.fixture
    def dead_params(self, params: Any) -> Any:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return dataclasses.replace(params, host="127.0.0.1", port=free.getsockname()[1])

    @pytest.fixture
    def writer(self, plugin: TargetPlugin, params: Any, tmp_path: Path) -> Iterator[MergeTarget]:
        made: Any = plugin.writer(params, LocalTasks(folder=str(tmp_path / "files")))
        yield made
        made.close()

    @pytest.fixture
    def read(self, database: Database) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            table = f'"{schema.id.schema}"."{schema.id.name}"'
            return sorted(database.execute(f"SELECT * FROM {table}"), key=lambda row: row[0])

        return rows


class TestPostgresqlTarget(PostgresqlFixtures, TargetContract):
    """Staging, token, generations, owners."""


class TestPostgresqlMerging(PostgresqlFixtures, MergeContract):
    """Modes, columns and fences."""

    @pytest.fixture
    def another(
        self, plugin: TargetPlugin, params: Any, tmp_path: Path
    ) -> Iterator[Callable[[], MergeTarget]]:
        with ExitStack() as stack:

            def made() -> MergeTarget:
                one = plugin.writer(params, LocalTasks(folder=str(tmp_path / "other")))
                return stack.enter_context(closing(one))

            yield made

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

    @pytest.fixture
    def records(self, database: Database) -> Records:
        def rows(schema: TableSchema) -> list[dict[str, Any]]:
            names = [c.name for c in schema.columns]
            shown = ", ".join(f'"{n}"' for n in names)
            table = f'"{schema.id.schema}"."{schema.id.name}"'
            found = database.execute(f"SELECT {shown} FROM {table}")
            return [dict(zip(names, row, strict=True)) for row in found]

        return rows


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
