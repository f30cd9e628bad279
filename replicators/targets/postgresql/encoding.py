"""Arrow rows as the bytes of a COPY, without a Python object for a row.

Binary where every column has a binary form here (`kernels`), otherwise text, which the server
parses by each type's own input function. Opens no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.errors import InvalidBinaryRepresentation

from replicators.targets.postgresql import kernels as k

HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
EPOCH_DAYS = 10_957
EPOCH_MICROS = 946_684_800_000_000

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
NO_MASK: Mask = np.empty(0, np.bool_)

ITEM_OIDS = {
    "boolean": 16, "smallint": 21, "integer": 23, "bigint": 20, "real": 700,
    "double precision": 701, "numeric": 1700, "date": 1082, "time without time zone": 1083,
    "timestamp without time zone": 1114, "timestamp with time zone": 1184, "text": 25,
    "bytea": 17, "json": 114, "jsonb": 3802, "uuid": 2950,
}  # fmt: skip
"""The types that have a binary form here, without parameters."""
_STRINGS = frozenset({"text", "json", "jsonb", "uuid"})
_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.uint8(), "smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64(),
    "real": pa.float32(), "double precision": pa.float64(), "date": pa.date32(),
    "time without time zone": pa.time64("us"), "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"), "bytea": pa.large_binary(),
}  # fmt: skip


class UnfitValue(InvalidBinaryRepresentation):
    """A value that its column can't take, with the server's own code for that."""

    def __init__(self, column: str, reason: str) -> None:
        self.reason = f"column {column}: {reason}"
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the statement: its name, the text of its type at the server, and the labels that
    it is known to have if it is an enum."""

    name: str
    native: str
    labels: tuple[str, ...] | None = None


def base_of(native: str) -> str:
    """The type without its parameters and without the sign of an array."""
    return native.removesuffix("[]").split("(")[0].strip()


def is_binary(native: str, kind: pa.DataType) -> bool:
    """Whether values of this Arrow type have a binary form as the server's type."""
    base = base_of(native)
    if pa.types.is_list(kind) != native.endswith("[]"):
        return False
    item = kind.value_type if pa.types.is_list(kind) else kind
    if base == "numeric":
        return bool(pa.types.is_decimal128(item)) and item.scale >= 0
    if base in _STRINGS:
        return bool(pa.types.is_string(item) or pa.types.is_large_string(item))
    return base in ITEM_OIDS


class Encoder:
    """Encodes batches for one COPY statement, whose format `is_binary` says."""

    def __init__(self, fields: Sequence[Field], schema: pa.Schema) -> None:
        self.fields = tuple(fields)
        kinds = [schema.field(f.name).type for f in fields]
        self.is_binary = all(is_binary(f.native, t) for f, t in zip(fields, kinds, strict=True))
        self.head = HEAD if self.is_binary else b""
        self.tail = TRAILER if self.is_binary else b""

    def encode(self, batch: pa.RecordBatch) -> memoryview:
        """The rows' bytes. Raises `UnfitValue`."""
        arrays = [batch.column(batch.schema.get_field_index(f.name)) for f in self.fields]
        if not batch.num_rows:
            return memoryview(b"")
        return _binary(self.fields, arrays) if self.is_binary else _text(self.fields, arrays)


# --- binary ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Values:
    """A column's values: the bytes that each takes without its length, and what writes them."""

    sizes: int | Ints
    valid: Mask
    put: Callable[[Bytes, Ints], None]


def _binary(fields: Sequence[Field], arrays: Sequence[pa.Array]) -> memoryview:
    rows = len(arrays[0])
    values = [_values(f, a) for f, a in zip(fields, arrays, strict=True)]
    out, pos, _ = _room(rows, 2, values)
    k.put_count(out, pos, len(values))
    for one in values:
        one.put(out, pos)
    return memoryview(out.data)


def _room(rows: int, head: int, values: Sequence[_Values]) -> tuple[Bytes, Ints, Ints]:
    """Room for rows of these values: the bytes, where each row begins, and these with the end."""
    sizes = np.full(rows, head + 4 * len(values), np.int64)
    for one in values:
        sizes += np.where(one.valid, one.sizes, 0) if len(one.valid) else one.sizes
    ends = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return np.empty(int(ends[-1]), np.uint8), ends[:-1].copy(), ends


