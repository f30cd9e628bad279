"""A PostgreSQL table that people write to as well: which change wins, and what is recorded of the
others. On a real server, without a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.sources.postgresql.log import LogControl, LogReader
from replicators.targets.postgresql.checks import PostgresqlTargetChecks
from replicators.targets.postgresql.two_way import TwoWayTarget
from tests.integration.postgresql_source import begin, changes, describe, params_of, read_all
from tests.postgres_target import ROLE, writer_of, writer_params
from tests.servers import Database, fresh_database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.oldest_postgresql(is_long=True),
    pytest.mark.timeout(120),
]
SCHEMA = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(SCHEMA.id, "r1", 1)
ARROW = pa.schema(
    [
        *SCHEMA.arrow_schema(),
        pa.field("_delete", pa.bool_()),
        pa.field("_committed_at", pa.timestamp("us", tz="UTC")),
    ]
)
GRANTS = "; ".join(
    f"GRANT EXECUTE ON FUNCTION pg_replication_origin_{name} TO {ROLE}"
    for name in ("create(text)", "session_setup(text)", "session_reset()")
)
ROWS = "SELECT id, note FROM shop.orders ORDER BY id"
LISTED = "SELECT key, kept->>'note', lost->>'note' FROM shop._replicator_conflicts ORDER BY id"


@pytest.fixture
def target(database: Database, tmp_path: Path) -> Iterator[TwoWayTarget]:
    """A copy with the rows 1 and 2 of the other side, whose notes are `copied`."""
    params = writer_params(database, origin=f"from_{database.name}")
    database.execute(GRANTS)
    made = writer_of(params, tmp_path)
    assert isinstance(made, TwoWayTarget)
    made.begin_snapshot(TABLE, SCHEMA)
    place = made.snapshot_place(TABLE, SCHEMA)
    rows = [{"id": n, "note": "copied"} for n in (1, 2)]
    pq.write_table(pa.Table.from_pylist(rows, place.arrow), f"{place.folder}/1.parquet")
    made.load_snapshot_files(TABLE, SCHEMA, [f"{place.folder}/1.parquet"])
    made.publish_snapshot(TABLE, SCHEMA, 10)
    yield made
    made.close()
    database.execute(f"SELECT pg_replication_origin_drop('from_{database.name}')")


class Merges:
    """Merges changes of the other side, each at a time."""

    def __init__(self, target: TwoWayTarget, folder: Path) -> None:
        self._target, self._folder = target, folder
        self._numbers = itertools.count(20)

    def __call__(self, at: datetime, *rows: dict[str, Any], **facts: Any) -> None:
        number = next(self._numbers)
        path = f"{self._folder}/{number}.parquet"
        found = [{"_delete": False, "_committed_at": at, **row} for row in rows]
        pq.write_table(pa.Table.from_pylist(found, ARROW), path)
        batch = FoldedBatch(SCHEMA, (path,), number, len(rows), timed=True, **facts)
        assert self._target.merge(TABLE, batch).was_applied


@pytest.fixture
def merges(target: TwoWayTarget, tmp_path: Path) -> Merges:
    return Merges(target, tmp_path)


def now(database: Database) -> datetime:
    found: datetime = database.execute("SELECT clock_timestamp()")[0][0]
    return found


EARLIER = timedelta(seconds=5)


def test_the_later_commit_wins_and_the_loser_is_recorded(
    database: Database, merges: Merges
) -> None:
    """A row that was copied or merged takes every change of the other side. One that people wrote
    here takes only later ones."""
    before = now(database) - EARLIER
    merges(before, {"id": 1, "note": "theirs"})
    assert database.execute(ROWS) == [(1, "theirs"), (2, "copied")], "a copy is no local write"
    merges(before - EARLIER, {"id": 1, "note": "theirs again"})
    database.execute("UPDATE shop.orders SET note = 'ours' WHERE id = 1")
    database.execute("INSERT INTO shop.orders VALUES (3, 'ours')")
    merges(before, {"id": 1, "note": "late"}, {"id": 3, "note": "late"}, {"id": 4, "note": "new"})
    assert database.execute(ROWS) == [(1, "ours"), (2, "copied"), (3, "ours"), (4, "new")]
    assert database.execute(LISTED) == [("(1)", "ours", "late"), ("(3)", "ours", "late")]
    merges(now(database), {"id": 1, "note": "later"}, {"id": 3, "_delete": True})
    assert database.execute(ROWS) == [(1, "later"), (2, "copied"), (4, "new")]
    assert len(database.execute(LISTED)) == 2


def test_deletes_count_like_every_change(database: Database, merges: Merges) -> None:
    """A delete that came earlier is not applied; a row that was deleted here later stays deleted,
    also under a key that people changed."""
    before = now(database) - EARLIER
    database.execute("UPDATE shop.orders SET note = 'ours' WHERE id = 1")
    database.execute("DELETE FROM shop.orders WHERE id = 2")
    merges(before, {"id": 1, "_delete": True}, {"id": 2, "note": "late"})
    assert database.execute(ROWS) == [(1, "ours")]
    assert database.execute(LISTED) == [("(1)", "ours", None), ("(2)", None, "late")]
    database.execute("UPDATE shop.orders SET id = 7 WHERE id = 1")
    merges(before, {"id": 1, "note": "late"})
    assert database.execute(ROWS) == [(7, "ours")]
    merges(now(database), {"id": 1, "note": "later"}, {"id": 2, "note": "later"})
    merges(now(database), {"id": 2, "_delete": True})
    assert database.execute(ROWS) == [(1, "later"), (7, "ours")]
    merges(now(database), {"id": 2, "note": "again"})
    assert database.execute(ROWS)[1] == (2, "again"), "a merge's delete is no local one"


def test_at_one_time_the_larger_row_and_the_delete_win(database: Database, merges: Merges) -> None:
    """Both sides decide alike, so that they end equal."""
    database.execute(
        "UPDATE shop.orders SET note = 'm' WHERE id = 1; DELETE FROM shop.orders WHERE id = 2"
    )
    when = "SELECT pg_xact_commit_timestamp(xmin) FROM shop.orders WHERE id = 1"
    at = database.execute(when)[0][0]
    merges(at, {"id": 1, "note": "a"}, {"id": 2, "note": "a"})
    assert database.execute(ROWS) == [(1, "m")]
    merges(at, {"id": 1, "note": "z"})
    assert database.execute(ROWS) == [(1, "z")]
    database.execute("UPDATE shop.orders SET note = 'm' WHERE id = 1")
    merges(database.execute(when)[0][0], {"id": 1, "_delete": True})
    assert database.execute(ROWS) == []


def test_a_truncate_is_a_delete_of_what_is_older(database: Database, merges: Merges) -> None:
    """Rows written here after it stay; rows of the other side from before a TRUNCATE here don't
    come back."""
    at = now(database)
    database.execute("INSERT INTO shop.orders VALUES (3, 'ours')")
    merges(at, {"id": 5, "note": "after"}, truncate=True, truncated_at=at)
    assert database.execute(ROWS) == [(3, "ours"), (5, "after")]
    database.execute("TRUNCATE shop.orders")
    merges(at, {"id": 3, "note": "late"})
    merges(now(database), {"id": 6, "note": "later"})
    assert database.execute(ROWS) == [(6, "later")]


def test_merges_are_marked_and_what_people_write_is_not(
    database: Database, merges: Merges, target: TwoWayTarget
) -> None:
    """The origin is in the row's commit; the session gives it up after each transaction."""
    database.execute("INSERT INTO shop.orders VALUES (3, 'ours')")
    merges(datetime.now(UTC), {"id": 4, "note": "theirs"})
    found = database.execute(
        "SELECT o.id, r.roname FROM shop.orders o"
        " CROSS JOIN pg_xact_commit_timestamp_origin(o.xmin) AS c(at, origin)"
        " LEFT JOIN pg_replication_origin r ON r.roident = c.origin WHERE o.id > 2 ORDER BY 1"
    )
    assert found == [(3, None), (4, f"from_{database.name}")]
    assert merges is not None
    with pytest.raises(ReplicationError, match="two-way-copy"):
        target.begin_snapshot(TargetTable(SCHEMA.id, "r1", 2), SCHEMA)


