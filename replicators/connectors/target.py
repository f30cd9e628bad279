"""What a target plugin provides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, runtime_checkable

import pyarrow as pa

from replicators.connectors.addresses import Place
from replicators.connectors.budgets import Budget as Budget
from replicators.connectors.capabilities import Delivery as Delivery
from replicators.connectors.capabilities import TargetCapabilities
from replicators.connectors.closing import Closing
from replicators.connectors.conflicts import Conflict
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import LogicalType
from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.params import P
from replicators.connectors.problems.message import Message
from replicators.connectors.problems.problem import Problem
from replicators.connectors.pulling import PulledFeed
from replicators.connectors.reading import CurrentRows as CurrentRows
from replicators.connectors.reading import ReadsRows as ReadsRows
from replicators.connectors.setup import SetupStep, no_setup
from replicators.connectors.stores import bucket_of
from replicators.connectors.tasks import Tasks
from replicators.connectors.uris import UriScheme

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class FitKind(StrEnum):
    """How well a type fits: EXACT and WIDENED lose nothing, LOSSY does, UNSUPPORTED has no
    place."""

    EXACT = "exact"
    WIDENED = "widened"
    LOSSY = "lossy"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Fit:
    """The target's type for a neutral type; `reason` where something is lost. `is_own`: it is the
    source's own type, so nothing is lost where the neutral type carries its values as text."""

    kind: FitKind
    native: str
    reason: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """What a target table stores with its data (CORRECTNESS 13): which replicator owns it, and the
    sequence up to which it is merged."""

    replicator: str
    generation: int
    sequence: int
    table_uuid: str


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a target table, and the token that its commit carries. Readers open the table at
    `version` (Iceberg's snapshot id, Delta's version)."""

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

    The files have the table's own columns (`TableSchema.arrow_schema()`) and `_delete` (bool).
    Where `unsent` names columns, they also have `_unsent` (binary, bit i of column i) and `_origin`
    (struct of the key columns). `_origin` is the key of the target row that fills the unsent
    columns; NULL means the row itself. There is one row per key.

    `mode` says how the rows are applied, and which further columns they have (see the modes'
    folds). `truncate`: the commit first removes every row of the table. `truncated_at`: when the
    first TRUNCATE was committed, where the mode keeps the rows that it removed.

    `no_inserts`: the merge changes only rows that the target has. Such a row is found by its
    `_origin`, or by its key where there is no origin. Where the target does not have that row (with
    soft delete: not as a living row), the merge adds nothing and leaves nothing under the row's
    key.

    `repairs`: the batch writes rows again that are wrong in the target. Its sequence is that of the
    table's token. It is applied although the token has that sequence already, and the token stays.
    It has no unsent columns.

    `timed`: the files have `_committed_at`, when each key's last change was committed at the
    source. They then have deleted keys beside a TRUNCATE too, and `truncated_at` is the time of the
    last one (`conflicts.Settles`).

    With soft delete a key may have several rows, which `_sequence` tells apart. The last one whose
    origin lives counts. `ranges` cover the keys and origins (empty: no pruning is possible). Where
    their first columns have few values, `keys` holds all of these values.
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
    repairs: bool = False
    timed: bool = False

    def is_known(self, sequence: int) -> bool:
        """Whether a table whose token has this sequence has the batch already."""
        return sequence > self.sequence if self.repairs else sequence >= self.sequence


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table at the target as this replicator knows it. `generation` grows with each re-sync. A
    generation is copied in one `mode`. Schemas are the source's everywhere: the writer adds the
    mode's columns (`modes.stored`)."""

    source: TableId
    replicator: str
    generation: int
    table_uuid: str = ""
    mode: Mode = Mode.MIRROR


