"""Values that neither the log nor the target has are read at the source, never guessed (CORRECTNESS
9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import Op, OpCounts
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, MergeResult, TargetTable
from runners.engine.apply.merge import Merger
from runners.engine.apply.refill import Filler
from runners.engine.fold.plan import fold_to_file
from runners.engine.store.protocol import ChangeFileRow, MemoryStore
from tests.unit.engine.changes import SCHEMA, Change, table_of

TABLE = TargetTable(SCHEMA.id, "r1", 1)


class Source:
    """A source's table, and how far its log is."""

    def __init__(self, *rows: tuple[int, str, str, str]) -> None:
        self.rows = list(rows)
        self.end = 100
        self.asked: list[list[int]] = []

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        wanted = {tuple(k.values()) for k in keys.to_pylist()}
        self.asked.append(sorted(k for k, _ in wanted))
        names = [c.name for c in table.columns]
        found = [dict(zip(names, r, strict=True)) for r in self.rows if r[:2] in wanted]
        return pa.Table.from_pylist(found, schema=table.arrow_schema()), self.end

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...


class Writer:
    """A target that has no row."""

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        rows = pa.concat_tables(pq.read_table(p) for p in batch.paths)
        return rows.filter(rows.column("_unsent").is_valid()).select(list(batch.schema.key))


def filler(source: Source | None) -> Filler:
    writer: Any = Writer()
    return Filler(writer, (lambda: source) if source is not None else None)


def batch_of(folder: Path, changes: list[Change], sequence: int = 7) -> FoldedBatch:
    part = fold_to_file(table_of(changes), SCHEMA, str(folder / "batch.parquet"))
    return FoldedBatch(
        SCHEMA, (part.path,), sequence, part.rows, part.unsent, part.has_origins, part.truncate
    )


def waiting(sequence: int, *, has_key_changes: bool = False) -> list[ChangeFileRow]:
    return [
        ChangeFileRow(
            table=SCHEMA.id,
            segment=1,
            path="",
            version="v1",
            schema=SCHEMA,
            counts=OpCounts(),
            first_sequence=sequence,
            last_sequence=sequence,
            first_committed_at=0.0,
            last_committed_at=0.0,
            first_position=1,
            last_position=1,
            size_bytes=1,
            crc32=0,
            unsent=("*",),
            has_key_changes=has_key_changes,
        )
    ]


def rows_of(batch: FoldedBatch) -> list[tuple[Any, ...]]:
    columns = ["id", "a", "b", "_delete", "_unsent", "_origin"]
    found = pq.read_table(batch.paths[0], columns=columns).to_pylist()
    return sorted(tuple(r[c] for c in columns) for r in found)


def partial(number: int, value: str = "new", old: int | None = None) -> Change:
    """An update that did not send column b."""
    was = None if old is None else (old, "x")
    return Change(Op.UPDATE, (number, "x"), (value, None), frozenset({"b"}), was)


def test_a_value_is_taken_from_the_sources_row_and_nothing_else_is(tmp_path: Path) -> None:
    """Guards `fill._patched` (CORRECTNESS 9): the source's row is of a later moment, so any column
    that the log did send must stay as sent, and whole rows and deletes untouched."""
    source = Source(
        (1, "x", "other", "long"), (2, "x", "moved", "longer"), (4, "x", "first", "other")
    )
    whole = Change(Op.UPDATE, (3, "x"), ("c", "sent"))
    half = Change(Op.UPDATE, (4, "x"), (None, "new"), frozenset({"a"}))
    batch = batch_of(tmp_path, [partial(1), partial(2, old=9), whole, half])
    filled = filler(source).fill(TABLE, batch, [], 100)
    assert filled is not None
    assert (filled.unsent, filled.has_origins) == ((), False)
    assert rows_of(filled) == [
        (1, "new", "long", False, None, None),
        (2, "new", "longer", False, None, None),
        (3, "c", "sent", False, None, None),
        (4, "first", "new", False, None, None),
        (9, None, None, True, None, None),
    ]


def test_what_was_read_waits_until_the_log_has_come_that_far(tmp_path: Path) -> None:
    """Guards the position of what was read (CORRECTNESS 9): used at once, a value from the future
    would be merged before the changes that led to it."""
    source = Source((1, "x", "other", "long"))
    fill = filler(source)
    assert fill.fill(TABLE, batch_of(tmp_path, [partial(1)]), [], 99) is None
    source.rows = [(1, "x", "later", "changed after the read")]
    filled = fill.fill(TABLE, batch_of(tmp_path, [partial(1, "newer")], 8), [], 100)
    assert filled is not None
    assert rows_of(filled) == [(1, "newer", "long", False, None, None)]
    assert source.asked == [[1]]


def test_a_row_that_is_gone_at_the_source_is_left_out(tmp_path: Path) -> None:
    """Guards the delete that `fill._patched` makes of it: kept as it is, the row would get NULLs
    that it never had."""
    filled = filler(Source()).fill(TABLE, batch_of(tmp_path, [partial(1)]), [], 100)
    assert filled is not None
    assert [r[:4:3] for r in rows_of(filled)] == [(1, True)]


