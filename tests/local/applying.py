"""What a folded batch makes of a local table's rows: pure functions over Arrow, the twin of the
lakehouse's statements for mirrors."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH, Mode
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, TargetTable

Keys = list[tuple[Any, ...]]


def applied(rows: pa.Table, table: TargetTable, batch: FoldedBatch) -> pa.Table:
    """The table's rows after the batch. `target:row-missing`, `target:row-absent`."""
    if batch.truncate:
        rows = rows.slice(0, 0)
    if not batch.paths or not batch.rows:
        return rows
    changes = pa.concat_tables([pq.read_table(path) for path in batch.paths])
    if batch.mode is Mode.MULTISET:
        return _counted(rows, changes, table)
    if batch.append_only or not batch.schema.key:
        return pa.concat_tables([rows, _image(changes, rows)])
    return _merged(rows, changes, table, batch)


def missing(rows: pa.Table, batch: FoldedBatch) -> pa.Table:
    """The keys of the batch's rows with unsent values whose row is not there."""
    changes = pa.concat_tables([pq.read_table(path) for path in batch.paths])
    at = {} if batch.truncate else _places(rows, batch)
    lost = [i for i, origin in _unsent(changes, batch).items() if origin not in at]
    arrow = batch.schema.arrow_schema()
    wanted = pa.schema([arrow.field(n) for n in batch.schema.key])
    return changes.take(pa.array(lost, pa.int64())).select(wanted.names).cast(wanted)


def numbered(rows: pa.Table) -> pa.Table:
    """Equal rows with numbers from 1."""
    seen: Counter[bytes] = Counter()
    numbers = []
    for digest in rows.column(ROW_HASH).to_pylist():
        seen[digest] += 1
        numbers.append(seen[digest])
    at = rows.schema.get_field_index(OCCURRENCE)
    return rows.set_column(at, rows.schema.field(at), pa.array(numbers, pa.int64()))


def _image(changes: pa.Table, rows: pa.Table) -> pa.Table:
    """The changes' rows in the table's schema."""
    columns = [
        changes.column(f.name).cast(f.type)
        if f.name in changes.column_names
        else pa.nulls(changes.num_rows, f.type)
        for f in rows.schema
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _keys(rows: pa.Table, names: tuple[str, ...]) -> Keys:
    return list(zip(*(map(_hashable, rows.column(n).to_pylist()) for n in names), strict=True))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _places(rows: pa.Table, batch: FoldedBatch) -> dict[tuple[Any, ...], int]:
    return {key: at for at, key in enumerate(_keys(rows, batch.schema.key))}


def _unsent(changes: pa.Table, batch: FoldedBatch) -> dict[int, tuple[Any, ...]]:
    """Changes that lack values: their place, and the key of the row that has them."""
    if not batch.unsent:
        return {}
    keys = _keys(changes, batch.schema.key)
    masks = changes.column("_unsent").to_pylist()
    deleted = changes.column("_delete").to_pylist()
    origins = changes.column("_origin").to_pylist() if batch.has_origins else [None] * len(keys)
    return {
        at: key if origin is None else tuple(_hashable(origin[n]) for n in batch.schema.key)
        for at, (key, mask, gone, origin) in enumerate(
            zip(keys, masks, deleted, origins, strict=True)
        )
        if mask is not None and any(mask) and not gone
    }


def _merged(rows: pa.Table, changes: pa.Table, table: TargetTable, batch: FoldedBatch) -> pa.Table:
    at = _places(rows, batch)
    unsent = _unsent(changes, batch)
    if any(origin not in at for origin in unsent.values()):
        raise ReplicationError("target:row-missing", table=table.source)
    keys = _keys(changes, batch.schema.key)
    if len(set(keys)) != len(keys):
        raise ValueError("a batch has one row for each key")
    changed = np.zeros(rows.num_rows, bool)
    changed[[at[k] for k in keys if k in at]] = True
    kept = np.flatnonzero(~changed)
    alive = np.flatnonzero(~np.array(changes.column("_delete").to_pylist(), bool))
    both = pa.concat_tables([rows, _image(changes, rows)])
    places = np.concatenate([kept, alive + rows.num_rows])
    masks = changes.column("_unsent").to_pylist() if batch.unsent else []
    names = [c.name for c in batch.schema.columns]
    columns = []
    for name in rows.column_names:
        taken = places
        if name in batch.unsent:
            bit = names.index(name)
            own = {
                i: at[origin]
                for i, origin in unsent.items()
                if masks[i][bit // 8] & (1 << (bit % 8))
            }
            late = [own.get(i, i + rows.num_rows) for i in alive.tolist()]
            taken = np.concatenate([kept, np.array(late, np.int64)])
        columns.append(both.column(name).take(pa.array(taken, pa.int64())))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _counted(rows: pa.Table, changes: pa.Table, table: TargetTable) -> pa.Table:
    """Each row as often as at the source: the highest numbers go, and the next ones come."""
    present = Counter(rows.column(ROW_HASH).to_pylist())
    change: Counter[bytes] = Counter()
    image: dict[bytes, int] = {}
    digests = changes.column(ROW_HASH).to_pylist()
    for at, (digest, more) in enumerate(
        zip(digests, changes.column(OCCURRENCE).to_pylist(), strict=True)
    ):
        change[digest] += more
        image[digest] = at
    if any(present[d] + n < 0 for d, n in change.items()):
        raise ReplicationError("target:row-absent", table=table.source)
    upto = {d: present[d] + n for d, n in change.items()}
    numbers = rows.column(OCCURRENCE).to_pylist()
    stays = [
        n <= upto.get(d, n) for d, n in zip(rows.column(ROW_HASH).to_pylist(), numbers, strict=True)
    ]
    kept = rows.filter(pa.array(stays, pa.bool_()))
    new = [(image[d], n) for d, top in upto.items() for n in range(present[d] + 1, top + 1)]
    added = _image(changes.take(pa.array([at for at, _ in new], pa.int64())), rows)
    at = added.schema.get_field_index(OCCURRENCE)
    added = added.set_column(at, added.schema.field(at), pa.array([n for _, n in new], pa.int64()))
    return pa.concat_tables([kept, added])


def filled(rows: pa.Table, name: str, value: Any) -> pa.Table:
    """One value in every row of a column."""
    at = rows.schema.get_field_index(name)
    kind = rows.schema.field(at).type
    same = pc.cast(pa.array([value] * rows.num_rows), kind) if value is not None else None
    return rows.set_column(at, rows.schema.field(at), same or pa.nulls(rows.num_rows, kind))
