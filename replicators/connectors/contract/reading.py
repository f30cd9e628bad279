"""The promises of `ReadsRows` as a suite: what was written comes back as the source's chunks had
it. A plugin's test class inherits it and supplies the fixtures of `TargetFixtures`."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from dataclasses import replace
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.contract.merging import MergeFixtures, at, digest
from replicators.connectors.contract.source import code_of
from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH, Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from replicators.connectors.reading import Divisible
from replicators.connectors.target import FitKind, ReadsRows, TargetPlugin, TargetTable

_NUMBERS = itertools.count(1)
_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
_UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
_ODD = "a,\"b\"\\ \n\t{x} 'é' 😀"
VALUES: tuple[tuple[LogicalType, tuple[Any, Any, Any]], ...] = (
    (Boolean(), (True, False, True)),
    (Int(16), (1, -32768, 32767)),
    (Int(32), (1, -(2**31), 2**31 - 1)),
    (Int(64), (1, -(2**63), 2**63 - 1)),
    (Int(64, signed=False), (PyDecimal(0), PyDecimal(1), PyDecimal(2**64 - 1))),
    (Decimal(38, 10), (PyDecimal("1.5"), PyDecimal("-0.0000000001"), PyDecimal("9" * 28))),
    (Decimal(5, 0), (PyDecimal(1), PyDecimal(-99999), PyDecimal(99999))),
    (Float(32), (0.5, -0.0, 16777216.0)),
    (Float(64), (0.1, float("inf"), float("nan"))),
    (String(), ("", "-", _ODD)),
    (Bytes(), (b"", b"\x00\xff\\x", b"abc")),
    (Date(), (dt.date(2026, 2, 28), _FIRST.date(), _LAST.date())),
    (Time(), (dt.time(0), dt.time(12, 34, 56, 789), dt.time(23, 59, 59, 999999))),
    (Timestamp(), (dt.datetime(2026, 2, 28, 1, 2, 3, 4), _FIRST, _LAST)),
    (
        Timestamp(zone=True),
        (
            dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC),
            _FIRST.replace(tzinfo=dt.UTC),
            _LAST.replace(tzinfo=dt.UTC),
        ),
    ),
    (Json(), ('{"b": 1, "a": [1.50, null]}', "null", '"x"')),
    (Uuid(), (_UUID, _UUID[::-1][:8] + _UUID[8:], _UUID)),
    (Enum(("small", "", "l,a")), ("small", "", "l,a")),
    (Array(Int(64)), ([1, 2], [], [-3])),
    (Array(String()), (["", "-", _ODD], [], [","])),
    (Array(Float(64)), ([0.1, -0.0], [], [1e300])),
    (Array(Boolean()), ([True, False], [], [False])),
    (Array(Bytes()), ([b"", b"\x00,"], [], [b"a"])),
    (Array(Date()), ([_FIRST.date()], [], [_LAST.date()])),
    (Array(Time()), ([dt.time(1, 2, 3, 4)], [], [dt.time(0)])),
    (Array(Timestamp()), ([_FIRST, _LAST], [], [dt.datetime(1969, 1, 1)])),
    (Array(Decimal(12, 2)), ([PyDecimal("1.50")], [], [PyDecimal("-2.00")])),
    (Array(Uuid()), ([_UUID], [], [_UUID])),
)
"""A type with three values. Every column is also NULL in one row, and arrays have NULL in one."""


class ReadingContract(MergeFixtures):
    """`fixes_version`: later merges are not seen in what is open. An emulator may lack that."""

    fixes_version = True

    @pytest.fixture
    def every(self, plugin: TargetPlugin) -> tuple[TableSchema, list[dict[str, Any]]]:
        """A table with a column of every type that the target keeps, and rows of it."""
        columns = [Column("id", Int(64), "bigint", nullable=False, ordinal=1)]
        rows: list[dict[str, Any]] = [{"id": n} for n in range(1, 6)]
        for number, (kind, values) in enumerate(VALUES, start=2):
            native = "enum('small')" if isinstance(kind, Enum) else "native"
            column = Column(f"c{number}", kind, native, ordinal=number)
            if plugin.fits(column).kind not in (FitKind.EXACT, FitKind.WIDENED):
                continue
            columns.append(column)
            odd = [None, *values[0], None] if isinstance(kind, Array) else values[0]
            for row, value in zip(rows, (*values, None, odd), strict=True):
                row[column.name] = value
        name = f"every_{next(_NUMBERS)}"
        return TableSchema(TableId("contract", name), tuple(columns), ("id",), ("id",)), rows

    def test_rows_come_back_as_the_source_had_them(
        self, writer: Any, every: Any, copied: Any, folded: Any
    ) -> None:
        """Guards the neutral types on the way back, for rows of a snapshot and of a merge: a reader
        that gives another type, or a value in another form, would report equal rows as different.
        The reader is used as a task has it."""
        schema, rows = every
        live = copied(schema, Mode.MIRROR, rows)
        more = [{**row, "id": row["id"] + 10} for row in rows]
        assert writer.merge(live, folded(schema, 20, [*more, {"id": 1, "delete": True}]))
        wanted = pa.Table.from_pylist([*rows[1:], *more], schema.arrow_schema())
        with writer.open_rows(live, schema) as opened:
            found = pa.Table.from_batches(pickle.loads(pickle.dumps(opened)).rows())  # noqa: S301
            keys = wanted.select(["id"])
            by_keys = opened.rows_by_keys(pa.concat_tables([keys, _ids(1, 99)]))
            some = pa.Table.from_batches(opened.rows(["c5", "id"]))
            parts = opened.parts(1) if isinstance(opened, Divisible) else [opened]
            divided = pickle.loads(pickle.dumps(parts))  # noqa: S301
            joined = pa.Table.from_batches([b for part in divided for b in part.rows()])
        assert_same(found, wanted)
        assert_same(joined, wanted)
        assert_same(by_keys, wanted)
        assert_same(some, wanted.select(["c5", "id"]))

    def test_limits_of_the_key_are_kept(self, writer: Any, wide: Any, copied: Any) -> None:
        """Guards the parts that tasks read: a row that two parts give is doubled, and one that none
        gives is lost."""
        live = copied(wide, Mode.MIRROR, [_row(n) for n in range(10)])
        with writer.open_rows(live, wide) as opened:

            def ids(lower: Any, upper: Any) -> list[int]:
                batches = opened.rows(["name", "id"], lower, upper)
                return sorted(v for b in batches for v in b.column("id").to_pylist())

            parts = [ids(None, 3), ids(3, pa.scalar(7)), ids(7, None), ids(7, 7)]
        assert parts == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9], []]

    def test_text_keys_are_ordered_byte_by_byte(self, writer: Any, wide: Any, copied: Any) -> None:
        """Guards limits of a text key: sorted by a language, `é` stands before `f`, and the two
        sides of a comparison would read different rows for the same part."""
        columns = (replace(wide.columns[0], type=String()), *wide.columns[1:])
        schema = replace(wide, columns=columns)
        names = ["A", "a", "B", "f", "é", "Z z", "'\\"]
        live = copied(schema, Mode.MIRROR, [{"id": n} for n in names])
        with writer.open_rows(live, schema) as opened:
            below = [b.column("id").to_pylist() for b in opened.rows(["id"], None, "a")]
            keys = pa.table({"id": ["é", "'\\", "none"]})
            found = opened.rows_by_keys(keys, ["id"]).column("id").to_pylist()
        assert sorted(itertools.chain(*below)) == sorted(n for n in names if n < "a")
        assert sorted(found) == ["'\\", "é"]

    def test_keys_of_several_columns_are_found(self, writer: Any, wide: Any, copied: Any) -> None:
        """Guards `rows_by_keys` where the first column alone does not tell rows apart."""
        columns = (*wide.columns[:2], replace(wide.columns[2], nullable=False))
        schema = replace(wide, columns=columns, key=("id", "note"), primary_key=("id", "note"))
        rows = [_row(n, note=note) for n in (1, 2) for note in ("a", "b")]
        live = copied(schema, Mode.MIRROR, rows)
        keys = pa.table({"id": [1, 2, 3], "note": ["b", "a", "a"]})
        with writer.open_rows(live, schema) as opened:
            found = opened.rows_by_keys(keys, ["note", "id"])
            assert opened.rows_by_keys(keys.slice(0, 0)).num_rows == 0
        assert sorted(tuple(r.values()) for r in found.to_pylist()) == [("a", 2), ("b", 1)]

    def test_only_current_rows_are_read(
        self, writer: Any, wide: TableSchema, copied: Any, folded: Any, plugin: TargetPlugin
    ) -> None:
        """Guards what "current" means: a row that was deleted at the source, or an old version of
        one, is not a row that the target has too much."""
        for mode in (Mode.SOFT_DELETE, Mode.HISTORY):
            if mode not in plugin.capabilities.modes:
                continue
            schema = replace(wide, id=TableId("contract", f"{wide.id.name}_{mode}"))
            live = copied(schema, mode, [_row(1, "a"), _row(2, "b"), _row(3, "c")])
            moment = {"_deleted_at": at(1)} if mode is Mode.SOFT_DELETE else {"_valid_from": at(1)}
            new = {"_deleted_at": None} if mode is Mode.SOFT_DELETE else moment
            rows = [
                {**_row(1, "a"), "delete": True, **moment},
                *([{**_row(2), "delete": True, **moment}] if mode is Mode.HISTORY else []),
                {**_row(2, "B"), **new},
            ]
            assert writer.merge(live, folded(schema, 20, rows, mode)).was_applied
            with writer.open_rows(live, schema) as opened:
                assert _found(opened.rows()) == [(2, "B", None), (3, "c", None)]
                by_keys = opened.rows_by_keys(_ids(1, 2))
            assert _found(by_keys.to_batches()) == [(2, "B", None)]

    def test_a_row_without_a_key_comes_as_often_as_it_is_there(
        self, writer: Any, wide: TableSchema, copied: Any
    ) -> None:
        """Guards multisets: counts decide whether such a copy is right."""
        keyless = replace(wide, key=(), primary_key=(), full_before=True)
        one = {**_row(1, "a"), ROW_HASH: digest(1, "a"), OCCURRENCE: None}
        live = copied(keyless, Mode.MULTISET, [one, one])
        with writer.open_rows(live, keyless) as opened:
            assert _found(opened.rows()) == [(1, "a", None)] * 2

    def test_later_merges_are_not_seen(
        self, writer: Any, wide: TableSchema, copied: Any, folded: Any
    ) -> None:
        """Guards the one version of a chunked read: a row that moves between two parts while they
        are read would be missing, or be there twice."""
        if not self.fixes_version:
            pytest.skip("this server knows no earlier version of a table")
        live = copied(wide, Mode.MIRROR, [_row(1, "a"), _row(2, "b")])
        with writer.open_rows(live, wide) as opened:
            rows = [{**_row(1), "delete": True}, _row(2, "B"), _row(3, "c")]
            assert writer.merge(live, folded(wide, 20, rows)).was_applied
            assert _found(opened.rows()) == [(1, "a", None), (2, "b", None)]
        with writer.open_rows(live, wide) as opened:
            assert _found(opened.rows()) == [(2, "B", None), (3, "c", None)]

    def test_a_table_that_is_not_there_is_named(self, writer: Any, wide: TableSchema) -> None:
        """Guards the code: an absent table is not an empty one."""
        table = TargetTable(wide.id, "r1", 1)
        assert isinstance(writer, ReadsRows)
        assert code_of(lambda: writer.open_rows(table, wide).__enter__()) == "target:table-missing"


def _row(number: int, name: str | None = None, note: str | None = None) -> dict[str, Any]:
    return {"id": number, "name": name, "note": note}


def _ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def _found(batches: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for b in batches for r in b.to_pylist())


def assert_same(found: pa.Table, wanted: pa.Table) -> None:
    """Equal types and values, in any order. NaN equals NaN, and 0.0 is not -0.0."""
    assert found.schema == wanted.schema, f"{found.schema}\n{wanted.schema}"
    found, wanted = found.sort_by("id"), wanted.sort_by("id")
    for name in wanted.column_names:
        have, want = (repr(t.column(name).to_pylist()) for t in (found, wanted))
        assert have == want, f"{name}: {have} is not {want}"
