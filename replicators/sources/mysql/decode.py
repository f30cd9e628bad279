"""Decodes raw segments of binlog events into Arrow tables, column-wise. Pure; knows no server and
no Django.

A body is a sequence of [u32 little-endian length][event]. Each event has its header and checksum,
and all come from one binlog file. The context holds the file's number, whether events carry
checksums, the open transaction's first event, the TABLE_MAPs known before, and the character sets
of the collations used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors.arrow.unsupported import UnsupportedValues
from replicators.connectors.log import DecodedTable, LogPlace, Poison
from replicators.connectors.model.changes import (
    Op,
    OpCounts,
    change_schema,
    faulty_schema,
    first_sequence,
)
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.expand import Damaged, expand, has_compressed
from replicators.sources.mysql.offsets import value_at
from replicators.sources.mysql.schemas import Schema, schema_without_rows
from replicators.sources.mysql.segments import Index, index_segment
from replicators.sources.mysql.steps import steps_of
from replicators.sources.mysql.unsupported import Place, Read, read_with_unsupported
from replicators.sources.mysql.values import Images, Layout, ValueFault, measure, read_images


def decode(head: dict[str, Any], body: Any, segment: int) -> Iterator[DecodedTable | Poison]:
    """Decode a raw segment. Yields a `DecodedTable` per table and schema of it, in the selection's
    order, or one `Poison` for a table that can't be decoded. Implements `LogDecoder`."""
    tables = [TableSchema.from_json(t) for t in head["tables"]]
    context = head["context"]
    charsets = {int(n): str(c) for n, c in context.get("charsets", {}).items()}
    try:
        expanded = expand(np.frombuffer(body, np.uint8), bool(context["has_checksums"]))
        index = index_segment(context, expanded, tables, charsets)
    except Damaged as damage:
        for table in tables:
            yield _corrupt(table, damage.offset, segment)
        return
    yield from _decode_tables(index, tables, charsets, int(context["file"]), segment)


def grows(body: Any) -> bool:
    """Whether the body has compressed events, which decoding expands. See `ByteLog.grows`."""
    return bool(has_compressed(np.frombuffer(body, np.uint8)))


def warm() -> None:
    """Compile every kernel, or load it from numba's cache (NUMBA_CACHE_DIR), by decoding a tiny
    segment."""

    def event(kind: int, body: bytes) -> bytes:
        size = k.HEADER + len(body)
        return struct.pack("<IIBIIIH", size, 0, kind, 1, size, size, 0) + body

    table_map = b"\1\0\0\0\0\0\1\0\1s\0\1t\0\1\3\0\0\4\3\2id"
    parts = [
        event(k.MARIADB_GTID_EVENT, bytes(19)),
        event(k.TABLE_MAP_EVENT, table_map),
        event(23, b"\1\0\0\0\0\0\1\0\1\xff\0\1\0\0\0"),
    ]
    column = {"name": "id", "type": {"type": "Int", "bits": 32}, "native": "int", "wire": "int"}
    table = {"schema": "s", "name": "t", "columns": [column], "key": ["id"]}
    context = {"file": 1, "flavour": "mariadb", "has_checksums": False}
    # A bytes object would be read-only, which numba takes for another type than that of a segment.
    body = np.frombuffer(bytearray().join(parts), np.uint8)
    list(decode({"context": context, "tables": [table]}, body, 0))
    k.crc32(body, 0, len(body), k.CRC_TABLES)
    _warm_stream()


def _warm_stream() -> None:
    state, line = np.zeros(k.P_FIELDS, np.int64), np.zeros(8, np.int64)
    state[[k.P_BLOCK_LIMIT, k.P_OPEN_LIMIT]] = 1
    data = np.zeros(8, np.uint8)
    k.pump(
        data, state, data, np.zeros((1, 4), np.int64), line, line, line, line, data, k.CRC_TABLES
    )
    k.take(
        data,
        0,
        0,
        state,
        data,
        np.zeros((1, 4), np.int64),
        line,
        line,
        line,
        line,
        data,
        k.CRC_TABLES,
    )
    k.take_query(data, 0, 0, state, data, np.zeros((1, 4), np.int64), False, False)
    k.take_prepare(data, 0, 0, state, data, np.zeros((1, 4), np.int64), False)
    state[k.P_IS_OPEN] = 1
    k.take_tagged(data, 0, 0, state, data, 0, 0)
    none, places = np.zeros(0, np.int64), np.zeros((1, 1), np.int64)
    k.split_rows(data, 0, none, places, places, 0, 0)
    k.split_big_row(data, none, places, places)
    k.gather(data, none, none, 0, data, np.zeros(1, np.int32), data)
    k.gather_fixed(data, none, none, 0, 1, data, data)
    k.gather_moments(data, none, none, 0, np.zeros(0, np.int32), none, data, data)


# --- rows -----------------------------------------------------------------------------------------------------------  # noqa: E501


@dataclass(slots=True)
class Part:
    """The measured events of one schema."""

    schema: Schema
    layout: Layout
    mine: np.ndarray
    totals: np.ndarray


