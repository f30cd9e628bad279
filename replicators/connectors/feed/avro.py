"""Messages in Avro's binary form. Compiled loops write one field of all rows after the other; the
fields and their order are those of `avro_schema`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.images import Mask, unsent_names
from replicators.connectors.feed import avro_kernels as kernels
from replicators.connectors.feed.avro_kernels import BARE, NULL, SKIP, SOME
from replicators.connectors.feed.options import (
    DEBEZIUM,
    DIFF,
    MESSAGE,
    FeedOptions,
    Origin,
    SchemaIds,
)
from replicators.connectors.feed.rows import Image, Rows
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)

Numbers = np.ndarray[Any, np.dtype[Any]]
Loop = Callable[[Numbers, Numbers, bool], None]
"""Writes one field of all rows: the bytes, the rows' places in them, and whether to write."""
_LETTERS = pa.array(["c", "u", "d", "t", "r"])
_NONE = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Binary:
    """Writes the keys and values of one table's rows in Avro. Without `ids` nothing stands in front
    of them."""

    schema: TableSchema
    options: FeedOptions
    origin: Origin
    ids: SchemaIds | None = None

    def keys(self, rows: Rows) -> pa.Array:
        """A record of the key's values; NULL for a TRUNCATE and without a key."""
        if not rows.key:
            return pa.nulls(len(rows), pa.binary())
        is_row = rows.op != int(Op.TRUNCATE)
        fields = self._header(is_row, self.ids.key if self.ids else None)
        for name, values in rows.key.items():
            fields.append(
                field_of(self.schema.column(name).type, values, _state(is_row, bare=True))
            )
        return _joined(fields, is_row)

    def values(self, rows: Rows) -> pa.Array:
        """The value of each row; NULL where the envelope has none for it."""
        shape = self.options.shape
        has_value = np.ones(len(rows), bool)
        if shape not in {DEBEZIUM, DIFF}:
            has_value = rows.op != int(Op.DELETE)
        fields = self._header(has_value, self.ids.value if self.ids else None)
        if shape == DEBEZIUM:
            fields += [*self._optional(rows.before), *self._optional(rows.after)]
            fields += self._source(rows)
        elif shape == DIFF:
            fields += [*self._optional(rows.after), *self._optional(rows.before)]
        else:
            fields += self._row(rows.after, has_value)
        if shape != DEBEZIUM:
            fields += self._facts(rows, has_value)
        return _joined(fields, has_value)

    def _header(self, is_row: Mask, number: int | None) -> list[Loop]:
        if number is None:
            return []
        head = np.frombuffer(struct.pack(">bI", 0, number), np.uint8)
        return [_loop(kernels.put_same, _state(is_row, bare=True), head)]

    def _optional(self, image: Image) -> list[Loop]:
        """A record, or null for none."""
        state = np.where(image.is_none, NULL, SOME).astype(np.uint8)
        return [_loop(kernels.put_marks, state), *self._row(image, ~image.is_none)]

    def _row(self, image: Image, is_row: Mask) -> list[Loop]:
        """The fields of the rows' images. A row without one (a TRUNCATE) has only nulls."""
        left = image.left()
        left = {n: left[n] for n in image.values if n in left}
        has_values = ~image.is_none
        found = []
        for column in self.schema.supported:
            values = image.values[column.name]
            is_there = has_values
            if column.name in left:
                is_there = is_there & ~left[column.name]
            found.append(field_of(column.type, values, _state(is_row, values, is_there)))
        names = unsent_names(left, len(is_row))
        found.append(field_of(Array(String()), names, _state(is_row, names, has_values), BARE))
        return found

    def _facts(self, rows: Rows, is_row: Mask) -> list[Loop]:
        found = []
        if self.options.updated:
            state = _state(is_row, rows.committed_at)
            found.append(field_of(Timestamp(zone=True), rows.committed_at, state))
        if self.options.truncates == MESSAGE:
            words = pa.repeat(pa.scalar("truncate"), len(rows))
            state = _state(is_row, words, rows.op == int(Op.TRUNCATE))
            found.append(field_of(String(), words, state))
        return found

    def _source(self, rows: Rows) -> list[Loop]:
        micros = rows.committed_at.cast(pa.int64())
        millis = pa.array(np.floor_divide(micros.to_numpy(zero_copy_only=False), 1000))
        table = self.schema.source_id
        same = (
            self.origin.connector,
            self.origin.name,
            self.origin.database,
            table.schema,
            table.name,
        )
        bare = np.full(len(rows), BARE, np.uint8)
        some = np.full(len(rows), SOME, np.uint8)
        head = np.frombuffer(b"".join(_text(word) for word in same), np.uint8)
        is_read = pa.array(rows.op == int(Op.READ))
        op = _LETTERS.take(pa.array(rows.op.astype(np.int64)))
        return [
            _loop(kernels.put_same, bare, head),
            field_of(Int(64), millis, bare),
            field_of(Int(64), micros, bare),
            field_of(String(), pc.cast(is_read, pa.string()), bare),
            field_of(Int(64), rows.transaction, bare),
            field_of(String(), pc.cast(rows.sequence, pa.string()), bare),
            field_of(String(), op, bare),
            field_of(Int(64), millis, some),
        ]


