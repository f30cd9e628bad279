"""A table that is altered between two chunks of its copy: the copy ends and begins again, or the
log says that it has to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from replicators.connectors.log import DecodedTable
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.connectors.schema.diff import ChangeKind
from replicators.connectors.schema.numbering import changes_by_steps, with_numbers
from replicators.connectors.snapshot import Chunk
from replicators.sources.mysql.control import LogControl
from replicators.sources.mysql.conversions import keeps_values
from replicators.sources.mysql.snapshot import ChunkReader
from tests.integration.mysql_source import NAME, Follower, decode_all, describe, following
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SWAP = "RENAME COLUMN a TO b, RENAME COLUMN b TO a"
RENAME = "RENAME COLUMN a TO z"
CONVERSIONS = {
    "MODIFY n bigint": "n = 5000000000",
    "MODIFY n varchar(20)": "n = 'text'",
    "MODIFY n double": "n = 1.5",
    "MODIFY n int unsigned": "n = 4000000000",
    "MODIFY m decimal(10,4)": "m = 1.2345",
    "MODIFY m varchar(20)": "m = 'text'",
    "MODIFY m int": "m = 2",
    "MODIFY a varbinary(20)": "a = x'ff00'",
    "MODIFY a int": "a = 7",
    "MODIFY t datetime": "t = '2024-01-02 03:04:05'",
    "MODIFY t varchar(40)": "t = 'never'",
}


@pytest.fixture(params=["mariadb", "mysql"])
def database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        yield made


def fill(database: SqlDatabase, *names: str) -> None:
    """Tables of two chunks each."""
    rows = ", ".join(f"({i}, '1', '2', {i}, 1.25, '2024-01-01')" for i in range(1, 201))
    for name in names:
        database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, a varchar(20), b varchar(20), n int, m "
            "decimal(8,2), t date)",
            f"INSERT INTO {name} VALUES {rows}",
            f"ANALYZE TABLE {name}",
        )


def halves(follower: Follower, number: int) -> list[Chunk]:
    """The chunks of a table, at least two."""
    chunks = follower.session.plan(follower.tables[number], rows_per_chunk=100)
    assert len(chunks) >= 2
    return chunks


def outcome(follower: Follower, number: int, chunks: Sequence[Chunk]) -> str:
    """What becomes of a copy whose later chunks are read now: an error's code, or what the log
    tells a copy up to here."""
    table = follower.tables[number]
    read = ChunkReader(follower.params, "")
    try:
        batches = [b for chunk in chunks for b in read(chunk, table)]
    except ReplicationError as err:
        return f"{err.code} {err.retry}"
    if any(b.schema != table.arrow_schema() for b in batches):
        return "a value that does not fit"
    with LogControl(follower.params, NAME) as control:
        end = control.status().end
    position = follower.session.point.position.ordinal
    copied = replace(with_numbers(table), upto=position, read_upto=end)
    follower.database.execute(f"INSERT INTO {table.id.name} (id) VALUES (1000)")
    (now,) = describe(follower.database, table.id.name)
    head = replace(now, known=replace(copied.bare, layout=()))
    last = [p for p in decode_all(follower.blocks(), [head]) if isinstance(p, DecodedTable)][-1]
    _, _, changes = changes_by_steps(copied, last.schema, keeps_values)
    return ", ".join(sorted({str(c.kind) for c in changes}))


ALTERED = f"source:table-altered {Retry.AUTO}"


def test_a_column_that_is_renamed_between_two_chunks_ends_the_copy(database: SqlDatabase) -> None:
    """Guards against chunks that lack a column, which is tried again with the table as it is
    then."""
    fill(database, "t")
    with following(database, "t") as follower:
        first, *rest = halves(follower, 0)
        assert sum(b.num_rows for b in ChunkReader(follower.params, "")(first, follower.tables[0]))
        database.execute(f"ALTER TABLE t {RENAME}")
        assert outcome(follower, 0, rest) == ALTERED


@pytest.mark.long_with("mysql")
def test_columns_that_swap_their_names_between_two_chunks_are_copied_afresh(
    database: SqlDatabase,
) -> None:
    """Guards against a copy with each other's values in its second half, which no error shows;
    fails where the place up to which a copy was read is not compared with that of the statement."""
    fill(database, "t")
    with following(database, "t") as follower:
        _, *rest = halves(follower, 0)
        database.execute(f"ALTER TABLE t {SWAP}")
        assert ChangeKind.REWRITTEN in outcome(follower, 0, rest)


def test_a_column_that_is_converted_between_two_chunks_ends_the_copy_or_is_copied_afresh(
    database: SqlDatabase,
) -> None:
    """Guards against a copy of two types, and against a table that stops at a value which fits the
    column as it is by now; fails where a value that does not fit is not asked whether its column
    was converted."""
    names = {f"t{number}": conversion for number, conversion in enumerate(CONVERSIONS)}
    fill(database, *names)
    reported = {}
    for name, conversion in names.items():
        with following(database, name) as follower:
            _, *rest = halves(follower, 0)
            database.execute(
                f"ALTER TABLE {name} {conversion}",
                f"UPDATE {name} SET {CONVERSIONS[conversion]} WHERE id > 190",
            )
            reported[conversion] = outcome(follower, 0, rest)
    assert {
        c: t for c, t in reported.items() if t != ALTERED and ChangeKind.REWRITTEN not in t
    } == {}
    assert ALTERED in reported.values()
    assert any(ChangeKind.REWRITTEN in t for t in reported.values())
