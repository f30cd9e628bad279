"""The promises of a merge target's modes, columns and fences as a suite. A plugin's test class
inherits it and supplies its fixtures. Modes that the plugin does not have are skipped."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.contract.source import code_of
from replicators.connectors.contract.target import TargetFixtures
from replicators.connectors.model.modes import (
    LOGS,
    OCCURRENCE,
    ROW_HASH,
    Mode,
    extra_columns,
    snapshot_values,
    stored,
)
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Date,
    Decimal,
    Float,
    Int,
    String,
    Timestamp,
    arrow_type,
)
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import (
    FoldedBatch,
    KeyRange,
    MergeTarget,
    TargetPlugin,
    TargetTable,
)

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_NUMBERS = itertools.count(1)
Rows = Sequence[Mapping[str, Any]]
Reader = Callable[[TableSchema], list[tuple[Any, ...]]]


def at(minute: int) -> dt.datetime:
    """A time of the tests."""
    return EPOCH + dt.timedelta(minutes=minute)


def bits(schema: TableSchema, *names: str) -> bytes | None:
    """The `_unsent` bytes for these columns."""
    known = [c.name for c in schema.columns]
    mask = sum(1 << known.index(n) for n in names)
    return mask.to_bytes((len(known) + 7) // 8, "little") if mask else None


def digest(*values: Any) -> bytes:
    """A digest of a row without a key."""
    return hashlib.md5(repr(values).encode(), usedforsecurity=False).digest()


class MergeFixtures(TargetFixtures):
    """Copies and batches in every mode."""

    @pytest.fixture
    def wide(self) -> TableSchema:
        """A table with two columns beside its key."""
        columns = (
            Column("id", Int(64), "bigint", nullable=False, ordinal=1),
            Column("name", String(), "text", ordinal=2),
            Column("note", String(), "text", ordinal=3),
        )
        name = f"merging_{next(_NUMBERS)}"
        return TableSchema(TableId("contract", name), columns, ("id",), ("id",))

    @pytest.fixture
    def copied(
        self, plugin: TargetPlugin, writer: MergeTarget
    ) -> Callable[[TableSchema, Mode, Rows], TargetTable]:
        """Publishes a copy of rows in a mode, at sequence 10."""

        def made(schema: TableSchema, mode: Mode, rows: Rows) -> TargetTable:
            if mode not in plugin.capabilities.modes:
                pytest.skip(f"the target has no mode {mode}")
            table = TargetTable(schema.id, "r1", 1, mode=mode)
            writer.begin_snapshot(table, schema)
            place = writer.snapshot_place(table, schema)
            values = snapshot_values(mode, EPOCH, 10)
            found = [{n: {**values, **row}.get(n) for n in place.arrow.names} for row in rows]
            path = f"{place.folder}/1.parquet"
            with pq.ParquetWriter(path, place.arrow, **place.options) as out:
                out.write_table(pa.Table.from_pylist(found, place.arrow))
            writer.load_snapshot_files(table, schema, [path])
            return replace(table, table_uuid=writer.publish_snapshot(table, schema, 10))

        return made

    @pytest.fixture
    def folded(self, tmp_path: Path) -> Callable[..., FoldedBatch]:
        """Makes a batch of rows as a mode's fold writes them. `unsent` and `origin` stand in a row
        under these names: columns that were not sent, and the key that the row comes from."""

        def made(
            schema: TableSchema, sequence: int, rows: Rows, mode: Mode = Mode.MIRROR, **facts: Any
        ) -> FoldedBatch:
            unsent = tuple(dict.fromkeys(n for r in rows for n in r.get("unsent", ())))
            has_origins = any(r.get("origin") is not None for r in rows)
            arrow = _batch_schema(schema, mode, bool(unsent), has_origins)
            found = [_batch_row(schema, row, arrow) for row in rows]
            path = str(tmp_path / f"{schema.id.name}-{sequence}-{next(_NUMBERS)}.parquet")
            pq.write_table(pa.Table.from_pylist(found, arrow), path)
            if schema.key == ("id",) and not facts.get("truncate") and mode not in LOGS:
                keys = [r["id"] for r in rows]
                keys += [r["origin"] for r in rows if r.get("origin") is not None]
                facts.setdefault("ranges", (KeyRange(min(keys), max(keys)),))
            return FoldedBatch(
                schema, (path,), sequence, len(rows), unsent, has_origins, mode=mode, **facts
            )

        return made


class MergeContract(MergeFixtures):
    """Supply, besides the fixtures of `TargetFixtures`, `another` (makes a writer as another
    process has it) and `replaced_by_hand` (drops a live table and makes another one with its name
    and columns, without rows and not by the writer)."""

    @pytest.fixture
    def another(self) -> Callable[[], MergeTarget]:
        """Makes a second writer."""
        raise NotImplementedError

    @pytest.fixture
    def replaced_by_hand(self) -> Callable[[TableSchema], None]:
        """Replaces a live table."""
        raise NotImplementedError

    # Unsent values and keys that change

    def test_values_that_were_not_sent_stay_as_the_target_has_them(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards CORRECTNESS 9: an unsent value that is written as NULL is lost."""
        live = copied(wide, Mode.MIRROR, [_row(1, "a", "long"), _row(2, "b", "text")])
        rows = [_row(1, "A", unsent=("note",)), _row(2, "B", None), _row(3, "c", "new")]
        assert writer.merge(live, folded(wide, 20, rows)).was_applied
        assert read(wide) == [(1, "A", "long"), (2, "B", None), (3, "c", "new")]

    def test_unsent_values_follow_keys_that_change_in_chains_and_swaps(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards CORRECTNESS 8 and 9: the value is in the row of the old key, as it was before the
        merge changed that row."""
        live = copied(wide, Mode.MIRROR, [_row(n, f"n{n}", f"t{n}") for n in (1, 2, 3, 4)])
        rows = [
            _row(1, "was 2", unsent=("note",), origin=2),
            _row(2, "was 1", unsent=("note",), origin=1),
            _row(4, "was 3", unsent=("note",), origin=3),
            _row(5, "was 4", "sent", origin=4),
            _row(3, delete=True),
        ]
        assert writer.merge(live, folded(wide, 20, rows)).was_applied
        assert read(wide) == [
            (1, "was 2", "t2"), (2, "was 1", "t1"), (4, "was 3", "t3"), (5, "was 4", "sent"),
        ]  # fmt: skip

    @pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.SOFT_DELETE, Mode.HISTORY])
    def test_a_value_that_nobody_has_stops_the_merge_and_nothing_of_it_remains(
        self,
        writer: MergeTarget,
        wide: TableSchema,
        copied: Any,
        folded: Any,
        read: Reader,
        mode: Mode,
    ) -> None:
        """Guards `target:row-missing` and the one commit of rows and token: a merge that fails half
        way must not leave its first rows."""
        live = copied(wide, mode, [_row(1, "a", "long")])
        before, moved = read(stored(wide, mode)), mode is Mode.HISTORY
        rows = [
            _row(1, "A", "new", **_ended(mode, delete=moved)),
            *([_row(1, "A", "new", **_version(mode, 5))] if moved else []),
            _row(9, "?", unsent=("note",), origin=8 if moved else None, **_version(mode, 5)),
        ]
        batch = folded(wide, 20, rows, mode)
        assert code_of(lambda: writer.merge(live, batch)) == "target:row-missing"
        assert read(stored(wide, mode)) == before
        assert self._sequence(writer, live) == 10
        assert writer.missing_rows(live, batch).to_pylist() == [{"id": 9}]
        mended = folded(wide, 20, [*rows[:-1], _row(9, "?", "read", **_version(mode, 5))], mode)
        assert writer.merge(live, mended).was_applied

    # Modes

    def test_a_truncate_leaves_what_came_after_it(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards CORRECTNESS 6 for a mirror, with and without rows after the TRUNCATE."""
        live = copied(wide, Mode.MIRROR, [_row(1, "a"), _row(2, "b")])
        rows = [_row(2, "B"), _row(3, "c"), _row(1, delete=True)]
        assert writer.merge(live, folded(wide, 20, rows, truncate=True)).was_applied
        assert read(wide) == [(2, "B", None), (3, "c", None)]
        assert writer.merge(live, FoldedBatch(wide, (), 30, 0, truncate=True)).was_applied
        assert read(wide) == []
        assert self._sequence(writer, live) == 30

    def test_a_table_without_key_or_old_rows_takes_every_insert(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards `append_only`: equal rows are different rows there."""
        keyless = replace(wide, key=(), primary_key=())
        live = copied(keyless, Mode.MIRROR, [_row(1, "a")])
        batch = folded(keyless, 20, [_row(1, "a"), _row(1, "a")], append_only=True)
        assert writer.merge(live, batch).was_applied
        assert not writer.merge(live, batch).was_applied
        assert read(keyless) == [(1, "a", None)] * 3

    def test_a_table_without_a_key_has_each_row_as_often_as_the_source(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards the multiset (CORRECTNESS 12): numbers from 1 without a gap, and a row that is
        taken away more often than it is there stops the merge."""
        keyless = replace(wide, key=(), primary_key=(), full_before=True)
        one, two = _counted(1, "a"), _counted(2, "b")
        live = copied(keyless, Mode.MULTISET, [one, one, one, two])
        shown = stored(keyless, Mode.MULTISET)

        def held() -> list[tuple[int, int]]:
            return sorted((row[0], row[-1]) for row in read(shown))

        assert held() == [(1, 1), (1, 2), (1, 3), (2, 1)]
        changes = [{**one, OCCURRENCE: -2}, {**two, OCCURRENCE: 2}, _counted(3, "c", 1)]
        batch = folded(keyless, 20, changes, Mode.MULTISET)
        assert writer.merge(live, batch).was_applied
        assert held() == [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1)]
        absent = folded(keyless, 30, [{**two, OCCURRENCE: -4}], Mode.MULTISET)
        assert code_of(lambda: writer.merge(live, absent)) == "target:row-absent"
        assert held() == [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1)]
        emptied = folded(keyless, 40, [_counted(1, "a", 2)], Mode.MULTISET, truncate=True)
        assert writer.merge(live, emptied).was_applied
        assert held() == [(1, 1), (1, 2)]

    def test_soft_delete_keeps_rows_with_a_flag(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards CORRECTNESS 7 for soft delete: a deleted row stays, one that comes back loses its
        flag, and a TRUNCATE flags the living ones only."""
        mode = Mode.SOFT_DELETE
        live, shown = copied(wide, mode, [_row(1, "a"), _row(2, "b"), _row(3, "c")]), None
        shown = stored(wide, mode)
        rows = [_row(1, "a", delete=True, _deleted_at=at(1)), _row(2, "B", _deleted_at=None)]
        assert writer.merge(live, folded(wide, 20, rows, mode)).was_applied
        assert [r[3:] for r in read(shown)] == [(True, at(1)), (False, None), (False, None)]
        back = [_row(1, "A", _deleted_at=None), _row(4, "d", delete=True, _deleted_at=at(2))]
        assert writer.merge(live, folded(wide, 30, back, mode)).was_applied
        emptied = FoldedBatch(wide, (), 40, 0, truncate=True, truncated_at=at(3), mode=mode)
        assert writer.merge(live, emptied).was_applied
        assert [(r[0], r[1], r[4]) for r in read(shown)] == [
            (1, "A", at(3)), (2, "B", at(3)), (3, "c", at(3)), (4, "d", at(2)),
        ]  # fmt: skip
        assert all(r[3] for r in read(shown))

    def test_history_keeps_every_version_without_overlap(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards CORRECTNESS 7 for history: the current version ends where the next begins, also
        where the source's clock went back, and an unsent value is that of the version before."""
        mode = Mode.HISTORY
        live, shown = copied(wide, mode, [_row(1, "a", "long"), _row(2, "b")]), stored(wide, mode)
        rows = [
            _row(1, delete=True, **_version(mode, 5)),
            _row(1, "A", unsent=("note",), origin=1, **_version(mode, 5, 6)),
            _row(1, "AA", unsent=("note",), origin=1, **_version(mode, 6)),
            _row(2, delete=True, **_version(mode, -5)),
        ]
        assert writer.merge(live, folded(wide, 20, rows, mode)).was_applied
        versions = sorted(read(shown), key=lambda r: (r[0], r[3]))
        assert versions == [
            (1, "a", "long", at(0), at(5), False),
            (1, "A", "long", at(5), at(6), False),
            (1, "AA", "long", at(6), None, True),
            (2, "b", None, at(0), at(0), False),
        ]
        emptied = FoldedBatch(wide, (), 30, 0, truncate=True, truncated_at=at(9), mode=mode)
        assert writer.merge(live, emptied).was_applied
        ends = {(r[1], r[4]) for r in read(shown)}
        assert ("AA", at(9)) in ends and ("A", at(6)) in ends
        assert not any(r[5] for r in read(shown))

    def test_append_adds_every_change_once(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards the token where nothing else would show that a batch came twice."""
        mode = Mode.APPEND
        live, shown = copied(wide, mode, [_row(1, "a")]), stored(wide, mode)
        change = {"_operation": "update", "_committed_at": at(1), "_sequence": 12}
        rows = [
            {**_row(1, "A"), **change, "_unsent": ["note"]},
            {**_row(1, "A"), **change, "_sequence": 13, "_unsent": None},
        ]
        batch = folded(wide, 20, rows, mode)
        assert writer.merge(live, batch).was_applied
        assert not writer.merge(live, batch).was_applied
        found = sorted((r[5], r[3], r[1], r[6]) for r in read(shown))
        assert found == [
            (10, "snapshot", "a", None),
            (12, "update", "A", ["note"]),
            (13, "update", "A", None),
        ]

    def test_messages_are_added_once_and_another_schema_changes_nothing(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards the token where nothing else would show that a message came twice; that a document
        keeps its text; and that a column more or less at the source changes no table."""
        mode = Mode.MESSAGES

        def message(number: int, key: str | None, value: str) -> dict[str, Any]:
            named = {"table": str(wide.id), "message_id": number}
            return {**named, "key": key, "value": value}

        first = message(-5, '["a"]', '{"after": {"n": 1.10, "n": 123456789012345678901234567890}}')
        live, shown = copied(wide, mode, [first]), stored(wide, mode)
        second = [message(12, '["a"]', '{"after": null}'), message(13, None, '{"t": "\\u0000"}')]
        batch = folded(wide, 20, second, mode)
        assert writer.merge(live, batch).was_applied
        assert not writer.merge(live, batch).was_applied
        narrow = replace(wide, columns=wide.columns[:2])
        assert writer.evolve(live, wide, narrow) == []
        assert writer.merge(live, folded(narrow, 30, [message(14, "[1]", "{}")], mode)).was_applied
        found = sorted(read(shown), key=lambda row: int(row[1]))
        assert [row[:2] for row in found] == [(str(wide.id), n) for n in (-5, 12, 13, 14)]
        keys = [row[2] if isinstance(row[2], list | None) else json.loads(row[2]) for row in found]
        assert keys == [["a"], ["a"], None, [1]]

    def test_values_arrive_as_they_were(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards both ways into the table, by the snapshot's files and by a batch: quotes and line
        ends in texts, numbers at their ends, times before 1970, NULL."""
        kinds = {
            "flag": Boolean(),
            "small": Int(32),
            "amount": Decimal(18, 4),
            "ratio": Float(64),
            "day": Date(),
            "moment": Timestamp(6, zone=True),
            "clock": Timestamp(6, zone=False),
        }
        more = [Column(n, k, "x", ordinal=9 + i) for i, (n, k) in enumerate(kinds.items())]
        schema = replace(wide, columns=(*wide.columns, *more))
        odd = 'it\'s "odd" \\ `x`\n\t%s {} é 日本 🙂'
        low = {
            "flag": True, "small": -(2**31), "amount": PyDecimal("-99999999999999.9999"),
            "ratio": -0.1, "day": dt.date(1, 1, 1), "moment": at(0).replace(year=1900),
            "clock": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        }  # fmt: skip
        high = {
            "flag": False, "small": 2**31 - 1, "amount": PyDecimal("99999999999999.9999"),
            "ratio": 1e300, "day": dt.date(9999, 12, 31), "moment": at(1).replace(microsecond=7),
            "clock": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        }  # fmt: skip
        rows = [{**_row(-(2**63), odd, ""), **low}, {**_row(2**63 - 1, odd), **high}, _row(0)]
        names = [c.name for c in schema.columns]
        expected = [tuple(row.get(n) for n in names) for row in sorted(rows, key=_id)]
        live = copied(schema, Mode.MIRROR, rows)
        assert read(schema) == expected
        again = [{**row, "id": row["id"] // 2} for row in rows if row["id"]]
        assert writer.merge(live, folded(schema, 20, again)).was_applied
        halves = [tuple(row.get(n) for n in names) for row in again]
        assert read(schema) == sorted(expected + halves, key=lambda r: int(r[0] or 0))

    # Columns

    def test_columns_are_renamed_added_and_dropped_and_a_repeat_does_nothing(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards `evolve`, matched by the source's numbers: two columns that swap their names keep
        their values, and one that was made again under its old name begins empty."""
        live = copied(wide, Mode.MIRROR, [_row(1, "a", "long")])
        key, name, note = wide.columns
        crossed = (key, replace(note, name="name"), replace(name, name="note"))
        swapped = replace(wide, columns=crossed)
        assert len(writer.evolve(live, wide, swapped)) == 2
        assert writer.evolve(live, wide, swapped) == []
        rows = [_row(1, "sent", unsent=("note",))]
        assert writer.merge(live, folded(swapped, 20, rows)).was_applied
        assert list(map(set, read(swapped))) == [{1, "sent", "a"}]
        more = Column("more", Int(32), "integer", ordinal=7)
        anew = replace(swapped, columns=(key, replace(note, name="name", ordinal=8), more))
        assert writer.evolve(live, swapped, anew)
        assert writer.evolve(live, swapped, anew) == []
        assert list(map(set, read(anew))) == [{1, None}]
        assert writer.merge(live, folded(anew, 30, [{"id": 2, "name": "b", "more": 5}])).was_applied
        assert list(map(set, read(anew))) == [{1, None}, {2, "b", 5}]
        assert self._sequence(writer, live) == 30

    def test_a_type_grows_in_place_or_the_table_is_to_be_copied(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards `target:evolve`: a type that loses something is never changed in place, and one
        that grows keeps the values."""
        schema = replace(wide, columns=(*wide.columns, Column("n", Int(32), "integer", ordinal=4)))
        live = copied(schema, Mode.MIRROR, [{**_row(1, "a"), "n": 7}])

        def with_type(kind: Any) -> TableSchema:
            return replace(schema, columns=(*wide.columns, Column("n", kind, "x", ordinal=4)))

        assert code_of(lambda: writer.evolve(live, schema, with_type(Date()))) == "target:evolve"
        assert read(schema) == [(1, "a", None, 7)]
        grown = with_type(Int(64))
        evolved = _code_or(lambda: writer.evolve(live, schema, grown))
        if evolved == "target:evolve":
            return
        assert len(evolved) <= 1  # none where the target has one type for both
        assert writer.merge(live, folded(grown, 20, [{**_row(2), "n": 2**40}])).was_applied
        assert read(grown) == [(1, "a", None, 7), (2, None, None, 2**40)]

    def test_a_column_is_filled_in_every_row(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, read: Reader
    ) -> None:
        """Guards `fill_column`: old rows get the default of a new column. The token stays."""
        live = copied(wide, Mode.MIRROR, [_row(1, "a"), _row(2, None)])
        writer.fill_column(live, wide.column("note"), "it's \\ new")
        assert [r[2] for r in read(wide)] == ["it's \\ new"] * 2
        writer.fill_column(live, wide.column("note"), None)
        assert [r[2] for r in read(wide)] == [None, None]
        assert self._sequence(writer, live) == 10

    # Fences

    def test_a_merge_that_another_run_overtook_leaves_nothing(
        self,
        writer: MergeTarget,
        wide: TableSchema,
        copied: Any,
        folded: Any,
        read: Reader,
        another: Callable[[], MergeTarget],
    ) -> None:
        """Guards CORRECTNESS 29: a run whose lease ended may still merge. Rows that are only added
        would be there twice. A target whose commits can't follow one of another run may say
        `target:conflict`, until it has merged itself: then the token is compared again."""
        keyless = replace(wide, key=(), primary_key=())
        live = copied(keyless, Mode.MIRROR, [])
        other = another()
        assert self._sequence(writer, live) == self._sequence(other, live) == 10
        one = folded(keyless, 20, [_row(1, "a")], append_only=True)
        assert other.merge(live, one).was_applied
        both = folded(keyless, 30, [_row(1, "a"), _row(2, "b")], append_only=True)
        known = {"target:table-ahead", "target:conflict"}
        assert code_of(lambda: writer.merge(live, both)) in known
        assert read(keyless) == [(1, "a", None)]
        assert self._sequence(writer, live) == 20
        rest = folded(keyless, 30, [_row(2, "b")], append_only=True)
        assert writer.merge(live, rest).was_applied
        assert read(keyless) == [(1, "a", None), (2, "b", None)]
        late = folded(keyless, 40, [_row(2, "b"), _row(3, "c")], append_only=True)
        assert code_of(lambda: other.merge(live, late)) == "target:table-ahead"
        assert read(keyless) == [(1, "a", None), (2, "b", None)]

    def test_a_table_that_was_replaced_by_hand_is_not_written_to(
        self,
        writer: MergeTarget,
        wide: TableSchema,
        copied: Any,
        folded: Any,
        read: Reader,
        replaced_by_hand: Callable[[TableSchema], None],
    ) -> None:
        """Guards CORRECTNESS 13: a table with the right name may be somebody else's, and lacks our
        rows."""
        live = copied(wide, Mode.MIRROR, [_row(1, "a")])
        replaced_by_hand(wide)
        batch = folded(wide, 20, [_row(2, "b")])
        assert code_of(lambda: writer.merge(live, batch)) == "target:table-replaced"
        token = writer.token(live)
        assert token is None or token.table_uuid != live.table_uuid
        again = replace(live, generation=2)
        assert code_of(lambda: writer.begin_snapshot(again, wide)) == "target:table-taken"
        writer.drop(live)
        assert read(wide) == []

    def test_tables_are_merged_side_by_side(
        self, writer: MergeTarget, wide: TableSchema, copied: Any, folded: Any, read: Reader
    ) -> None:
        """Guards CORRECTNESS 14: tables never share a token, and none waits for another for ever. A
        merge that another one ended is tried again, as the engine does."""
        schemas = [replace(wide, id=TableId("contract", f"{wide.id.name}_{n}")) for n in range(3)]
        tables = [copied(s, Mode.MIRROR, []) for s in schemas]
        begin = threading.Barrier(len(tables))

        def merge(number: int) -> None:
            begin.wait()
            for sequence in (20, 30):
                batch = folded(schemas[number], sequence, [_row(sequence, f"{number}")])
                tries = (_code_or(lambda: writer.merge(tables[number], batch)) for _ in range(20))  # noqa: B023 - called at once
                done = next(one for one in tries if one != "target:conflict")
                assert done.was_applied

        with ThreadPoolExecutor(len(tables)) as pool:
            list(pool.map(merge, range(len(tables))))
        for number, (schema, table) in enumerate(zip(schemas, tables, strict=True)):
            assert read(schema) == [(n, f"{number}", None) for n in (20, 30)]
            assert self._sequence(writer, table) == 30


def _code_or(call: Callable[[], Any]) -> Any:
    """The call's result, or the code of its error."""
    try:
        return call()
    except ReplicationError as err:
        return err.code


def _row(
    number: int, name: str | None = None, note: str | None = None, **more: Any
) -> dict[str, Any]:
    return {"id": number, "name": name, "note": note, **more}


def _id(row: Mapping[str, Any]) -> int:
    return int(row["id"])


def _counted(number: int, name: str, change: int | None = None) -> dict[str, Any]:
    """A row of a table without a key, with the change of its count."""
    return {**_row(number, name), ROW_HASH: digest(number, name), OCCURRENCE: change}


def _version(mode: Mode, begin: int, end: int | None = None) -> dict[str, Any]:
    """What the mode's fold adds to a row."""
    if mode is Mode.SOFT_DELETE:
        return {"_deleted_at": None}
    if mode is Mode.HISTORY:
        return {"_valid_from": at(begin), "_valid_to": None if end is None else at(end)}
    return {}


def _ended(mode: Mode, *, delete: bool) -> dict[str, Any]:
    return {**_version(mode, 5), "delete": delete}


def _batch_schema(
    schema: TableSchema, mode: Mode, has_unsent: bool, has_origins: bool
) -> pa.Schema:
    """The fields of a batch's files."""
    fields = list(schema.arrow_schema())
    if mode is Mode.MESSAGES:
        return stored(schema, mode).arrow_schema()
    if mode in (Mode.APPEND, Mode.MULTISET):
        return pa.schema(
            [*fields, *(pa.field(c.name, arrow_type(c.type)) for c in extra_columns(mode))]
        )
    fields.append(pa.field("_delete", pa.bool_()))
    key = pa.struct([schema.arrow_schema().field(n) for n in schema.key])
    if has_unsent:
        fields.append(pa.field("_unsent", pa.binary()))
    if has_origins or has_unsent:
        fields.append(pa.field("_origin", key))
    moment = pa.timestamp("us", tz="UTC")
    names = {Mode.SOFT_DELETE: ("_deleted_at",), Mode.HISTORY: ("_valid_from", "_valid_to")}
    return pa.schema([*fields, *(pa.field(n, moment) for n in names.get(mode, ()))])


def _batch_row(schema: TableSchema, row: Mapping[str, Any], arrow: pa.Schema) -> dict[str, Any]:
    origin = row.get("origin")
    made = {**row, "_delete": row.get("delete", False)}
    made["_origin"] = None if origin is None else {"id": origin}
    if "_unsent" not in row:
        made["_unsent"] = bits(schema, *row.get("unsent", ()))
    return {n: made.get(n) for n in arrow.names}
