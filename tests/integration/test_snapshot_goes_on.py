"""A snapshot over several views of a real PostgreSQL, with every kind of change between them: what
is staged is the last view, row for row. Tasks run in this process, so that many cases can be
tried."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import OpCounts, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import SnapshotPlace, TargetTable
from replicators.sources.postgresql.log import LogControl, LogReader
from replicators.sources.postgresql.snapshot import ChunkReader, SnapshotSession, snapshot_again
from replicators.targets.lakehouse import files
from runners.engine.settings import RunnerSettings
from runners.engine.snapshot.chunks import CHUNKS_A_JOB, Snapshotter
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, SegmentRow
from tests.integration.postgresql_source import begin, changes, describe, params_of, read_all
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
SLOT = "r_goes_on"
ROWS = 3000


class InPlace:
    """Tasks in this thread, one after the other, and not pickled: what they read is counted
    here."""

    spark = None

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], *, is_urgent: bool = False
    ) -> list[Any]:
        return [function(item) for item in items]


class Folder:
    """A target that keeps what is staged in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun = 0
        self.loaded: pa.Table | None = None

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        self.begun += 1

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        folder = self.folder / str(self.begun)
        folder.mkdir()
        return SnapshotPlace(str(folder), files.arrow_schema(schema), files.write_options(schema))

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace:
        return SnapshotPlace(folder, files.arrow_schema(schema), files.write_options(schema))

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        self.loaded = pa.concat_tables([pq.read_table(p) for p in paths])

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        return "uuid"


