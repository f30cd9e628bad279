"""The views of the living rows that a SQL target keeps. A target's test class inherits
`SqlViews`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.contract.merging import MergeFixtures, at
from replicators.connectors.contract.source import code_of
from replicators.connectors.model.modes import Mode, snapshot_values
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.target import MergeTarget, TargetPlugin, TargetTable
from replicators.connectors.view_fields import ViewChecks
from runners.engine.tasks.local import LocalTasks

VIEWED = [Mode.SOFT_DELETE, Mode.HISTORY]
Opened = Callable[..., MergeTarget]
Shown = Callable[[str], list[dict[str, Any]]]
IsThere = Callable[[str], bool]
Statement = Callable[[str], None]
Taken = Callable[[TableSchema], bool]


class SqlViews(MergeFixtures):
    """Supply, besides the fixtures of `TargetFixtures`, `shown` (the rows of a view, by column) and
    `statement` (runs a statement in the namespace `contract`, as an administrator; `{}` is the
    quoted name of a table there). `widens`: whether a column's type can grow in place.
    `has_checks`: whether the plugin's checks are `ViewChecks`."""

    widens = True
    has_checks = True

    @pytest.fixture
    def shown(self) -> Shown:
        """Reads a view."""
        raise NotImplementedError

    @pytest.fixture
    def is_there(self, shown: Shown) -> IsThere:
        """Whether there is a view with this name."""

        def looked(name: str) -> bool:
            try:
                shown(name)
            except Exception:  # noqa: BLE001 - each driver has its own error for a missing view
                return False
            return True

        return looked

    @pytest.fixture
    def statement(self) -> Statement:
        """Runs a statement."""
        raise NotImplementedError

    @pytest.fixture
    def viewing(self, plugin: TargetPlugin, params: Any, tmp_path: Path) -> Iterator[Opened]:
        """Opens a writer with views, as another process has it."""
        with ExitStack() as stack:

            def opened(**given: Any) -> MergeTarget:
                asked = dataclasses.replace(params, **{"current_views": True, **given})
                made: Any = plugin.writer(asked, LocalTasks(folder=str(tmp_path / "files")))
                stack.callback(made.close)
                return made  # type: ignore[no-any-return]

            yield opened

    @pytest.fixture
    def taken(self, plugin: TargetPlugin, params: Any) -> Taken:
        """Whether the preflight of a table in a mode with views says that its view is taken. It
        always says so where another table has the view's name."""

        def asked(schema: TableSchema) -> bool:
            given = dataclasses.replace(params, current_views=True)
            with plugin.checks(given) as checks:
                views = cast(ViewChecks, checks).views
                other = replace(schema, id=replace(schema.id, name=f"{schema.id.name}_current"))
                shared = views([schema], [schema, other], "r1")
                assert [p.code for p in shared] == ["target:view-taken"]
                return bool(views([schema], [schema], "r1"))

        return asked

    def copy(
        self, writer: MergeTarget, schema: TableSchema, table: TargetTable, *ids: int
    ) -> TargetTable:
        """Copy rows with these numbers, at sequence 10."""
        writer.begin_snapshot(table, schema)
        place = writer.snapshot_place(table, schema)
        values = snapshot_values(table.mode, at(0), 10)
        rows = [{**values, "id": n, "name": f"n{n}", "note": None} for n in ids]
        found = [{n: row.get(n) for n in place.arrow.names} for row in rows]
        with pq.ParquetWriter(f"{place.folder}/1.parquet", place.arrow, **place.options) as out:
            out.write_table(pa.Table.from_pylist(found, place.arrow))
        writer.load_snapshot_files(table, schema, [f"{place.folder}/1.parquet"])
        return replace(table, table_uuid=writer.publish_snapshot(table, schema, 10))

    def _changes(self, mode: Mode) -> list[dict[str, Any]]:
        """Row 1 is deleted, row 2 is changed, row 3 is new."""
        if mode is Mode.SOFT_DELETE:
            living: dict[str, Any] = {"_deleted_at": None}
            return [
                {"id": 1, "name": "n1", "delete": True, "_deleted_at": at(5)},
                {"id": 2, "name": "N2", **living},
                {"id": 3, "name": "n3", **living},
            ]
        began: dict[str, Any] = {"_valid_from": at(5), "_valid_to": None}
        return [
            {"id": 1, "delete": True, **began},
            {"id": 2, "delete": True, **began},
            {"id": 2, "name": "N2", **began},
            {"id": 3, "name": "n3", **began},
        ]

    @pytest.mark.parametrize("mode", VIEWED)
    def test_a_view_shows_the_living_rows_and_the_sources_columns(
        self,
        viewing: Opened,
        wide: TableSchema,
        shown: Shown,
        is_there: IsThere,
        folded: Any,
        mode: Mode,
    ) -> None:
        """Guards the view from the copy on: one that shows a deleted row, an older version or a
        column of ours is not the source's table. A re-sync keeps it, `drop` removes it."""
        writer, name = viewing(), f"{wide.id.name}_current"
        live = self.copy(writer, wide, TargetTable(wide.id, "r1", 1, mode=mode), 1, 2)
        first = [{"id": n, "name": f"n{n}", "note": None} for n in (1, 2)]
        assert shown(name) == first
        assert writer.merge(live, folded(wide, 20, self._changes(mode), mode)).was_applied
        after = [{"id": 2, "name": "N2", "note": None}, {"id": 3, "name": "n3", "note": None}]
        assert shown(name) == after
        again = self.copy(viewing(), wide, replace(live, generation=2), 7)
        assert shown(name) == [{"id": 7, "name": "n7", "note": None}]
        writer = viewing()
        writer.drop(again)
        assert not is_there(name)
        self.copy(writer, wide, TargetTable(wide.id, "r1", 3, mode=mode), 8)
        assert [row["id"] for row in shown(name)] == [8]

    @pytest.mark.parametrize("mode", VIEWED)
    def test_a_view_follows_columns(
        self, viewing: Opened, wide: TableSchema, shown: Shown, mode: Mode
    ) -> None:
        """Guards the view through every change of a schema: a database may refuse to change a
        column that a view shows, or leave a view that can't be read."""
        writer, name = viewing(), f"{wide.id.name}_current"
        live = self.copy(writer, wide, TargetTable(wide.id, "r1", 1, mode=mode), 1)
        more = Column("more", Int(32), "int", ordinal=4)
        added = replace(wide, columns=(*wide.columns, more))
        writer.evolve(live, wide, added)
        assert shown(name) == [{"id": 1, "name": "n1", "note": None, "more": None}]
        key, named, note = wide.columns
        renamed = replace(wide, columns=(key, replace(named, name="title"), note, more))
        writer.evolve(live, added, renamed)
        assert shown(name) == [{"id": 1, "title": "n1", "note": None, "more": None}]
        wider = replace(more, type=Int(64)) if self.widens else more
        fewer = replace(wide, columns=(key, replace(named, name="title"), wider))
        writer.evolve(live, renamed, fewer)
        assert shown(name) == [{"id": 1, "title": "n1", "more": None}]
        writer.fill_column(live, wider, 2**40 if self.widens else 40)
        assert [row["more"] for row in shown(name)] == [2**40 if self.widens else 40]
        assert writer.evolve(live, fewer, fewer) == []
        other = replace(wide, columns=(key, Column("note", String(), "text", ordinal=9)))
        self.copy(viewing(), other, replace(live, generation=2), 5)
        assert shown(name) == [{"id": 5, "note": None}]

    def test_a_name_that_is_taken_is_refused_and_what_has_it_stays(
        self,
        viewing: Opened,
        wide: TableSchema,
        shown: Shown,
        statement: Statement,
        taken: Taken,
    ) -> None:
        """Guards people's own views and tables: neither a copy nor `drop` touches them, and the
        assessment tells it before."""
        name, table = f"{wide.id.name}_current", TargetTable(wide.id, "r1", 1)
        soft = replace(table, mode=Mode.SOFT_DELETE)
        writer = viewing()
        live = self.copy(writer, wide, replace(table, mode=Mode.MIRROR), 1)
        assert not self.has_checks or not taken(wide)
        statement(f"CREATE VIEW {{{name}}} AS SELECT 5 AS own")
        assert not self.has_checks or taken(wide)
        second = replace(soft, generation=2)
        assert code_of(lambda: writer.begin_snapshot(second, wide)) == "target:view-taken"
        writer.drop(live)
        assert shown(name) == [{"own": 5}]
        statement(f"DROP VIEW {{{name}}}")
        live = self.copy(writer, wide, second, 1)
        assert not self.has_checks or not taken(wide)
        statement(f"DROP VIEW {{{name}}}")
        statement(f"CREATE VIEW {{{name}}} AS SELECT 6 AS own")
        narrow = replace(wide, columns=wide.columns[:2])
        assert code_of(lambda: writer.evolve(live, wide, narrow)) == "target:view-taken"
        writer.drop(live)
        assert shown(name) == [{"own": 6}]

    def test_a_table_can_not_take_the_place_of_a_view(
        self, viewing: Opened, wide: TableSchema, shown: Shown
    ) -> None:
        """Guards the view against a copy of a table that has its name."""
        writer, name = viewing(), f"{wide.id.name}_current"
        self.copy(writer, wide, TargetTable(wide.id, "r1", 1, mode=Mode.SOFT_DELETE), 1)
        other = replace(wide, id=replace(wide.id, name=name))
        table = TargetTable(other.id, "r1", 1)
        assert code_of(lambda: writer.begin_snapshot(table, other)) == "target:table-taken"
        assert [row["id"] for row in shown(name)] == [1]

    def test_the_option_can_be_changed_later(
        self, viewing: Opened, wide: TableSchema, is_there: IsThere, folded: Any
    ) -> None:
        """Guards the first merge of a process: it makes the view that is asked for now, under
        another name where that changed, and removes one that is not wanted. A copy in another mode
        removes it too."""
        name, mode = wide.id.name, Mode.SOFT_DELETE
        table = TargetTable(wide.id, "r1", 1, mode=mode)
        live = self.copy(viewing(current_views=False), wide, table, 1)
        steps = [
            ({}, ["_current"]),
            ({"view_suffix": "_now"}, ["_now"]),
            ({"current_views": False}, []),
            ({}, ["_current"]),
        ]
        for at_step, (given, there) in enumerate(steps):
            batch = folded(wide, 20 + at_step, [{"id": 1, "name": "x", "_deleted_at": None}], mode)
            assert viewing(**given).merge(live, batch).was_applied
            found = [s for s in ("_current", "_now") if is_there(name + s)]
            assert found == there
        mirror = replace(live, generation=2, mode=Mode.MIRROR)
        self.copy(viewing(), wide, mirror, 1)
        assert not is_there(f"{name}_current")
