"""Adds enum labels that rows have but the described type lacks. Either a label was added after the
description, or it was renamed before it while the log still holds older rows. Only a later look
into the catalog can tell which; until then the type has these labels too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, Enum


def with_labels(schema: TableSchema, arrays: Sequence[pa.Array]) -> TableSchema:
    """The schema, with the further labels that the columns' `arrays` hold added to its enums."""
    columns = tuple(_labelled(c, a) for c, a in zip(schema.columns, arrays, strict=True))
    return schema if columns == schema.columns else replace(schema, columns=columns)


def _labelled(column: Column, array: pa.Array) -> Column:
    kind = column.type.of if isinstance(column.type, Array) else column.type
    if not isinstance(kind, Enum):
        return column
    values = array.flatten() if isinstance(column.type, Array) else array
    known = pa.array(kind.values, pa.string())
    strange = values.filter(pc.invert(pc.is_in(values, value_set=known))).drop_null()
    if not len(strange):
        return column
    wider = Enum((*kind.values, *sorted(strange.unique().to_pylist())))
    return replace(column, type=Array(wider) if isinstance(column.type, Array) else wider)
