"""Kinds of changes that a table leaves out never reach its copy, and the others arrive as if those
had not been sent."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replicators.config import InvalidConfig, parse_tables, tables_to_json
from replicators.connectors.model.changes import Op, OpCounts
from replicators.connectors.model.schema import TableSelection
from runners.engine.fold.mirror import fold
from runners.engine.fold.plan import FoldPlan, read_changes
from runners.engine.fold.skipped import excluded_ops
from runners.engine.store.protocol import ChangeFileRow
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, apply, replay, table_of
from tests.unit.engine.test_fold import workload

OPS = {"updates": {Op.UPDATE}, "deletes": {Op.DELETE, Op.TRUNCATE}}


def plan_of(changes: pa.Table, folder: Path, *excluded: str) -> FoldPlan:
    """A merge of one change file of a table that leaves `excluded` out."""
    path = folder / "changes.parquet"
    pq.write_table(changes, path)
    file = ChangeFileRow(
        table=SCHEMA.id, segment=1, path=str(path), version="v", schema=SCHEMA,
        counts=OpCounts(), first_sequence=0, last_sequence=changes.num_rows,
        first_committed_at=0.0, last_committed_at=0.0, first_position=1, last_position=1,
        size_bytes=0, crc32=zlib.crc32(path.read_bytes()), unsent=(), has_key_changes=True,
    )  # fmt: skip
    ops = excluded_ops(TableSelection(SCHEMA.id, excluded=excluded))
    return FoldPlan(SCHEMA, (file,), -1, 0, 9, str(folder / "merge"), ops)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10**9),
    excluded=st.sampled_from([("deletes",), ("updates",), ("updates", "deletes")]),
)
def test_what_is_left_out_leaves_the_copy_as_if_it_had_not_been_sent(
    tmp_path: Path, seed: int, excluded: tuple[str, ...]
) -> None:
    """Guards the filter by operation in `folding.read_changes`, with workloads of every kind:
    without it a left-out delete takes its row away."""
    start, changes = workload(seed, 40)
    left_out = {op for kind in excluded for op in OPS[kind]}
    folded = fold(read_changes(plan_of(table_of(changes), tmp_path, *excluded)), SCHEMA)
    expected = replay(start, [c for c in changes if c.op not in left_out])
    assert apply(start, folded.rows, truncate=folded.truncate) == expected


def test_a_row_whose_delete_is_left_out_stays_and_is_overwritten_when_it_comes_again(
    tmp_path: Path,
) -> None:
    """Guards `left_out.excluded_ops`: TRUNCATE belongs to the deletes; were it not left out with
    them, the copy that was to keep everything would be emptied."""
    start: dict[Key, Row] = {(1, "x"): {"a": "kept", "b": "b"}, (2, "x"): {"a": "old", "b": "b"}}
    changes = [
        Change(Op.DELETE, (1, "x")),
        Change(Op.DELETE, (2, "x")),
        Change(Op.INSERT, (2, "x"), ("new", None)),
        Change(Op.TRUNCATE, (0, "x")),
    ]
    folded = fold(read_changes(plan_of(table_of(changes), tmp_path, "deletes")), SCHEMA)
    assert not folded.truncate
    assert apply(start, folded.rows, truncate=False) == {
        (1, "x"): {"a": "kept", "b": "b"},
        (2, "x"): {"a": "new", "b": None},
    }


def test_the_choice_survives_its_json_and_unknown_kinds_are_refused() -> None:
    """Guards `parse_tables` and `tables_to_json`: a choice that is lost on the way, or a misspelt
    one that is passed over, would apply what was to be left out."""
    (table,) = parse_tables([{"schema": "s", "name": "t", "excluded": ["deletes", "inserts"]}])
    assert table.excluded == ("inserts", "deletes")
    assert parse_tables(tables_to_json([table])) == (table,)
    with pytest.raises(InvalidConfig, match="inserts, updates and deletes"):
        parse_tables([{"schema": "s", "name": "t", "excluded": ["truncates"]}])