class DirectCopy(Protocol):
    """Takes a snapshot's rows from tasks straight into the target's staging place. It is pickled on
    its way to the tasks. Only the holder of the newest place of a snapshot can write."""

    def write(self, number: int, rows: Iterator[pa.Table]) -> int:
        """Write the rows of a portion, and return their number. The rows and the portion's record
        are one commit. A later try of the same portion replaces the rows of an earlier one."""
        ...

    def rows(self) -> Mapping[int, int]:
        """The portions that were committed, with their numbers of rows."""
        ...

    def remove(self, keys: pa.Table) -> int:
        """Remove the rows with these keys (the key's columns) from all portions, and return how
        many they were."""
        ...


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """Where tasks may write a snapshot's Parquet files themselves: an existing empty folder (path
    or URL), the files' Arrow schema, and keyword arguments for `pyarrow.parquet.ParquetWriter`.
    `system`: the file system that the URL leads into, where settings of the target's own open it;
    None: any reader of URLs does. `constants`: the value that each column added by the mode has in
    every row. The engine sets these columns. `direct`: the tasks give it the rows and write no
    files. Each portion is then named in `load_snapshot_files` by a path that `portion_path`
    made."""

    folder: str
    arrow: pa.Schema
    options: dict[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    direct: DirectCopy | None = None
    system: FileSystem | None = None

    def opened(self, path: str) -> str:
        """A path in the folder, as readers and writers with `system` take it."""
        return bucket_of(path)[1] if self.system is not None else path

    def portion_path(self, number: int) -> str:
        """The path that names a portion which was written directly."""
        return f"{self.folder}/{number:08d}"


class Accuracy(StrEnum):
    """What an estimate of bytes says of the bytes that are read in the end."""

    EXACT = "exact"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The bytes that a merge will read, as the target's service says before the merge runs."""

    bytes: int
    accuracy: Accuracy


@dataclass(frozen=True, slots=True)
class MergeCost:
    """What a merge used of a service that counts or charges. `units`: of the plugin's `budget`,
    such as load jobs. `scanned_bytes`: bytes that it read at the target; None: not known.
    `is_pruned` False: it could leave no part of the table out, as it would where the table is
    clustered by its key and the batch has key ranges. `estimate`: None where the service was not
    asked before this merge."""

    units: int = 1
    scanned_bytes: int | None = None
    is_pruned: bool = True
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did. `was_applied` False: the token showed that this batch was already merged.
    `cost`: None where nobody counts."""

    was_applied: bool
    table_uuid: str
    cost: MergeCost | None = None


class BatchKind(StrEnum):
    """What a `ChangeBatch` holds: rows as a consistent snapshot found them, or changes of the
    log."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"


class Lane(Protocol):
    """A part of a `ChangeBatch` that one task reads. It is pickled on its way to the task.

    `number` is unique in its table's snapshot, or in its batch of changes. Lanes of changes are
    contiguous, ascending ranges of `_sequence`: all rows of lane 1 come before all rows of lane 2.
    So the changes of a key are in order for whoever reads the lanes in order. `first` and `last`
    are the ends of the range. `rows` is the approximate number of rows.
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
        """The rows in order of `_sequence`, with `changes.change_schema` of the batch's schema. A
        snapshot's rows have `_op` READ, the sequence at which the table's changes begin, the time
        at which the snapshot was opened, and no before image. Each call reads again."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Rows of one table for a `ChangeSink`. All are of one schema version and of whole
    transactions.

    Changes: the batch has every change with `after` < `_sequence` <= `sequence`. Before a crash, an
    earlier try may have delivered some of them, up to another `sequence`. A target that can
    replaces everything beyond `after` in this generation.

    Snapshot: it comes in several batches. A lane that was not delivered before is added; a lane
    that was delivered before is replaced. `after` and `sequence` are both the place where the
    table's changes begin. `begin` has already removed what an earlier try left.

    `resolved_at`: the time of the last `Resolved` that the target may have received for this table
    (seconds; 0: none). A change may have an earlier commit time, since a source's clock can be set
    back. Such a change counts as one of this time.
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
    epoch, by the source's clock) is delivered and recorded. So is every change up to `sequence`.
    Marks of a generation never go back. The target may receive the same mark twice."""

    sequence: int
    at: float


class Target(Protocol):
    """What every target has. A target is also a `MergeTarget` or a `ChangeSink`. It is thread safe
    for different tables; each table gets one call at a time. Every method is idempotent for the
    same arguments. Errors are `ReplicationError`s."""

    def names(self, table: TableId) -> tuple[str, ...]:
        """The target table's name parts (namespace, name), not quoted."""
        ...

    def drop(self, table: TargetTable) -> None:
        """Remove the table and its data, of every generation, if this replicator owns it."""
        ...


@runtime_checkable
class MergeTarget(Target, Protocol):
    """A target whose tables hold the rows as the table's mode wants them. Each commit carries a
    token (CORRECTNESS 13), so that a merge is applied once."""

    def token(self, table: TargetTable) -> Token | None:
        """The token stored in the live table; None where there is no such table or no token."""
        ...

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty staging place for this generation. What an earlier try left there is
        removed. `target:table-taken` where a live table exists that this replicator does not
        own."""
        ...

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        """Make a new folder for the files of one `load_snapshot_files`. Call `begin_snapshot`
        first."""
        ...

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        """The place with this folder, made after the same generation's `begin_snapshot`; None where
        the folder no longer exists."""
        ...

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        """Append the Parquet files of one `SnapshotPlace` to the staging place. Other files in its
        folder (of failed tasks) are removed. From then on the files belong to the target."""
        ...

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """Make the staged rows the live table in one step, together with the token, and return the
        table's UUID. A second call, after a crash, finds the token and does nothing."""
        ...

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        """Call this after `target:row-missing`. It returns keys (the key's columns, as in the
        batch): those of the batch's rows whose unsent values are in a row that the target does not
        have."""
        ...

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """Apply a batch and its sequence in one commit. It reads the token first and skips a batch
        that is already merged. `target:table-missing`, `target:table-replaced`,
        `target:table-behind`, `target:row-missing`."""
        ...

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        """Change the live table so that it fits `new`, a schema that came after `old`. It adds
        columns that only `new` has, drops columns that only `old` has, and renames (matched by
        `Column.ordinal`) and widens others. It returns the changes made, as text. `target:evolve`
        for a type that can't be changed in place."""
        ...

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        """Set a column of every row of the live table to one value (None: NULL). The token stays
        the same."""
        ...


@runtime_checkable
class ChangeSink(Target, Protocol):
    """A target that takes every change in order of `_sequence`, and a snapshot's rows too. It
    carries no token. The engine's store keeps how far a table is delivered, and records it once
    `deliver` has returned. After a crash between the two, the same changes come again. The order
    for one batch is: `deliver`, record, `resolved`."""

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """Begin a new generation, which starts with a snapshot. Remove what an earlier try of the
        same generation left, and what earlier generations left unfinished. `target:table-taken`
        where the place belongs to somebody else."""
        ...

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Write the batch and return its number of rows. The rows are durable when this returns.
        Tasks read the lanes (`Tasks.map`)."""
        ...

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Nothing older than the mark can come any more. This is also called for tables without
        changes, every few seconds (`TargetPlugin.resolved_seconds`), so a mark that changes nothing
        here must cost nothing."""
        ...


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that the target refused. `number` is negative. It tells the row from the others of its
    table, and from an earlier refusal of the same row. `key` and `reason` are for people; `key` is
    a JSON object."""

    number: int
    key: str
    reason: str


@runtime_checkable
class RejectsRows(Protocol):
    """A `ChangeSink` that may refuse single rows. It keeps those itself, in a place that outlives
    the run, and writes the others. It sends them again when a run begins."""

    def refused(self, table: TargetTable, limit: int) -> list[RefusedRow] | None:
        """The first rows that are refused now, by number. None where nothing has changed since the
        last call; the first call of a run always gives a list."""
        ...

    def replay(self, table: TargetTable) -> None:
        """Send the refused rows again. Those that the target takes now, or that a newer change has
        replaced, are refused no more."""
        ...


@runtime_checkable
class Rewindable(Protocol):
    """A `MergeTarget` that keeps older versions of a table. The change log can be applied again
    from such a version."""

    def version_at(self, table: TargetTable, sequence: int) -> KeptVersion | None:
        """The newest version of this generation at or before `sequence` that can still be opened.
        Where all versions are later, the oldest one; None where there is none."""
        ...

    def begin_rewind(self, table: TargetTable, version: str) -> None:
        """Fill the staging place of this generation with the live table's rows at an older version
        of it. What an earlier try left there is removed. `target:rewind-schema` where that version
        had other columns."""
        ...

    def merge_staged(self, table: TargetTable, batch: FoldedBatch) -> None:
        """Apply a batch to the staging place. Batches come one after the other."""
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
        """How long a version stays readable after a newer one replaced it."""
        ...

    def version(self, table: TargetTable) -> TableVersion | None:
        """The live table's last version that carries a token; None where there is no such table or
        no token."""
        ...

    def publish_watermark(self, replicator: str, mark: Watermark) -> None:
        """Add a row to the progress table, which readers of the target look at. That table is kept
        small. `target:progress-taken` where something else has its name."""
        ...

    def forget_watermarks(self, replicator: str) -> None:
        """Remove the replicator's rows from the progress table; idempotent."""
        ...


@runtime_checkable
class Maintained(Protocol):
    """A `MergeTarget` whose files have to be tidied up now and then."""

    def maintain(self, table: TargetTable, keep_seconds: float = 0.0) -> dict[str, Any]:
        """Compact and expire, and keep the token readable. It returns counts of what was done. Of
        the versions older than the history, some stay where the plugin's `apart_seconds` says so:
        enough for a rewind to any time within `keep_seconds`."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A target that holds something until the end of a run: connections, or tables that it kept for
    the next batch. The engine closes it once nothing uses it any more."""

    def close(self) -> None:
        """Let go of it. What can't be removed now is removed by the next run."""
        ...


class TargetChecks(Closing, Protocol):
    """Preflight of a target; needs no Spark."""

    def connection(self) -> list[Problem]:
        """Can its catalog and storage be reached and written?"""
        ...

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Names that are taken, and names that two tables would share."""
        ...


@dataclass(frozen=True, slots=True)
class TargetPlugin(Generic[P]):
    """A target's light descriptor. `P`: the class of its params.

    `writer` opens the target. It gets the run's tasks, and through them the Spark session, which
    was made with `spark_conf` and `jars`. A target that writes without Spark leaves these two out.
    `modules`: what the writer imports at its first use; they are imported beforehand, while Spark
    starts. `task_modules`: where the functions are that the writer maps over tasks; the workers of
    tasks import them at their start. `driver_properties`: Java properties for drivers that Spark's
    driver loads. Secrets are not in the properties but in files that they name; these files are put
    into the folder given. `driver_environment`: variables that only Spark's driver has, for secrets
    that its settings name. `rehearsals`: params of throw-away targets inside a folder. Set-up tries
    the writer on them, so that its classes are archived.

    `merge_seconds`: the time between two merges of a table that suits this target: the default of
    the replicator's option *Merge every*; None: the option's own default. That option is the only
    place where people set it, so no param says it too.
    `budget`: what the target's service allows within 24 hours. The time between two merges grows
    before that is used up; a `MergeResult` says what a merge used.
    `resolved_seconds`: about how often a `ChangeSink` hears how far a table is resolved.
    `apart_seconds`: given how long changes are kept, the time between the older versions that are
    kept for rewinds beyond the history; 0: none are kept. `places`: the hosts and files that the
    params lead to, so that they are checked before anything is opened. `messages`: the texts of the
    codes that only this target has. `fit_column`: for a target that can hold more of a source's own
    types than the neutral types say; it reads `Column.native` too, and everybody asks `fits`.
    `feed`: opens what the target keeps for subscribers, without Spark (`connectors/pulling.py`).
    `settles`: whether the writer is `Settles`: the target is replicated back. `conflicts`: the last
    changes that lost there, of these tables, newest first, and at most so many.
    `unseen`: a sentence on what *Test connection* can't see.
    `rank`: pages list lower ranks first. `uri`: how statements write the params as an address.
    """

    name: str
    label: str
    summary: str
    params: type[P]
    capabilities: TargetCapabilities
    fit: Callable[[LogicalType], Fit]
    checks: Callable[[P], TargetChecks]
    writer: Callable[[P, Tasks], Target]
    spark_conf: Callable[[P], dict[str, str]] = lambda _: {}
    jars: Callable[[P], tuple[str, ...]] = lambda _: ()
    driver_properties: Callable[[P, str], Mapping[str, str]] = lambda *_: {}
    driver_environment: Callable[[P], Mapping[str, str]] = lambda _: {}
    history_seconds: Callable[[P], float] = lambda _: 0.0
    apart_seconds: Callable[[P, float], float] = lambda *_: 0.0
    setup: Callable[[Mapping[str, Any]], tuple[SetupStep, ...]] = no_setup
    rehearsals: Callable[[str], tuple[P, ...]] = lambda _: ()
    modules: Callable[[P], tuple[str, ...]] = lambda _: ()
    task_modules: tuple[str, ...] = ()
    places: Callable[[P], tuple[Place, ...]] = lambda _: ()
    merge_seconds: Callable[[P], float | None] = lambda _: None
    budget: Budget | None = None
    resolved_seconds: float = 5.0
    messages: Mapping[str, Message] = field(default_factory=dict)
    fit_column: Callable[[Column], Fit] | None = None
    feed: Callable[[P], PulledFeed] | None = None
    settles: Callable[[P], bool] = lambda _: False
    conflicts: Callable[[P, Sequence[TableId], int], list[Conflict]] | None = None
    unseen: str = ""
    uri: UriScheme = field(default_factory=UriScheme)
    icon: str = "database"
    rank: int = 100
    is_hidden: bool = False

    def fits(self, column: Column) -> Fit:
        """The target's type for a column, and how well its values fit."""
        return self.fit(column.type) if self.fit_column is None else self.fit_column(column)
