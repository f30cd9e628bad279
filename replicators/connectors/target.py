"""What a target plugin provides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from replicators.connectors.addresses import Place
from replicators.connectors.capabilities import Delivery as Delivery
from replicators.connectors.capabilities import TargetCapabilities
from replicators.connectors.closing import Closing
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import LogicalType
from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.problems.message import Message
from replicators.connectors.problems.problem import Problem
from replicators.connectors.setup import SetupStep, no_setup
from replicators.connectors.tasks import Tasks


class FitKind(StrEnum):
    """How well a type fits: EXACT and WIDENED lose nothing, LOSSY does, UNSUPPORTED has no
    place."""

    EXACT = "exact"
    WIDENED = "widened"
    LOSSY = "lossy"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Fit:
    """The target's type for a neutral type; `reason` where something is lost."""

    kind: FitKind
    native: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """What a target table remembers with its data (CORRECTNESS 13): whose it is and up to where it
    is merged."""

    replicator: str
    generation: int
    sequence: int
    table_uuid: str


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a target table by which readers can open it (Iceberg's snapshot id, Delta's
    version), and the token that its commit carries."""

    token: Token
    version: str


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """An older version of a target table that can still be opened: the sequence that it reached,
    and when it was committed (seconds since the epoch, by the target's clock)."""

    version: str
    sequence: int
    committed_at: float


@dataclass(frozen=True, slots=True)
class KeyRange:
    """An inclusive interval of the *first* key column, in the neutral type's Python or Arrow scalar
    form."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class FoldedBatch:
    """One merge: Parquet files made by `fold`, all of one schema version.

    Columns: the table's own (`TableSchema.arrow_schema()`), `_delete` bool, and, where `unsent`
    names columns, `_unsent` (binary, bit i of column i) and `_origin` (struct of the key columns:
    whose target row fills the unsent ones; NULL: the row itself). One row per key. `truncate`:
    everything in the table goes first, in the same commit. `mode` says how the rows are to be
    applied, and which further columns they have (the modes' folds say); `truncated_at`: when the
    first TRUNCATE was committed, where the mode keeps what it emptied. `no_inserts`: only rows that
    the target has are changed: a row is that of its `_origin`, or without one that of its key, and
    where the target does not have it (with soft delete: living) nothing is added, and nothing stays
    under the row's key. With soft delete a key may have several rows, told apart by `_sequence`:
    the last one counts whose origin lives. `ranges` cover the keys and origins (empty: no pruning
    possible); where their first columns have few values, `keys` holds them all.
    """

    schema: TableSchema
    paths: tuple[str, ...]
    sequence: int
    rows: int
    unsent: tuple[str, ...] = ()
    has_origins: bool = False
    truncate: bool = False
    ranges: tuple[KeyRange, ...] = ()
    append_only: bool = False
    keys: tuple[Any, ...] = ()
    mode: Mode = Mode.MIRROR
    truncated_at: datetime | None = None
    no_inserts: bool = False


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table at the target as this replicator knows it: `generation` grows with each re-sync, and
    is copied in one `mode`. Schemas are the source's everywhere: the writer adds the mode's columns
    (`modes.stored`)."""

    source: TableId
    replicator: str
    generation: int
    table_uuid: str = ""
    mode: Mode = Mode.MIRROR


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """Where tasks may write a snapshot's Parquet files themselves: an empty folder (path or URL)
    that exists, the files' Arrow schema, and keyword arguments for `pyarrow.parquet.ParquetWriter`.
    `constants`: what the columns that the mode adds hold in every row; the engine sets them."""

    folder: str
    arrow: pa.Schema
    options: dict[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did; `was_applied` False: the token showed that it had been done before."""

    was_applied: bool
    table_uuid: str
    facts: dict[str, Any] = field(default_factory=dict)


class BatchKind(StrEnum):
    """What a `ChangeBatch` holds: rows as a consistent snapshot found them, or changes of the
    log."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"


class Lane(Protocol):
    """A part of a `ChangeBatch` that one task reads. It is pickled to get there.

    `number` is unique in its table's snapshot, or in its batch of changes, where lanes are
    contiguous and ascending ranges of `_sequence`: all rows of lane 1 come before all rows of lane
    2. So the changes of a key are in order where lanes are read in order, however many there are.
    `first` and `last` are the range's ends; `rows` is about how many rows it has.
    """

    @property
    def number(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def rows(self) -> int: ...

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows in order of `_sequence`, with `changes.change_schema` of the batch's schema.
        Rows of a snapshot have `_op` READ, the sequence at which the table's changes begin, the
        time at which the snapshot was opened, and no before image. Each call reads again."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Rows of one table for a `ChangeSink`, all of one schema version, of whole transactions.

    Changes: everything with `after` < `_sequence` <= `sequence` is in this batch. An earlier try
    may have delivered some of it, up to another `sequence`, before a crash: where the target can,
    what lies beyond `after` in this generation is replaced. Snapshot: it comes in several batches;
    lanes that were not delivered before are added, and a lane that was is replaced. `after` and
    `sequence` are both where the table's changes begin. What an earlier try left, `begin` has
    thrown away. `resolved_at`: the time of the last `Resolved` that may have been told of this
    table (seconds; 0: none). A change may carry an earlier commit time (a source's clock was set
    back); it counts as one of this time.
    """

    kind: BatchKind
    schema: TableSchema
    after: int
    sequence: int
    lanes: tuple[Lane, ...]
    resolved_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Resolved:
    """Every change of a table that was committed at the source before `at` (seconds since the
    epoch, by the source's clock) has been delivered and recorded; so has everything up to
    `sequence`. Marks of a generation never go back. One may be told twice."""

    sequence: int
    at: float


class Target(Protocol):
    """What every target has; it is a `MergeTarget` or a `ChangeSink` besides. Thread safe for
    different tables; one call at a time for each table. Every method is idempotent for the same
    arguments. Errors are `ReplicationError`s."""

    def names(self, table: TableId) -> tuple[str, ...]:
        """The target table's name parts (namespace, name), not quoted."""
        ...

    def drop(self, table: TargetTable) -> None:
        """Remove the table and its data, of every generation, if it is this replicator's."""
        ...


@runtime_checkable
class MergeTarget(Target, Protocol):
    """A target whose tables hold the rows as the table's mode wants them. Each commit carries a
    token (CORRECTNESS 13), so that a merge is applied once."""

    def token(self, table: TargetTable) -> Token | None:
        """What the live table remembers; None where there is no such table or no token."""
        ...

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty staging place for this generation; what an earlier try left there is thrown
        away. `target:table-taken` where a live table exists that isn't this replicator's."""
        ...

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        """After `begin_snapshot`: a new folder for the files of one `load_snapshot_files`."""
        ...

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        """The place with this folder, of the same generation's `begin_snapshot`; None where it is
        gone."""
        ...

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        """Append the Parquet files of one `SnapshotPlace` to the staging place; other files in its
        folder (of tasks that failed) are removed. The files belong to the target from then on."""
        ...

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """Make the staged rows the live table in one step, together with the token; the table's
        UUID. Called again after a crash it sees the token and does nothing."""
        ...

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        """After `target:row-missing`: the keys (the key's columns, as in the batch) of the batch's
        rows whose unsent values belong to a row that the target does not have."""
        ...

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """Apply a batch and its sequence in one commit; reads the token first and skips what is
        already there. `target:table-missing`, `target:table-replaced`, `target:table-behind`,
        `target:row-missing`."""
        ...

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        """Make the live table fit `new`, a shape that came after `old`: columns that `old` lacks
        are added, those that only `old` has are dropped, others are renamed (known by
        `Column.ordinal`) and widened; the changes made, as text. `target:evolve` for a type that
        can't be changed in place."""
        ...

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        """Set a column of every row of the live table to one value (None: NULL); the token stays
        what it was."""
        ...


@runtime_checkable
class ChangeSink(Target, Protocol):
    """A target that takes every change in order of `_sequence`, a snapshot's rows too. It carries
    no token: the engine's store keeps how far a table is delivered, and records it once `deliver`
    has returned. After a crash in between the same changes come again. The order of one batch:
    `deliver`, recorded, `resolved`."""

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """A new generation begins, with a snapshot: throw away what an earlier try of the same
        generation left, and what generations before left unfinished. `target:table-taken` where the
        place is not this replicator's."""
        ...

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Write the batch, and say how many rows it had; when this returns, they are durable. Lanes
        are read in tasks (`Tasks.map`)."""
        ...

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Nothing older than the mark can come any more. Also told of tables without changes, every
        few seconds (`TargetPlugin.resolved_seconds`): a mark that changes nothing here has to cost
        nothing."""
        ...


@runtime_checkable
class Rewindable(Protocol):
    """A `MergeTarget` that keeps older versions of a table, from which the change log can be
    applied again."""

    def version_at(self, table: TargetTable, sequence: int) -> KeptVersion | None:
        """The newest version of this generation at or before `sequence` that can still be opened;
        where all are later, the oldest of them; None where there is none."""
        ...

    def begin_rewind(self, table: TargetTable, version: str) -> None:
        """The staging place of this generation, with the live table's rows at an older version of
        it; what an earlier try left there is thrown away. `target:rewind-shape` where its columns
        were others."""
        ...

    def merge_staged(self, table: TargetTable, batch: FoldedBatch) -> None:
        """Apply a batch to the staging place, once after the other."""
        ...

    def abandon_rewind(self, table: TargetTable) -> None:
        """Throw the staging place of this generation away; idempotent."""
        ...


@runtime_checkable
class Watermarked(Protocol):
    """A `MergeTarget` whose versions readers can open, so that several tables can be read at one
    moment of the source."""

    @property
    def history_seconds(self) -> float:
        """How long a version stays readable after another took its place."""
        ...

    def version(self, table: TargetTable) -> TableVersion | None:
        """The live table's last version that carries a token; None where there is no such table or
        no token."""
        ...

    def publish_watermark(self, replicator: str, mark: Watermark) -> None:
        """A row of the progress table that readers of the target look at; keeps that table small.
        `target:progress-taken` where its name is another's."""
        ...

    def forget_watermarks(self, replicator: str) -> None:
        """Remove the replicator's rows from the progress table; idempotent."""
        ...


@runtime_checkable
class Maintained(Protocol):
    """A `MergeTarget` whose files have to be tidied up now and then."""

    def maintain(self, table: TargetTable, keep_seconds: float = 0.0) -> dict[str, Any]:
        """Compact and expire, keeping the token readable; figures of what was done. Of what is
        older than the history, single versions stay where the plugin's `apart_seconds` says so:
        enough for a rewind to any time within `keep_seconds`."""
        ...


class TargetChecks(Closing, Protocol):
    """Preflight of a target; needs no Spark."""

    def connection(self) -> list[Problem]:
        """Can its catalog and storage be reached and written?"""
        ...

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Names that are taken or that two tables would share."""
        ...


@dataclass(frozen=True, slots=True)
class TargetPlugin:
    """A target's light descriptor. `writer` opens the target; it gets the run's tasks, and with
    them the Spark session that `spark_conf` and `jars` were put into, which a target that writes
    without Spark leaves out. `resolved_seconds`: about how often a `ChangeSink` is told how far a
    table is resolved. `rehearsals`: params of throw-away targets inside a folder, on which set-up
    tries the writer so that its classes are archived. `modules`: what the writer imports at its
    first use, imported beforehand while Spark starts. `driver_properties`: Java's properties for
    drivers that Spark's driver loads; what is secret they name by files, which are put into the
    folder given. `apart_seconds`: for a time that changes are kept, how far apart older versions
    lie that are kept for rewinds beyond the history; 0: none are. `places`: the hosts and files
    that the params lead to, so that they are judged before anything is opened. `messages`: the
    texts of the codes that only this target has. `rank`: pages list the lower ones first."""

    name: str
    label: str
    summary: str
    params: type
    capabilities: TargetCapabilities
    fit: Callable[[LogicalType], Fit]
    checks: Callable[[Any], TargetChecks]
    writer: Callable[[Any, Tasks], Target]
    spark_conf: Callable[[Any], dict[str, str]] = lambda _: {}
    jars: Callable[[Any], tuple[str, ...]] = lambda _: ()
    driver_properties: Callable[[Any, str], Mapping[str, str]] = lambda *_: {}
    history_seconds: Callable[[Any], float] = lambda _: 0.0
    apart_seconds: Callable[[Any, float], float] = lambda *_: 0.0
    setup: Callable[[Mapping[str, Any]], tuple[SetupStep, ...]] = no_setup
    rehearsals: Callable[[str], tuple[Any, ...]] = lambda _: ()
    modules: Callable[[Any], tuple[str, ...]] = lambda _: ()
    places: Callable[[Any], tuple[Place, ...]] = lambda _: ()
    resolved_seconds: float = 5.0
    messages: Mapping[str, Message] = field(default_factory=dict)
    icon: str = "database"
    rank: int = 100
    is_hidden: bool = False
