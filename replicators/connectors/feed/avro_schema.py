"""Avro schemas of a table's keys and values. Each field of a row is nullable and has the default
null, so a column that is added or removed is a compatible change."""

from __future__ import annotations

import json
import re
from typing import Any

from replicators.connectors.feed.options import DEBEZIUM, DIFF, MESSAGE, FeedOptions
from replicators.connectors.feed.rows import fact_name
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Time,
    Timestamp,
    Uuid,
)

Avro = Any
_ODD = re.compile(r"[^A-Za-z0-9_]")
STRING, LONG = "string", "long"
MICROS = {"type": LONG, "logicalType": "timestamp-micros"}
SOURCE = (
    ("connector", STRING), ("name", STRING), ("db", STRING), ("schema", STRING), ("table", STRING),
    ("ts_ms", LONG), ("ts_us", LONG), ("snapshot", STRING), ("txId", LONG), ("sequence", STRING),
)  # fmt: skip
"""The fields of `source` in the Debezium envelope."""


def _decimal(precision: int, scale: int) -> Avro:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


_FIXED: dict[LogicalType, Avro] = {
    Boolean(): "boolean",
    Int(16): "int",
    Int(32): "int",
    Int(64): LONG,
    Int(64, signed=False): _decimal(20, 0),
    Float(32): "float",
    Float(64): "double",
    Date(): {"type": "int", "logicalType": "date"},
    Uuid(): {"type": STRING, "logicalType": "uuid"},
}


def avro_type(kind: LogicalType) -> Avro:
    """The Avro type that holds a neutral type's values exactly."""
    if kind in _FIXED:
        return _FIXED[kind]
    match kind:
        case Decimal(precision=precision, scale=scale):
            return _decimal(precision, scale)
        case Bytes():
            return "bytes"
        case Time():
            return {"type": LONG, "logicalType": "time-micros"}
        case Timestamp(zone=zone):
            return MICROS if zone else {"type": LONG, "logicalType": "local-timestamp-micros"}
        case Array(of=of):
            return {"type": "array", "items": ["null", avro_type(of)]}
    return STRING


def field_names(schema: TableSchema) -> dict[str, str]:
    """The Avro name of each column: letters, digits and underscores only. Two columns never get the
    same one."""
    found: dict[str, str] = {}
    plain = {c.name for c in schema.supported if name_of(c.name) == c.name}
    used = set(plain)
    for column in schema.supported:
        name = column.name if column.name in plain else name_of(column.name)
        number = 2
        while column.name not in plain and name in used:
            name, number = f"{name_of(column.name)}_{number}", number + 1
        used.add(name)
        found[column.name] = name
    return found


def name_of(text: str) -> str:
    """A name that Avro allows."""
    name = _ODD.sub("_", text)
    return f"_{name}" if not name or name[0].isdigit() else name


def key_schema(schema: TableSchema) -> str:
    """The schema of the keys: a record of the key's columns, in the key's order."""
    names = field_names(schema)
    fields = [_field(names[n], n, avro_type(schema.column(n).type)) for n in schema.key]
    return _text({**_avro_record("Key", fields), "namespace": _namespace(schema)})


def value_schema(schema: TableSchema, options: FeedOptions) -> str:
    """The schema of the values of an envelope."""
    names = field_names(schema)
    row = [_optional(_field(names[c.name], c.name, avro_type(c.type))) for c in schema.supported]
    row.append(_optional({"name": "_unsent", "type": {"type": "array", "items": STRING}}))
    shape = options.shape
    more = []
    if options.updated and shape != DEBEZIUM:
        more.append(_optional({"name": fact_name("updated", schema, options), "type": MICROS}))
    if options.truncates == MESSAGE and shape != DEBEZIUM:
        more.append(_optional({"name": fact_name("operation", schema, options), "type": STRING}))
    record = _avro_record("Value", row)
    if shape == DEBEZIUM:
        source = _avro_record("Source", [{"name": n, "type": t} for n, t in SOURCE])
        record = _avro_record(
            "Envelope",
            [
                _optional({"name": "before", "type": record}),
                _optional({"name": "after", "type": "Value"}),
                {"name": "source", "type": source},
                {"name": "op", "type": STRING},
                _optional({"name": "ts_ms", "type": LONG}),
            ],
        )
    elif shape == DIFF:
        after = _optional({"name": "after", "type": record})
        before = _optional({"name": "before", "type": "Value"})
        record = _avro_record("Envelope", [after, before, *more])
    else:
        record["fields"] += more
    return _text({**record, "namespace": _namespace(schema)})


def _avro_record(name: str, fields: list[Avro]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _field(name: str, column: str, kind: Avro) -> dict[str, Any]:
    return {"name": name, "type": kind} | ({} if name == column else {"doc": column})


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    return {**field, "type": ["null", field["type"]], "default": None}


def _namespace(schema: TableSchema) -> str:
    return f"{name_of(schema.id.schema)}.{name_of(schema.id.name)}"


def _text(found: Avro) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
