"""Decodes raw segments of pgoutput (protocol 1) into Arrow tables, column-wise. Pure; knows no
server and no Django.

A body is a sequence of [u32 little-endian length][message]. The messages come without the stream's
header. See https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors.arrow.unsupported import UnsupportedValues
from replicators.connectors.log import DecodedTable, PassedOver, Poison
from replicators.connectors.model.changes import (
    OpCounts,
    change_schema,
    faulty_schema,
    first_sequence,
)
from replicators.connectors.model.schema import Column, TableSchema
from replicators.sources.postgresql import kernels
from replicators.sources.postgresql.labels import with_labels
from replicators.sources.postgresql.relations import (
    Relation,
    Schema,
    find_table,
    parse_relation,
    schema_of,
    version_of,
)
from replicators.sources.postgresql.unsupported import read_images_with_unsupported
from replicators.sources.postgresql.values import Images, Input, ValueFault, read_images

NOT_REPORTED = -2
UNCLEAR = "columns of one name at different times, or of names that were there only for a moment"


class Damaged(Exception):
    """The segment can't be read from this byte on."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"damaged at byte {offset}")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a segment: where each begins, its schema and its transaction. `order` lists row
    numbers by schema; those of schema i go from starts[i] to starts[i + 1]. `begins` holds lines of
    position, time and xid. `passed` holds the rows of tables that are not selected."""

    body: np.ndarray
    at: np.ndarray
    begin: np.ndarray
    begins: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    scratch: np.ndarray
    passed: tuple[PassedOver, ...]


class Schemas:
    """Every schema in the segment's Relations, by number. Tables that are not selected are numbered
    from below `NOT_REPORTED` downwards."""

    def __init__(self, tables: Sequence[TableSchema]) -> None:
        self._tables = tables
        self.known: list[Schema] = []
        self._others: list[int] = []

    def number(self, relation: Relation) -> int:
        """The number of the relation's schema."""
        table = find_table(relation, self._tables)
        if table is None:
            if relation.oid not in self._others:
                self._others.append(relation.oid)
            return NOT_REPORTED - 1 - self._others.index(relation.oid)
        for i, schema in enumerate(self.known):
            if schema.relation == relation:
                return i
        self.known.append(schema_of(relation, table))
        return len(self.known) - 1

    def passed(
        self, row_schema: np.ndarray, row_begin: np.ndarray, positions: np.ndarray
    ) -> Iterator[PassedOver]:
        """The rows of tables that are not selected."""
        if not self._others or not len(row_schema) or row_schema.min() >= NOT_REPORTED:
            return
        for i, oid in enumerate(self._others):
            mine = row_begin[row_schema == NOT_REPORTED - 1 - i]
            if len(mine):
                yield PassedOver(oid, len(mine), int(positions[mine].max()))


def decode(
    head: dict[str, Any], body: Any, segment: int
) -> Iterator[DecodedTable | Poison | PassedOver]:
    """Decode a raw segment. Yields a `DecodedTable` per table and schema of it, in the selection's
    order, or one `Poison` for a table that can't be decoded, then a `PassedOver` for each table
    that is not selected. Implements `LogDecoder`."""
    tables = [TableSchema.from_json(t) for t in head["tables"]]
    data = np.frombuffer(body, np.uint8)
    data.flags.writeable = False
    schemas = Schemas(tables)
    try:
        rows = _read_rows(head["context"], data, schemas)
    except Damaged as damage:
        for table in tables:
            yield _corrupt(table, damage.offset, segment)
        return
    for table in tables:
        numbers = [
            i
            for i, schema in enumerate(schemas.known)
            if schema.schema.id == table.id and rows.starts[i] < rows.starts[i + 1]
        ]
        yield from _decode_table([(schemas.known[i], i) for i in numbers], rows, segment)
    yield from rows.passed


def warm() -> None:
    """Compile every kernel, or load it from numba's cache (NUMBA_CACHE_DIR), by decoding a tiny
    segment."""
    relation = b"R\0\0\0\1s\0t\0d\0\1\1id\0\0\0\0\x17\xff\xff\xff\xff"
    begin = b"B" + bytes(20)
    row = b"I\0\0\0\1N\0\1b\0\0\0\4\0\0\0\1"
    body = b"".join(struct.pack("<I", len(m)) + m for m in (begin, relation, row))
    column = {"name": "id", "type": {"type": "Int", "bits": 32}, "native": "int4", "wire": "int4"}
    table = {"schema": "s", "name": "t", "columns": [column], "key": ["id"]}
    list(decode({"context": {"relations": {}}, "tables": [table]}, body, 0))


