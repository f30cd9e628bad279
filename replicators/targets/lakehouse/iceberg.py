"""Iceberg tables: staging, publishing, tokens in snapshot summaries, maintenance. Runs SQL; reads
no rows."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array
from replicators.connectors.ownership import LiveTable
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import Frame, Row
from replicators.connectors.storage import Storage
from replicators.connectors.target import KeptVersion, TargetTable, Token
from replicators.targets.lakehouse import (
    catalog,
    comments,
    dialect,
    evolve,
    layout,
    leftovers,
    naming,
    rules,
)
from replicators.targets.lakehouse.expiry import Expiry, by_queries, current_at
from replicators.targets.lakehouse.layout import Layout
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.reading import IcebergScan
from replicators.targets.lakehouse.sessions import LentSession
from replicators.targets.lakehouse.state import GENERATION, OWNER, UUID, token_from, token_values
from replicators.targets.lakehouse.stores import Store
from replicators.targets.lakehouse.versions import Snapshots, apart_seconds, retag

SUMMARY_CONF = "spark.sql.iceberg.snapshot-property."
PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    "write.update.distribution-mode": "none",
    "write.merge.distribution-mode": "none",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    # A writer checks its size after this many rows. The default is some hundreds, which do
    # not fit in memory if rows are large.
    "write.parquet.row-group-check-min-record-count": "1",
    "write.parquet.row-group-check-max-record-count": "16",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest.min-count-to-merge": "20",
    "history.expire.min-snapshots-to-keep": "1",
}
DISTRIBUTION = tuple(name for name in PROPERTIES if name.endswith(".distribution-mode"))
_VECTORS = "spark.sql.iceberg.vectorization.enabled"
"""Vectorized reading leaks an allocator in the JVM for each file (apache/iceberg#13937). A small
table may get a merge each second, and vectorized reading saves little there."""
KEY_METRICS = "write.metadata.metrics.column."
KEY = "replicator.key"
_COMPACTION = (
    "map('min-input-files', '5', 'target-file-size-bytes', '67108864', 'min-file-size-bytes', "
    "'4194304', "
    "'max-file-size-bytes', '134217728', 'delete-ratio-threshold', '0.2', "
    "'delete-file-threshold', '2147483647', "
    "'remove-dangling-deletes', 'false')"
)
"""Small files are joined. A large file is rewritten only when a fifth of its rows is deleted."""


class Iceberg:
    """The operations of a lakehouse target on Iceberg tables. Each takes the session that it works
    in."""

    session_conf: ClassVar[dict[str, str]] = {
        "spark.sql.iceberg.data-planning-mode": "local",
        _VECTORS: "false",
    }
    large_conf: ClassVar[dict[str, str]] = {_VECTORS: "true"}

    most_keys: ClassVar[int] = 200

    def __init__(self, params: LakehouseParams, folder: str = "") -> None:
        """`folder`: where all tasks may write, for a store whose keys are lent."""
        self.params = params
        self.catalog = params.catalog_name
        self._expiry = Expiry(params)
        self._reader = catalog.Reader(params)
        self.storage = Storage(params.store)
        self.staging = Storage(Store()) if params.is_lent else self.storage
        beside = f"{params.warehouse_url}/{naming.folder(naming.STAGING_NAMESPACE)}"
        self.staging_root = folder.rstrip("/") if params.is_lent else beside
        self._chosen = rules.pairs(params.table_properties)

    def path(self, names: tuple[str, ...]) -> str:
        return dialect.path(self.parts(names))

    def parts(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The parts of a name in SQL."""
        return (self.catalog, *names)

    named = path

    def _plain(self, names: tuple[str, ...]) -> str:
        return dialect.text(self.path(names))

    def _call(
        self, session: LentSession, procedure: str, names: tuple[str, ...], **values: str
    ) -> list[Row]:
        shown = "".join(f", {k} => {v}" for k, v in values.items())
        done = session.sql(
            f"CALL {dialect.quote(self.catalog)}.system.{procedure}(table => "
            f"{self._plain(names)}{shown})"
        )
        return list(done.collect())

    def stamp(self, session: LentSession, token: Token) -> None:
        """Add the token to every commit of the session."""
        for name, value in token_values(token).items():
            session.conf.set(SUMMARY_CONF + name, value)

    def stamp_again(self, session: LentSession, token: Token) -> None:
        """Add the table's present token to every commit of the session."""
        self.stamp(session, token)

    def live(self, session: LentSession, names: tuple[str, ...]) -> LiveTable | None:
        """The table's own state; None if there is no such table. Read from its metadata file if
        this process can (some 10 ms), otherwise by three Spark queries."""
        reader = self.open_reader()
        if reader is not None:
            return catalog.live_table(reader, names)
        shown = self.properties(session, names)
        if shown is None:
            return None
        own = shown.get(UUID, "")
        current = shown.get("current-snapshot-id", "none")
        found = None if current == "none" else self._token(session, names, int(current), own)
        token, version = found or (None, "")
        return LiveTable(shown.get(OWNER, ""), own, token, version=version)

    def open_reader(self) -> Any:
        """pyiceberg's catalog if it finds a table's state soon. None otherwise, and before the
        catalog's first table."""
        return self._reader.opened()

    def scan(self, session: LentSession, names: tuple[str, ...]) -> IcebergScan | None:
        """What reads the table's present rows; None if there is no such table."""
        opened = self.open_reader() or catalog.open_catalog(self.params)
        return catalog.scan(opened, names, self.params.store.of_table(names))

    def properties(self, session: LentSession, names: tuple[str, ...]) -> Mapping[str, str] | None:
        """The table's properties; None if there is no such table. Read as in `live`."""
        reader = self.open_reader()
        if reader is not None:
            return catalog.properties(reader, names)
        if not session.catalog.tableExists(self.path(names)):
            return None
        rows = session.sql(f"SHOW TBLPROPERTIES {self.path(names)}").collect()
        return {r[0]: r[1] for r in rows}

    def _token(
        self, session: LentSession, names: tuple[str, ...], current: int, own: str
    ) -> tuple[Token, str] | None:
        rows = session.sql(dialect.snapshots(self.path((*names, "snapshots")))).collect()
        known = {r[0]: (r[1], r[2]) for r in rows}
        at: int | None = current
        while at in known:
            version, (at, summary) = at, known[at]
            token = token_from(summary or {}, own)
            if token is not None:
                return token, str(version)
        return None

    def _create(
        self, session: LentSession, names: tuple[str, str], table: TargetTable, schema: TableSchema
    ) -> None:
        own = str(uuid.uuid4())
        marks = {
            OWNER: table.replicator,
            UUID: own,
            GENERATION: str(table.generation),
            KEY: json.dumps(_sorting(schema)),
            evolve.ORDINALS: evolve.ordinals(schema),
        }
        metrics = {KEY_METRICS + k: "full" for k in schema.key}
        place = self.location(table, own)
        self.make_namespace(session, names)
        values = {**PROPERTIES, **self._chosen, **marks, **metrics}
        asked = layout.layout_of(self.params, schema)
        if asked:
            values |= {layout.MARK: asked.to_text()}
        made = comments.wanted(self.params, schema)
        text = dialect.create(
            self.path(names),
            made,
            provider="iceberg",
            location=place,
            values=values,
            partition=layout.partitioned_by(asked),
        )
        session.sql(text)
        self._lay_out(session, self.path(names), replace(asked, order=()), asked)

    def _lay_out(self, session: LentSession, target: str, before: Layout, after: Layout) -> None:
        """Give a table another layout. Rows of a divided table go to tasks by partition: otherwise
        each task would write a file into each."""
        for statement in layout.changes(target, before, after):
            session.sql(statement)
        if before or after:
            how = "hash" if after.partition else "none"
            session.sql(dialect.set_properties(target, dict.fromkeys(DISTRIBUTION, how)))

    def location(self, table: TargetTable, own: str) -> str:
        """The folder for the files of the table with this UUID."""
        folders = (naming.folder(n) for n in self.live_names(table))
        return "/".join((self.params.warehouse_url, *folders, own[:8]))

    def _view_folder(self, place: tuple[str, str]) -> str:
        return "/".join((self.params.warehouse_url, *map(naming.folder, place), "view"))

    def view_values(self, place: tuple[str, str]) -> dict[str, str]:
        """The properties of a view that say where its files lie."""
        return {"location": self._view_folder(place)}

    def clear_view(self, place: tuple[str, str]) -> None:
        """Remove what a dropped view left. No catalog lends keys for it."""
        if not self.params.is_lent:
            self.storage.remove_folder(self._view_folder(place))

    def make_namespace(self, session: LentSession, names: tuple[str, ...]) -> None:
        """Make the namespace of these names if it does not exist."""
        reader = self.open_reader()
        if reader is None or not reader.namespace_exists(names[:1]):
            session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.path(names[:1])}")

    def live_names(self, table: TargetTable) -> tuple[str, str]:
        return naming.names(self.params, table.source)

    def _staged(self, table: TargetTable) -> tuple[str, str]:
        mark = naming.staging_mark(self.params, table.replicator)
        return naming.staging_names(self.live_names(table), mark, table.generation)

    def _staging(self, session: LentSession, table: TargetTable) -> tuple[str, tuple[str, str]]:
        """The staging place of a generation: ('table', names), or ('branch', names) if the table is
        live."""
        names = self.live_names(table)
        if self.properties(session, names) is None:
            return "table", self._staged(table)
        return "branch", names

    def begin(self, session: LentSession, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty staging table, or an empty staging branch if the table is live. Raises
        `target:column-reserved`."""
        naming.refuse_reserved(schema)
        names = self.live_names(table)
        live = self.live(session, names)
        if live is not None and live.owner != table.replicator:
            raise ReplicationError("target:table-taken", table=table.source, target=".".join(names))
        leftovers.clear(self, session, table, is_alive=live is not None)
        if live is None:
            self._create(session, self._staged(table), table, schema)
            return
        self._change(session, names, self.properties(session, names) or {}, schema, is_start=True)
        branch = dialect.quote(naming.branch(table.generation))
        session.sql(f"ALTER TABLE {self.path(names)} CREATE OR REPLACE BRANCH {branch}")
        emptied = self.path((*names, f"branch_{naming.branch(table.generation)}"))
        session.sql(dialect.delete_all(emptied))

    def staging_path(self, session: LentSession, table: TargetTable) -> str:
        """The SQL identifier for appending staged rows."""
        kind, names = self._staging(session, table)
        if kind == "table":
            return self.path(names)
        return self.path((*names, f"branch_{naming.branch(table.generation)}"))

    def version_at(
        self, session: LentSession, table: TargetTable, own: str, sequence: int
    ) -> KeptVersion | None:
        """See `MergeTarget.version_at`."""
        owner = Token(table.replicator, table.generation, sequence, own)
        return self.snapshots(session, self.live_names(table)).at(owner, sequence)

    def snapshots(self, session: LentSession, names: tuple[str, ...]) -> Snapshots:
        """The snapshots that the table still has. Read as in `live`."""
        reader = self.open_reader()
        if reader is not None:
            return catalog.snapshots(reader, names)
        return by_queries(session, *(self.path((*names, part)) for part in ("snapshots", "refs")))

    def begin_rewind(self, session: LentSession, table: TargetTable, version: str) -> None:
        """Make a branch that begins at an older snapshot. No rows are copied."""
        target = self.path(self.live_names(table))
        older = session.sql(f"SELECT * FROM {target} VERSION AS OF {int(version)}")  # noqa: S608
        if comments.without(older.schema) != comments.without(session.table(target).schema):
            raise ReplicationError("target:rewind-schema", table=table.source)
        branch = dialect.quote(naming.branch(table.generation))
        session.sql(
            f"ALTER TABLE {target} CREATE OR REPLACE BRANCH {branch} AS OF VERSION {int(version)}"
        )

    def abandon_rewind(self, session: LentSession, table: TargetTable) -> None:
        """Remove the branch."""
        target = self.path(self.live_names(table))
        branch = dialect.quote(naming.branch(table.generation))
        session.sql(f"ALTER TABLE {target} DROP BRANCH IF EXISTS {branch}")

    def files_folder(self, session: LentSession, table: TargetTable) -> str:
        """The folder for files of the staging place: inside the staging table, or beside a live
        table. Where the store's keys are lent, tasks write elsewhere."""
        kind, names = self._staging(session, table)
        is_within = kind == "table" and not self.params.is_lent
        own = (self.properties(session, names) or {}).get(UUID, "") if is_within else ""
        if own:
            return f"{self.location(table, own)}/data"
        return f"{self.staging_root}/{naming.folder(self._staged(table)[1])}"

    def add_files(self, session: LentSession, table: TargetTable, folder: str) -> bool:
        """Add a folder's files to the staging table as data files. Returns False if they must be
        copied, as onto a branch, to be divided or sorted, or from another store. The files are
        new and the table is ours, so Iceberg does not search for duplicates."""
        if self.params.is_lent:
            return False
        kind, names = self._staging(session, table)
        if kind != "table" or layout.MARK in (self.properties(session, names) or {}):
            return False
        source = dialect.text(f"`parquet`.{dialect.quote(folder)}")
        self._call(session, "add_files", names, source_table=source, check_duplicate_files="false")
        return True

    def append_frame(self, frame: Frame, target: str) -> None:
        """Append rows to a staging place. The frame's own session writes them; they need no
        token."""
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
        """One commit adds the token to the staged rows; one catalog change makes them the live
        table. A rewind keeps the live table's columns, also those that the source no longer has."""
        kind, names = self._staging(session, table)
        shown = self.properties(session, names)
        if shown is None:
            raise ReplicationError("target:table-missing", table=table.source)
        token = Token(table.replicator, table.generation, sequence, shown[UUID])
        self.stamp(session, token)
        target = self.staging_path(session, table)
        session.sql(dialect.touch(target))
        if kind == "table":
            live = self.live_names(table)
            self.make_namespace(session, live)
            session.sql(f"ALTER TABLE {self.path(names)} RENAME TO {dialect.path(live)}")
            return shown[UUID]
        branch = naming.branch(table.generation)
        self._call(session, "set_current_snapshot", names, ref=dialect.text(branch))
        session.sql(f"ALTER TABLE {self.path(names)} DROP BRANCH IF EXISTS {dialect.quote(branch)}")
        if not is_rewind:
            columns = frozenset(f.name for f in session.table(self.path(names)).schema.fields)
            self._change(session, names, shown, schema, drops=columns)
        return shown[UUID]

    def evolve(
        self, session: LentSession, table: TargetTable, old: TableSchema, new: TableSchema
    ) -> list[str]:
        """Change the live table's columns. Returns the changes as text. Raises
        `target:column-reserved`."""
        naming.refuse_reserved(new)
        names = self.live_names(table)
        shown = self.properties(session, names)
        if shown is None:
            raise ReplicationError("target:table-missing", table=table.source)
        drops = frozenset(c.name for c in old.columns)
        return self._change(session, names, shown, new, drops=drops)

    def _change(
        self,
        session: LentSession,
        names: tuple[str, str],
        shown: Mapping[str, str],
        new: TableSchema,
        *,
        drops: frozenset[str] = frozenset(),
        is_start: bool = False,
    ) -> list[str]:
        target = self.path(names)
        types = {f.name: f.dataType.simpleString() for f in session.table(target).schema.fields}
        reported = json.loads(shown.get(evolve.ORDINALS, "{}"))
        known = Layout.from_text(shown.get(layout.MARK, ""))
        drops -= known.columns
        changes = evolve.plan(target, types, reported, new, drops=drops, is_start=is_start)
        for change in changes:
            session.sql(change.statement)
        values = dict(self._chosen) if is_start else {}
        numbers = {} if is_start and new.copy_numbers else reported
        if (named := known.following(numbers, new)) != known:
            known, values[layout.MARK] = named, named.to_text()
        if is_start and (asked := layout.layout_of(self.params, new)) != replace(known, former=()):
            self._lay_out(session, target, known, asked)
            values[layout.MARK] = asked.after(known).to_text()
        if json.loads(shown.get(KEY, "[]")) != (key := _sorting(new)):
            values[KEY] = json.dumps(key)
        if any(shown.get(n) != v for n, v in values.items()):
            session.sql(dialect.set_properties(target, values))
        self._comment(session, target, new, shown.get(dialect.COMMENT, ""))
        return [c.text for c in changes if c.text]

    def _comment(self, session: LentSession, target: str, new: TableSchema, about: str) -> None:
        made = comments.wanted(self.params, new)
        fields = session.table(target).schema.fields
        for statement in comments.changes(target, made, fields, about):
            session.sql(statement)

    def drop(self, session: LentSession, table: TargetTable) -> None:
        """Remove the table, its files and its staging places."""
        names = self.live_names(table)
        leftovers.clear(self, session, table, is_alive=False)
        shown = self.properties(session, names)
        if shown is not None and shown.get(OWNER) == table.replicator:
            leftovers.purge(self, session, table, names)

    def maintain(
        self, session: LentSession, names: tuple[str, ...], token: Token, keep_seconds: float = 0.0
    ) -> dict[str, Any]:
        """Compact small files and files with many deleted rows, sorted by key. Then write the token
        again. Sometimes expire versions older than the history. Manifests need no work: each commit
        joins small ones and drops old metadata files."""
        rewritten = self._call(
            session, "rewrite_data_files", names, options=_COMPACTION, **self._order(session, names)
        )
        self.stamp(session, token)
        session.sql(dialect.touch(self.path(names)))
        facts = rewritten[0].asDict()
        done = {n: facts[n] for n in ("rewritten_data_files_count", "added_data_files_count")}
        if self._expiry.is_due(names):
            before = self._oldest_shown(session, names)
            self._retag(session, names, token, before, keep_seconds)
            expired = self._call(
                session,
                "expire_snapshots",
                names,
                older_than=f"TIMESTAMP '{before.isoformat(' ', 'milliseconds')}'",
                retain_last="1",
            )
            done["expired_data_files_count"] = expired[0]["deleted_data_files_count"]
        return done

    def _retag(
        self,
        session: LentSession,
        names: tuple[str, ...],
        owner: Token,
        ends_at: datetime,
        keep_seconds: float,
    ) -> None:
        """Tag single versions for rewinds before the others are removed (docs/decisions/0022)."""
        apart = apart_seconds(self.params, keep_seconds)
        change = retag(
            self.snapshots(session, names),
            owner,
            ends_at=ends_at.timestamp(),
            since=time.time() - keep_seconds,
            apart=apart,
        )
        target, minutes = self.path(names), math.ceil(2 * (keep_seconds + apart) / 60)
        for name, version in change.made.items():
            session.sql(dialect.create_tag(target, name, version, minutes))
        for name in change.dropped:
            session.sql(dialect.drop_tag(target, name))

    def _oldest_shown(self, session: LentSession, names: tuple[str, ...]) -> datetime:
        """The commit time of the version that was current when the history began. That version and
        all later ones stay, however old it is."""
        before = datetime.now(UTC) - timedelta(minutes=self.params.history_minutes)
        history, snapshots = (self.path((*names, part)) for part in ("history", "snapshots"))
        found = session.sql(current_at(history, snapshots, before)).collect()
        return min(before, datetime.fromtimestamp(found[0][0] / 1e6, UTC)) if found else before

    def _order(self, session: LentSession, names: tuple[str, ...]) -> dict[str, str]:
        """The sort order for compaction: the chosen one, or the key that the table was made
        with."""
        shown = self.properties(session, names) or {}
        chosen = Layout.from_text(shown.get(layout.MARK, "")).order
        order = chosen or tuple(map(layout.Order, json.loads(shown.get(KEY, "[]"))))
        fields = session.table(self.path(names)).schema.fields if chosen else []
        columns = {f.name for f in fields}
        if chosen and not columns.issuperset(o.column for o in chosen):
            return {}
        return (
            {"strategy": "'sort'", "sort_order": dialect.text(layout.order_sql(order))}
            if order
            else {}
        )


def _sorting(schema: TableSchema) -> list[str]:
    """The sort columns for compaction: the key without lists, since Iceberg can't sort by a
    list."""
    return [n for n in schema.key if not isinstance(schema.column(n).type, Array)]
