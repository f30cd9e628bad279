"""Writes a lakehouse through Spark. Each call has its own session; each merge is one commit with
the token in it."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from replicators.connectors.files import parquet_frame
from replicators.connectors.model.modes import Mode, stored
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.ownership import Written, own_token
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import Frame, Session
from replicators.connectors.target import (
    CurrentRows,
    FoldedBatch,
    KeptVersion,
    MergeResult,
    SnapshotPlace,
    TableVersion,
    TargetTable,
    Token,
)
from replicators.targets.lakehouse import (
    catalog,
    dialect,
    files,
    naming,
    numbering,
    progress,
    statements,
)
from replicators.targets.lakehouse.errors import translate
from replicators.targets.lakehouse.iceberg import Iceberg
from replicators.targets.lakehouse.listing import Listing
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.reading import LakehouseRows
from replicators.targets.lakehouse.sessions import LentSession, Sessions
from replicators.targets.lakehouse.views import Views

if TYPE_CHECKING:
    from replicators.targets.lakehouse.delta import Delta

BATCH_VIEW = "`replicator_batch`"
FEW_ROWS = 20_000
LARGE_TABLE_ROWS = 500_000


class LakehouseWriter:
    """The lakehouse's writer: a `MergeTarget` that is `Rewindable`, `Watermarked` and `Maintained`.
    Thread safe for different tables; only one thread at a time for each table."""

    def __init__(self, params: LakehouseParams, spark: Session, folder: str = "") -> None:
        """`folder`: where all tasks may write, for a store whose keys are lent."""
        self.params = params
        self.spark = spark
        self.format = _format(params, spark, folder)
        _make_catalog_folder(params)
        self._views = Views(self.format)
        self._listing = None if isinstance(self.format, Iceberg) else _listing(self.format)
        self._sessions = Sessions(spark, self.format.session_conf)
        self._written: dict[tuple[str, int], Written] = {}
        self._rewound: set[tuple[str, int]] = set()
        self._reported = -1
        self._lock = threading.Lock()

    def _plain_session(self) -> AbstractContextManager[LentSession]:
        return self._session(None)

    @contextmanager
    def _session(self, table: TargetTable | None) -> Iterator[LentSession]:
        try:
            with self._sessions.lent() as session:
                yield session
        except ReplicationError:
            raise
        except Exception as err:
            raise translate(err, table.source if table else None, self.params.store) from err

    def names(self, table: TableId) -> tuple[str, ...]:
        """Namespace and name."""
        return naming.names(self.params, table)

    def token(self, table: TargetTable) -> Token | None:
        """The live table's token; None if there is no such table or no token. The caller plans from
        this token, so the next merge accepts what another run wrote until now."""
        with self._session(table) as session:
            live = self.format.live(session, self.names(table.source))
            token = live.token if live else None
            if token is not None and token.generation == table.generation:
                with self._lock:
                    self._written[_place(table)] = Written(token.sequence)
            return token

    @property
    def history_seconds(self) -> float:
        """How long a version stays readable after a newer one replaced it."""
        return 60.0 * self.params.history_minutes

    def version(self, table: TargetTable) -> TableVersion | None:
        """The live table's last version with a token; None if there is no such table or no
        token."""
        with self._session(table) as session:
            live = self.format.live(session, self.names(table.source))
            if live is None or live.token is None:
                return None
            return TableVersion(live.token, live.version)

    @contextmanager
    def open_rows(self, table: TargetTable, schema: TableSchema) -> Iterator[CurrentRows]:
        """See `ReadsRows.open_rows`. The version stays readable as long as the target's history
        reaches."""
        with self._session(table) as session:
            scan = self.format.scan(session, self.names(table.source))
        if scan is None:
            raise ReplicationError("target:table-missing", table=table.source)
        yield LakehouseRows(schema, table.mode, scan)

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty staging place for this generation. Raises `target:table-taken` if the live
        table belongs to somebody else."""
        with self._session(table) as session:
            with self._lock:
                self._rewound.discard(_place(table))
            if self._listing is not None:
                self._listing.check(table)
            self._views.check(table)
            self.format.begin(session, table, stored(schema, table.mode))

    def load_snapshot(self, table: TargetTable, schema: TableSchema, frame: Frame) -> None:
        """Append the frame's rows to the staging place. Times of day may be text or
        microseconds."""
        with self._session(table) as session:
            types = {f.name: f.dataType.typeName() for f in frame.schema.fields}
            target = self.format.staging_path(session, table)
            shown = dialect.image_columns(stored(schema, table.mode), types)
            self.format.append_frame(frame.selectExpr(*shown), target)

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        """A new folder for the files of one `load_snapshot_files`, and how to write them."""
        with self._session(table) as session:
            folder = f"{self.format.files_folder(session, table)}/{uuid.uuid4().hex[:12]}"
            self.format.staging.make_folder(folder)
            return files.place(folder, stored(schema, table.mode), self.format.staging)

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        """The place with this folder, which the same generation's `begin_snapshot` made; None if it
        is gone."""
        with self._session(table) as session:
            root = self.format.files_folder(session, table)
            if not folder.startswith(f"{root}/") or not self.format.staging.has_folder(folder):
                return None
            return files.place(folder, stored(schema, table.mode), self.format.staging)

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        """Append the Parquet files of one `SnapshotPlace` to the staging place, as data files if
        possible."""
        with self._session(table) as session:
            if not paths:
                return
            folder = files.clear_strays(self.format.staging, tuple(paths))
            schema = stored(schema, table.mode)
            if (
                table.mode is not Mode.MULTISET
                and files.are_taken_as_they_are(schema)
                and self.format.add_files(session, table, folder)
            ):
                return
            frame = self._staged(session, paths, dialect.image_ddl(schema))
            target = self.format.staging_path(session, table)
            if table.mode is Mode.MULTISET:
                frame = numbering.numbered(frame)
            self.format.append_frame(frame.selectExpr(*dialect.image_columns(schema, {})), target)
            self.format.staging.remove_folder(folder)

    def _staged(self, session: LentSession, paths: Sequence[str], ddl: str) -> Frame:
        """The rows of files that tasks wrote."""
        if self.params.is_lent:  # they lie where the change log does
            return parquet_frame(session, paths, ddl)
        return session.read.schema(ddl).parquet(*paths)

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """Make the staged rows the live table, with the token. Returns the table's UUID. It is safe
        to run twice: a repeat changes nothing. What this process remembers of a dropped table of
        the same generation no longer counts. Raises `target:table-taken` if somebody made a table
        with its name since the copy began."""
        with self._session(table) as session:
            place, names = _place(table), self.names(table.source)
            live = self.format.live(session, names)
            token = live.token if live else None
            if (
                live
                and token
                and (token.replicator, token.generation) == (table.replicator, table.generation)
            ):
                self._follow(session, table, schema)
                return live.uuid
            if live and live.owner != table.replicator:
                raise ReplicationError(
                    "target:table-taken", table=table.source, target=".".join(names)
                )
            table_schema, is_rewind = stored(schema, table.mode), place in self._rewound
            made = self.format.publish(session, table, table_schema, sequence, is_rewind=is_rewind)
            with self._lock:
                self._rewound.discard(place)
                self._written[place] = Written(sequence)
            self._follow(session, table, schema)
            return made

    def _follow(self, session: LentSession, table: TargetTable, schema: TableSchema) -> None:
        """Bring the table's name and view to what the table is now."""
        if self._listing is not None:
            self._listing.enter(session, table)
        self._views.follow(session, table, schema)

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """Apply a batch and its sequence in one commit, unless the table's token shows that this
        was done."""
        place = _place(table)
        with self._session(table) as session:
            names = self.names(table.source)
            live = self.format.live(session, names)
            token = own_token(live, table, self._written.get(place))
            if batch.is_known(token.sequence):
                return MergeResult(False, token.table_uuid)
            if self._listing is not None:
                self._listing.keep(session, table)
            self._views.keep(session, table, batch.schema)
            done = Token(table.replicator, table.generation, batch.sequence, token.table_uuid)
            if batch.repairs:
                self.format.stamp_again(session, done)
            else:
                self.format.stamp(session, done)
            self._fit_size(session, batch, live.rows if live else None)
            with self._lock:
                self._written[place] = Written(token.sequence, batch.sequence)
            self._apply(session, self.format.path(names), self._fitting(batch))
            with self._lock:
                self._written[place] = Written(batch.sequence)
            return MergeResult(True, token.table_uuid)

    def _fit_size(self, session: LentSession, batch: FoldedBatch, rows: int | None) -> None:
        """Fit the session's settings to the number of changes and to the table's `rows` (None:
        unknown)."""
        is_few = batch.rows <= FEW_ROWS
        values = {"spark.sql.shuffle.partitions": "1"} if is_few else {}
        if not is_few or rows is None or rows > LARGE_TABLE_ROWS:
            values |= self.format.large_conf
        for name, value in values.items():
            session.conf.set(name, value)

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        """The keys of batch rows with unsent values whose old row is not in the table."""
        with self._session(table) as session:
            self._show(session, batch)
            target = self.format.path(self.names(table.source))
            found = session.sql(
                statements.missing(target, self._fitting(batch), BATCH_VIEW)
            ).toArrow()
            arrow = batch.schema.arrow_schema()
            return found.cast(pa.schema([arrow.field(n) for n in batch.schema.key]))

    def _fitting(self, batch: FoldedBatch) -> FoldedBatch:
        """The batch, or a copy without its keys if these are more than the format can use with its
        statistics."""
        return batch if len(batch.keys) <= self.format.most_keys else replace(batch, keys=())

    def _show(self, session: LentSession, batch: FoldedBatch) -> None:
        ddl = statements.batch_ddl(batch)
        session.show(parquet_frame(session, batch.paths, ddl), BATCH_VIEW.strip("`"))

    def _apply(self, session: LentSession, target: str, batch: FoldedBatch) -> None:
        if statements.reads_rows(batch):
            self._show(session, batch)
        session.sql(statements.statement(target, batch, BATCH_VIEW))

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        """Make the live table fit `new`. Returns the changes as text. Raises `target:evolve` for a
        change that the table can't take."""
        with self._session(table) as session:
            before, after = stored(old, table.mode), stored(new, table.mode)
            told = self.format.evolve(session, table, before, after)
            self._follow(session, table, new)
            return told

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        """Set a column in every row of the live table. Writes no token."""
        with self._session(table) as session:
            target = self.format.path(self.names(table.source))
            session.sql(dialect.fill_column(target, column, value))

    def maintain(self, table: TargetTable, keep_seconds: float = 0.0) -> dict[str, Any]:
        """Compact and expire. The token stays readable; single versions for rewinds within
        `keep_seconds` do too."""
        with self._session(table) as session:
            names = self.names(table.source)
            token = own_token(self.format.live(session, names), table, None)
            return self.format.maintain(session, names, token, keep_seconds)

    def version_at(self, table: TargetTable, sequence: int) -> KeptVersion | None:
        """The newest version of this generation at or before `sequence` that can still be opened.
        If all are later, the oldest one. None if there is none."""
        with self._session(table) as session:
            live = self.format.live(session, self.names(table.source))
            if live is None or live.token is None:
                return None
            return self.format.version_at(session, table, live.uuid, sequence)

    def begin_rewind(self, table: TargetTable, version: str) -> None:
        """Make this generation's staging place with the rows of an older version. Raises
        `target:rewind-schema`."""
        with self._session(table) as session:
            self.format.begin_rewind(session, table, version)
            with self._lock:
                self._rewound.add(_place(table))

    def merge_staged(self, table: TargetTable, batch: FoldedBatch) -> None:
        """Apply a batch to the staging place."""
        with self._session(table) as session:
            token = Token(table.replicator, table.generation, batch.sequence, table.table_uuid)
            self.format.stamp(session, token)
            self._fit_size(session, batch, None)
            self._apply(session, self.format.staging_path(session, table), self._fitting(batch))

    def abandon_rewind(self, table: TargetTable) -> None:
        """Remove the staging place; idempotent."""
        with self._session(table) as session:
            with self._lock:
                self._rewound.discard(_place(table))
            self.format.abandon_rewind(session, table)

    def publish_watermark(self, replicator: str, mark: Watermark) -> None:
        """Add a row to the progress table; make the table first if needed. Sometimes remove rows
        whose time is over. Raises `target:progress-taken`."""
        names = naming.progress_names(self.params)
        with self._plain_session() as session:
            live = self.format.live(session, names)
            if live is not None and live.owner != progress.MARK:
                raise ReplicationError("target:progress-taken", target=".".join(names))
            target = self.format.path(names)
            own = live.uuid if live else str(uuid.uuid4())
            if live is None:
                self.format.make_namespace(session, names)
                session.sql(progress.create(target, self.params.format, own))
            session.sql(progress.insert(target, self.params, replicator, mark))
            self._reported += 1
            if self._reported % progress.COMMITS_A_TURN == 0:
                session.sql(progress.prune(target, replicator, mark.sequence))
                self.format.maintain(session, names, Token(progress.MARK, 0, 0, own))

    def forget_watermarks(self, replicator: str) -> None:
        """Remove the replicator's rows from the progress table; idempotent."""
        names = naming.progress_names(self.params)
        with self._plain_session() as session:
            live = self.format.live(session, names)
            if live is not None and live.owner == progress.MARK:
                session.sql(progress.forget(self.format.path(names), replicator))

    def drop(self, table: TargetTable) -> None:
        """Remove the table and its data if it belongs to this replicator."""
        with self._session(table) as session:
            self._views.drop(session, table)
            if self._listing is not None:
                self._listing.drop(session, table)
            self.format.drop(session, table)


def _place(table: TargetTable) -> tuple[str, int]:
    return str(table.source), table.generation


def _make_catalog_folder(params: LakehouseParams) -> None:
    """Make the folder of a SQLite catalog: SQLite makes only the file."""
    path = catalog.path(params) if params.format == "iceberg" else ""
    if path:
        folder = os.path.dirname(path)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as err:
            raise ReplicationError(
                "target:place-unusable", path=folder, reason="this program can't make it"
            ) from err


def _listing(delta: Delta) -> Listing | None:
    return Listing(delta) if delta.params.is_listed else None


def _format(params: LakehouseParams, spark: Session, folder: str) -> Iceberg | Delta:
    if params.format == "delta":
        from replicators.targets.lakehouse.delta import Delta, mute

        mute(spark)
        return Delta(params)
    return Iceberg(params, folder)