def _read_rows(context: dict[str, Any], data: np.ndarray, schemas: Schemas) -> Rows:
    count, relation_at, begin_count, largest = _scan(data)
    known: dict[int, int] = {}
    for relid, message in context.get("relations", {}).items():
        relation = _relation(base64.b64decode(message), 0)
        known[int(relid)] = schemas.number(relation)
    events: list[tuple[int, int]] = []
    for offset in relation_at.tolist():
        size = int.from_bytes(data[offset : offset + 4].tobytes(), "little")
        relation = _relation(data[offset + 4 : offset + 4 + size].tobytes(), offset)
        events.append((relation.oid, schemas.number(relation)))
    relids = np.array(sorted({*known, *(relid for relid, _ in events)}), np.int64)
    current = np.array([known.get(int(r), NOT_REPORTED) for r in relids], np.int64)
    begins = np.zeros((begin_count + 1, 3), np.int64)
    begins[0] = _open_transaction(context.get("transaction"))
    row_at = np.empty(count, np.uint32 if len(data) < 2**32 else np.int64)
    row_schema = np.empty(count, np.int32)
    row_begin = np.empty(count, np.int32)
    fault, offset = kernels.index(
        data, relids, current,
        np.searchsorted(relids, np.array([r for r, _ in events], np.int64)),
        np.array([n for _, n in events], np.int64), begins, row_at, row_schema, row_begin,
    )  # fmt: skip
    if fault:
        raise Damaged(offset)
    starts = np.zeros(len(schemas.known) + 1, np.int64)
    order = np.empty(count, np.uint32)
    kernels.group(row_schema, starts, order)
    return Rows(
        data,
        row_at,
        row_begin,
        np.ascontiguousarray(begins.T),
        order,
        starts,
        np.empty(largest + 1, np.uint8),
        tuple(schemas.passed(row_schema, row_begin, begins[:, 0])),
    )


def _scan(data: np.ndarray) -> tuple[int, np.ndarray, int, int]:
    found = np.zeros(1024, np.int64)
    count, relations, begins, largest, damage = kernels.scan(data, found)
    if relations > len(found):
        found = np.zeros(relations, np.int64)
        count, relations, begins, largest, damage = kernels.scan(data, found)
    if damage >= 0:
        raise Damaged(damage)
    return count, found[:relations], begins, largest


def _relation(message: bytes, offset: int) -> Relation:
    try:
        return parse_relation(message)
    except ValueError as err:
        raise Damaged(offset) from err


def _open_transaction(message: str | None) -> tuple[int, int, int]:
    if not message:
        return 0, 0, -1
    try:
        kind, position, at, xid = struct.unpack(">BqqI", base64.b64decode(message))
    except (struct.error, ValueError) as err:
        raise Damaged(0) from err
    if kind != ord("B"):
        raise Damaged(0)
    return position, at + kernels.EPOCH_MICROS, xid


def _decode_table(
    schemas: list[tuple[Schema, int]], rows: Rows, segment: int
) -> Iterator[DecodedTable | Poison]:
    """Every schema of one table, or only a Poison."""
    decoded = []
    for schema, number in schemas:
        mine = rows.order[rows.starts[number] : rows.starts[number + 1]]
        result = _decode_schema(schema, mine, rows, segment)
        if isinstance(result, Poison):
            yield result
            return
        decoded.append(result)
    yield from decoded


def _decode_schema(
    table_schema: Schema, mine: np.ndarray, rows: Rows, segment: int
) -> DecodedTable | Poison:
    schema = table_schema.schema
    if table_schema.code:
        about = {"column": table_schema.column} if table_schema.column else {"change": UNCLEAR}
        facts = {"table": str(schema.id), **about}
        return Poison(schema.id, int(rows.at[mine[0]]), table_schema.code, facts)
    before = list(schema.columns) if schema.full_before else [schema.column(n) for n in schema.key]
    where = {c.name: n for c, n in zip(schema.columns, table_schema.where, strict=True)}
    keys = np.zeros(len(table_schema.relation.columns), np.bool_)
    keys[[where[name] for name in schema.key]] = True
    given = Input(rows.body, rows.at, mine, rows.scratch)
    try:
        images, unsupported = _images(given, schema, before, where, keys)
    except ValueFault as fault:
        offset = int(rows.at[mine[max(fault.row, 0)]])
        if not fault.reason:
            return _corrupt(schema, offset, segment)
        facts = {"table": str(schema.id), "column": fault.column, "reason": fault.reason}
        return Poison(schema.id, offset, "source:value-unsupported", facts)
    reported = with_labels(schema, images.after)
    version = (
        table_schema.version if reported == schema else version_of(table_schema.relation, reported)
    )
    counts = np.bincount(images.ops, minlength=4).tolist()
    begin = rows.begin[mine]
    position, committed_at, xid = (np.take(line, begin) for line in rows.begins)
    columns = [
        pa.array(mine.astype(np.int64) + first_sequence(segment)),
        pa.array(images.ops),
        pa.array(committed_at).view(pa.timestamp("us", tz="UTC")),
        pa.array(xid),
        pa.array(position),
        images.unchanged,
        *images.after,
        *([images.before] if images.before is not None else []),
    ]
    wanted = change_schema(schema)
    if unsupported is not None:
        columns += [unsupported.marks, unsupported.reasons]
        wanted = faulty_schema(schema)
    changes = pa.Table.from_arrays(columns, schema=wanted)
    return DecodedTable(reported, version, changes, OpCounts(*counts))


def _images(
    given: Input,
    schema: TableSchema,
    before: list[Column],
    where: dict[str, int],
    keys: np.ndarray,
) -> tuple[Images, UnsupportedValues | None]:
    """The rows' images. Unsupported values come as NULL, and are listed. A table without a key must
    have none: later, nothing could identify the row that was left out."""
    after = list(schema.columns)
    try:
        return read_images(given, after, before, where, keys), None
    except ValueFault as fault:
        if not fault.is_of_row or not schema.key:
            raise
    images, unsupported = read_images_with_unsupported(given, after, before, where, keys)
    return images, unsupported or None


def _corrupt(table: TableSchema, offset: int, segment: int) -> Poison:
    facts = {"table": str(table.id), "segment": str(segment), "offset": str(offset)}
    return Poison(table.id, offset, "log:segment-corrupt", facts)
