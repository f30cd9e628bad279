"""A table that is merged into DuckDB while its rows are repaired: the engine's own parts, and a
source made by hand."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors.model.changes import Op, OpCounts, first_sequence, last_sequence
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.policy import SchemaPolicy
from runners.engine.apply import repair
from runners.engine.apply.merge import Merger
from runners.engine.apply.refill import Filler
from runners.engine.apply.repair import Repairer
from runners.engine.changelog.frontier import frontier_at
from runners.engine.changelog.segments import ChangeLog
from runners.engine.schema.evolution import Evolver
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, TableRow
from runners.engine.store.repairs import RepairCounts
from runners.engine.tasks.local import LocalTasks
from tests.local.duck import DuckClient, DuckParams, names, writer
from tests.sql_modes import Copy
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, replay, table_of
from tests.unit.engine.test_frontier import segment

FIRST = 1
"""The number of the first segment: everything before it is in the copy."""


@dataclass
class Source:
    """The source's rows, and the end of its log. `fault` is raised instead of rows."""

    rows: dict[Key, Row]
    end: int = 0
    asked: list[list[Key]] = field(default_factory=list)
    fault: ReplicationError | None = None

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        wanted = [(k["id"], k["part"]) for k in keys.to_pylist()]
        self.asked.append(sorted(wanted))
        if self.fault is not None:
            raise self.fault
        found = [{"id": k[0], "part": k[1], **self.rows[k]} for k in wanted if k in self.rows]
        return pa.Table.from_pylist(found, schema=table.arrow_schema()), self.end

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Repaired:
    """A copy, its store, its merges and its repairs. `open_run` makes the engine's parts anew, as
    the next process has them."""

    def __init__(
        self, folder: Path, start: dict[Key, Row], mode: Mode = Mode.MIRROR, **facts: Any
    ) -> None:
        self.folder, self.start, self.mode = folder, start, mode
        self.params = DuckParams(str(folder / "duck.db"), str(folder / "files"))
        self.held = duckdb.connect(self.params.path)  # so that each call opens it at once
        self.client = DuckClient(self.params.path)
        self.source = Source(dict(start))
        self.done: list[Change] = []
        self.files: dict[int, ChangeFileRow] = {}
        self.number = FIRST - 1
        copy = Copy(
            writer(self.params), lambda s: self.client.records(names(s.id)), folder, mode, SCHEMA
        ).of(start)
        self.copy, self.schema = copy, copy.schema
        self.store = MemoryStore([self.schema.id])
        self.store.table_event(self.schema.id, "table_snapshot_started", generation=1, mode=mode)
        self.store.table_event(
            self.schema.id, "table_snapshot_done", schema=replace(self.schema, **facts),
            is_snapshot_done=True, table_uuid=copy.table.table_uuid, token_sequence=1,
            merged_sequence=1,
        )  # fmt: skip
        self.open_run()

    def open_run(self) -> None:
        """The parts of a run."""
        self.target = writer(self.params)
        log = ChangeLog(str(self.folder / "log"), "r1", "attempt", str(self.folder))
        nothing: Any = None
        evolver = Evolver(self.target, self.store, SchemaPolicy.EVOLVE, nothing)
        filler = Filler(self.target, lambda: self.source)
        self.merger = Merger(LocalTasks(), self.target, self.store, log, "r1", filler, evolver)
        self.merger.recover(self.row)
        self.repairer = Repairer(
            self.target, self.store, log, "r1", self.merger, lambda: self.source
        )

    @property
    def row(self) -> TableRow:
        return self.store.table(self.schema.id)

    # The source

    def write(self, *changes: Change) -> int:
        """Transactions at the source, captured as one segment that is not decoded yet."""
        self.number += 1
        self.done += changes
        self.source.rows = replay(self.start, self.done)
        self.source.end = self.number * 100
        self.store.record_segment(segment(self.number), Position(self.source.end))
        made = table_of(list(changes))
        first = first_sequence(self.number)
        sequences = pa.array(range(first, first + len(changes)), pa.int64())
        made = made.set_column(0, made.schema.field("_sequence"), sequences)
        path = self.folder / f"{self.number}.parquet"
        pq.write_table(made, path)
        truncates = sum(c.op is Op.TRUNCATE for c in changes)
        self.files[self.number] = ChangeFileRow(
            table=self.schema.id, segment=self.number, path=str(path), version="v",
            schema=self.schema, counts=OpCounts(inserts=len(changes), truncates=truncates),
            first_sequence=first, last_sequence=first + len(changes) - 1, first_committed_at=0.0,
            last_committed_at=0.0, first_position=1, last_position=1,
            size_bytes=1, crc32=zlib.crc32(path.read_bytes()), unsent=("a", "b"),
            has_key_changes=True,
        )  # fmt: skip
        return self.number

    def decode(self) -> None:
        """Decode the next segment."""
        waiting = [s.number for s in self.store.segments() if not s.is_decoded]
        if waiting:
            self.store.record_decoded(waiting[:1], [self.files[waiting[0]]])

    # The target

    def merge(self) -> bool:
        """Merge what is decoded."""
        decoded = [s.number for s in self.store.segments() if s.is_decoded]
        if not decoded:
            return False
        reached = frontier_at(self.store, max(decoded))
        files = self.merger.pending(self.row, reached)
        return bool(files) and self.merger.merge(self.row, files, reached)

    def settle(self) -> None:
        """Decode and merge everything."""
        while any(not s.is_decoded for s in self.store.segments()):
            self.decode()
        while self.merge():
            pass
        assert self.row.merged_sequence >= last_sequence(self.number) or not self.number

    def damage(self, statement: str) -> None:
        """Another tool changes rows; `{}` is the table."""
        with duckdb.connect(self.params.path) as db:
            table = ".".join(f'"{n}"' for n in names(self.schema.id))
            db.execute(statement.replace("{}", table))

    def current(self) -> dict[Key, Row]:
        """The current rows by key, each key once."""
        found: dict[Key, Row] = {}
        for row in self.copy.rows():
            if row.get("_is_deleted") or row.get("_is_current") is False:
                continue
            key = row["id"], row["part"]
            assert key not in found, f"two rows of {key}"
            found[key] = {"a": row["a"], "b": row["b"]}
        return found

    def token(self) -> int:
        found = writer(self.params).token(self.copy.table)
        assert found is not None
        return found.sequence

    # Repairs

    def ask(self, *keys: Key) -> int:
        """A person asks for these keys; returns the repair's number."""
        made = pa.Table.from_pylist(
            [{"id": k[0], "part": k[1]} for k in keys],
            pa.schema([self.schema.arrow_schema().field(n) for n in self.schema.key]),
        )
        return self.store.ask_repair(self.schema.id, made).number

    def turn(self) -> bool:
        """What the scheduler does in a turn; whether anything is asked still."""
        asked = self.repairer.look([self.row])
        if self.repairer.is_due(self.row):
            self.repairer.turn(self.row)
        return bool(asked)

    def repair(self, *keys: Key) -> RepairCounts:
        """Ask, and repair to the end while nothing else happens."""
        number = self.ask(*keys)
        for _ in range(20):
            if not self.turn():
                break
        assert number not in self.store.repairs_refused, self.store.repairs_refused
        return self.store.repaired[number]


def at_once(monkeypatch: Any) -> None:
    """Repairs wait for nothing but the log."""
    for name in ("ASKED_SECONDS", "POLL_SECONDS", "AGAIN_SECONDS", "FAULT_SECONDS"):
        monkeypatch.setattr(repair, name, 0.0)


def all_keys(start: dict[Key, Row], changes: Sequence[Change]) -> list[Key]:
    """Every key that ever was."""
    found = [*start, *(c.key for c in changes), *(c.old for c in changes if c.old)]
    return list(dict.fromkeys(found))
