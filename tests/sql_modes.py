"""Every mode of a merge target against a naive replay. Random changes are folded as the engine
folds them, and merged in several batches. A SQL target's test class inherits `SqlModes`."""

from __future__ import annotations

import itertools
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import Op, OpCounts, first_sequence
from replicators.connectors.model.modes import Mode, snapshot_values, stored
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.snapshot import Chunk
from replicators.connectors.target import FoldedBatch, MergeTarget, TargetTable
from runners.engine.fold.keyless import with_hashes
from runners.engine.fold.messages import ReadMessages
from runners.engine.fold.plan import FoldPlan, fold_batch
from runners.engine.snapshot.chunks import with_constants
from runners.engine.store.protocol import ChangeFileRow
from runners.engine.tasks.local import LocalTasks
from tests.unit.engine import keyless, no_inserts
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, replay, table_of
from tests.unit.engine.mode_changes import (
    EPOCH,
    assert_sound,
    history_replay,
    in_order,
    moment,
    soft_replay,
    transactions,
)

_NUMBERS = itertools.count()
Records = Callable[[TableSchema], list[dict[str, Any]]]


@dataclass
class Copy:
    """A table copied in one mode: a snapshot, then merges of changes, as the engine makes them."""

    writer: MergeTarget
    records: Records
    folder: Path
    mode: Mode
    schema: TableSchema = SCHEMA
    no_inserts: bool = False
    sequence: int = 1
    last: FoldedBatch | None = None

    def __post_init__(self) -> None:
        name = f"{self.mode}_{next(_NUMBERS)}"
        self.schema = replace(self.schema, id=TableId("shop", name))
        self.table = TargetTable(self.schema.id, "r1", 1, mode=self.mode)

    def published(self, rows: Iterable[Mapping[str, Any]], *, files: int = 1) -> Copy:
        """The copy after a snapshot of these rows, in several files."""
        found = list(rows)
        self.writer.begin_snapshot(self.table, self.schema)
        place = self.writer.snapshot_place(self.table, self.schema)
        place = replace(place, constants=snapshot_values(self.mode, EPOCH, 1))
        paths = []
        for number in range(files):
            made = pa.Table.from_pylist(found[number::files], self.schema.arrow_schema())
            if self.mode is Mode.MESSAGES:
                made = self._messages(number, made)
            if self.mode is Mode.MULTISET:
                made = with_hashes(made, made.column_names, place.arrow)
            paths.append(f"{place.folder}/{number}.parquet")
            pq.write_table(with_constants(made, place), paths[-1], **place.options)
        self.writer.load_snapshot_files(self.table, self.schema, paths)
        uuid = self.writer.publish_snapshot(self.table, self.schema, 1)
        self.table = replace(self.table, table_uuid=uuid)
        return self

    def _messages(self, number: int, rows: pa.Table) -> pa.Table:
        """The rows of a chunk as messages."""
        chunk = Chunk(self.schema.id, number, None)
        read = ReadMessages(lambda *_: iter(rows.to_batches()), EPOCH)
        arrow = stored(self.schema, self.mode).arrow_schema()
        return pa.Table.from_batches(list(read(chunk, self.schema)), arrow)

    def of(self, start: Mapping[Key, Row]) -> Copy:
        """The copy after a snapshot of rows by key."""
        return self.published({"id": k[0], "part": k[1], **r} for k, r in start.items())

    def batch(self, changes: pa.Table, unsent: tuple[str, ...] = ("a", "b")) -> FoldedBatch:
        """The next batch of these changes, as the engine folds it."""
        self.sequence += 1
        name = f"{self.schema.id.name}-{self.sequence}"
        path = self.folder / f"{name}-changes.parquet"
        pq.write_table(changes, path)
        truncates = changes.column("_op").to_pylist().count(int(Op.TRUNCATE))
        counts = OpCounts(inserts=changes.num_rows - truncates, truncates=truncates)
        file = ChangeFileRow(
            table=self.schema.id, segment=1, path=str(path), version="v", schema=self.schema,
            counts=counts, first_sequence=0, last_sequence=changes.num_rows,
            first_committed_at=0.0, last_committed_at=0.0, first_position=1, last_position=1,
            size_bytes=0, crc32=zlib.crc32(path.read_bytes()), unsent=unsent, has_key_changes=True,
        )  # fmt: skip
        plan = FoldPlan(
            self.schema, (file,), -1, 0, self.sequence, str(self.folder / f"{name}-merge"),
            mode=self.mode, no_inserts=self.no_inserts,
        )  # fmt: skip
        return fold_batch(LocalTasks(), plan)[0]

    def merge(self, changes: pa.Table, unsent: tuple[str, ...] = ("a", "b")) -> None:
        """Fold and merge. The token is there afterwards, also where no row changed."""
        batch = self.batch(changes, unsent)
        assert self.writer.merge(self.table, batch).was_applied
        token = self.writer.token(self.table)
        assert token is not None and token.sequence == batch.sequence
        self.last = batch

    def merge_all(self, changes: list[Change], size: int) -> None:
        """All changes in batches of about `size`, whole transactions each. The last batch comes
        again, as after a crash."""
        for part in batches(changes, size):
            self.merge(table_of(part))
        assert self.last is not None
        assert not self.writer.merge(self.table, self.last).was_applied

    def rows(self) -> list[dict[str, Any]]:
        """The live rows, every column by name."""
        return self.records(stored(self.schema, self.mode))

    def by_key(self) -> dict[Key, Row]:
        """The rows as the replays give them."""
        return {(r.pop("id"), r.pop("part")): r for r in self.rows()}

    def versions(self) -> list[dict[str, Any]]:
        """The rows as `history_replay` gives them."""
        found = []
        for r in self.rows():
            assert r["_is_current"] == (r["_valid_to"] is None)
            key = r["id"], r["part"]
            times = {"from": r["_valid_from"], "to": r["_valid_to"]}
            found.append({"key": key, "a": r["a"], "b": r["b"], **times})
        return found