class Life:
    """A table, its log, and a copy of it that is cut off again and again."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        (self.table,) = describe(database, "t")
        self.folder = folder
        self.store = MemoryStore([self.table.id])
        self.writer = Folder(folder)
        self.target = TargetTable(self.table.id, "r", 1)
        self.segments = 0
        self.read: list[str] = []

    def record(self, reader: LogReader, control: LogControl) -> None:
        """Capture and decode what the log has, as one segment."""
        blocks = read_all(reader, control)
        if not blocks:
            return
        self.segments += 1
        number, end = self.segments, blocks[-1].position
        self.store.record_segment(SegmentRow(number, "", 1, 1, end, True), end)
        listed = []
        for at, found in enumerate(changes(blocks, [self.table]).get("t", [])):
            path = self.folder / f"changes-{number}-{at}.parquet"
            pq.write_table(found, path)
            positions = found.column("_position").to_pylist()
            listed.append(
                ChangeFileRow(
                    self.table.id, number, str(path), "v", self.table, OpCounts(found.num_rows),
                    first_sequence(number), last_sequence(number), 1.0, 1.0, min(positions),
                    max(positions), 1, zlib.crc32(path.read_bytes()),
                )
            )  # fmt: skip
        self.store.record_decoded([number], listed)

    def reached(self, session: SnapshotSession) -> None:
        """The log before the view is captured."""
        self.store.record_position(Position(session.point.position.ordinal))

    def copy(
        self, session: SnapshotSession, *, jobs: int | None = None, place: str | None = None
    ) -> int | None:
        """Copy, or go on, for so many jobs at most; the rows when it was published."""
        looks = 0

        def should_stop() -> bool:
            nonlocal looks
            looks += 1
            return jobs is not None and looks > jobs

        snapshotter = Snapshotter(
            InPlace(),
            self.writer,  # type: ignore[arg-type]
            session,
            _Counting(ChunkReader(params_of(self.database), session.point.token), self.read),
            RunnerSettings(rows_per_chunk=100),
            self.store,
            should_stop=should_stop,
        )
        known = snapshotter.find(self.target, self.table)
        sequence = last_sequence(self.segments)
        done = snapshotter.copy(self.target, self.table, sequence, known, place=place)
        return None if done is None else done[1]

    def assert_staged(self) -> None:
        """What was loaded is the table as it is now, each row once."""
        assert self.writer.loaded is not None
        rows = self.database.execute('SELECT id, word, big, v FROM t ORDER BY id, word COLLATE "C"')
        found = self.writer.loaded.sort_by([("id", "ascending"), ("word", "ascending")])
        assert [tuple(r.values()) for r in found.to_pylist()] == [tuple(r) for r in rows]


class _Counting:
    def __init__(self, read: ChunkReader, queries: list[str]) -> None:
        self._read = read
        self._queries = queries

    def __call__(self, chunk: Any, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        self._queries.append(chunk.spec)
        return self._read(chunk, schema)


@pytest.fixture
def life(database: Database, tmp_path: Path) -> Life:
    database.execute("CREATE TABLE t (id int, word text, big text, v int, PRIMARY KEY (id, word))")
    database.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    database.execute(
        "INSERT INTO t SELECT g, 'w' || g % 7, repeat(md5(g::text), 80), g"
        f" FROM generate_series(1, {ROWS}) g"
    )
    database.execute("ANALYZE t")
    return Life(database, tmp_path)


def trouble(chance: random.Random, turn: int) -> list[str]:
    """Transactions of every kind over the whole table, small and large; keys move far away and
    back."""
    statements = []
    for number in range(30):
        low = chance.randint(1, ROWS)
        high = low + chance.choice([0, 3, 200])
        some = f"id BETWEEN {low} AND {high}"
        mark = 10_000 * (30 * turn + number + 1)
        back = chance.randrange(10_000, mark + 10_000, 10_000)
        statements.append(
            chance.choice(
                [
                    f"UPDATE t SET v = {mark} WHERE {some}",
                    f"UPDATE t SET big = repeat('{mark}', 600) WHERE {some}",
                    f"DELETE FROM t WHERE {some}",
                    f"UPDATE t SET id = id + {mark} WHERE {some}",
                    f"UPDATE t SET word = word || 'x{mark}' WHERE {some}",
                    f"UPDATE t SET id = id - {back} WHERE id BETWEEN {back} AND {back + 5000}"
                    f" AND NOT EXISTS (SELECT FROM t o WHERE o.id = t.id - {back})",
                    f"INSERT INTO t SELECT g, 'w' || g % 7, 'new', {mark}"
                    f" FROM generate_series({low}, {high}) g ON CONFLICT DO NOTHING",
                    "VACUUM t",
                ]
            )
        )
    return statements


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 4))]
)
def test_a_copy_over_several_views_is_the_last_one(life: Life, seed: int) -> None:
    """Guards CORRECTNESS 17. Leaving the touched keys in the chunks, not reading them again, or
    looking at the changes since the last view only would lose, double or age rows here."""
    chance = random.Random(seed)
    reader, session = begin(life.database, SLOT, [life.table])
    with reader, LogControl(params_of(life.database), SLOT) as control:
        life.store.record_start(session.point.position)
        with session:
            assert life.copy(session, jobs=2) is None
        for turn, jobs in enumerate((1, 2, None)):
            for statement in trouble(chance, turn):
                life.database.execute(statement)
            with snapshot_again(params_of(life.database), SLOT) as session:
                life.record(reader, control)
                life.reached(session)
                rows = life.copy(session, jobs=jobs)
                assert (rows is None) is (jobs is not None)
        life.assert_staged()
        control.drop()
    chunks = [q for q in life.read if "ctid" in q]
    assert len(chunks) == len(set(chunks)) > 4 * CHUNKS_A_JOB, "a finished chunk was read again"
    assert life.writer.begun == 1
    assert life.store.copy(life.table.id) is None


@pytest.mark.parametrize("change", ["VACUUM FULL t", "TRUNCATE t"])
def test_a_copy_that_can_not_go_on_starts_again(life: Life, change: str) -> None:
    """Guards `StartAgain` (CORRECTNESS 17): rows that got other places without a word in the log,
    and none that is where it was; gone on with, the chunks that are there would be of other
    rows."""
    reader, session = begin(life.database, SLOT, [life.table])
    with reader, LogControl(params_of(life.database), SLOT) as control:
        life.store.record_start(session.point.position)
        with session:
            assert life.copy(session, jobs=2) is None
        life.database.execute("DELETE FROM t WHERE id % 2 = 0")
        life.database.execute(change)
        life.database.execute("INSERT INTO t VALUES (-5, 'last', 'big', 1)")
        with snapshot_again(params_of(life.database), SLOT) as session:
            life.record(reader, control)
            life.reached(session)
            assert life.copy(session) is not None
        life.assert_staged()
        control.drop()
    assert life.writer.begun == 2
    assert any("starts again" in text for _, text, _ in life.store.lines)


def test_a_table_that_was_rewritten_after_its_view_waits_for_another_one(life: Life) -> None:
    """Guards `layout.check_place`: to a view from before it, a table that an ALTER TABLE has
    rewritten is empty, so that a copy which waited for its turn meanwhile was one of nothing."""
    reader, session = begin(life.database, SLOT, [life.table])
    with reader, session, LogControl(params_of(life.database), SLOT) as control:
        life.store.record_start(session.point.position)
        place = session.layout(life.table)
        life.database.execute("ALTER TABLE t ADD late uuid DEFAULT gen_random_uuid()")
        life.database.execute("ALTER TABLE t DROP late")
        with pytest.raises(ReplicationError) as caught:
            life.copy(session, place=place)
        control.drop()
    assert caught.value.code == "source:snapshot-lost"
    assert (life.writer.begun, life.writer.loaded) == (0, None)


def test_a_table_that_is_rewritten_while_it_is_copied_waits_for_another_view(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the same at the end of the chunks: begun again in the same view, the copy would be
    empty."""
    reader, session = begin(life.database, SLOT, [life.table])
    with reader, LogControl(params_of(life.database), SLOT) as control:
        life.store.record_start(session.point.position)
        places = itertools.chain(["here", "here"], itertools.repeat("there"))
        monkeypatch.setattr(session, "layout", lambda schema: next(places))
        with session, pytest.raises(ReplicationError) as caught:
            life.copy(session)
        control.drop()
    assert caught.value.code == "source:snapshot-lost"
    assert (life.writer.begun, life.writer.loaded) == (1, None)
