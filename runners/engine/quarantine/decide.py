"""Quarantined rows: changes with unsupported values wait beside the target, by key, until a
supported value replaces them (CORRECTNESS 30). The decision is pure.

A key's quarantined changes are folded again in front of every later batch. The key stays
quarantined while an unsupported value is still part of its folded row. A delete, a complete image,
or any later value of that column ends it. Keys that are linked by key changes are quarantined and
freed together, so that no row is filled from one that was changed meanwhile. For a quarantined key,
the target keeps the row that it had before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa

from replicators.connectors.model.changes import (
    FAULT_FIELDS,
    META_FIELDS,
    Op,
    OpCounts,
    before_fields,
    faulty_schema,
)
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch
from runners.engine import failpoints
from runners.engine.errors import unsupported
from runners.engine.fold.mirror import after_truncate, key_links, replay, unsent_matrix
from runners.engine.fold.plan import FoldPlan, batch_of, fold_to_file, read_changes
from runners.engine.store.protocol import Store, TableRow
from runners.engine.store.quarantine import QuarantinedRow

QUARANTINED_LIMIT = 10_000
_Marks = np.ndarray[Any, Any]
_FAULTS = [f.name for f in FAULT_FIELDS]


@dataclass(frozen=True, slots=True)
class Separated:
    """`fit` has `change_schema`; `held` has `faulty_schema` and is to be quarantined."""

    fit: pa.Table
    held: pa.Table


@nb.njit(cache=True, nogil=True)
def groups(new, old, keys):  # type: ignore[no-untyped-def]
    """A number for each of `keys` key codes: keys that are linked by key changes have the same
    number."""
    parent = np.arange(keys)
    for r in range(len(new)):
        if old[r] >= 0:
            a, b = new[r], old[r]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            parent[a] = b
    for k in range(keys):
        root = k
        while parent[root] != root:
            root = parent[root]
        parent[k] = root
    return parent


def separate(changes: pa.Table, schema: TableSchema) -> Separated:
    """Split `changes` (with `faulty_schema`, ascending `_sequence`, of a table with a key) into
    what the target can take now and what has to be quarantined."""
    rest, _ = after_truncate(changes, changes.column("_op").to_numpy())
    first = changes.num_rows - rest.num_rows
    waits, needed = np.zeros((2, changes.num_rows), bool)
    waits[first:], needed[first:] = _waiting(rest, schema)
    return Separated(
        changes.filter(pa.array(~waits)).drop_columns(_FAULTS), changes.filter(pa.array(needed))
    )


def _waiting(changes: pa.Table, schema: TableSchema) -> tuple[_Marks, _Marks]:
    """Which rows belong to keys whose folded row has an unsupported value, and which of them are
    needed to fold that row again: not those before a complete image of the same key."""
    columns, faulty = unsent_matrix(changes.column("_faulty"), schema)
    if not columns:
        nothing = np.zeros(changes.num_rows, bool)
        return nothing, nothing
    _, codes, new, old = key_links(changes, schema)
    partial, unsent = unsent_matrix(changes.column("_unchanged"), schema)
    not_sent = np.zeros((changes.num_rows, len(columns)), np.uint8)
    for i, column in enumerate(columns):
        if column in partial:
            not_sent[:, i] = unsent[:, partial.index(column)]
    keys = int(codes.max()) + 1
    op = changes.column("_op").to_numpy().astype(np.int8)
    _, gone, _, sent_by = replay(op, new, old, not_sent, keys)
    is_faulty = faulty[np.maximum(sent_by, 0), np.arange(len(columns))].astype(bool)
    unsupported = (is_faulty & (sent_by >= 0)).any(axis=1) & (gone == 0)
    group = groups(new, old, keys)
    unsupported_group = np.zeros(keys, bool)
    unsupported_group[group[unsupported]] = True
    waits: _Marks = unsupported_group[group[new]]
    is_whole = changes.column("_unchanged").is_null().to_numpy() & (op != int(Op.DELETE))
    is_alone = np.bincount(group, minlength=keys)[group[new]] == 1
    place = np.arange(changes.num_rows)
    last_whole = np.full(keys, -1, np.int64)
    whole = is_whole & is_alone
    np.maximum.at(last_whole, new[whole], place[whole])
    return waits, waits & (place >= last_whole[new])


def quarantined_rows(held: pa.Table, schema: TableSchema, after: int) -> list[QuarantinedRow]:
    """What the store keeps of the rows past `after`: row by row, since they are few."""
    rows = []
    for i, sequence in enumerate(held.column("_sequence").to_pylist()):
        if sequence <= after:
            continue
        one = held.slice(i, 1)
        key = {name: str(one.column(name)[0].as_py()) for name in schema.key}
        reason = one.column("_fault_reason")[0].as_py() or ""
        rows.append(
            QuarantinedRow(sequence, json.dumps(key, ensure_ascii=False), reason, _written(one))
        )
    return rows


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def images(rows: Sequence[QuarantinedRow], schema: TableSchema) -> pa.Table:
    """The quarantined changes with `faulty_schema(schema)`, by sequence. Columns that were added
    after them count as not sent. Values that do not fit a changed type stay faulty."""
    wanted = faulty_schema(schema)
    parts = [wanted.empty_table()]
    for row in rows:
        found = pa.ipc.open_stream(row.image).read_all()
        if found.schema != wanted:
            found = _adapted(found, schema)
        if row.is_accepted:
            at = found.schema.get_field_index("_faulty")
            found = found.set_column(at, FAULT_FIELDS[0], pa.nulls(1, FAULT_FIELDS[0].type))
        parts.append(found)
    return pa.concat_tables(parts).sort_by("_sequence")


def _adapted(one: pa.Table, schema: TableSchema) -> pa.Table:
    """One row of an earlier schema of the table in the present one."""
    meta = {f.name for f in (*META_FIELDS, *FAULT_FIELDS)} | {"_before"}
    names = [n for n in one.column_names if n not in meta]
    bits = {n: _bits(one.column(n)[0].as_py(), names) for n in ("_unchanged", "_faulty")}
    arrays: dict[str, Any] = {}
    for column in schema.columns:
        kind = schema.arrow_schema().field(column.name).type
        arrays[column.name] = pa.nulls(1, kind)
        if column.name not in names:
            bits["_unchanged"].add(column.name)
            continue
        try:
            arrays[column.name] = one.column(column.name).combine_chunks().cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            bits["_faulty"].add(column.name)
    before = one.column("_before")[0].as_py()
    fields = before_fields(schema)
    arrays["_before"] = pa.array(
        [None if before is None else {f.name: before.get(f.name) for f in fields}],
        pa.struct(fields),
    )
    for name, found in bits.items():
        arrays[name] = pa.array([_packed(found, schema)], pa.binary())
    for field in (*META_FIELDS[:5], FAULT_FIELDS[1]):
        arrays[field.name] = one.column(field.name).combine_chunks()
    wanted = faulty_schema(schema)
    return pa.table([arrays[n] for n in wanted.names], schema=wanted)


def _bits(value: bytes | None, names: Sequence[str]) -> set[str]:
    return {n for i, n in enumerate(names) if value and value[i >> 3] >> (i & 7) & 1}


def _packed(found: set[str], schema: TableSchema) -> bytes | None:
    bits = sum(1 << i for i, c in enumerate(schema.columns) if c.name in found)
    return bits.to_bytes((len(schema.columns) + 7) // 8, "little") if bits else None


def of_snapshot(rows: pa.Table, schema: TableSchema, position: int, first: int) -> pa.Table:
    """Quarantined rows of a snapshot, as inserts with `faulty_schema`, numbered from `first`
    upwards."""
    count = rows.num_rows
    wanted = faulty_schema(schema)
    arrays: dict[str, Any] = {
        n: rows.column(n).cast(wanted.field(n).type) for n in rows.column_names
    }
    arrays["_sequence"] = pa.array(range(first, first + count), pa.int64())
    arrays["_op"] = pa.array([int(Op.INSERT)] * count, pa.int8())
    arrays["_committed_at"] = pa.array([0] * count, pa.int64()).cast(
        wanted.field("_committed_at").type
    )
    arrays["_transaction"] = pa.array([0] * count, pa.int64())
    arrays["_position"] = pa.array([position] * count, pa.int64())
    return pa.table(
        [arrays[f.name] if f.name in arrays else pa.nulls(count, f.type) for f in wanted],
        schema=wanted,
    )


def check_limit(table: TableId, count: int) -> None:
    """Raise `log:too-many-quarantined` where more rows are quarantined than a person could look
    at."""
    if count > QUARANTINED_LIMIT:
        raise ReplicationError("log:too-many-quarantined", table=table, limit=QUARANTINED_LIMIT)


def _unsupported(table: TableId, reasons: pa.ChunkedArray) -> ReplicationError:
    code, facts = unsupported(str(reasons.drop_null()[0]))
    return ReplicationError(code, table=table, **facts)


def refuse_unsupported(table: TableId, plan: FoldPlan) -> None:
    """For a target without quarantine: raise the error of the first unsupported value."""
    if any(f.faults for f in plan.files):
        reasons = read_changes(plan, with_faults=True).column("_fault_reason")
        if reasons.null_count < len(reasons):
            raise _unsupported(table, reasons)


def fold_with_quarantined(
    store: Store, row: TableRow, plan: FoldPlan
) -> tuple[FoldedBatch, OpCounts] | None:
    """The merge's batch where the table has quarantined rows or will have. The quarantined rows are
    recorded before anything is written, since a finished merge can't be folded again. None where
    every value fits. None also where inserts are skipped: such a table has no quarantine, and an
    unsupported value stops it."""
    if plan.no_inserts:
        return None
    waiting = store.quarantined(row.id, row.generation, row.merged_sequence)
    if not waiting and not any(f.faults for f in plan.files):
        return None
    found = [images(waiting, plan.schema), read_changes(plan, with_faults=True)]
    # These files were listed during the first copy, before it was known that there is no key.
    if not plan.schema.key:
        raise _unsupported(row.id, pa.concat_tables(found).column("_fault_reason"))
    separated = separate(pa.concat_tables(found), plan.schema)
    check_limit(row.id, separated.held.num_rows)
    kept = set(separated.held.column("_sequence").to_pylist())
    freed = [w.sequence for w in waiting if w.sequence not in kept]
    rows = quarantined_rows(separated.held, plan.schema, plan.after)
    store.record_quarantined(row.id, row.generation, rows, freed, plan.sequence, plan.after)
    if rows:
        text = f"Rows quarantined: {len(rows)}, the first since {rows[0].reason}."
        store.log("WARNING", text, row.id)
    failpoints.hit("rows_quarantined")
    path = f"{plan.prefix}-0.parquet"
    part = fold_to_file(separated.fit, plan.schema, path, mode=plan.mode, timed=plan.timed)
    return batch_of(plan, [part])
