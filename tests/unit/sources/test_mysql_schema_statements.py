"""A statement of the log changes a copy's schema by itself: no row of the table has to come behind
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from replicators.connectors.log import DecodedTable, LogBlock, Poison
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.schema.numbering import changes_by_steps, with_numbers
from replicators.sources.mysql.conversions import keeps_values
from replicators.sources.mysql.decode import decode
from runners.engine.decode.job import _facts
from tests.unit.sources.binlog_events import STANDALONE, Fed, Log
from tests.unit.sources.test_mysql_blocks import group, ids, table

T = TableId("shop", "t")
INT = Column("", Int(32), "int", wire="int")
TEXT = Column("", String(), "varchar(50)", wire="text:utf8mb4")


def schema(**columns: Column) -> TableSchema:
    """A description by the catalog."""
    made = tuple(replace(c, name=n) for n, c in columns.items())
    return TableSchema(T, made, ("id",), upto=1, layout=tuple((n, n, "") for n in columns))


def blocks_of(*statements: str) -> list[LogBlock]:
    fed, log = Fed("t"), Log()
    events: list[bytes] = []
    for said in statements:
        events += [log.begin(STANDALONE), log.query(said)]
    return fed.feed(events)


def decoded(blocks: Sequence[LogBlock], head: TableSchema) -> list[DecodedTable | Poison]:
    found: list[DecodedTable | Poison] = []
    for number, block in enumerate(blocks):
        body = np.frombuffer(bytearray(block.data), np.uint8)
        found += decode({"context": block.context, "tables": [head.to_json()]}, body, number)
    return found


def followed(copy: TableSchema, now: TableSchema, *statements: str) -> list[str]:
    """What a copy is told to do, in order, by statements alone; the catalog has the last schema all
    the while."""
    reported = []
    copy = with_numbers(copy)
    for part in decoded(blocks_of(*statements), replace(now, known=copy)):
        assert isinstance(part, DecodedTable), part
        assert part.changes.num_rows == 0
        _, new, changes = changes_by_steps(copy, part.schema, keeps_values)
        reported += [c.text for c in changes]
        copy = replace(new.bare, upto=part.schema.upto)
    assert {c.name for c in copy.columns} == {c.name for c in now.supported}
    return reported


AK = schema(id=INT, a=TEXT, k=INT)
KK = schema(id=INT, k=INT, k2=INT)
AB = schema(id=INT, a=INT, b=TEXT)
BA = schema(id=INT, b=INT, a=TEXT)
SWAPPED = ["column k renamed to k2", "column k2 renamed to k"]


@pytest.mark.parametrize(
    ("copy", "now", "statements", "reported"),
    [
        (AK, AK, ["ALTER TABLE t DROP COLUMN a, ADD COLUMN a varchar(50) DEFAULT 'z' AFTER id"],
        ["column a dropped and made again"]),
        (KK, KK, ["ALTER TABLE t RENAME COLUMN k TO k2, RENAME COLUMN k2 TO k"], SWAPPED),
        (KK, KK, ["ALTER TABLE t CHANGE k k2 int, CHANGE k2 k int"], SWAPPED),
        (KK, KK, ["ALTER TABLE t CHANGE k k2 int AFTER id, CHANGE k2 k int AFTER id"], SWAPPED),
        (AB, BA, ["ALTER TABLE t CHANGE a b int, CHANGE b a varchar(50)"],
        ["column a renamed to b", "column b renamed to a"]),
        (
            KK, KK,
            ["ALTER TABLE t RENAME COLUMN k TO t_", "ALTER TABLE t RENAME COLUMN k2 TO k",
            "ALTER TABLE t RENAME COLUMN t_ TO k2"],
            ["column k renamed to t_", "column k2 renamed to k", "column t_ renamed to k2"],
        ),
        (
            KK, KK,
            ["ALTER TABLE t DROP k, CHANGE k2 k int", "ALTER TABLE t ADD k2 int DEFAULT 3"],
            ["column k dropped", "column k2 renamed to k", "column k2 added"],
        ),
    ],
)  # fmt: skip
def test_a_change_that_ends_with_the_same_names_is_reported_by_the_statement(
    copy: TableSchema, now: TableSchema, statements: list[str], reported: list[str]
) -> None:
    """Guards tables that nobody writes after the statement: the catalog shows the same names and
    types as before, so that nothing else would ever tell of it."""
    assert sorted(followed(copy, now, *statements)) == sorted(reported)


def test_what_is_no_change_of_columns_tells_no_schema() -> None:
    """Guards a copy's versions: an index or a comment makes none."""
    blocks = blocks_of("ALTER TABLE t ADD INDEX (k), COMMENT = 'x'", "ALTER TABLE other DROP k")
    assert decoded(blocks, AK) == []


def test_rows_around_the_statement_keep_their_places() -> None:
    """Guards the order: rows before it go by the old schema, it has a place of its own in the log,
    and its time is the table's lag."""
    fed, log = Fed("t"), Log()
    events = group(log, "t", 7, 1)
    events += [log.begin(STANDALONE), log.query("ALTER TABLE t ADD z int DEFAULT 3")]
    blocks = fed.feed([*events, *group(log, "t", 7, 2)])
    assert len({b.context_version for b in blocks}) == 3
    head = replace(table("t"), upto=1, known=replace(table("t"), upto=1))
    before, at, after = decoded(blocks, head)
    assert isinstance(at, DecodedTable)
    assert ids([before, after]) == [1, 2]
    facts = _facts(at, "", np.zeros(0))  # type: ignore[arg-type]
    assert facts["counts"] == [0, 0, 0, 0]
    assert facts["sequence"] == [1 << 32, 1 << 32]
    assert facts["at"][0] > 1e9
    rows = [_facts(p, "", np.zeros(0)) for p in (before, after) if isinstance(p, DecodedTable)]  # type: ignore[arg-type]
    assert rows[0]["position"][1] < facts["position"][0] < rows[1]["position"][0]
    assert facts["position"][0] < at.schema.upto


def test_a_dropped_part_of_the_key_is_no_schema() -> None:
    """Guards the copy of a table whose key went with its column: nothing tells its rows apart
    then."""
    pair = replace(AK, key=("id", "k"))
    (part,) = decoded(blocks_of("ALTER TABLE t DROP COLUMN k"), replace(pair, known=pair))
    assert isinstance(part, Poison)
    assert part.code == "source:key-changed"