def _decode_tables(
    index: Index, tables: Sequence[TableSchema], charsets: dict[int, str], file: int, segment: int
) -> Iterator[DecodedTable | Poison]:
    counts = np.zeros(len(index.events), np.int64)
    parts: dict[TableId, list[Part]] = {}
    poisons: dict[TableId, Poison] = {}
    for table in tables:
        try:
            parts[table.id] = _measure_table(index, table, counts)
        except _Stopped as stopped:
            poisons[table.id] = stopped.poison(table, segment)
    rows = _Rows(index, counts, file, segment)
    for table in tables:
        if table.id in poisons:
            yield _with_position(poisons[table.id], index, rows)
            continue
        try:
            yield from _decode_parts(parts[table.id], rows, table, charsets)
        except _Stopped as stopped:
            yield stopped.poison(table, segment)
            continue
        yield from _schema_after(index, table, rows)


def _schema_after(index: Index, table: TableSchema, rows: _Rows) -> Iterator[DecodedTable | Poison]:
    """The schema that a table has after the segment's statement, even if no row of it ever
    comes."""
    if index.steps_after is None:
        return
    steps = steps_of(index.steps_after, table.id)
    if steps == steps_of(index.steps, table.id):
        return
    schema, version = schema_without_rows(table, steps)
    place = rows.place_of(len(index.begins) - 1)
    if not set(schema.key) <= {c.name for c in schema.columns}:
        facts = {"table": str(table.id)}
        yield Poison(table.id, 0, "source:key-changed", facts, place.position)
        return
    yield DecodedTable(schema, version, change_schema(schema).empty_table(), OpCounts(), place)


def _with_position(poison: Poison, index: Index, rows: _Rows) -> Poison:
    transaction = index.changed.get(poison.table)
    if transaction is None:
        return poison
    (position,) = rows.positions(np.array([transaction]))
    return replace(poison, position=int(position))


class _Stopped(Exception):
    """A table can't be decoded."""

    def __init__(self, offset: int, code: str, facts: dict[str, str] | None = None) -> None:
        super().__init__(code)
        self.offset, self.code, self.facts = offset, code, facts or {}

    def poison(self, table: TableSchema, segment: int) -> Poison:
        if not self.code:
            return _corrupt(table, self.offset, segment)
        return Poison(table.id, self.offset, self.code, {"table": str(table.id), **self.facts})


def _measure_table(index: Index, table: TableSchema, counts: np.ndarray) -> list[Part]:
    """Every schema of a table with its events; `counts` receives the rows of each event."""
    if table.id in index.faults:
        raise _Stopped(*index.faults[table.id])
    parts = []
    for number, schema in enumerate(index.schemas):
        mine = np.flatnonzero(index.schema_of_event == number)
        if schema.schema.id != table.id or not len(mine):
            continue
        if schema.code:
            raise _Stopped(int(index.events[mine[0], k.E_AT]), schema.code, schema.facts)
        where = dict(zip((c.name for c in schema.schema.columns), schema.where, strict=True))
        try:
            layout = Layout.of(schema.map.columns, [where[name] for name in schema.schema.key])
            totals = measure(index.body, index.events, mine, layout, counts)
        except ValueFault as fault:
            raise _stopped(fault, index, mine) from fault
        except ValueError as err:
            raise _Stopped(int(index.events[mine[0], k.E_AT]), "") from err
        parts.append(Part(schema, layout, mine, totals))
    return parts


def _stopped(fault: ValueFault, index: Index, mine: np.ndarray) -> _Stopped:
    offset = int(index.events[mine[max(fault.event, 0)], k.E_AT])
    facts = {"column": fault.column, "reason": fault.reason} if fault.reason else {}
    return _Stopped(offset, fault.code, facts)


class _Rows:
    """Numbers, positions and times of a segment's rows."""

    def __init__(self, index: Index, counts: np.ndarray, file: int, segment: int) -> None:
        self.index = index
        self.counts = counts
        self._file = file
        self._segment = segment
        self._before = np.concatenate([[0], np.cumsum(counts)])
        self._cuts = np.array([t.at for t in index.truncations], np.int64)
        starts = index.events[:, k.E_AT]
        self._first = self._before[:-1] + np.searchsorted(self._cuts, starts)

    def numbers(self, events: np.ndarray, event: np.ndarray) -> Any:
        """`_sequence` of rows; `event` gives each row's place among `events`, ascending."""
        counts = self.counts[events]
        starts = np.cumsum(counts) - counts
        within = np.arange(len(event)) - starts[event]
        return self._first[events][event] + within + first_sequence(self._segment)

    def truncation(self, place: int) -> int:
        """`_sequence` of a truncation."""
        events = int(np.searchsorted(self.index.events[:, k.E_AT], self._cuts[place]))
        return int(self._before[events]) + place + first_sequence(self._segment)

    def positions(self, transactions: np.ndarray) -> Any:
        """The positions of transactions' beginnings. Each lies below its transaction's end and at
        or above the end of the transaction before."""
        return self.index.begins[transactions, k.X_OFFSET] + value_at(self._file, 0)

    def place_of(self, transaction: int) -> LogPlace:
        """The place of a transaction without rows."""
        one = np.array([transaction])
        at, position = int(self.times(one)[0]), int(self.positions(one)[0])
        return LogPlace(first_sequence(self._segment), at, position)

    def times(self, transactions: np.ndarray) -> Any:
        """Commit times in microseconds."""
        return self.index.begins[transactions, k.X_TIME]


