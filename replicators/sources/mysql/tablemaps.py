"""Parses TABLE_MAP events with full metadata. Reads no rows.

Event formats: MySQL's `libs/mysql/binlog/event/rows_event.h`, "Table_map_event"; MariaDB writes the
same optional fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from replicators.connectors.model.schema import TableId
from replicators.sources.mysql.offsets import MARIADB

HEADER = 19
(TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR,
    NEWDATE,
 VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2) = range(1, 20)  # fmt: skip
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
VECTOR, JSON, NEWDECIMAL, ENUM, SET = 242, 245, 246, 247, 248
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING, GEOMETRY = range(249, 256)

NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
BLOBS = frozenset({TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB})
CHARACTERS = frozenset({VARCHAR, VAR_STRING, STRING, *BLOBS, BLOB_COMPRESSED, VARCHAR_COMPRESSED})
META_ONE = frozenset(
    {FLOAT, DOUBLE, JSON, GEOMETRY, VECTOR, TIME2, DATETIME2, TIMESTAMP2, *BLOBS, BLOB_COMPRESSED}
)
META_TWO = frozenset({VARCHAR, VAR_STRING, STRING, NEWDECIMAL, BIT, ENUM, SET, VARCHAR_COMPRESSED})
FIXED_BYTES = {
    TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8, FLOAT: 4, DOUBLE: 8, YEAR: 1, DATE: 3,
    NEWDATE: 3, TIME: 3, DATETIME: 8, TIMESTAMP: 4,
}  # fmt: skip
MOMENT_BYTES = {TIME2: 3, DATETIME2: 5, TIMESTAMP2: 4}
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
BINARY_COLLATION = 63
ROW_EVENTS = frozenset({23, 24, 25, 30, 31, 32, 39, *range(166, 172)})
INTEGER_WIRES = {TINY: "tiny", SHORT: "small", INT24: "medium", LONG: "int", LONGLONG: "big"}

(SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME, SET_VALUES, ENUM_VALUES, GEOMETRY_TYPE,
    SIMPLE_KEY,
 PREFIX_KEY, LABEL_DEFAULT_CHARSET, LABEL_CHARSET, VISIBILITY, DIMENSIONS) = range(1,
 14)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MapColumn:
    """A column of a TABLE_MAP. `kind` is its real type (an ENUM's, not STRING), `meta` its two
    bytes of metadata."""

    kind: int
    meta: int
    name: str = ""
    unsigned: bool = False
    collation: int = 0
    labels: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class TableMap:
    """A TABLE_MAP event. `has_names`: binlog_row_metadata was FULL."""

    number: int
    table: TableId
    columns: tuple[MapColumn, ...]
    has_names: bool


def maps_in_use(maps: Mapping[int, bytes], body: bytes) -> list[bytes]:
    """The TABLE_MAP events that rows may still need, by number and in the order in which they came:
    the last one of each table, and those of the rows in `body` (framed events)."""
    needed = set({table_name(event)[1]: number for number, event in maps.items()}.values())
    at = 0
    while at < len(body):
        if body[at + 8] in ROW_EVENTS:
            needed.add(int.from_bytes(body[at + 4 + HEADER : at + 10 + HEADER], "little"))
        at += 4 + int.from_bytes(body[at : at + 4], "little")
    return [event for number, event in maps.items() if number in needed]


class Reader:
    """Reads fields from bytes one by one; ValueError past their end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        if size < 0 or size > self.left:
            raise ValueError("event too short")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """A length-encoded integer."""
        first = self.number(1)
        if first < 251:
            return first
        if first == 251 or first == 255:
            raise ValueError("not a length")
        return self.number({252: 2, 253: 3, 254: 8}[first])

    def text(self) -> bytes:
        return self.take(self.packed())


def table_name(event: bytes | memoryview) -> tuple[int, TableId]:
    """Number and name of a TABLE_MAP event (with its header); ValueError where it is damaged."""
    reader = Reader(bytes(event), HEADER)
    number = reader.number(6)
    reader.take(2)
    schema = reader.take(reader.number(1)).decode()
    reader.take(1)
    name = reader.take(reader.number(1)).decode()
    return number, TableId(schema, name)


def parse_map(event: bytes, flavour: str) -> TableMap:
    """A TABLE_MAP event with its header, without its checksum; ValueError where it is damaged."""
    number, table = table_name(event)
    reader = Reader(event, HEADER + 8)
    for _ in range(2):
        size = reader.number(1)
        reader.take(size)
        if reader.take(1) != b"\0":
            raise ValueError("a name has no end")
    count = reader.packed()
    if not 0 < count <= 4096:
        raise ValueError("no columns, or too many")
    kinds = list(reader.take(count))
    columns = _with_meta(kinds, Reader(reader.text()))
    reader.take((count + 7) // 8)
    fields: dict[int, bytes] = {}
    while reader.left:
        kind = reader.number(1)
        fields[kind] = reader.text()
    return TableMap(number, table, _with_fields(columns, fields, flavour), COLUMN_NAME in fields)


def _with_meta(kinds: list[int], meta: Reader) -> list[MapColumn]:
    columns = []
    for kind in kinds:
        value = 0
        if kind in META_ONE:
            value = meta.number(1)
        elif kind in META_TWO:
            value = meta.number(2)
        if kind == STRING:
            kind, value = _string(value & 0xFF, value >> 8)
        columns.append(MapColumn(kind, value))
    if meta.left:
        raise ValueError("more metadata than columns")
    return columns


def _string(first: int, second: int) -> tuple[int, int]:
    """The real type behind STRING, which stands for CHAR, ENUM and SET. CHAR hides two bits of its
    length in the type."""
    if first in (ENUM, SET):
        return first, second
    if first & 0x30 != 0x30:
        return STRING, second | (((first & 0x30) ^ 0x30) << 4)
    return STRING, second


def _with_fields(
    columns: list[MapColumn], fields: Mapping[int, bytes], flavour: str
) -> tuple[MapColumn, ...]:
    found = list(columns)
    _signs(found, fields)
    # MariaDB also tells the character set of geometries.
    characters = CHARACTERS | {GEOMETRY} if flavour == MARIADB else CHARACTERS
    _collations(found, fields, characters, DEFAULT_CHARSET, COLUMN_CHARSET)
    _collations(found, fields, frozenset({ENUM, SET}), LABEL_DEFAULT_CHARSET, LABEL_CHARSET)
    for kind, field in ((SET, SET_VALUES), (ENUM, ENUM_VALUES)):
        reader = Reader(fields.get(field, b""))
        for i, column in enumerate(found):
            if column.kind == kind and reader.left:
                values = tuple(reader.text() for _ in range(reader.packed()))
                found[i] = replace(column, labels=values)
    if COLUMN_NAME in fields:
        reader = Reader(fields[COLUMN_NAME])
        found = [replace(c, name=reader.text().decode()) for c in found]
        if reader.left:
            raise ValueError("more names than columns")
    return tuple(found)


def _signs(columns: list[MapColumn], fields: Mapping[int, bytes]) -> None:
    """Set the signs of numeric columns: one bit each."""
    bits = fields.get(SIGNEDNESS, b"")
    for n, i in enumerate(i for i, c in enumerate(columns) if c.kind in NUMERIC):
        if n >> 3 < len(bits) and bits[n >> 3] & (0x80 >> (n & 7)):
            columns[i] = replace(columns[i], unsigned=True)


def _collations(
    columns: list[MapColumn],
    fields: Mapping[int, bytes],
    kinds: frozenset[int],
    default: int,
    each: int,
) -> None:
    places = [i for i, c in enumerate(columns) if c.kind in kinds]
    if default in fields:
        reader = Reader(fields[default])
        numbers = dict.fromkeys(range(len(places)), reader.packed())
        while reader.left:
            place = reader.packed()
            numbers[place] = reader.packed()
    elif each in fields:
        reader = Reader(fields[each])
        numbers = {n: reader.packed() for n in range(len(places))}
    else:
        return
    for n, i in enumerate(places):
        columns[i] = replace(columns[i], collation=numbers[n])


def length_rule(column: MapColumn) -> tuple[int, int]:
    """The length of a column's values in a row: (0, bytes), or (size of the length before each
    value, 0). ValueError for unknown types."""
    kind, meta = column.kind, column.meta
    if kind in FIXED_BYTES:
        return 0, FIXED_BYTES[kind]
    if kind in MOMENT_BYTES:
        if meta > 6:
            raise ValueError("too many digits of a second")
        return 0, MOMENT_BYTES[kind] + (meta + 1) // 2
    if kind in (NEWDECIMAL, BIT, ENUM, SET):
        return 0, {NEWDECIMAL: _decimal_bytes, BIT: _bit_bytes}.get(kind, _label_bytes)(column)
    if kind in (VARCHAR, VAR_STRING, STRING, VARCHAR_COMPRESSED):
        return (2 if meta > 255 else 1), 0
    if kind in BLOBS or kind in (JSON, GEOMETRY, VECTOR, BLOB_COMPRESSED):
        if not 0 < meta <= 4:
            raise ValueError("not a length of a length")
        return meta, 0
    raise ValueError(f"unknown column type {kind}")


def _decimal_bytes(column: MapColumn) -> int:
    precision, scale = column.meta & 0xFF, column.meta >> 8
    if not 0 < precision <= 65 or scale > min(precision, 30 + 8):
        raise ValueError("not a decimal")
    return sum(n // 9 * 4 + DIGIT_BYTES[n % 9] for n in (precision - scale, scale))


def _bit_bytes(column: MapColumn) -> int:
    bits, full = column.meta & 0xFF, column.meta >> 8
    if bits > 7 or not 0 < full * 8 + bits <= 64:
        raise ValueError("not a bit field")
    return full + (bits > 0)


def _label_bytes(column: MapColumn) -> int:
    if not 0 < column.meta <= (2 if column.kind == ENUM else 8):
        raise ValueError("not an enum or set")
    return column.meta