@pytest.mark.parametrize(("sequence", "asked"), [(9, [[1], [1]]), (7, [[1]])])
def test_after_a_key_change_without_all_values_it_is_read_again_or_the_table_stops(
    tmp_path: Path, sequence: int, asked: Sequence[Sequence[int]]
) -> None:
    """Another row may have come under that key: what was read of it must not be used."""
    source = Source((1, "x", "other", "long"))
    fill = filler(source)
    assert fill.fill(TABLE, batch_of(tmp_path, [partial(1)]), [], 99) is None
    moved = waiting(9, has_key_changes=True)
    source.rows = [(1, "x", "other", "of the row that came")]
    again = batch_of(tmp_path, [partial(1)], sequence)
    if sequence == 7:
        with pytest.raises(ReplicationError, match="target:row-missing"):
            fill.fill(TABLE, again, moved, 100, is_cut=True)
    else:
        filled = fill.fill(TABLE, again, moved, 100)
        assert filled is not None
        assert rows_of(filled)[0][2] == "of the row that came"
    assert source.asked == asked


def test_a_key_change_beyond_the_frontier_makes_a_merge_wait_for_it(tmp_path: Path) -> None:
    """Guards against a table that stops for no reason: files of a segment are listed before the
    frontier moves past it. A merge that is tried again at once ends where the last one did, but the
    next one ends later and reads the row again."""
    source = Source((1, "x", "other", "long"))
    fill = filler(source)
    batch = batch_of(tmp_path, [partial(1)])
    assert fill.fill(TABLE, batch, [], 99) is None
    moved = waiting(9, has_key_changes=True)
    assert fill.fill(TABLE, batch, moved, 100) is None
    source.rows = [(1, "x", "other", "of the row that came")]
    filled = fill.fill(TABLE, batch_of(tmp_path, [partial(1)], 9), moved, 100)
    assert filled is not None
    assert rows_of(filled)[0][2] == "of the row that came"


def test_keys_that_were_not_asked_for_are_asked_for(tmp_path: Path) -> None:
    """Guards `fill._covers`: a row that came into the batch since the reading would be taken for
    one that the source has no more."""
    source = Source((1, "x", "other", "long"), (2, "x", "other", "longer"))
    fill = filler(source)
    fill.fill(TABLE, batch_of(tmp_path, [partial(1)]), [], 99)
    filled = fill.fill(TABLE, batch_of(tmp_path, [partial(1), partial(2)], 8), [], 100)
    assert filled is not None
    assert [r[2] for r in rows_of(filled)] == ["long", "longer"]
    assert source.asked == [[1], [1, 2]]


def test_a_source_that_can_not_be_asked_stops_the_table(tmp_path: Path) -> None:
    """Guards the last step of CORRECTNESS 9: with nobody to ask, the table stops
    (`target:row-missing`); NULL would be a guess."""
    with pytest.raises(ReplicationError) as caught:
        filler(None).fill(TABLE, batch_of(tmp_path, [partial(1)]), [], 100)
    assert caught.value.code == "target:row-missing"


def test_values_of_other_rows_stay_unsent_for_the_target_to_keep(tmp_path: Path) -> None:
    """Guards that only the rows which `missing_rows` names are filled: others have their values in
    the target, which are of the right moment."""

    class Half(Writer):
        def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
            return super().missing_rows(table, batch).slice(0, 1)

    writer: Any = Half()
    source = Source((1, "x", "other", "long"), (2, "x", "other", "not to be read"))
    batch = replace(batch_of(tmp_path, [partial(1), partial(2)]), rows=2)
    filled = Filler(writer, lambda: source).fill(TABLE, batch, [], 100)
    assert filled is not None
    assert filled.unsent == ("b",)
    assert [(r[2], r[4]) for r in rows_of(filled)] == [("long", None), (None, b"\x08")]


def test_what_was_read_for_a_merge_that_then_did_not_need_it_fills_no_later_one(
    tmp_path: Path,
) -> None:
    """Guards `Filler.forget`: a row that is filtered out is not at the target, so a value that was
    read before it was sent again would come back with the row, and nobody would see that it is an
    old one. Guards `is_ahead` too: what was read may be of after a round's end."""
    schema = replace(SCHEMA, filter="a = 'in' AND b <> 'x'")

    class Target(Writer):
        def __init__(self) -> None:
            self.rows: list[dict[str, Any]] = []

        def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
            self.rows = pa.concat_tables(pq.read_table(p) for p in batch.paths).to_pylist()
            return MergeResult(True, "u")

    store, source, target = MemoryStore([SCHEMA.id]), Source((1, "x", "in", "old")), Target()
    writer: Any = target
    none: Any = None
    filler = Filler(writer, lambda: source)  # type: ignore[arg-type,return-value]
    merger = Merger(none, writer, store, none, "r1", filler, none)

    def merged(sequence: int, *changes: Change) -> bool:
        part = fold_to_file(table_of(list(changes)), schema, str(tmp_path / f"{sequence}.parquet"))
        batch = FoldedBatch(schema, (part.path,), sequence, part.rows, part.unsent)
        return merger._write(store.table(SCHEMA.id), batch)

    lacking = Change(Op.UPDATE, (1, "x"), ("in", None), unsent=frozenset("b"))
    store.record_position(Position(50))
    assert not merged(1, lacking)
    assert merged(2, lacking, Change(Op.UPDATE, (1, "x"), ("out", "new")))
    assert not merger.is_ahead(SCHEMA.id)
    source.rows = [(1, "x", "in", "new")]
    store.record_position(Position(200))
    assert merged(3, lacking)
    assert [(r["b"], r["_delete"]) for r in target.rows] == [("new", False)]
    assert merger.is_ahead(SCHEMA.id), "no watermark may name this version"
