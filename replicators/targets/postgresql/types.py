"""PostgreSQL's types for neutral types, and for the columns of a source that is PostgreSQL too.

`fit` knows only the neutral type. `fit_column` also reads `Column.native`, the type's text at the
source, and keeps a type that the neutral types carry as text. A text of another source's type that
looks alike stands for the same thing, or the neutral type tells them apart. Asks no server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from replicators.connectors.fits import TypeTable, as_text, integers, widened
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Enum,
    Json,
    String,
)
from replicators.connectors.target import Fit, FitKind

EXTENSIONS = ("citext", "hstore")
"""Types that come with an extension of the same name."""

_PRINTED = (
    "bit", "bit varying", "box", "cidr", "circle", "inet", "interval", "line", "lseg", "macaddr",
    "macaddr8", "money", "path", "pg_lsn", "point", "polygon", "tsquery", "tsvector", "xml",
    "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange",
    "int4multirange", "int8multirange", "nummultirange", "tsmultirange", "tstzmultirange",
    "datemultirange", "citext", "hstore",
)  # fmt: skip
_SAME = re.compile(
    r"(?:interval [a-z ]+(?:\(\d\))?|interval\(\d\)|bit(?: varying)?\(\d+\)"
    r"|time(?:\(\d\))? with time zone|" + "|".join(_PRINTED) + ")"
)
_NUMBER = re.compile(r"(?:numeric|decimal)(\(\d+,-?\d+\)|\(\d+\))?(?: unsigned)?(?: zerofill)?")
_EXTENSION = re.compile(r'(?:"[^"]+"\.|\w+\.)?(' + "|".join(EXTENSIONS) + ")")
_NAME = re.compile(r'(?:("(?:[^"]|"")+"|[^".()\s]+)\.)?("(?:[^"]|"")+"|[^".()\s]+)')


def _of_items(items: Fit) -> Fit:
    if items.kind is FitKind.UNSUPPORTED:
        return items
    return replace(items, native=f"{items.native}[]")


TYPES = TypeTable(
    boolean="boolean",
    integer=integers(
        {8: widened("smallint"), 16: "smallint", 32: "integer", 64: "bigint"},
        {
            8: widened("smallint"),
            16: widened("integer"),
            32: widened("bigint"),
            64: widened("numeric(20,0)"),
        },
    ),
    decimal=lambda kind: f"numeric({kind.precision},{kind.scale})",
    floats={32: "real", 64: "double precision"},
    text="text",
    binary="bytea",
    date="date",
    time="time without time zone",
    timestamp="timestamp without time zone",
    moment="timestamp with time zone",
    json="json",
    uuid="uuid",
    enum=as_text("text"),
    array=lambda _, items: _of_items(items),
)
fit = TYPES.fit


def fit_column(column: Column) -> Fit:
    """The type for a column. A type of PostgreSQL itself stays what it is."""
    match column.type:
        case Array(of=of):
            return _of_items(fit_column(replace(column, type=of, native=_item(column.native))))
        case Json() if column.native == "jsonb":
            return Fit(FitKind.EXACT, "jsonb", is_own=True)
        case Enum():
            enum = enum_name(column)
            if enum:
                return Fit(FitKind.EXACT, quoted(enum[1]), is_own=True)
        case String():
            native = _text_native(column.native)
            if native:
                return Fit(FitKind.EXACT, native, is_own=True)
    return fit(column.type)


def _item(native: str) -> str:
    return native.removesuffix("[]")


def _text_native(native: str) -> str:
    """The type of values that are carried as text: PostgreSQL's own, or empty."""
    number = _NUMBER.fullmatch(native)
    if number:
        return f"numeric{number[1] or ''}"
    extension = _EXTENSION.fullmatch(native)
    if extension:
        return extension[1]
    return native if _SAME.fullmatch(native) else ""


def enum_name(column: Column) -> tuple[str, str] | None:
    """Schema and name of the enum type that the column (or an array's item) has at a PostgreSQL
    source; None for other columns and sources."""
    kind, native = column.type, column.native
    if isinstance(kind, Array):
        kind, native = kind.of, _item(native)
    if not isinstance(kind, Enum):
        return None
    found = _NAME.fullmatch(native)
    return (_plain(found[1] or "public"), _plain(found[2])) if found else None


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def quoted(name: str) -> str:
    """A name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def extension_of(column: Column) -> str:
    """The extension that the column's type comes with; empty where it needs none."""
    native = fit_column(column).native.removesuffix("[]")
    return native if native in EXTENSIONS else ""


def enum_type(column: Column, schema: str) -> str:
    """The target's enum type for a column, quoted; empty for other columns. It lies in the target's
    `schema`, or where that is empty in the schema that has its name at the source. Types of two
    schemas that become one have the labels of both."""
    found = enum_name(column)
    return f"{quoted(schema or found[0])}.{quoted(found[1])}" if found else ""


def native(
    column: Column, schema: str = "", extensions: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The type's text in a statement. `schema` is the target's, where it has one for all tables.
    `extensions` are the server's, each with its schema. A type of an extension that it does not
    have becomes text."""
    tail = "[]" if isinstance(column.type, Array) else ""
    enum, extension = enum_type(column, schema), extension_of(column)
    if enum:
        return f"{enum}{tail}"
    if extension and extension not in extensions:
        return f"text{tail}"
    if extension:
        return f"{quoted(extensions[extension])}.{extension}{tail}"
    return fit_column(column).native


TYPE_SHOWN = """
CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN format_type(a.atttypid, a.atttypmod)
     ELSE (SELECT '"' || replace(m.nspname, '"', '""') || '".'
                  || CASE WHEN e.typtype = 'e' THEN '"' || replace(e.typname, '"', '""') || '"'
                          ELSE e.typname END
                  || CASE WHEN e.oid <> t.oid THEN '[]' ELSE '' END
           FROM pg_catalog.pg_type e JOIN pg_catalog.pg_namespace m ON m.oid = e.typnamespace
           WHERE e.oid = CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE t.oid END)
END"""
"""A column's type as `native` spells it, from rows `a` of pg_attribute and `t` of pg_type."""

_WIDER = {
    "smallint": ("integer", "bigint", "numeric"),
    "integer": ("bigint", "numeric"),
    "bigint": ("numeric",),
    "real": ("double precision",),
    "json": ("text",),
    "uuid": ("text",),
}
_PARAMETERS = re.compile(r"(\w+)\((\d+),(\d+)\)")


def is_wider(live: str, wanted: str) -> bool:
    """Whether a column may change from one type to another in place: every value stays equal. A
    type that a person would call narrower never is."""
    old, new = _PARAMETERS.fullmatch(live), _PARAMETERS.fullmatch(wanted)
    if live.endswith("[]") or wanted.endswith("[]"):
        both = live.endswith("[]") and wanted.endswith("[]")
        return both and is_wider(live.removesuffix("[]"), wanted.removesuffix("[]"))
    if wanted == "numeric":
        return old is not None or "numeric" in _WIDER.get(live, ())
    if old and new:
        whole = int(new[2]) - int(new[3]) - int(old[2]) + int(old[3])
        return whole >= 0 and int(new[3]) >= int(old[3])
    if new and live in _DIGITS:
        return int(new[2]) - int(new[3]) >= _DIGITS[live]
    if wanted == "text":
        return live in ("json", "uuid", "xml", "citext") or live.startswith('"')
    return wanted in _WIDER.get(live, ())


_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