@pytest.mark.parametrize(("skipped", "notes"), [("any", "a"), ("t_b, t_d", "ac"), ("", "abc")])
def test_what_has_an_origin_is_not_read(database: Database, skipped: str, notes: str) -> None:
    """All of it, or by names. PostgreSQL 16 leaves out all by itself; before that, and by names, it
    sends a message with the name."""
    database.execute("CREATE TABLE notes (note text PRIMARY KEY)")
    tables = describe(database, "notes")
    first, session = begin(database, "r_origins", tables)
    session.close()
    first.close()
    for name in ("t_b", "t_c"):
        database.execute("SELECT pg_replication_origin_create(%s)", [name])
    try:
        with database.connect() as connection:
            for note, origin in (("a", ""), ("b", "t_b"), ("c", "t_c"), ("b", "t_b")):
                if origin:
                    connection.execute("SELECT pg_replication_origin_session_setup(%s)", [origin])
                connection.execute(
                    "INSERT INTO notes VALUES (%s) ON CONFLICT (note) DO UPDATE"
                    " SET note = excluded.note",
                    [note],
                )
                if origin:
                    connection.execute("SELECT pg_replication_origin_session_reset()")
        with (
            LogReader(params_of(database, skip_origins=skipped), "r_origins") as reader,
            LogControl(params_of(database), "r_origins") as control,
        ):
            reader.start(session.point.position, tables)
            blocks = read_all(reader, control)
            found = changes(blocks, tables)["notes"]
            assert "".join(sorted({n for t in found for n in t["note"].to_pylist()})) == notes
            control.drop()
    finally:
        for name in ("t_b", "t_c"):
            database.execute("SELECT pg_replication_origin_drop(%s)", [name])


def test_what_the_server_lacks_is_said(
    database: Database, private_postgres: EmbeddedPostgres
) -> None:
    """The right to mark writes with its statements, and the times of commits."""
    plain = writer_params(database, origin="t_a")
    names = ("create(text)", "session_setup(text)", "session_reset()")
    for name in names:
        database.execute(f"REVOKE EXECUTE ON FUNCTION pg_replication_origin_{name} FROM {ROLE}")
    (problem,) = PostgresqlTargetChecks(plain).connection()
    assert problem.code == "target:postgresql-origin-right"
    assert all(f"pg_replication_origin_{n} TO" in dict(problem.facts)["statements"] for n in names)
    database.execute(GRANTS)
    assert PostgresqlTargetChecks(plain).connection() == []
    with fresh_database(private_postgres) as other:
        found = PostgresqlTargetChecks(writer_params(other, origin="t_a")).connection()
        assert {p.code for p in found} == {
            "target:postgresql-commit-times",
            "target:postgresql-origin-right",
        }
