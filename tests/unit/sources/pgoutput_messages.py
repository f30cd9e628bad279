"""Builds pgoutput messages (protocol 1) and the heads of segments by hand, for the decoder's
tests."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.sources.postgresql.types import NativeType, builtin_type, column_type

BOOL, INT8, INT4, TEXT, DATE, TIMESTAMPTZ, NUMERIC = 16, 20, 23, 25, 1082, 1184, 1700
UNSENT = object()


@dataclass(frozen=True)
class Sent:
    """A column as a Relation message names it."""

    name: str
    oid: int = INT4
    typmod: int = -1
    is_key: bool = False
    native: NativeType | None = None

    @property
    def column(self) -> Column:
        native = self.native or builtin_type(self.oid, self.typmod)
        assert native is not None
        kind, wire = column_type(native)
        return Column(self.name, kind, native.name, wire=wire)


@dataclass(frozen=True)
class FakeTable:
    """A table at the source: makes its messages and its frozen selection."""

    oid: int
    name: str
    columns: tuple[Sent, ...]
    identity: str = "d"
    chosen: tuple[str, ...] = field(default=())

    @property
    def schema(self) -> TableSchema:
        columns = tuple(c.column for c in self.columns if not self.chosen or c.name in self.chosen)
        key = tuple(c.name for c in self.columns if c.is_key)
        return TableSchema(
            TableId("public", self.name), columns, key, key, self.oid, self.identity == "f"
        )

    def relation(self) -> bytes:
        start = b"R" + struct.pack(">I", self.oid) + b"public\0" + self.name.encode() + b"\0"
        parts = [start, self.identity.encode(), struct.pack(">H", len(self.columns))]
        for c in self.columns:
            flag = bytes([c.is_key or self.identity == "f"])
            parts.append(flag + c.name.encode() + b"\0" + struct.pack(">Ii", c.oid, c.typmod))
        return b"".join(parts)

    def insert(self, *values: object) -> bytes:
        return b"I" + struct.pack(">I", self.oid) + b"N" + row(values)

    def update(self, *values: object, key: tuple | None = None, old: tuple | None = None) -> bytes:
        before = b"K" + row(key) if key else b"O" + row(old) if old else b""
        return b"U" + struct.pack(">I", self.oid) + before + b"N" + row(values)

    def delete(self, *values: object, tag: bytes = b"K") -> bytes:
        return b"D" + struct.pack(">I", self.oid) + tag + row(values)


def value(item: object) -> bytes:
    """One value of a row: None, UNSENT, bytes (binary form) or str (text form)."""
    if item is None:
        return b"n"
    if item is UNSENT:
        return b"u"
    if isinstance(item, str):
        text = item.encode()
        return b"t" + struct.pack(">I", len(text)) + text
    assert isinstance(item, bytes)
    return b"b" + struct.pack(">I", len(item)) + item


def row(values: tuple) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(value(v) for v in values)


def int4(v: int) -> bytes:
    return struct.pack(">i", v)


def int8(v: int) -> bytes:
    return struct.pack(">q", v)


def begin(position: int = 100, at: int = 0, xid: int = 9) -> bytes:
    return b"B" + struct.pack(">qqI", position, at, xid)


def commit(position: int = 100, at: int = 0) -> bytes:
    return b"C\0" + struct.pack(">qqq", position, position + 8, at)


def truncate(*tables: FakeTable) -> bytes:
    relids = b"".join(struct.pack(">I", t.oid) for t in tables)
    return b"T" + struct.pack(">IB", len(tables), 0) + relids


def body(*messages: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(m)) + m for m in messages)


def head(
    *tables: FakeTable,
    reported: tuple[FakeTable, ...] | None = None,
    transaction: bytes | None = None,
) -> dict:
    """A segment's head: `tables` are selected, `reported` (else the same) are the relations in
    force."""
    reported = tables if reported is None else reported
    return {
        "tables": [t.schema.to_json() for t in tables],
        "context": {
            "relations": {str(t.oid): base64.b64encode(t.relation()).decode() for t in reported},
            "transaction": base64.b64encode(transaction).decode() if transaction else None,
            "binary": True,
        },
    }