def field_of(kind: LogicalType, values: pa.Array, state: Numbers, items: int = SOME) -> Loop:
    """The loop that writes the values of a neutral type. `items`: the state of a list's items that
    are not NULL."""
    match kind:
        case Boolean():
            bits = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
            return _loop(kernels.put_fixed, state, _fixed(bits.view(np.uint8)), 1)
        case Int(bits=64, signed=False) | Decimal():
            return _loop(kernels.put_decimals, state, _fixed(_raw(values, 16)))
        case Float(bits=bits):
            return _loop(kernels.put_fixed, state, _fixed(_raw(values, bits // 8)), bits // 8)
        case Array(of=of):
            return _lists(of, values, state, items)
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return _loop(kernels.put_bytes, state, *_chars(values))
    return _loop(kernels.put_longs, state, _longs(values))


def warm() -> None:
    """Compile the loops, or load them from numba's cache."""
    state = np.full(1, SOME, np.uint8)
    kinds: list[tuple[LogicalType, pa.Array]] = [
        (Int(64), pa.array([1])),
        (Int(32), pa.array([1], pa.int32())),
        (Boolean(), pa.array([True])),
        (Float(64), pa.array([1.0])),
        (Decimal(9, 2), pa.array([None], pa.decimal128(9, 2))),
        (Bytes(), pa.array([b"a"])),
        (Array(String()), pa.array([["a"]])),
    ]
    fields = [field_of(kind, values, state) for kind, values in kinds]
    head = _loop(kernels.put_same, state, _fixed(np.zeros(1, np.uint8)))
    _joined([head, _loop(kernels.put_marks, state), *fields], np.ones(1, bool))


def _state(
    is_row: Mask,
    values: pa.Array | None = None,
    is_there: Mask | None = None,
    *,
    bare: bool = False,
) -> Numbers:
    """What each row gets."""
    state = np.where(is_row, BARE if bare else SOME, SKIP).astype(np.uint8)
    if is_there is not None:
        state[is_row & ~is_there] = NULL
    if values is not None and values.null_count:
        state[is_row & values.is_null().to_numpy(zero_copy_only=False)] = NULL
    return state


def _loop(kernel: Any, state: Numbers, *arguments: Any) -> Loop:
    def run(out: Numbers, pos: Numbers, write: bool) -> None:
        kernel(out, pos, state, *arguments, write)

    return run


def _joined(fields: Sequence[Loop], is_row: Mask) -> pa.Array:
    """All fields of each row, one after the other; NULL for rows that are none."""
    offsets, out = _written(fields, len(is_row))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    made = pa.Array.from_buffers(pa.large_binary(), len(is_row), buffers)
    if is_row.all():
        return made
    return pc.if_else(pa.array(is_row), made, pa.scalar(None, pa.large_binary()))


def _written(fields: Sequence[Loop], rows: int) -> tuple[Numbers, Numbers]:
    """The rows' offsets, and the bytes. First the sizes are counted, then the bytes written."""
    sizes = np.zeros(rows, np.int64)
    for loop in fields:
        loop(_NONE, sizes, False)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    pos = offsets[:-1].copy()
    for loop in fields:
        loop(out, pos, True)
    return offsets, out


def _lists(of: LogicalType, values: pa.Array, state: Numbers, items: int) -> Loop:
    flat = values.flatten()
    each = np.full(len(flat), items, np.uint8)
    if flat.null_count:
        each[flat.is_null().to_numpy(zero_copy_only=False)] = NULL
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    starts = np.zeros(len(values) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    offsets, data = _written([field_of(of, flat, each)], len(flat))
    return _loop(kernels.put_lists, state, _fixed(starts), _fixed(offsets), _fixed(data))


def _longs(values: pa.Array) -> Numbers:
    """Integers, dates and times as 64 bits."""
    kind = values.type
    if not pa.types.is_integer(kind):
        values = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return _fixed(_plain(values).astype(np.int64, copy=False))


def _plain(values: pa.Array) -> Numbers:
    """The numbers of an integer array; NULL is any of them."""
    width = values.type.bit_width // 8
    return _raw(values, width).view(np.dtype(f"i{width}"))


def _raw(values: pa.Array, width: int) -> Numbers:
    """The bytes of values of the same width, without a copy."""
    data = values.buffers()[1]
    if data is None:
        return np.zeros(width * len(values), np.uint8)
    found = np.frombuffer(data, np.uint8)
    return found[width * values.offset : width * (values.offset + len(values))]


def _chars(values: pa.Array) -> tuple[Numbers, Numbers]:
    """The offsets and the bytes of texts."""
    buffers = values.buffers()
    if buffers[1] is None or not len(values):
        return _fixed(np.zeros(len(values) + 1, np.int64)), _fixed(_NONE)
    offsets = np.frombuffer(buffers[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = _NONE if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return _fixed(offsets.astype(np.int64)), _fixed(data)


def _fixed(array: Numbers) -> Numbers:
    """The same array, read only: numba compiles for one kind of arrays only."""
    found = array.view()
    found.flags.writeable = False
    return found


def _text(word: str) -> bytes:
    """A string in Avro's binary form."""
    data = word.encode()
    size = 2 * len(data)
    head = bytearray()
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + data