def batches(changes: Sequence[Change], size: int) -> list[list[Change]]:
    """The changes in batches of about `size`, whole transactions each."""
    found: list[list[Change]] = [[]]
    for change in changes:
        last = found[-1]
        if len(last) >= size and last[-1].transaction != change.transaction:
            found.append([])
        found[-1].append(change)
    return found


def in_segment(changes: pa.Table, segment: int) -> pa.Table:
    """The changes, numbered as in a segment of the log."""
    at = changes.schema.get_field_index("_sequence")
    numbers = pc.add(changes.column(at), first_sequence(segment))
    return changes.set_column(at, changes.schema.field(at), numbers)


class SqlModes:
    """Supply `writer` and `records` (the live rows of a table by column name, read without the
    writer). A test runs for each of the seeds."""

    @pytest.fixture
    def writer(self) -> MergeTarget:
        """The target."""
        raise NotImplementedError

    @pytest.fixture
    def records(self) -> Records:
        """Reads a live table."""
        raise NotImplementedError

    @pytest.fixture(
        params=[0, 3, 5, *(pytest.param(n, marks=pytest.mark.long) for n in range(100, 120))]
    )
    def seed(self, request: pytest.FixtureRequest) -> int:
        """The seed of a walk."""
        return int(request.param)

    @pytest.fixture
    def copy(self, writer: MergeTarget, records: Records, tmp_path: Path) -> Callable[..., Copy]:
        """Makes copies."""

        def made(mode: Mode, schema: TableSchema = SCHEMA, *, no_inserts: bool = False) -> Copy:
            return Copy(writer, records, tmp_path, mode, schema, no_inserts)

        return made

    def test_a_mirror_is_what_a_naive_replay_gives(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the mirror's statements: unsent values, changed keys in chains and swaps, rows
        that come and go in one batch, TRUNCATE with what came after it."""
        start, changes = transactions(seed, 70)
        mirror = copy(Mode.MIRROR).of(start)
        mirror.merge_all(changes, 16)
        assert mirror.by_key() == replay(start, changes)

    def test_soft_delete_is_what_a_naive_replay_gives(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the statements of soft delete: flags, values kept, revivals, changed keys,
        TRUNCATE with survivors in one commit."""
        start, changes = transactions(seed, 70)
        soft = copy(Mode.SOFT_DELETE).of(start)
        assert soft.by_key() == soft_replay(start, [])
        soft.merge_all(changes, 24)
        assert soft.by_key() == soft_replay(start, changes)

    def test_a_truncate_alone_flags_every_living_row_and_moves_the_token(
        self, copy: Callable[..., Copy]
    ) -> None:
        """Guards the statement for a batch without rows: rows flagged before keep their time, and a
        TRUNCATE of a table where nothing lives moves the token too."""
        start: dict[Key, Row] = {(n, "x"): {"a": f"a{n}", "b": None} for n in range(3)}
        changes = [
            Change(Op.DELETE, (0, "x"), transaction=1, at=5),
            Change(Op.TRUNCATE, (0, "x"), transaction=2, at=9),
            Change(Op.TRUNCATE, (0, "x"), transaction=3, at=11),
        ]
        soft = copy(Mode.SOFT_DELETE).of(start)
        for change in changes:
            soft.merge(table_of([change]))
        assert soft.by_key() == soft_replay(start, changes)
        assert {r["_deleted_at"] for r in soft.by_key().values()} == {moment(5), moment(9)}

    def test_history_is_what_a_naive_replay_gives(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the statements of history: versions without overlap or gap, unsent values of the
        version before, changed keys, TRUNCATE."""
        start, changes = transactions(seed, 70)
        history = copy(Mode.HISTORY).of(start)
        history.merge_all(changes, 24)
        assert_sound(history.versions())
        assert in_order(history.versions()) == in_order(history_replay(start, changes))
        for at in (900, 901):
            truncate = Change(Op.TRUNCATE, (0, "x"), transaction=at, at=at)
            history.merge(table_of([truncate]))
        assert all(v["to"] for v in history.versions())

    def test_append_holds_the_snapshot_and_every_change_once(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the statement of append and its token: every change once, in order, unsent columns
        named."""
        start, changes = transactions(seed, 40)
        log = copy(Mode.APPEND).of(start)
        log.merge_all(changes, 15)
        rows = log.rows()
        assert sum(r["_operation"] == "snapshot" for r in rows) == len(start)
        logged = [r for r in rows if r["_operation"] != "snapshot"]
        assert len(logged) == len(changes) + sum(c.old is not None for c in changes)
        unsent = [sorted(c.unsent) for c in changes if c.op is Op.UPDATE and c.unsent]
        updates = [r for r in logged if r["_operation"] == "update"]
        found = [sorted(r["_unsent"]) for r in updates if r["_unsent"]]
        assert sorted(found) == sorted(unsent)

    def test_messages_rebuild_what_a_naive_replay_gives(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the mode of messages: every row of the snapshot and every change once, their order
        by number, keys and rows in JSON."""
        start, changes = transactions(seed, 40)
        log = copy(Mode.MESSAGES).of(start)
        for segment, part in enumerate(batches(changes, 15), 1):
            log.merge(in_segment(table_of(part), segment))
        assert log.last is not None and not log.writer.merge(log.table, log.last).was_applied
        rows = sorted(log.rows(), key=lambda row: int(row["message_id"]))
        found = [(parsed(r["key"]), parsed(r["value"])) for r in rows]
        assert {r["table"] for r in rows} == {str(log.schema.id)}
        reads = [value for _, value in found if value["_operation"] == "read"]
        assert len(reads) == len(start) == sum(r["message_id"] < 0 for r in rows)
        assert len(found) == len(start) + len(changes) + sum(c.old is not None for c in changes)
        state: dict[Key, Row] = {}
        gone: Row = {}
        for key, value in found:
            if value["_operation"] == "truncate":
                state.clear()
            elif value["_operation"] == "delete":
                gone = state.pop(tuple(key))
            else:
                is_new = value["_operation"] in ("read", "insert")
                known = state.get(tuple(key), {} if is_new else gone)
                state[tuple(key)] = {**known, **value["after"]}
        images = {k: {n: row[n] for n in ("a", "b")} for k, row in state.items()}
        assert images == replay(start, changes)

    def test_a_table_without_a_key_has_each_row_as_often_as_the_source(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the multiset (CORRECTNESS 12): without the numbers equal rows would go together,
        without the snapshot's digests none."""
        start, changes = keyless.workload(seed, 60)
        visits = copy(Mode.MULTISET, keyless.SCHEMA)
        visits.published(({"page": p, "n": n} for p, n in start.elements()), files=2)
        assert held(visits) == start
        for at in range(0, 60, 15):
            visits.merge(keyless.table_of(changes[at : at + 15], visits.schema), ())
        assert held(visits) == keyless.replay(start, changes)

    def test_a_mirror_without_inserts_is_what_a_naive_replay_keeps(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the mirror's statements where inserts are left out: no new rows, moved ones under
        their new key only where the copy has them, keys that other rows took emptied."""
        start, changes = transactions(seed + 31, 60)
        mirror = copy(Mode.MIRROR, no_inserts=True).of(start)
        mirror.merge_all(changes, 20)
        assert mirror.by_key() == no_inserts.mirror_replay(start, changes)

    def test_soft_delete_without_inserts_is_what_a_naive_replay_keeps(
        self, copy: Callable[..., Copy], seed: int
    ) -> None:
        """Guards the same with soft delete: of a key's rows the last whose origin lives."""
        start, changes = transactions(seed, 70)
        soft = copy(Mode.SOFT_DELETE, no_inserts=True).of(start)
        soft.merge_all(changes, 24)
        assert soft.by_key() == no_inserts.soft_replay(start, changes)


def parsed(value: Any) -> Any:
    """A document, where a client gives it as text too."""
    return json.loads(value) if isinstance(value, str) else value


def held(copy: Copy) -> Counter[keyless.Row]:
    """The rows of a copy without a key. Equal ones are numbered from 1 without a gap, under one
    digest."""
    found: dict[bytes, list[int]] = {}
    rows: Counter[keyless.Row] = Counter()
    images: dict[bytes, keyless.Row] = {}
    for row in copy.rows():
        page, n, digest, number = row.values()
        digest = bytes(digest)
        found.setdefault(digest, []).append(number)
        assert images.setdefault(digest, (page, n)) == (page, n)
        rows[page, n] += 1
    assert all(sorted(numbers) == [*range(1, len(numbers) + 1)] for numbers in found.values())
    assert len(images) == len(rows)
    return rows