def _values(field: Field, array: pa.Array) -> _Values:
    valid = _mask(array)
    base = base_of(field.native)
    if pa.types.is_list(array.type):
        return _array(field, array, valid)
    if base == "numeric":
        return _decimal(array, valid)
    if base in _STRINGS:
        return _chars(field, array, valid, base)
    try:
        array = array.cast(_ARROW[base])
    except pa.ArrowInvalid as err:
        raise UnfitValue(field.name, "the number is too large for its column") from err
    if base == "bytea":
        return _chars(field, array, valid, base)
    return _fixed(base, array, valid)


def _mask(array: pa.Array) -> Mask:
    if not array.null_count:
        return NO_MASK
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def _numbers(array: pa.Array, kind: Any, width: int = 1) -> Any:
    """The values of an array of fixed width, `width` numbers each, without a copy."""
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, kind)
    first, count = array.offset * width, len(array) * width
    return np.frombuffer(data, kind, count, first * np.dtype(kind).itemsize)


def _fixed(base: str, array: pa.Array, valid: Mask) -> _Values:
    match base:
        case "boolean":
            data = _numbers(array, np.uint8)
            return _Values(1, valid, lambda out, pos: k.put1(out, pos, valid, data))
        case "smallint":
            data = _numbers(array, np.int16)
            return _Values(2, valid, lambda out, pos: k.put2(out, pos, valid, data))
        case "integer" | "real" | "date":
            data, less = _numbers(array, np.int32), EPOCH_DAYS if base == "date" else 0
            return _Values(4, valid, lambda out, pos: k.put4(out, pos, valid, data, less))
    data = _numbers(array, np.int64)
    moved = EPOCH_MICROS if base.startswith("timestamp") else 0
    return _Values(8, valid, lambda out, pos: k.put8(out, pos, valid, data, moved))


