"""Reads one table's messages into Arrow columns: slots, one arena of buffers, and their fill. Knows
no segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.buffers import Arena
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Decimal, LogicalType, arrow_type
from replicators.sources.postgresql import kernels as k

CODES = {
    "bool": k.BOOL, "int2": k.INT2, "int4": k.INT4, "int8": k.INT8, "oid": k.OID,
    "float4": k.FLOAT4, "float8": k.FLOAT8, "numeric": k.NUMERIC, "date": k.DATE, "time": k.TIME,
    "timestamp": k.TIMESTAMP, "timestamptz": k.TIMESTAMPTZ, "text": k.TEXT, "jsonb": k.JSONB,
    "uuid": k.UUID, "bytea": k.BYTEA, "numeric_text": k.NUMERIC_TEXT, "as_text": k.AS_TEXT,
}  # fmt: skip
WIDTHS = {
    k.INT2: 2, k.INT4: 4, k.FLOAT4: 4, k.DATE: 4, k.INT8: 8, k.OID: 8, k.FLOAT8: 8, k.NUMERIC: 16,
    k.TIME: 8, k.TIMESTAMP: 8, k.TIMESTAMPTZ: 8,
}  # fmt: skip
MAX_CHARS = 2**31 - 1

REASONS = {
    k.NAN: "NaN has no place in a decimal",
    k.INFINITE: "Infinity has no place in a decimal",
    k.TOO_PRECISE: "the number has more digits than its column",
    k.INFINITE_TIME: "infinity has no place in a date or timestamp",
    k.YEAR: "the year is not between 1 and 9999",
    k.DAY_END: "the time 24:00:00 has no place in a time of day",
    k.DIMENSIONS: "the array has more than one dimension",
    k.BINARY: "the binary form of its type is not known",
}
NOT_UTF8 = "the text is not valid UTF-8"
TOO_LARGE = "the values of one segment are larger than 2 GiB"


class ValueFault(Exception):
    """A value that can't be decoded: its row among the table's rows (or -1), its column, and a
    reason; no reason: damaged."""

    def __init__(self, row: int, column: str, reason: str = "") -> None:
        super().__init__(reason)
        self.row = row
        self.column = column
        self.reason = reason

    @property
    def is_of_row(self) -> bool:
        """Whether the fault lies in this row's value alone: not in damage, the stream's form, or
        its size."""
        return self.row >= 0 and self.reason not in ("", REASONS[k.BINARY], TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Input:
    """A segment's bytes and the rows of one table in it. `scratch` is as long as the largest
    message."""

    body: np.ndarray
    row_at: np.ndarray
    rows: np.ndarray
    scratch: np.ndarray

    @property
    def read(self) -> np.ndarray:
        view = self.scratch.view()
        view.flags.writeable = False
        return view


@dataclass(frozen=True, slots=True)
class Images:
    """The contents of rows: operations, after images, before images (None if the table sends none),
    `_unchanged`."""

    ops: np.ndarray
    after: list[pa.Array]
    before: pa.Array | None
    unchanged: pa.Array


@dataclass(slots=True)
class _Slot:
    """An output column and where its buffers lie (bytes in the arena, -1: none)."""

    column: Column
    code: int
    rows: int
    sizes: list[int]
    valid: int = -1
    data: int = -1
    offsets: int = -1
    chars: int = -1
    item_valid: int = -1
    item_data: int = -1
    item_offsets: int = -1

    @property
    def item_code(self) -> int:
        return self.code % k.ARRAY

    @property
    def form(self) -> int:
        texts = self.sizes[k.Z_TEXTS]
        return ord("b") if not texts else ord("t") if texts == self.sizes[k.Z_VALUES] else 0

    def lay_out(self, arena: Arena) -> None:
        values, chars, items, item_values, texts, *_ = self.sizes
        if self.item_code in (k.FLOAT4, k.FLOAT8) and texts:
            self.code += k.FLOAT_TEXT - self.item_code
        if values < self.rows:
            self.valid = arena.place((self.rows + 7) // 8)
        if self.code < k.ARRAY:
            self.data, self.offsets, self.chars = self._place(arena, self.code, self.rows, chars)
            return
        self.offsets = arena.place(4 * (self.rows + 1))
        if item_values < items:
            self.item_valid = arena.place((items + 7) // 8)
        self.item_data, self.item_offsets, self.chars = self._place(
            arena, self.item_code, items, chars
        )

    def _place(self, arena: Arena, code: int, count: int, chars: int) -> tuple[int, int, int]:
        if code >= k.TEXT:
            return -1, arena.place(4 * (count + 1)), arena.place(chars)
        return arena.place((count + 7) // 8 if code == k.BOOL else WIDTHS[code] * count), -1, -1

    def describe(self, line: np.ndarray) -> None:
        line[k.S_CODE] = self.code
        line[k.S_FORM] = self.form
        line[k.S_VALID] = self.valid
        line[k.S_DATA] = self._data_items(self.code, self.data)
        line[k.S_OFFSETS] = self.offsets // 4
        line[k.S_POS] = line[k.S_CHARS] = max(self.chars, 0)
        line[k.S_ITEM_VALID] = self.item_valid
        line[k.S_ITEM_DATA] = self._data_items(self.item_code, self.item_data)
        line[k.S_ITEM_OFFSETS] = self.item_offsets // 4

    @staticmethod
    def _data_items(code: int, at: int) -> int:
        return at // min(WIDTHS.get(code, 1), 8)

    def build(self, arena: Arena) -> pa.Array:
        kind = self.column.type
        values, _, items, item_values, *_ = self.sizes
        if not isinstance(kind, Array):
            return self._flat(
                arena, kind, self.code, (self.rows, self.rows - values),
                (self.valid, self.data, self.offsets),
            )  # fmt: skip
        inner = self._flat(
            arena, kind.of, self.item_code, (items, items - item_values),
            (self.item_valid, self.item_data, self.item_offsets),
        )  # fmt: skip
        buffers = [
            arena.buffer(self.valid, (self.rows + 7) // 8),
            arena.buffer(self.offsets, 4 * (self.rows + 1)),
        ]
        return pa.Array.from_buffers(
            arrow_type(kind), self.rows, buffers, self.rows - values, children=[inner]
        )

    def _flat(
        self,
        arena: Arena,
        kind: LogicalType,
        code: int,
        counts: tuple[int, int],
        places: tuple[int, int, int],
    ) -> pa.Array:
        count, nulls = counts
        valid, data, offsets = places
        buffers = [arena.buffer(valid, (count + 7) // 8)]
        wanted = arrow_type(kind)
        if code >= k.TEXT:
            buffers.append(arena.buffer(offsets, 4 * (count + 1)))
            buffers.append(arena.buffer(self.chars, self.sizes[k.Z_CHARS]))
        else:
            size = (count + 7) // 8 if code == k.BOOL else WIDTHS[code] * count
            buffers.append(arena.buffer(data, size))
        sent = pa.string() if code == k.FLOAT_TEXT else wanted
        array = pa.Array.from_buffers(sent, count, buffers, nulls)
        if code == k.FLOAT_TEXT:
            return self._floats(array, wanted)
        if code in (k.TEXT, k.JSONB, k.AS_TEXT):
            self._check_utf8(array)
        return array

    def _floats(self, array: pa.Array, wanted: pa.DataType) -> pa.Array:
        try:
            return pc.cast(array, wanted)
        except pa.ArrowInvalid as err:
            raise ValueFault(
                self._first(array, lambda a: pc.cast(a, wanted)), self.column.name
            ) from err

    def _check_utf8(self, array: pa.Array) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as err:
            row = self._first(array, lambda a: a.validate(full=True))
            raise ValueFault(row, self.column.name, NOT_UTF8) from err

    def _first(self, array: pa.Array, attempt: object) -> int:
        """The first value that fails, found by halving; -1 for array items, whose row is not
        searched."""
        if self.code >= k.ARRAY:
            return -1
        low, high = 0, len(array)
        while high - low > 1:
            mid = (low + high) // 2
            try:
                attempt(array.slice(low, mid - low))  # type: ignore[operator]
                low = mid
            except pa.ArrowInvalid:
                high = mid
        return low


def read_images(
    given: Input, after: list[Column], before: list[Column], where: dict[str, int], keys: np.ndarray
) -> Images:
    """Decode a table's rows. `where` gives each column's number in the messages; `keys` marks the
    key's columns there. Raises ValueFault for the first value that can't be decoded."""
    columns = [*after, *before]
    lines = _lines(columns, where)
    lines[len(after) :, k.S_COLUMN] += len(keys)
    sizes = np.zeros((len(columns), k.Z_FIELDS), np.int64)
    facts = np.zeros(2, np.int64)
    fault, row, slot = k.measure(
        given.body, given.row_at, given.rows, keys, lines, len(after), sizes, facts,
        given.scratch, given.read,
    )  # fmt: skip
    _raise(fault, row, slot, columns)
    count = len(given.rows)
    arena = Arena()
    slots = [
        _Slot(column, int(lines[i, k.S_CODE]), count, sizes[i].tolist())
        for i, column in enumerate(columns)
    ]
    _lay_out(slots, arena)
    width = (len(after) + 7) // 8
    bits = (count + 7) // 8
    partial, sent = (int(f) for f in facts)
    unsent = np.full(3, -1, np.int64)
    if partial:
        unsent[:] = arena.place(bits), arena.place(4 * (count + 1)), arena.place(partial * width)
    struct_valid = arena.place(bits) if before else -1
    views = arena.open()
    for i, slot_ in enumerate(slots):
        slot_.describe(lines[i])
    ops = np.empty(count, np.int8)
    marks = np.array([unsent[0], unsent[1] // 4, unsent[2], 0], np.int64)
    fault, row, slot = k.fill(
        given.body, given.row_at, given.rows, keys, lines, len(after), ops, marks, struct_valid,
        given.scratch, given.read, *views,
    )  # fmt: skip
    _raise(fault, row, slot, columns)
    arrays = [s.build(arena) for s in slots]
    unchanged = pa.nulls(count, pa.binary())
    if partial:
        buffers = [
            arena.buffer(int(unsent[0]), bits),
            arena.buffer(int(unsent[1]), 4 * (count + 1)),
            arena.buffer(int(unsent[2]), partial * width),
        ]
        unchanged = pa.Array.from_buffers(pa.binary(), count, buffers, count - partial)
    old = None
    if before:
        old = pa.Array.from_buffers(
            pa.struct([pa.field(c.name, arrow_type(c.type)) for c in before]),
            count,
            [arena.buffer(struct_valid, bits)],
            count - sent,
            children=arrays[len(after) :],
        )
    return Images(ops, arrays[: len(after)], old, unchanged)


def read_copied(body: np.ndarray, row_at: np.ndarray, columns: list[Column]) -> list[pa.Array]:
    """Decode the rows of a binary COPY. Row r lies in `body` from row_at[r] to row_at[r + 1] and
    has these columns. Raises ValueFault for the first value that can't be decoded."""
    lines = _lines(columns, {c.name: i for i, c in enumerate(columns)})
    sizes = np.zeros((len(columns), k.Z_FIELDS), np.int64)
    scratch = np.empty(1, np.uint8)
    read = Input(body, row_at, row_at, scratch).read
    fault, row, slot = k.measure_copied(body, row_at, lines, sizes, scratch, read)
    _raise(fault, row, slot, columns)
    arena = Arena()
    slots = [
        _Slot(column, int(lines[i, k.S_CODE]), len(row_at) - 1, sizes[i].tolist())
        for i, column in enumerate(columns)
    ]
    _lay_out(slots, arena)
    views = arena.open()
    for i, slot_ in enumerate(slots):
        slot_.describe(lines[i])
    fault, row, slot = k.fill_copied(body, row_at, lines, scratch, read, *views)
    _raise(fault, row, slot, columns)
    return [s.build(arena) for s in slots]


def _lay_out(slots: list[_Slot], arena: Arena) -> None:
    for slot in slots:
        if slot.sizes[k.Z_CHARS] > MAX_CHARS or slot.sizes[k.Z_ITEMS] > MAX_CHARS:
            raise ValueFault(-1, slot.column.name, TOO_LARGE)
        slot.lay_out(arena)


def _lines(columns: list[Column], where: dict[str, int]) -> np.ndarray:
    lines = np.zeros((len(columns), k.S_FIELDS), np.int64)
    for i, column in enumerate(columns):
        kind = column.type.of if isinstance(column.type, Array) else column.type
        lines[i, k.S_COLUMN] = where[column.name]
        lines[i, k.S_CODE] = CODES[column.wire.removesuffix("[]")]
        if isinstance(column.type, Array):
            lines[i, k.S_CODE] += k.ARRAY
        if isinstance(kind, Decimal):
            lines[i, k.S_SCALE], lines[i, k.S_PRECISION] = kind.scale, kind.precision
    return lines


def _raise(fault: int, row: int, slot: int, columns: list[Column]) -> None:
    if fault:
        name = columns[slot].name if slot >= 0 else ""
        raise ValueFault(row, name, REASONS.get(fault, ""))
