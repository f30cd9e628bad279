"""The columns of an Avro file, from the schema in its head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import fastavro
import pyarrow as pa

_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_NESTED = pa.struct([])


def schema_of(file: Any) -> pa.Schema:
    """The columns; ValueError where it is no Avro file of records."""
    stream: IO[bytes] = file
    schema: Any = fastavro.reader(stream).writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("it holds no records")
    return pa.schema([pa.field(f["name"], _type(f["type"])) for f in schema["fields"]])


def _type(kind: Any) -> pa.DataType:
    if isinstance(kind, list):
        some = [k for k in kind if k != "null"]
        return _type(some[0]) if len(some) == 1 else _NESTED
    if not isinstance(kind, dict):
        return _PLAIN.get(kind, _NESTED)
    logical = kind.get("logicalType", "")
    if logical == "decimal":
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    return _LOGICAL.get(logical) or _type(kind["type"])
