"""PostgreSQL's types in neutral words, as a table; what is not in it is `Unsupported`. Reads no
catalog.

`column_type` gives beside the neutral type the `wire` word: how values look in log and snapshot.

| wire | binary form | text form |
|---|---|---|
| `bool int2 int4 int8 oid float4 float8` | big-endian | PostgreSQL's text |
| `numeric`, `numeric_text` | base-10000 digits | PostgreSQL's text; the second is kept as text |
| `text` | the text itself (text, varchar, bpchar, name, citext, xml, json, enums) | the same |
| `jsonb` | one version byte, then the text | the text |
| `uuid bytea date time timestamp timestamptz` | PostgreSQL's binary | PostgreSQL's text |
| `as_text` | not decoded: the stream has to be in text | PostgreSQL's text, kept |
| `<wire>[]` | one-dimensional array of one of these | `{...}` |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Unsupported,
    Uuid,
)

FIRST_USER_OID = 16384
MAX_DECIMAL_PRECISION = 38


@dataclass(frozen=True, slots=True)
class NativeType:
    """A row of pg_type with the column's typmod: `name` is typname, `kind` is typtype (b e d c r
    m).

    `element` is set for true arrays, `base` for domains (with the domain's typmod), `labels` for
    enums.
    """

    oid: int
    name: str
    typmod: int = -1
    kind: str = "b"
    element: NativeType | None = None
    base: NativeType | None = None
    labels: tuple[str, ...] = ()


Known = tuple[LogicalType, str]


def column_type(native: NativeType) -> Known:
    """The neutral type and the wire word of a `native` column; `Unsupported` and "" for an unknown
    type."""
    if native.kind == "d" and native.base is not None:
        return column_type(native.base)
    if native.kind == "e":
        return Enum(native.labels), "text"
    if native.kind in ("r", "m"):
        return String(), "as_text"
    is_ours = native.oid < FIRST_USER_OID or native.name in EXTENSION_TYPES
    if native.kind == "b" and is_ours and native.name in SCALARS:
        return SCALARS[native.name](native.typmod)
    if native.element is not None and native.name not in NOT_ARRAYS:
        return _array(native, native.element)
    return Unsupported(native.name), ""


def builtin_type(oid: int, typmod: int) -> NativeType | None:
    """The built-in type with this OID; None for types made by users or extensions."""
    if oid in _NAMES:
        return NativeType(oid, _NAMES[oid], typmod)
    if oid in _ELEMENTS:
        element = _ELEMENTS[oid]
        name = _NAMES[element]
        return NativeType(oid, f"_{name}", typmod, element=NativeType(element, name, typmod))
    return None


def _array(native: NativeType, element: NativeType) -> Known:
    if element.typmod == -1 and native.typmod != -1:
        element = replace(element, typmod=native.typmod)
    of, wire = column_type(element)
    if isinstance(of, (Unsupported, Array)) or _is_box(element):
        return Unsupported(native.name), ""
    return Array(of), f"{wire}[]"


def _is_box(native: NativeType) -> bool:
    """Whether this is `box` or a domain over it: the only type whose arrays have another
    delimiter."""
    return native.name == "box" if native.base is None else _is_box(native.base)


def _numeric(typmod: int) -> Known:
    if typmod < 4:
        return String(), "numeric_text"
    precision = ((typmod - 4) >> 16) & 0xFFFF
    scale = (((typmod - 4) & 0x7FF) ^ 1024) - 1024
    if precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision:
        return Decimal(precision, scale), "numeric"
    return String(), "numeric_text"


def _characters(typmod: int) -> Known:
    return String(typmod - 4 if typmod >= 4 else None), "text"


def _seconds_digits(typmod: int) -> int:
    return typmod if 0 <= typmod <= 6 else 6


def _fixed(kind: LogicalType, wire: str) -> Callable[[int], Known]:
    return lambda _typmod: (kind, wire)


_AS_TEXT = _fixed(String(), "as_text")

SCALARS: dict[str, Callable[[int], Known]] = {
    "bool": _fixed(Boolean(), "bool"),
    "int2": _fixed(Int(16), "int2"),
    "int4": _fixed(Int(32), "int4"),
    "int8": _fixed(Int(64), "int8"),
    "oid": _fixed(Int(64), "oid"),
    "float4": _fixed(Float(32), "float4"),
    "float8": _fixed(Float(64), "float8"),
    "numeric": _numeric,
    "text": _fixed(String(), "text"),
    "varchar": _characters,
    "bpchar": _characters,
    "name": _fixed(String(), "text"),
    "citext": _fixed(String(), "text"),
    "xml": _fixed(String(), "text"),
    "json": _fixed(Json(), "text"),
    "jsonb": _fixed(Json(), "jsonb"),
    "uuid": _fixed(Uuid(), "uuid"),
    "bytea": _fixed(Bytes(), "bytea"),
    "date": _fixed(Date(), "date"),
    "time": lambda typmod: (Time(_seconds_digits(typmod)), "time"),
    "timestamp": lambda typmod: (Timestamp(_seconds_digits(typmod), zone=False), "timestamp"),
    "timestamptz": lambda typmod: (Timestamp(_seconds_digits(typmod), zone=True), "timestamptz"),
    "char": _AS_TEXT,
    "timetz": _AS_TEXT,
    "interval": _AS_TEXT,
    "money": _AS_TEXT,
    "inet": _AS_TEXT,
    "cidr": _AS_TEXT,
    "macaddr": _AS_TEXT,
    "macaddr8": _AS_TEXT,
    "pg_lsn": _AS_TEXT,
    "tsvector": _AS_TEXT,
    "tsquery": _AS_TEXT,
    "bit": _AS_TEXT,
    "varbit": _AS_TEXT,
    "point": _AS_TEXT,
    "line": _AS_TEXT,
    "lseg": _AS_TEXT,
    "box": _AS_TEXT,
    "path": _AS_TEXT,
    "polygon": _AS_TEXT,
    "circle": _AS_TEXT,
    "hstore": _AS_TEXT,
}
EXTENSION_TYPES = frozenset({"citext", "hstore"})
NOT_ARRAYS = frozenset({"int2vector", "oidvector"})

_SCALAR_WIRES = (
    "bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "numeric_text", "text",
    "jsonb", "uuid", "bytea", "date", "time", "timestamp", "timestamptz",
)  # fmt: skip

BINARY_WIRES: frozenset[str] = frozenset({w + tail for w in _SCALAR_WIRES for tail in ("", "[]")})

_NUMERIC_REASON = (
    "it is carried as text: only numbers of a fixed precision of at most 38 digits "
    "have an exact type"
)
_TEXT_REASON = "it is carried as text, as PostgreSQL prints it"
_ARRAY_REASON = "only one-dimensional arrays can be copied; another lower bound than 1 is not kept"

PARTIAL: dict[str, str] = {
    "numeric_text": _NUMERIC_REASON,
    "as_text": _TEXT_REASON,
    **{f"{wire}[]": _ARRAY_REASON for wire in _SCALAR_WIRES},
    "numeric_text[]": f"{_ARRAY_REASON}; {_NUMERIC_REASON}",
    "as_text[]": f"{_ARRAY_REASON}; {_TEXT_REASON}",
}

OWN: dict[str, str] = {
    "numeric_text": "",
    "as_text": "",
    "numeric_text[]": _ARRAY_REASON,
    "as_text[]": _ARRAY_REASON,
}
"""As `PARTIAL`, where the target has the column's own type."""

_OIDS: dict[str, tuple[int, int]] = {
    "bool": (16, 1000), "bytea": (17, 1001), "char": (18, 1002), "name": (19, 1003),
    "int8": (20, 1016), "int2": (21, 1005), "int4": (23, 1007), "text": (25, 1009),
    "oid": (26, 1028),
    "json": (114, 199), "xml": (142, 143), "point": (600, 1017), "lseg": (601, 1018),
    "path": (602, 1019), "box": (603, 1020), "polygon": (604, 1027), "line": (628, 629),
    "cidr": (650, 651), "float4": (700, 1021), "float8": (701, 1022), "circle": (718, 719),
    "macaddr8": (774, 775), "money": (790, 791), "macaddr": (829, 1040), "inet": (869, 1041),
    "bpchar": (1042, 1014), "varchar": (1043, 1015), "date": (1082, 1182), "time": (1083, 1183),
    "timestamp": (1114, 1115), "timestamptz": (1184, 1185), "interval": (1186, 1187),
    "timetz": (1266, 1270), "bit": (1560, 1561), "varbit": (1562, 1563), "numeric": (1700, 1231),
    "uuid": (2950, 2951), "pg_lsn": (3220, 3221), "tsvector": (3614, 3643), "tsquery": (3615, 3645),
    "jsonb": (3802, 3807),
}  # fmt: skip
_NAMES = {oid: name for name, (oid, _) in _OIDS.items()}
_ELEMENTS = {array: oid for oid, array in _OIDS.values()}
