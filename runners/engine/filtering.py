"""The row filter of a table over what a fold gives (CORRECTNESS 20): a row that leaves the filter is a delete by its key, one
that enters it is an upsert. Looks at each key's last image, so what a row was in between does not matter. No I/O, no Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.errors import ReplicationError
from replicators.connectors.filter_arrow import matches
from replicators.connectors.filter_types import bind
from replicators.connectors.filters import Expression, FilterError, columns_of
from replicators.connectors.schema import TableSchema
from runners.engine.fold import Folded, unsent_matrix


@lru_cache(64)
def bound(schema: TableSchema) -> Expression:
    """The table's filter. `source:filter-invalid` where it does not fit its columns any more."""
    try:
        return bind(schema.filter, schema)
    except FilterError as err:
        raise ReplicationError(
            "source:filter-invalid", table=schema.id, reason=str(err).rstrip(".")
        ) from err


def kept(rows: pa.Table, schema: TableSchema) -> pa.ChunkedArray:
    """For each of some whole images whether the table's filter is true of it."""
    return matches(bound(schema), rows)


def filtered(folded: Folded, schema: TableSchema) -> Folded:
    """Rows that the filter does not keep as deletes by key, which do no harm where the target has no such row; without a key
    they are left out.
    `source:filter-unsent` where a value that the filter needs is not known."""
    if not schema.filter or not folded.rows.num_rows:
        return folded
    rows = folded.rows
    if not schema.key:
        return replace(folded, rows=rows.filter(kept(rows, schema)))
    gone = rows.column("_delete")
    _check_sent(rows.filter(pc.invert(gone)), schema)
    leaves = pc.and_(pc.invert(gone), pc.invert(kept(rows, schema)))
    place = pa.array(np.arange(rows.num_rows), mask=leaves.to_numpy())
    for name in ("_unsent", "_origin"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(name), rows.column(name).take(place))
    at = rows.schema.get_field_index("_delete")
    rows = rows.set_column(at, rows.schema.field("_delete"), pc.or_(gone, leaves))
    return replace(folded, rows=rows)


def _check_sent(rows: pa.Table, schema: TableSchema) -> None:
    partial, _ = unsent_matrix(rows.column("_unsent"), schema)
    unsent = {schema.columns[at].name for at in partial}
    for name in sorted(unsent & columns_of(bound(schema))):
        raise ReplicationError("source:filter-unsent", table=schema.id, column=name)
