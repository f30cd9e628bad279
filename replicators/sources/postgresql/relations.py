"""Parses Relation messages, and decides how each is decoded with the chosen tables. Reads no
rows."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from replicators.connectors.model.changes import is_reserved
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Unsupported, type_to_json
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
class Schema:
    """A table as one Relation sends it: `schema` holds the columns decoded, `where` their numbers
    in the messages.

    `code` is set where the table can't be decoded with this schema; `column` is set too where one
    column's name is the cause.
    """

    schema: TableSchema
    version: str
    relation: Relation
    where: tuple[int, ...]
    code: str = ""
    column: str = ""


class _Reader:
    """Reads fields of a message one by one; ValueError past its end."""

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
    """The chosen table of a relation: found by OID, or by name where the selection has no OID."""
    named = None
    for table in tables:
        if table.native_id and table.native_id == relation.oid:
            return table
        if table.id == relation.table:
            named = table
    return named


def fits(relation: Relation, table: TableSchema) -> bool:
    """Whether a Relation sends exactly the columns of the description. A newer Relation does
    not."""
    live = [(name, kind) for _, name, kind in table.layout if name]
    return not live or live == [(c.name, c.oid) for c in relation.columns]


def places(relation: Relation, table: TableSchema) -> dict[int, int] | None:
    """Where a Relation has the columns of a description, by ordinal. The Relation may be older than
    the description. None where more than one reading is possible (CORRECTNESS 21).

    If no column was ever dropped, the order alone decides. The exception is a column that was
    generated before, and so was not sent: then the names decide, if all of them agree on another
    order. Otherwise a name belongs to the ordinal that has it now or had it before. If these two
    differ, or neither has the name, the place is unknown.
    """
    named = _by_names(relation, table)
    if not all(name for _, name, _ in table.layout):
        return named
    ordered = {
        ordinal: at for at, (ordinal, _, _) in enumerate(table.layout[: len(relation.columns)])
    }
    if named is None or named == ordered:
        return ordered
    before = {name for name, _ in table.former}
    return named if before >= {c.name for c in relation.columns} else None


def _by_names(relation: Relation, table: TableSchema) -> dict[int, int] | None:
    now = {name: ordinal for ordinal, name, _ in table.layout if name}
    before = dict(table.former)
    found: list[int] = []
    for column in relation.columns:
        ordinal = now.get(column.name, before.get(column.name))
        if ordinal is None or before.get(column.name, ordinal) != ordinal:
            return None
        found.append(ordinal)
    if any(a >= b for a, b in pairwise(found)):
        return None
    return {ordinal: at for at, ordinal in enumerate(found)}


def schema_of(relation: Relation, table: TableSchema) -> Schema:
    """How rows of `relation` become rows of `table`: the chosen columns that the relation has, with
    its types."""
    numbers = places(relation, table) if table.layout else None
    if numbers is None:
        is_clear = not table.layout
        by_name = {c.name: i for i, c in enumerate(relation.columns)}
        where = {c.name: by_name[c.name] for c in table.supported if c.name in by_name}
    else:
        is_clear = True
        where = {c.name: numbers[c.ordinal] for c in table.supported if c.ordinal in numbers}
    kinds = {ordinal: kind for ordinal, _, kind in table.layout}
    columns: list[Column] = []
    for column in table.supported:
        if column.name not in where:
            continue
        sent = relation.columns[where[column.name]]
        is_clear = is_clear and _is_known(sent, kinds.get(column.ordinal))
        shown = _as_sent(column, sent)
        if not isinstance(shown.type, Unsupported):
            columns.append(shown)
    is_whole = tuple(columns) == table.supported
    schema = replace(
        table,
        columns=tuple(columns),
        full_before=table.full_before and relation.identity == FULL,
        storage=table.storage if is_whole else "",
        partitions=(),
        marks=(),
        layout=(),
        former=(),
        called=None,
        left_out=(),
    )
    code = _fault(relation, table, columns, where)
    reserved = next((c.name for c in columns if is_reserved(c.name)), "")
    if reserved:
        code = "source:column-reserved"
    if not code and not is_clear:
        code = "source:schema-ambiguous"
    at = tuple(where[c.name] for c in columns)
    return Schema(schema, version_of(relation, schema), relation, at, code, reserved)


def _is_known(sent: RelationColumn, kind: int | None) -> bool:
    """Whether the type sent is built in, or is the type described."""
    return kind is None or sent.oid == kind or builtin_type(sent.oid, sent.typmod) is not None


def _as_sent(column: Column, sent: RelationColumn) -> Column:
    native = builtin_type(sent.oid, sent.typmod)
    if native is None:
        return column
    kind, wire = column_type(native)
    if (kind, wire) == (column.type, column.wire):
        return column
    return replace(column, type=kind, wire=wire, native=native.name)


def _fault(
    relation: Relation, table: TableSchema, columns: Sequence[Column], where: Mapping[str, int]
) -> str:
    if table.native_id and table.native_id != relation.oid:
        return "source:table-replaced"
    if not set(table.key) <= {c.name for c in columns}:
        return "source:key-changed"
    sent = {i for i, c in enumerate(relation.columns) if c.is_key}
    if relation.identity in BY_KEY and table.key and sent != {where[n] for n in table.key}:
        return "source:key-changed"
    return ""


def version_of(relation: Relation, schema: TableSchema) -> str:
    """A text that tells this schema of the table from its others."""
    reported = {
        "relation": [[c.name, c.oid, c.typmod, c.is_key] for c in relation.columns],
        "identity": relation.identity,
        "columns": [[c.name, c.ordinal, type_to_json(c.type), c.wire] for c in schema.columns],
        "key": schema.key,
        "full_before": schema.full_before,
        **({"filter": schema.filter} if schema.filter else {}),
    }
    return hashlib.sha256(json.dumps(reported, sort_keys=True).encode()).hexdigest()[:16]
