"""Reads the changes of the in-memory source by polling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import before_fields
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.poll import Polled, TableChanges, polled_schema
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.memory.catalog import require_reachable
from replicators.sources.memory.database import Change, Transaction, database
from replicators.sources.memory.params import MemoryParams

BYTES_A_CHANGE = 256


@dataclass(slots=True)
class _Part:
    """The changes of one table in one version of its schema."""

    whole: TableSchema
    schema: TableSchema
    rows: list[dict[str, Any]] = field(default_factory=list)


class MemoryPoll(Closing):
    """`PollReader` over a `Database`."""

    def __init__(self, params: MemoryParams, name: str) -> None:
        self._params = params
        self._name = name
        self._database = database(params.host)

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        """Verify the position. Without one, do nothing: `snapshot_first` makes the slot."""
        require_reachable(self._params)
        if position is not None:
            self._database.require(self._name, position)

    def poll(self, after: Position, tables: Sequence[TableSchema], *, max_bytes: int) -> Polled:
        """Return whole transactions, at least one where there is one."""
        require_reachable(self._params)
        self._database.require(self._name, after)
        found = self._database.after(after.ordinal)
        taken: list[Transaction] = []
        size = 0
        for transaction in found:
            size += BYTES_A_CHANGE * len(transaction.changes)
            if taken and size > max_bytes:
                break
            taken.append(transaction)
        end = taken[-1].number if taken else after.ordinal
        has_more = len(taken) < len(found)
        changes, version = self._changes(taken, tables), self._database.version
        return Polled(self._database.position(end), changes, has_more, version)

    def _changes(
        self, transactions: Sequence[Transaction], tables: Sequence[TableSchema]
    ) -> tuple[TableChanges, ...]:
        chosen = {t.id: t for t in tables}
        parts: list[_Part] = []
        last: dict[Any, _Part] = {}
        for transaction in transactions:
            for change in transaction.changes:
                if change.table not in chosen or change.schema is None:
                    continue
                part = last.get(change.table)
                if part is None or part.whole != change.schema:
                    now = self._database.tables[change.table]
                    part = _Part(change.schema, _cut(change.schema, chosen[change.table], now))
                    parts.append(part)
                    last[change.table] = part
                part.rows.append(_row(transaction, change, part.schema))
        return tuple(
            TableChanges(p.schema, pa.Table.from_pylist(p.rows, polled_schema(p.schema)))
            for p in parts
        )

    def acknowledge(self, position: Position) -> None:
        require_reachable(self._params)
        self._database.hold(self._name, position)

    def close(self) -> None:
        """Nothing is open."""


def _cut(then: TableSchema, chosen: TableSchema, now: TableSchema) -> TableSchema:
    """The schema of that time, without the columns that are not followed."""
    if then == now:
        return chosen.bare
    followed = {c.name for c in chosen.columns}
    left_out = {c.name for c in now.columns} - followed
    columns = tuple(c for c in then.supported if c.name not in left_out)
    return replace(then, columns=columns, filter=chosen.filter)


def _row(transaction: Transaction, change: Change, schema: TableSchema) -> dict[str, Any]:
    """The change as a row of `polled_schema`."""
    new, old = change.new or {}, change.old or {}
    names = [c.name for c in schema.columns]
    image = {n: new.get(n) for n in names} if new else {n: old.get(n) for n in schema.key}
    before = {f.name: old.get(f.name) for f in before_fields(schema)}
    is_reported = bool(old) and (
        schema.full_before or any(new.get(n) != old[n] for n in schema.key)
    )
    return {
        **image,
        "_op": int(change.op),
        "_committed_at": datetime.fromtimestamp(transaction.committed_at, UTC),
        "_transaction": transaction.number,
        "_position": transaction.number - 1,
        "_unchanged": None,
        **({"_before": before if is_reported else None} if before else {}),
    }
