"""Relation messages, and how each is decoded with the tables chosen. Reads no rows."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from replicators.connectors.schema import Column, TableId, TableSchema
from replicators.connectors.types import Unsupported, type_to_json
from replicators.sources.postgresql.types import builtin_type, column_type

FULL = "f"
BY_KEY = ("d", "i")


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a Relation message."""

    name: str
    oid: int
    typmod: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A Relation message: `identity` is pg_class.relreplident (d, n, f, i)."""

    oid: int
    table: TableId
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as one Relation sends it: `schema` holds the columns decoded, `where` their numbers in the messages.

    `code` is set where the table can't be decoded in this shape.
    """

    schema: TableSchema
    version: str
    relation: Relation
    where: tuple[int, ...]
    code: str = ""


class _Reader:
    """Takes fields off a message; ValueError past its end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> tuple[int, ...]:
        try:
            values = struct.unpack_from(form, self.data, self.at)
        except struct.error as err:
            raise ValueError("message too short") from err
        self.at += struct.calcsize(form)
        return values

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        value = self.data[self.at : end].decode()
        self.at = end + 1
        return value


def parse_relation(message: bytes) -> Relation:
    """A Relation message (first byte `R`); ValueError where it is damaged."""
    reader = _Reader(message)
    kind, oid = reader.take(">BI")
    schema, name = reader.text() or "pg_catalog", reader.text()
    identity, count = reader.take(">BH")
    columns = []
    for _ in range(count):
        (flags,) = reader.take(">B")
        column = reader.text()
        type_oid, typmod = reader.take(">Ii")
        columns.append(RelationColumn(column, type_oid, typmod, bool(flags & 1)))
    if kind != ord("R") or reader.at != len(message) or len({c.name for c in columns}) < count:
        raise ValueError("not a relation message")
    return Relation(oid, TableId(schema, name), chr(identity), tuple(columns))


def find_table(relation: Relation, tables: Iterable[TableSchema]) -> TableSchema | None:
    """The chosen table that a relation is: by its OID, or by name where the selection has no OID."""
    named = None
    for table in tables:
        if table.native_id and table.native_id == relation.oid:
            return table
        if table.id == relation.table:
            named = table
    return named


def shape_of(relation: Relation, table: TableSchema) -> Shape:
    """How rows of `relation` become rows of `table`: the chosen columns that it has, with its own types."""
    numbers = {c.name: i for i, c in enumerate(relation.columns)}
    columns: list[Column] = []
    for column in table.supported:
        if column.name not in numbers:
            continue
        sent = _as_sent(column, relation.columns[numbers[column.name]])
        if not isinstance(sent.type, Unsupported):
            columns.append(sent)
    schema = replace(
        table,
        columns=tuple(columns),
        full_before=table.full_before and relation.identity == FULL,
    )
    code = _fault(relation, table, columns)
    where = tuple(numbers[c.name] for c in columns)
    return Shape(schema, _version(relation, schema), relation, where, code)


def _as_sent(column: Column, sent: RelationColumn) -> Column:
    native = builtin_type(sent.oid, sent.typmod)
    if native is None:
        return column
    kind, wire = column_type(native)
    if (kind, wire) == (column.type, column.wire):
        return column
    return replace(column, type=kind, wire=wire, native=native.name)


def _fault(relation: Relation, table: TableSchema, columns: Sequence[Column]) -> str:
    if table.native_id and table.native_id != relation.oid:
        return "source:table-replaced"
    if not set(table.key) <= {c.name for c in columns}:
        return "source:key-changed"
    sent = {c.name for c in relation.columns if c.is_key}
    if relation.identity in BY_KEY and table.key and sent != set(table.key):
        return "source:key-changed"
    return ""


def _version(relation: Relation, schema: TableSchema) -> str:
    told = {
        "relation": [[c.name, c.oid, c.typmod, c.is_key] for c in relation.columns],
        "identity": relation.identity,
        "columns": [[c.name, type_to_json(c.type), c.wire] for c in schema.columns],
        "key": schema.key,
        "full_before": schema.full_before,
        **({"filter": schema.filter} if schema.filter else {}),
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