def _decode_parts(
    parts: Sequence[Part], rows: _Rows, table: TableSchema, charsets: dict[int, str]
) -> Iterator[DecodedTable]:
    cuts = [n for n, t in enumerate(rows.index.truncations) if t.table == table.id]
    if cuts and not parts:
        schema, version = schema_without_rows(table, steps_of(rows.index.steps, table.id))
        yield _with_counts(schema, version, _truncations(schema, cuts, rows))
        return
    decoded = [_decode_part(part, rows, charsets) for part in parts]
    # A truncation belongs to the schema whose rows come before it, else to the first schema.
    of_part: dict[int, list[int]] = {}
    for cut in cuts:
        sequence = rows.truncation(cut)
        before = [n for n, d in enumerate(decoded) if d.column("_sequence")[0].as_py() < sequence]
        of_part.setdefault(before[-1] if before else 0, []).append(cut)
    for n, (part, changes) in enumerate(zip(parts, decoded, strict=True)):
        if n in of_part:
            cut_rows = _truncations(part.schema.schema, of_part[n], rows)
            both = [changes, cut_rows]
            changes = pa.concat_tables(both, promote_options="default").sort_by("_sequence")
        yield _with_counts(part.schema.schema, part.schema.version, changes)


def _with_counts(schema: TableSchema, version: str, changes: pa.Table) -> DecodedTable:
    counts = np.bincount(changes.column("_op").to_numpy(), minlength=4).tolist()
    return DecodedTable(schema, version, changes, OpCounts(*counts))


def _truncations(schema: TableSchema, cuts: Sequence[int], rows: _Rows) -> pa.Table:
    transactions = np.array([rows.index.truncations[n].transaction for n in cuts], np.int64)
    positions = rows.positions(transactions)
    filled = [
        pa.array([rows.truncation(n) for n in cuts], pa.int64()),
        pa.array([int(Op.TRUNCATE)] * len(cuts), pa.int8()),
        pa.array(rows.times(transactions)).view(pa.timestamp("us", tz="UTC")),
        pa.array(positions),
        pa.array(positions),
    ]
    wanted = change_schema(schema)
    empty = [pa.nulls(len(cuts), f.type) for f in list(wanted)[len(filled) :]]
    return pa.Table.from_arrays([*filled, *empty], schema=wanted)


def _decode_part(part: Part, rows: _Rows, charsets: dict[int, str]) -> pa.Table:
    schema, index = part.schema.schema, rows.index
    columns = list(zip(schema.columns, part.schema.where, strict=True))
    places = {c.name: (c, n) for c, n in columns}
    before = columns if schema.full_before else [places[name] for name in schema.key]
    count = int(rows.counts[part.mine].sum())

    def read(after: Sequence[Place], before: Sequence[Place], raw: frozenset[str]) -> Images:
        return read_images(
            index.body, index.events, part.mine, part.layout, part.totals, count, after, before,
            charsets,
            has_whole_before=schema.full_before, raw=raw,
        )  # fmt: skip

    try:
        images, unsupported = _images(read, columns, before, schema)
    except ValueFault as fault:
        raise _stopped(fault, index, part.mine) from fault
    transactions = index.events[part.mine, k.E_TRANSACTION][images.event]
    positions = rows.positions(transactions)
    arrays = [
        pa.array(rows.numbers(part.mine, images.event)),
        pa.array(images.ops),
        pa.array(rows.times(transactions)).view(pa.timestamp("us", tz="UTC")),
        pa.array(positions),
        pa.array(positions),
        pa.nulls(count, pa.binary()),
        *images.after,
        *([images.before] if images.before is not None else []),
    ]
    if unsupported is None:
        return pa.Table.from_arrays(arrays, schema=change_schema(schema))
    arrays += [unsupported.marks, unsupported.reasons]
    return pa.Table.from_arrays(arrays, schema=faulty_schema(schema))


def _images(
    read: Read, columns: Sequence[Place], before: Sequence[Place], schema: TableSchema
) -> tuple[Images, UnsupportedValues | None]:
    """The rows' images. Unsupported values come as NULL, and are listed. A table without a key must
    have none: later, nothing could identify the row that was left out."""
    try:
        return read(columns, before, frozenset()), None
    except ValueFault as fault:
        if not fault.is_of_row or not schema.key:
            raise
    images, unsupported = read_with_unsupported(read, columns, before, schema.key)
    return images, unsupported or None


def _corrupt(table: TableSchema, offset: int, segment: int) -> Poison:
    facts = {"table": str(table.id), "segment": str(segment), "offset": str(offset)}
    return Poison(table.id, offset, "log:segment-corrupt", facts)
