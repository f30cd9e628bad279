"""What a look into the source's catalog means for each table: a fault, a fresh copy, or a schema to
follow. This module decides; the tables' jobs act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.diff import ChangeKind
from replicators.connectors.schema.policy import Verdict
from runners.engine.schema.evolution import VANISHED, Evolver, decision_on, schema_changes
from runners.engine.schema.selection import followed
from runners.engine.schema.watch import Look
from runners.engine.store.protocol import TableRow, TableState

UNSENT = frozenset({ChangeKind.TABLE_REPLACED, ChangeKind.REPLACED, ChangeKind.PARTITIONS_CHANGED})
"""Changes that no message of the log reports: there is nothing to wait for."""
REFUSED = "source:partition-identity"


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """A schema drift is one of four things: an `error` of the table (`is_gone`: it vanished;
    `is_refused`: it must leave the stream first); `resync`: why only a fresh copy helps; `called`:
    its present name at the source; `schema`: the schema that its copy is to have. With a
    `position`, it counts once everything of the table before that position is merged."""

    error: ReplicationError | None = None
    schema: TableSchema | None = None
    position: int = 0
    called: TableId | None = None
    resync: str = ""
    is_gone: bool = False
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """What looks said of a table and its copy (`schema` None: the table is absent), and the log
    position at the end of the first of the looks that said the same."""

    schema: TableSchema | None
    copy: tuple[TableSchema | None, int]
    position: int


class SchemaDrifts:
    """Keeps the last look, and gives each table's drift once. `is_done`: whether everything of a
    table up to a place of the log is decoded and merged. What the log may report better is not
    reported before that. Looks that say the same do not start the wait anew."""

    def __init__(self, evolver: Evolver, is_done: Callable[[TableRow, int], bool]) -> None:
        self._evolver = evolver
        self._by_statements = evolver.columns is ColumnKnowledge.BY_STATEMENTS
        self._is_done = is_done
        self._look = Look({})
        self._left: set[TableId] = set()
        self._seen: dict[TableId, _Seen] = {}

    def see(self, look: Look) -> None:
        """A new look."""
        self._look = look
        self._left = set(look.schemas) | set(look.renamed) | look.missed
        before, self._seen = self._seen, {}
        for table in self._left & set(look.known):
            row = look.known[table]
            now = _Seen(look.schemas.get(table), (row.schema, row.generation), look.position)
            then = before.get(table)
            is_same = then is not None and (then.schema, then.copy) == (now.schema, now.copy)
            self._seen[table] = then if then is not None and is_same else now

    def tables(self) -> set[TableId]:
        """The tables whose drift was not read since the last look."""
        return self._left

    def of(self, row: TableRow) -> SchemaDrift | None:
        """The drift of a table by the last look. None where nothing is to do, or it was given
        before."""
        if row.id not in self._left or row.schema is None or not row.is_snapshot_done:
            return None
        found = self._drift(row, row.schema) if self._look.is_of(row) else None
        if found is not None and found.position and not self._is_done(row, found.position):
            return None
        self._left.discard(row.id)
        return found

    def _drift(self, row: TableRow, schema: TableSchema) -> SchemaDrift | None:
        if row.state is TableState.FAILING:
            return self._of_failing(row)
        if row.id in self._look.renamed:
            return _stops(row, "source:table-renamed", now=str(self._look.renamed[row.id]))
        if row.id not in self._look.schemas:
            return self._of_missing(row)
        if row.id in self._look.unreadable:
            err = ReplicationError("source:select-revoked", table=row.id)
            return SchemaDrift(err, is_refused=True)
        if row.id in self._look.refused:
            statement = self._look.refused[row.id]
            err = ReplicationError(REFUSED, table=row.id, statement=statement)
            return SchemaDrift(err, is_refused=True)
        if row.id in self._look.left:
            return _stops(row, "source:table-unpublished")
        return self._of_schema(row, schema)

    def _of_missing(self, row: TableRow) -> SchemaDrift:
        """The drift of an absent table. A log that reports columns also reports what became of the
        table, at its place in the log: another name, or another table."""
        position = self._seen[row.id].position if self._by_statements else 0
        err = ReplicationError("source:table-missing", table=row.id)
        return SchemaDrift(err, position=position, is_gone=True)

    def _of_failing(self, row: TableRow) -> SchemaDrift | None:
        """The drift of a failing table. A table that was absent and is there again lacks the
        changes in between. A table that the log reported dropped is gone. A look from before the
        fault says nothing of it."""
        then = self._look.known[row.id]
        if (then.state, then.error_code) != (row.state, row.error_code):
            return None
        if row.id not in self._look.schemas:
            is_missing = row.error_code == "source:table-missing"
            return SchemaDrift(is_gone=True) if is_missing else None
        if row.error_code == REFUSED and row.id in self._look.refused:
            return None
        if self._evolver.mends_name(row, self._look.schemas[row.id]):
            column = row.error_facts.get("column", "")
            return SchemaDrift(resync=f"the source has no column {column} any more")
        is_back = row.error_code in VANISHED or row.error_code == REFUSED
        return _stops(row, "source:table-replaced") if is_back else None

    def _of_schema(self, row: TableRow, old: TableSchema) -> SchemaDrift | None:
        found = self._look.schemas[row.id]
        if found.called is not None and found.called != old.source_id:
            return SchemaDrift(called=found.called)
        if self._evolver.columns is ColumnKnowledge.BY_LOG:
            return None
        new = followed(found, row.selection, old, self._evolver.policy, self._evolver.columns)
        if self._by_statements:  # the log reports every change, but only with the next rows
            is_same = _reported(new) == _reported(old)
            return (
                None if is_same else SchemaDrift(schema=new, position=self._seen[row.id].position)
            )
        new = replace(new.bare, member=old.member)
        if new == old:
            return None
        changes = schema_changes(row, old, new)
        decision = decision_on(self._evolver.policy, row, changes, old)
        if decision.verdict is Verdict.RESYNC:
            # A TRUNCATE of all parts rewrites the table too, and the log reports it.
            is_reported_perhaps = {c.kind for c in changes} == {ChangeKind.REWRITTEN}
            position = self._seen[row.id].position if is_reported_perhaps else 0
            return SchemaDrift(resync=decision.text, position=position)
        if decision.verdict is Verdict.STOP and any(c.kind in UNSENT for c in changes):
            return SchemaDrift(self._evolver.stopped(row, decision))
        return SchemaDrift(schema=new, position=self._seen[row.id].position)


def _reported(schema: TableSchema) -> tuple[object, ...]:
    return ({c.name: c.type for c in schema.columns}, schema.key, schema.left_out)


def _stops(row: TableRow, code: str, **facts: str) -> SchemaDrift:
    return SchemaDrift(ReplicationError(code, table=row.id, **facts))
