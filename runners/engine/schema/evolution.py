"""Makes a table's copy follow a schema change, as the policy says, and writes what was done as an
event. `merge` handles the rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.filters.language import columns_of, parse
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.schema.defaults import value_of
from replicators.connectors.schema.diff import (
    ChangeKind,
    SchemaChange,
    compare,
    with_known_labels,
)
from replicators.connectors.schema.numbering import KeepsValues, changes_by_steps
from replicators.connectors.schema.policy import (
    Decision,
    SchemaPolicy,
    Verdict,
    decide,
    verdict,
)
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import MergeTarget, TargetTable
from runners.engine import failpoints
from runners.engine.errors import fail_table
from runners.engine.schema.keyless import check_schema
from runners.engine.store.protocol import Store, TableRow
from runners.engine.store.quarantine import image_names

VANISHED = frozenset({"source:table-missing", "source:table-renamed"})
"""The source no longer has the table under its name. During a copy, the log may report this of the
time before that copy."""
AGAIN_TIMES, AGAIN_SECONDS = 3, 600.0


class ResyncDue(Exception):
    """Only a fresh copy of the table helps, and the policy is to make one. `text` says why."""

    def __init__(self, table: TableId, text: str) -> None:
        super().__init__(f"{table}: {text}")
        self.table = table
        self.text = text


@dataclass(frozen=True, slots=True)
class Transition:
    """A schema and the next one, and the changes between them. Columns that are the same have the
    same numbers in both."""

    old: TableSchema
    new: TableSchema
    changes: tuple[SchemaChange, ...]


def transition(
    row: TableRow,
    old: TableSchema,
    new: TableSchema,
    columns: ColumnKnowledge = ColumnKnowledge.BY_CATALOG,
    keeps: KeepsValues | None = None,
) -> Transition:
    """The transition from the schema of a copy to one of the log or the catalog, with what follows
    from it for a copy in this mode. `columns` and `keeps` are the source's
    (`SourcePlugin.keeps_values`)."""
    changes = compare(old, new)
    if columns is ColumnKnowledge.BY_STATEMENTS:
        old, new, changes = changes_by_steps(old, new, keeps)
    return Transition(old, new, _with_rewritten(row, old, new, list(changes)))


def schema_changes(row: TableRow, old: TableSchema, new: TableSchema) -> tuple[SchemaChange, ...]:
    """What changed, with what follows from it for a copy in this mode."""
    return transition(row, old, new).changes


def _with_rewritten(
    row: TableRow, old: TableSchema, new: TableSchema, changes: list[SchemaChange]
) -> tuple[SchemaChange, ...]:
    if any(c.kind is ChangeKind.REWRITTEN for c in changes):
        return tuple(changes)
    if any(_lacks_default(c) for c in changes) or (changes and _changes_digests(row, old, new)):
        text = "rows that were there have values that the log did not carry"
        changes.append(SchemaChange(ChangeKind.REWRITTEN, text))
    elif names := _filtered_by_others(new, changes):
        text = f"the row filter's column {names[0]} is another one now"
        changes.append(SchemaChange(ChangeKind.REWRITTEN, text))
    return tuple(changes)


def _filtered_by_others(new: TableSchema, changes: Sequence[SchemaChange]) -> list[str]:
    """The row filter's columns whose names another column has now: the rows in the copy were chosen
    by the former column."""
    moves = (ChangeKind.ADDED, ChangeKind.RENAMED)
    came = {c.new.name for c in changes if c.kind in moves and c.new is not None}
    return sorted(came & columns_of(parse(new.filter))) if new.filter and came else []


def _lacks_default(change: SchemaChange) -> bool:
    """Whether a column was added whose default can't be told exactly."""
    if change.kind is not ChangeKind.ADDED or change.new is None or change.new.missing is None:
        return False
    try:
        value_of(change.new.type, change.new.missing)
    except ValueError:
        return True
    return False


def _changes_digests(row: TableRow, old: TableSchema, new: TableSchema) -> bool:
    """Whether rows of a table without a key could no longer be found: they are known by a digest of
    their values."""
    if row.mode is not Mode.MULTISET:
        return False
    known = {c.name for c in old.columns}
    if any(c.missing is not None and c.name not in known for c in new.columns):
        return True
    try:
        check_schema(old, new)
    except ReplicationError:
        return True
    return False


def decision_on(
    policy: SchemaPolicy, row: TableRow, changes: Sequence[SchemaChange], old: TableSchema
) -> Decision:
    """The decision on the changes of one table."""
    decision = decide(policy, changes)
    renames_key = any(
        c.kind is ChangeKind.RENAMED and c.old is not None and c.old.name in old.key
        for c in changes
    )
    # Another column has the followed name now.
    takes_name = policy is SchemaPolicy.IGNORE and any(
        c.kind is ChangeKind.RENAMED for c in changes
    )
    if decision.verdict is Verdict.KEEP and (renames_key or takes_name):
        return replace(decision, verdict=Verdict.STOP)
    if decision.verdict is Verdict.RESYNC and row.keeps_past:
        return replace(decision, verdict=Verdict.STOP)
    return decision


