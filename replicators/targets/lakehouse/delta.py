"""Delta tables in folders: staging, publishing, tokens as application transactions, maintenance.
Runs SQL; reads no rows."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, ClassVar

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.ownership import LiveTable
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import Frame
from replicators.connectors.storage import Storage
from replicators.connectors.target import KeptVersion, TargetTable, Token
from replicators.targets.lakehouse import comments, dialect, evolve, layout, naming, rules, vacuum
from replicators.targets.lakehouse.expiry import Expiry, retention
from replicators.targets.lakehouse.held import VIEW
from replicators.targets.lakehouse.leftovers import CLAIM, FILES, folders_of
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.reading import DeltaScan
from replicators.targets.lakehouse.sessions import LentSession, lent_conf
from replicators.targets.lakehouse.state import GENERATION, OWNER, UUID
from replicators.targets.lakehouse.versions import (
    apart_seconds,
    marked_at,
    read_marks,
    remark,
    written_marks,
)

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.checkpointInterval": "20",
}
MARKS = "replicator.rewind"
"""The property that names the versions kept for rewinds. A replaced table has none."""
_LEAST_HOURS = 0.1
_WHOLE_FILES = "128m"
"""Stops Spark from joining several staged files, which are clustered by key, into one."""
MOMENTS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""Other readers read Spark's default (INT96) as nanoseconds, which reach from 1677 to 2262 only."""
_FEW_COMMITS = 500
_COMPACTION = {
    "spark.databricks.delta.optimize.minFileSize": str(4 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(64 << 20),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}
"""Small files are joined. A large file is rewritten only when a fifth of its rows is deleted.
VACUUM lists folders in four tasks: by default it starts ten thousand, even for few files."""

_LOUD = "org.apache.spark.sql.delta.DeltaParquetFileFormat"


def mute(spark: Any) -> None:
    """Hide a line in the JVM's output. Delta logs it as an error at each read of a table with
    deletion vectors: it can't push down its own condition on deleted rows. This costs nothing."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(_LOUD, log4j.Level.OFF)


class Delta:
    """The operations of a lakehouse target on Delta tables, which are identified by their folders.
    Each operation takes the session that it works in.

    The token is Delta's own application transaction. Its application id names replicator, table and
    generation; its version is the sequence. It is part of the table's state, so compaction and log
    clean-up keep it.
    """

    session_conf: ClassVar[dict[str, str]] = {
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "true",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
        "spark.databricks.delta.merge.materializeSource": "none",
        **MOMENTS,
    }

    large_conf: ClassVar[dict[str, str]] = {}
    most_keys: ClassVar[int] = 1000

    def __init__(self, params: LakehouseParams) -> None:
        self.params = params
        self._expiry = Expiry(params)
        chosen = rules.pairs(params.table_properties)
        self._properties = {**PROPERTIES, **chosen, **retention(params)}
        self.storage = Storage(params.store)
        self.staging = self.storage
        self._files: dict[tuple[str, str], frozenset[str]] = {}

    def folder(self, names: tuple[str, ...]) -> str:
        """The table's folder."""
        return "/".join((self.params.warehouse_url, *(naming.folder(n) for n in names)))

    def path(self, names: tuple[str, ...]) -> str:
        """The table's identifier in SQL."""
        return f"delta.{dialect.quote(self.folder(names))}"

    def parts(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The parts of a name in Spark's own catalog."""
        return ("spark_catalog", *names)

    def named(self, names: tuple[str, ...]) -> str:
        """A name in Spark's own catalog."""
        return dialect.path(self.parts(names))

    def open_reader(self) -> None:
        """No client of a catalog is kept open."""

    def properties(self, session: LentSession, names: tuple[str, ...]) -> dict[str, str] | None:
        """The table's properties; None if there is no such table."""
        opened = self._open(names)
        return None if opened is None else dict(opened.metadata().configuration)

    def view_values(self, place: tuple[str, str]) -> dict[str, str]:
        """Nothing: a view is an entry of the metastore alone."""
        return {}

    def clear_view(self, place: tuple[str, str]) -> None:
        """Nothing to do: a view has no files."""

    def stamp(self, session: LentSession, token: Token) -> None:
        """Add the token to the session's next commit."""
        session.conf.set("spark.databricks.delta.write.txnAppId", _application(token))
        session.conf.set("spark.databricks.delta.write.txnVersion", str(token.sequence))

    def stamp_again(self, session: LentSession, token: Token) -> None:
        """Nothing to do: the table's state keeps its token. Delta would skip a commit whose token
        it has already."""

    def _open(self, names: tuple[str, ...]) -> Any:
        from deltalake import DeltaTable

        url = self.folder(names)
        options = self.params.store.delta_options()
        if not DeltaTable.is_deltatable(url, options):
            return None
        return DeltaTable(url, storage_options=options, without_files=True)

    def _opened(self, names: tuple[str, ...], version: int) -> Any:
        from deltalake import DeltaTable

        url = self.folder(names)
        options = self.params.store.delta_options()
        return DeltaTable(url, version=version, storage_options=options, without_files=True)

    def scan(self, session: LentSession, names: tuple[str, ...]) -> DeltaScan | None:
        """What reads the table's present rows; None if there is no such table."""
        opened = self._open(names)
        url = self.folder(names)
        return DeltaScan(url, opened.version(), self.params.store) if opened else None

    def live(self, session: LentSession, names: tuple[str, ...]) -> LiveTable | None:
        """The table's own state; None if there is no such table."""
        table = self._open(names)
        if table is None:
            return None
        marks = table.metadata().configuration
        owner, own = marks.get(OWNER, ""), marks.get(UUID, "")
        token = Token(owner, int(marks.get(GENERATION, 0)), 0, own)
        sequence = table.transaction_version(_application(token)) if owner else None
        found = None if sequence is None else Token(owner, token.generation, sequence, own)
        return LiveTable(owner, own, found, version=str(table.version()))

    def make_namespace(self, session: LentSession, names: tuple[str, ...]) -> None:
        """Nothing to do: folders need no namespace."""

    def live_names(self, table: TargetTable) -> tuple[str, str]:
        """Namespace and name of the live table."""
        return naming.names(self.params, table.source)

    def _staged(self, table: TargetTable) -> tuple[str, str]:
        return naming.staging_names(self.live_names(table), table.replicator, table.generation)

    def begin(self, session: LentSession, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty staging table. First remove what interrupted copies of this table left."""
        names = self.live_names(table)
        live = self.live(session, names)
        self._clear(table, is_alive=live is not None)
        if (live and live.owner != table.replicator) or (
            live is None and self.storage.has_folder(self.folder(names))
        ):
            raise ReplicationError("target:table-taken", table=table.source, target=".".join(names))
        staged = self._staged(table)
        text = dialect.create(
            self.path(staged),
            comments.wanted(self.params, schema),
            provider="delta",
            location="",
            values=self._properties,
            partition=self._partition(schema),
        )
        session.sql(text)

    def _clear(self, table: TargetTable, *, is_alive: bool) -> None:
        """Remove everything that our copies of the table staged, in every generation. Also remove
        an incomplete table whose first publication was interrupted."""
        names = self.live_names(table)
        root = self.folder((naming.STAGING_NAMESPACE,))
        found = folders_of(self.storage.folders(root), names, table.replicator)
        if not is_alive and any(one.endswith(CLAIM) for one in found):
            self.storage.remove_folder(self.folder(names))
        for one in sorted(found, key=lambda name: name.endswith(CLAIM)):
            self.storage.remove_folder(f"{root}/{one}")

    def _claim(self, table: TargetTable) -> None:
        """Claim the live table's folder before its first commit. Remove what our own interrupted
        claim left there. Raises `target:table-taken` if something else is there."""
        folder = self.folder(names := self.live_names(table))
        claim = self.folder(self._staged(table)) + CLAIM
        if self.storage.has_folder(folder):
            if not self.storage.has_folder(claim):
                target = ".".join(names)
                raise ReplicationError("target:table-taken", table=table.source, target=target)
            self.storage.remove_folder(folder)
        self.storage.make_folder(claim)

    def staging_path(self, session: LentSession, table: TargetTable) -> str:
        """The SQL identifier for appending staged rows."""
        return self.path(self._staged(table))

    def version_at(
        self, session: LentSession, table: TargetTable, own: str, sequence: int
    ) -> KeptVersion | None:
        """See `MergeTarget.version_at`."""
        names = self.live_names(table)
        newest = self._open(names)
        if newest is None:
            return None
        application = _application(Token(table.replicator, table.generation, 0, own))
        found = self._shown_at(names, newest, application, sequence)
        if found is not None and found.sequence <= sequence:
            return found
        marks = self._marks(names, newest, application)
        return marked_at(marks, sequence) or found

    def _shown_at(
        self, names: tuple[str, ...], newest: Any, application: str, sequence: int
    ) -> KeptVersion | None:
        """As `version_at`, for versions within the history. Sequences grow with versions, so only
        few versions are opened."""
        times = self._times(newest)
        first = min(times)

        def token(version: int) -> int | None:
            return self._sequence(names, version, application)

        low, high = first, newest.version()
        while low < high:
            middle = (low + high + 1) // 2
            found = token(middle)
            is_past = found is not None and found > sequence
            low, high = (low, middle - 1) if is_past else (middle, high)
        while low <= newest.version() and token(low) is None:
            low += 1
        reached = token(low)
        return None if reached is None else KeptVersion(str(low), reached, times.get(low, 0.0))

    def _sequence(self, names: tuple[str, ...], version: int, application: str) -> int | None:
        """The sequence in a version's token. None if it has none, or if it can't be opened because
        its log is gone. Raises OSError if the storage is away: then this is not known, and nothing
        that is kept may be removed."""
        from deltalake.exceptions import DeltaError

        try:
            opened = self._opened(names, version)
        except DeltaError:
            return None
        found = opened.transaction_version(application)
        return None if found is None else int(found)

    def _marks(
        self, names: tuple[str, ...], newest: Any, application: str
    ) -> tuple[KeptVersion, ...]:
        """The kept versions beyond the history that can still be opened."""
        marks = read_marks(newest.metadata().configuration.get(MARKS, ""))
        return tuple(
            m for m in marks if self._sequence(names, int(m.version), application) == m.sequence
        )

    def _times(self, newest: Any) -> dict[int, float]:
        """The commit times of all versions since the history began, and of the one that was current
        then. Files of older versions may be gone."""
        since = time.time() - 60 * self.params.history_minutes
        limit = _FEW_COMMITS
        while True:
            reported = newest.history(limit)
            times = {e["version"]: e["timestamp"] / 1000 for e in reported}
            before = [v for v, at in times.items() if at <= since]
            if before or len(reported) < limit:
                first = max(before, default=min(times))
                return {v: at for v, at in times.items() if v >= first}
            limit *= 4

    def begin_rewind(self, session: LentSession, table: TargetTable, version: str) -> None:
        """Make a staging table with the rows of an older version."""
        live = self.path(self.live_names(table))
        older = f"{live} VERSION AS OF {int(version)}"
        then = session.sql(f"SELECT * FROM {older}").schema  # noqa: S608 - a quoted name
        if comments.without(then) != comments.without(session.table(live).schema):
            raise ReplicationError("target:rewind-schema", table=table.source)
        staged = self._staged(table)
        self.storage.remove_folder(self.folder(staged))
        partition = self._kept_partition(self.live_names(table))
        session.sql(dialect.replace_table(self.path(staged), older, self._properties, partition))

    def abandon_rewind(self, session: LentSession, table: TargetTable) -> None:
        """Remove the staging table."""
        self.storage.remove_folder(self.folder(self._staged(table)))

    def files_folder(self, session: LentSession, table: TargetTable) -> str:
        """A folder for files that are then copied into the staging table."""
        return self.folder(self._staged(table)) + FILES

    def add_files(self, session: LentSession, table: TargetTable, folder: str) -> bool:
        """False: Delta can't add existing files."""
        return False

    def append_frame(self, frame: Frame, target: str) -> None:
        """Append rows to a staging place. The frame's own session writes them; they need no
        token."""
        values = {"spark.sql.files.openCostInBytes": _WHOLE_FILES, **MOMENTS}
        with lent_conf(frame.sparkSession.conf, values):
            frame.writeTo(target).append()

    def publish(
        self,
        session: LentSession,
        table: TargetTable,
        schema: TableSchema,
        sequence: int,
        *,
        is_rewind: bool = False,
    ) -> str:
        """Publish by one replacing commit: schema, rows, marks and token together. A rewound table
        keeps its known column numbers."""
        names = self.live_names(table)
        live = self.live(session, names)
        if live is None:
            self._claim(table)
        own = live.uuid if live else str(uuid.uuid4())
        token = Token(table.replicator, table.generation, sequence, own)
        marks = {OWNER: table.replicator, UUID: own, GENERATION: str(table.generation)}
        reported = self._reported(names) if is_rewind else evolve.ordinals(schema)
        values = {**self._properties, **marks, evolve.ORDINALS: reported}
        if viewed := (self.properties(session, names) or {}).get(VIEW):
            values[VIEW] = viewed
        self.stamp(session, token)
        session.conf.set("spark.sql.files.openCostInBytes", _WHOLE_FILES)
        partition = self._kept_partition(names) if is_rewind else self._partition(schema)
        staged = self.path(self._staged(table))
        session.sql(dialect.replace_table(self.path(names), staged, values, partition))
        self._comment(session, names, schema)
        self._clear(table, is_alive=True)
        return own

    def _partition(self, schema: TableSchema) -> str:
        return layout.partitioned_by(layout.layout_of(self.params, schema))

    def _kept_partition(self, names: tuple[str, ...]) -> str:
        """The clause of the live table's own partition."""
        opened = self._open(names)
        columns = opened.metadata().partition_columns if opened else []
        return layout.partitioned_by(layout.Layout(tuple(map(layout.Field, columns))))

    def _comment(self, session: LentSession, names: tuple[str, ...], new: TableSchema) -> None:
        """Write the comments in commits of their own: a replaced table has none."""
        made = comments.wanted(self.params, new)
        if not (made.comment or any(c.comment for c in made.supported)):
            return
        target, opened = self.path(names), self._open(names)
        about = (opened.metadata().description or "") if opened else ""
        fields = session.table(target).schema.fields
        for statement in comments.changes(target, made, fields, about):
            session.sql(statement)

    def _reported(self, names: tuple[str, ...]) -> str:
        """The source's numbers of the live table's columns."""
        opened = self._open(names)
        return str(opened.metadata().configuration.get(evolve.ORDINALS, "{}")) if opened else "{}"

    def evolve(
        self, session: LentSession, table: TargetTable, old: TableSchema, new: TableSchema
    ) -> list[str]:
        """Change the live table's columns. Returns the changes as text."""
        names = self.live_names(table)
        if self._open(names) is None:
            raise ReplicationError("target:table-missing", table=table.source)
        known = json.loads(self._reported(names))
        target = self.path(names)
        types = {f.name: f.dataType.simpleString() for f in session.table(target).schema.fields}
        opened = self._open(names)
        divided = frozenset(opened.metadata().partition_columns if opened else ())
        drops = frozenset(c.name for c in old.columns) - divided
        changes = evolve.plan(target, types, known, new, drops=drops, widens=False)
        for change in changes:
            session.sql(change.statement)
        self._comment(session, names, new)
        return [c.text for c in changes if c.text]

    def drop(self, session: LentSession, table: TargetTable) -> None:
        """Remove the table and its staging folders."""
        names = self.live_names(table)
        live = self.live(session, names)
        self._clear(table, is_alive=live is not None)
        if live and live.owner == table.replicator:
            self.storage.remove_folder(self.folder(names))

    def maintain(
        self, session: LentSession, names: tuple[str, ...], token: Token, keep_seconds: float = 0.0
    ) -> dict[str, Any]:
        """Compact small files and files with many deleted rows; remove files older than the
        history. The log is kept as long as the history."""
        target = self.path(names)
        for name, value in _COMPACTION.items():
            session.conf.set(name, value)
        done = session.sql(f"OPTIMIZE {target}").collect()
        if self._expiry.is_due(names):
            hours = max(self.params.history_minutes / 60, _LEAST_HOURS)
            marks = self._remark(session, names, token, keep_seconds)
            spared = self._spared(session, names, marks)
            vacuum.vacuum(session, self.storage, self.folder(names), hours, spared)
        metrics = done[0]["metrics"] if done else None
        return (
            {"files_added": metrics["numFilesAdded"], "files_removed": metrics["numFilesRemoved"]}
            if metrics
            else {}
        )

    def _remark(
        self, session: LentSession, names: tuple[str, ...], token: Token, keep_seconds: float
    ) -> tuple[KeptVersion, ...]:
        """Choose the versions kept for rewinds beyond the history (docs/decisions/0022), and record
        them in the table. The log is kept as long. Both times may have changed since the table was
        made."""
        newest = self._open(names)
        if newest is None:
            return ()
        known = newest.metadata().configuration
        apart = apart_seconds(self.params, keep_seconds) if vacuum.can_spare(session.spark) else 0.0
        application = _application(token)
        present = newest.history(1)[0]
        marks = remark(
            self._marks(names, newest, application),
            KeptVersion(str(present["version"]), token.sequence, present["timestamp"] / 1000),
            lambda: self._shown_at(names, newest, application, 0),
            since=time.time() - keep_seconds,
            apart=apart,
        )
        wanted = retention(self.params, keep_seconds + apart if apart else 0.0)
        if marks or MARKS in known:
            wanted[MARKS] = written_marks(marks)
        if any(known.get(n) != v for n, v in wanted.items()):
            session.sql(dialect.set_properties(self.path(names), wanted))
        return marks

    def _spared(
        self, session: LentSession, names: tuple[str, ...], marks: tuple[KeptVersion, ...]
    ) -> frozenset[str]:
        """The files of the kept versions. A process opens each version once."""
        folder = self.folder(names)
        wanted = {(folder, m.version) for m in marks}
        for known in [k for k in self._files if k[0] == folder and k not in wanted]:
            del self._files[known]
        for place in wanted - self._files.keys():
            self._files[place] = vacuum.files_of(session.spark, folder, int(place[1]))
        return frozenset().union(*(self._files[place] for place in wanted))


def _application(token: Token) -> str:
    return f"{token.replicator}/{token.table_uuid}/{token.generation}"
