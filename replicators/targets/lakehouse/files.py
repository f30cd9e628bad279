"""Snapshot files that tasks write: their Arrow schema with the table's field numbers, and the write
options."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, LogicalType, Time
from replicators.connectors.storage import Storage
from replicators.connectors.target import SnapshotPlace


def _numbered(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({b"PARQUET:field_id": str(number).encode()})


def arrow_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of files. Fields have the numbers that a new Iceberg table gives its columns
    (first the columns in order, then the lists' elements), so that readers need no mapping by
    name."""
    plain = schema.arrow_schema()
    fields, inner = [], len(schema.supported)
    for number, column in enumerate(schema.supported, start=1):
        field = plain.field(column.name)
        kind = pa.int32() if field.type in (pa.int8(), pa.int16()) else field.type
        if pa.types.is_list(kind):
            inner += 1
            element = pa.int32() if kind.value_type == pa.int16() else kind.value_type
            kind = pa.list_(_numbered(pa.field("element", element), inner))
        fields.append(_numbered(pa.field(column.name, kind), number))
    return pa.schema(fields)


def write_options(schema: TableSchema) -> dict[str, Any]:
    """Options for `pyarrow.parquet.ParquetWriter`: dictionaries only for columns whose values may
    repeat, statistics for all columns, decimals as Iceberg writes them."""
    plain = schema.arrow_schema()
    repeating = [
        c.name
        for c in schema.supported
        if c.name not in schema.primary_key and pa.types.is_string(plain.field(c.name).type)
    ]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": repeating or False,
        "store_decimal_as_integer": True,
    }


def place(folder: str, schema: TableSchema, storage: Storage) -> SnapshotPlace:
    """Where and how tasks write files of this schema."""
    system = storage.own_system(folder)
    return SnapshotPlace(folder, arrow_schema(schema), write_options(schema), system=system)


def _is_plain(kind: LogicalType) -> bool:
    return not isinstance(kind, Time) and not (
        isinstance(kind, Array) and isinstance(kind.of, Time)
    )


def are_taken_as_they_are(schema: TableSchema) -> bool:
    """Whether files of this schema can become data files without conversion. Files with times of
    day can't: these must become text first."""
    return all(_is_plain(c.type) for c in schema.supported)


def clear_strays(storage: Storage, paths: tuple[str, ...]) -> str:
    """Remove all other files from the folder that holds `paths`. Returns this folder."""
    folders = {p.rsplit("/", 1)[0] for p in paths}
    if len(folders) != 1:
        raise ValueError("the files of one load lie in one folder")
    folder = folders.pop()
    storage.keep_only(folder, {p.rsplit("/", 1)[1] for p in paths})
    return folder