def _decimal(array: pa.Array, valid: Mask) -> _Values:
    kind = array.type
    parts = -(-kind.scale // 4)
    whole = max(1, -(-(kind.precision - kind.scale) // 4))
    factor = 10 ** (4 * parts - kind.scale)
    words = _numbers(array, np.uint64, 2)
    return _Values(
        8 + 2 * (whole + parts),
        valid,
        lambda out, pos: k.put_decimal(out, pos, valid, words, whole, parts, factor, kind.scale),
    )


def _offsets(array: pa.Array) -> Any:
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    kind = np.int64 if is_large else np.int32
    return np.frombuffer(
        array.buffers()[1], kind, len(array) + 1, array.offset * np.dtype(kind).itemsize
    )


def _chars(field: Field, array: pa.Array, valid: Mask, base: str) -> _Values:
    offsets = _offsets(array)
    body = array.buffers()[2]
    data = np.frombuffer(body, np.uint8) if body is not None else np.empty(0, np.uint8)
    if base == "uuid":
        return _Values(16, valid, lambda out, pos: _uuids(field, out, pos, valid, offsets, data))
    version = 1 if base == "jsonb" else -1
    sizes = np.diff(offsets).astype(np.int64) + (version > 0)
    return _Values(
        sizes, valid, lambda out, pos: k.put_chars(out, pos, valid, offsets, data, version)
    )


def _uuids(field: Field, out: Bytes, pos: Ints, valid: Mask, offsets: Any, data: Bytes) -> None:
    if k.put_uuid(out, pos, valid, offsets, data) >= 0:
        raise UnfitValue(field.name, "the value is not a UUID")


def _array(field: Field, array: pa.Array, valid: Mask) -> _Values:
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    first, end = int(offsets[0]), int(offsets[-1])
    items = array.values.slice(first, end - first)
    inner = _values(Field(field.name, field.native.removesuffix("[]")), items)
    body, pos, item_at = _room(len(items), 0, [inner])
    inner.put(body, pos)
    starts = (offsets - first).astype(np.int64)
    counts = np.diff(starts)
    sizes = np.where(counts > 0, 20 + item_at[starts[1:]] - item_at[starts[:-1]], 12)
    oid, has_nulls = ITEM_OIDS[base_of(field.native)], int(bool(items.null_count))
    return _Values(
        sizes,
        valid,
        lambda out, pos: k.put_array(out, pos, valid, starts, body, item_at, oid, has_nulls),
    )


# --- text -----------------------------------------------------------------------------------------

_HEX = np.frombuffer(b"".join(f"{v:02x}".encode() for v in range(256)), np.uint16)
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def _text(fields: Sequence[Field], arrays: Sequence[pa.Array]) -> memoryview:
    shown = [_escaped(_shown(f, a)) for f, a in zip(fields, arrays, strict=True)]
    tab, end = pa.scalar("\t", pa.large_string()), pa.scalar("\n", pa.large_string())
    rows = pc.binary_join_element_wise(*shown, tab, null_handling="replace", null_replacement="\\N")
    lines = pc.binary_join_element_wise(rows, pa.scalar("", pa.large_string()), end)
    offsets = _offsets(lines)
    return memoryview(lines.buffers()[2])[int(offsets[0]) : int(offsets[-1])]


def _escaped(array: pa.Array) -> pa.Array:
    for plain, told in _ESCAPES:
        array = pc.replace_substring(array, plain, told)
    return array


def _shown(field: Field, array: pa.Array) -> pa.Array:
    """The values as the server reads them."""
    kind = array.type
    if pa.types.is_list(kind):
        return _shown_arrays(field, array)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _hex(array)
    if pa.types.is_timestamp(kind) and kind.tz:
        plain = array.cast(pa.timestamp(kind.unit)).cast(pa.large_string())
        return pc.binary_join_element_wise(plain, _large("Z"), _large(""))
    return array.cast(pa.large_string())


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _hex(array: pa.Array) -> pa.Array:
    array = array.cast(pa.large_binary())
    offsets = _offsets(array)
    first, end = int(offsets[0]), int(offsets[-1])
    body = array.buffers()[2]
    data = np.frombuffer(body, np.uint8)[first:end] if body is not None else np.empty(0, np.uint8)
    shown = pa.Array.from_buffers(
        pa.large_string(),
        len(array),
        [None, pa.py_buffer(2 * (offsets - first)), pa.py_buffer(_HEX[data])],
    )
    told = pc.binary_join_element_wise(_large("\\x"), shown, _large(""))
    return pc.if_else(array.is_valid(), told, pa.scalar(None, pa.large_string()))


def _shown_arrays(field: Field, array: pa.Array) -> pa.Array:
    items = _shown(Field(field.name, field.native.removesuffix("[]")), array.values)
    items = pc.replace_substring(pc.replace_substring(items, "\\", "\\\\"), '"', '\\"')
    told = pc.binary_join_element_wise(_large('"'), items, _large('"'), _large(""))
    told = pc.fill_null(told, "NULL")
    lists = pa.ListArray.from_arrays(array.offsets, told.cast(pa.string()))
    joined = pc.binary_join(lists, ",").cast(pa.large_string())
    whole = pc.binary_join_element_wise(_large("{"), joined, _large("}"), _large(""))
    return pc.if_else(array.is_valid(), whole, pa.scalar(None, pa.large_string()))


def warm() -> None:
    """Compile the loops, or load them from numba's cache: each with and without NULL."""
    for values in ([None], []):
        arrays = {
            "boolean": pa.array(values, pa.bool_()),
            "smallint": pa.array(values, pa.int16()),
            "integer": pa.array(values, pa.int32()),
            "bigint": pa.array(values, pa.int64()),
            "bigint[]": pa.array(values, pa.list_(pa.int64())),
            "numeric": pa.array(values, pa.decimal128(12, 2)),
            "text": pa.array(values, pa.string()),
            "uuid": pa.array(values, pa.string()),
            "bytea": pa.array(values, pa.binary()),
        }
        fields = [Field(name, name) for name in arrays]
        _binary(fields, list(arrays.values()))