class Evolver:
    """Follows schema changes of tables, one call at a time for each table. `writer` None: the
    target is a `ChangeSink`, which finds the new schema in the changes that follow."""

    def __init__(
        self,
        writer: MergeTarget | None,
        store: Store,
        policy: SchemaPolicy,
        source: SourcePlugin | None = None,
    ) -> None:
        self._keeps_values = source.keeps_values if source is not None else None
        self._schema_at = source.schema_at if source is not None else None
        known = source.capabilities.columns if source is not None else None
        self.columns = known or ColumnKnowledge.BY_CATALOG
        self._writer = writer
        self._store = store
        self._lock = threading.Lock()
        self._asked: dict[TableId, list[float]] = {}
        self.policy = policy

    def resync(self, row: TableRow, text: str) -> None:
        """Have the table copied afresh, as the policy says, and write an event with the reason. A
        table that is being copied already is copied once more afterwards."""
        if row.is_resync_asked:
            return
        if row.is_snapshot_done:
            self._store.event("schema_resync", row.id, change=text)
        self._store.table_progress(row.id, is_resync_asked=True)

    def mends(self, row: TableRow, code: str, *, is_counted: bool = True) -> bool:
        """Whether the policy is to copy a table afresh after this fault. A table whose fault comes
        again and again is left failing."""
        is_mended = message_of(code).copy_mends
        if not is_mended or self.policy is not SchemaPolicy.EVOLVE or row.keeps_past:
            return False
        now = time.monotonic()
        with self._lock:
            asked = [t for t in self._asked.get(row.id, []) if now - t < AGAIN_SECONDS]
            if len(asked) >= AGAIN_TIMES:
                return False
            if is_counted and not row.is_resync_asked:
                asked.append(now)
            self._asked[row.id] = asked
        return True

    def mends_name(self, row: TableRow, schema: TableSchema) -> bool:
        """Whether the policy is to copy a table afresh that failed because of a column's name, now
        that the source has no such column. The log before the rename keeps the old name, so only a
        fresh copy helps."""
        is_gone = row.error_facts.get("column") not in {c.name for c in schema.columns}
        is_ours = self.policy is SchemaPolicy.EVOLVE and not row.keeps_past
        return message_of(row.error_code).is_of_name and is_gone and is_ours

    def fault(self, table: TableId, code: str, facts: Mapping[str, str]) -> None:
        """A table's log can't be decoded: the table fails until its re-sync, which the policy may
        ask for at once. During a copy, the log may report such faults of the time before, as often
        as it likes."""
        row = self._store.table(table)
        is_older = code in VANISHED and not row.is_snapshot_done
        if is_older or self.mends(row, code, is_counted=row.is_snapshot_done):
            reported = {name: value for name, value in facts.items() if name != "table"}
            self.resync(row, ReplicationError(code, table=table, **reported).message.text)
        else:
            fail_table(self._store, table, code, facts)

    def reported(
        self, schema: TableSchema, reached: Position | None, at: int
    ) -> TableSchema | None:
        """The catalog's description of a table as rows would show it at the log's position `at`.
        The log is captured up to `reached`. None where the description does not fit the log."""
        if self._schema_at is None or reached is None:
            return schema
        return self._schema_at(schema, reached, at)

    def follow(
        self, row: TableRow, table: TargetTable, new: TableSchema, *, is_look: bool = False
    ) -> None:
        """Bring the copy to the schema `new`, before rows with it come, or (`is_look`) because the
        catalog has it. Idempotent. `ResyncDue`, `source:no-columns`, or `source:schema-changed`
        where the policy stops the table."""
        if not new.columns:
            raise ReplicationError("source:no-columns", table=row.id)
        old = row.schema
        if old is None:
            raise ReplicationError("source:key-changed", table=row.id)
        if not is_look:
            new = with_known_labels(old, new)
        found = transition(row, old, new, self.columns, self._keeps_values)
        changes = (*found.changes, *self._misread(row, found.changes))
        decision = decision_on(self.policy, row, changes, old)
        if decision.verdict is Verdict.STOP:
            raise self.stopped(row, decision)
        if decision.verdict is Verdict.RESYNC:
            raise ResyncDue(row.id, decision.text)
        schema_sequence = row.schema_sequence
        if changes:
            self._apply(replace(row, schema=found.old), table, decision, found.new)
            schema_sequence = row.token_sequence
        schema = _kept_marks(old, found.new, is_newer=bool(changes) or is_look)
        if is_look and new.left_out != old.left_out:
            schema = replace(schema, left_out=new.left_out)
            self._tell_left_out(row, set(new.left_out) - set(old.left_out))
        if schema != old:
            self._store.table_progress(row.id, schema=schema, schema_sequence=schema_sequence)

    def _misread(self, row: TableRow, changes: Sequence[SchemaChange]) -> tuple[SchemaChange, ...]:
        """What follows for quarantined rows, which hold their values by the columns' names of then.
        If a followed name stood for another column, or will, a row would get that column's values,
        or lose its own."""
        moves = (ChangeKind.ADDED, ChangeKind.RENAMED)
        named = [
            c for c in changes if c.kind in moves and verdict(self.policy, c) is Verdict.FOLLOW
        ]
        if not named:
            return ()
        names = image_names(self._store.quarantined(row.id, row.generation, row.merged_sequence))
        if not names & {c.name for change in named for c in (change.old, change.new) if c}:
            return ()
        text = "quarantined rows have values under the columns' names of before"
        return (SchemaChange(ChangeKind.REWRITTEN, text),)

    def _tell_left_out(self, row: TableRow, columns: set[str]) -> None:
        if columns:
            text = "; ".join(f"column {n} added, not copied" for n in sorted(columns))
            self._store.event("schema_kept", row.id, change=text, policy=str(self.policy))

    def renamed(self, row: TableRow, called: TableId) -> None:
        """The table has another name at the source: note it, and write an event. Its copy keeps its
        name, and no row of it changes."""
        assert row.schema is not None
        text = f"table renamed from {row.schema.source_id} to {called}"
        self._store.event("schema_followed", row.id, change=text, policy=str(self.policy))
        self._store.table_progress(row.id, schema=replace(row.schema, called=called))

    def emptied(self, row: TableRow) -> None:
        """The log reported that the whole table was emptied. Its parts have other files since then;
        the next look finds these, and they mean no change."""
        schema = self._store.table(row.id).schema
        if schema is not None and schema.marks and schema.partitions:
            self._store.table_progress(row.id, schema=replace(schema, marks=()))

    def stopped(self, row: TableRow, decision: Decision) -> ReplicationError:
        """The error of a table that stops at a change until a person asks for its re-sync."""
        return ReplicationError(
            "source:schema-changed", table=row.id, change=decision.text, policy=self.policy
        )

    def _apply(
        self, row: TableRow, table: TargetTable, decision: Decision, new: TableSchema
    ) -> None:
        old = row.schema
        assert old is not None
        if self._writer is not None:
            self._change(self._writer, old, table, decision, new)
        failpoints.hit("target_evolved")
        event = "schema_followed" if decision.verdict is Verdict.FOLLOW else "schema_kept"
        self._store.event(event, row.id, change=decision.text, policy=str(self.policy))

    def _change(
        self,
        writer: MergeTarget,
        old: TableSchema,
        table: TargetTable,
        decision: Decision,
        new: TableSchema,
    ) -> None:
        """Change the target's table and its rows to fit. Messages carry their own columns."""
        if table.mode is Mode.MESSAGES:
            return
        kept = [c for c in decision.changes if verdict(self.policy, c) is Verdict.KEEP]
        if decision.verdict is Verdict.FOLLOW or self.policy is SchemaPolicy.LENIENT:
            staying = {c.old.name for c in kept if c.old is not None}
            schema = replace(old, columns=tuple(c for c in old.columns if c.name not in staying))
            writer.evolve(table, schema, new)
            for column in _filled(decision.changes):
                assert column.missing is not None
                value = value_of(column.type, column.missing)
                writer.fill_column(table, column, value)
        elif self.policy is SchemaPolicy.IGNORE:
            for change in kept:
                if change.old is not None and change.kind is not ChangeKind.RETYPED:
                    writer.fill_column(table, change.old, None)


def _filled(changes: Sequence[SchemaChange]) -> list[Column]:
    return [
        c.new
        for c in changes
        if c.kind is ChangeKind.ADDED and c.new is not None and c.new.missing is not None
    ]


def _kept_marks(old: TableSchema, new: TableSchema, *, is_newer: bool) -> TableSchema:
    """The new schema. Facts that were read from the log stay, also where an older file comes. Only
    the newest description says how rows are stored: a schema of the log may be described before a
    look into the catalog, and where nothing changed, it says nothing newer."""
    if is_newer:
        storage = new.storage or old.storage
        partitions, marks = new.partitions or old.partitions, new.marks or old.marks
    else:
        storage, partitions, marks = old.storage, old.partitions, old.marks
    return replace(
        new.bare,
        upto=max(old.upto, new.upto),
        read_upto=old.read_upto,
        storage=storage,
        partitions=partitions,
        marks=marks,
        copy_numbers=old.copy_numbers,
        called=new.called or old.called,
        left_out=old.left_out,
        member=old.member,
    )
