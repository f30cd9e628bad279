"""What may stand in a column of each type of PostgreSQL, as hypothesis draws it: texts that the
server reads as values."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]
TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'very \"happy\", {so}', 'Ω')",
    "CREATE DOMAIN price AS numeric(8,2)",
    "CREATE DOMAIN padded AS char(4)",
    "CREATE DOMAIN host AS inet",
    "CREATE DOMAIN words AS text[]",
    "CREATE TYPE floats AS RANGE (subtype = float8)",
)
INFINITE = ("infinity", "-infinity", "0044-03-15 BC")


@dataclass(frozen=True)
class Kind:
    """A column's type, what may be in it, and values that have no place in a lakehouse. `name`: the
    entry of the type table that it stands for; "" for domains, enums and ranges."""

    sql: str
    values: Texts
    name: str = ""
    unsupported: tuple[str, ...] = ()


def either(*edges: str) -> Texts:
    return st.sampled_from(edges)


def integers(least: int, most: int) -> Texts:
    return (st.sampled_from([least, most, 0]) | st.integers(least, most)).map(str)


def decimals(digits: int, scale: int) -> Texts:
    most = 10**digits - 1

    def spelled(number: int) -> str:
        figures = f"{abs(number):0{scale + 1}}"
        at = len(figures) - scale
        return f"{'-' if number < 0 else ''}{figures[:at]}.{figures[at:]}"

    edges = st.sampled_from([0, 1, -1, most, -most, 10000, -(10 ** (digits // 2))])
    return (edges | st.integers(-most, most)).map(spelled)


def floats(width: int, *, is_finite: bool = False) -> Texts:
    words = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    edges = st.sampled_from([0.0, -0.0, 0.5, 1e15, 1e16, 1e-5])
    drawn = st.floats(width=width, allow_nan=not is_finite, allow_infinity=not is_finite)
    return (edges | drawn).map(repr).map(lambda text: words.get(text, text))


def seconds(digits: int) -> st.SearchStrategy[int]:
    """Microseconds that need no rounding."""
    step = 10 ** (6 - digits)
    return st.integers(0, 10**digits - 1).map(lambda n: n * step)


def times(digits: int) -> Texts:
    drawn = st.builds(dt.time.replace, st.times(), microsecond=seconds(digits))
    return (st.sampled_from([dt.time(0), dt.time(23, 59, 59)]) | drawn).map(str)


def moments(digits: int, tail: str = "") -> Texts:
    drawn = st.builds(dt.datetime.replace, st.datetimes(), microsecond=seconds(digits))
    first, last = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    last = last.replace(microsecond=last.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits))
    edges = st.sampled_from(
        [first, last, dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2000, 1, 1)]
    )
    return (edges | drawn).map(lambda moment: moment.isoformat(" ") + tail)


def joined(parts: Sequence[Texts], form: str) -> Texts:
    return st.tuples(*parts).map(lambda drawn: form.format(*drawn))


CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
SHORT = st.text(CHARACTERS, max_size=4) | either("", " ", "a  ", "  a", "NULL", "\\", '"', "{}")
WORDS = (
    SHORT
    | st.text(CHARACTERS, max_size=40)
    | either("x" * 9000, "é\U0001f600" * 2000, "a\r\n\tb", "\ufeff")
)
LETTERS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
BYTES = st.binary(max_size=30) | st.sampled_from([b"", b"\0", b"\\x", b"\xff" * 9000])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats(allow_nan=False,
    allow_infinity=False) | SHORT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
JSON = st.builds(json.dumps, DOCUMENTS, ensure_ascii=st.booleans(), indent=st.none() | st.just(2))
XML = st.tuples(
    either("", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8"?>\n',
    '<?xml version="1.0" standalone="yes"?>'),
    LETTERS.map(lambda text: f"<a b='ü'>{escape(text)}<c/></a>"),
).map("".join)  # fmt: skip
BITS = st.text("01", max_size=9)
ADDRESS = st.ip_addresses() | st.sampled_from(
    [ipaddress.ip_address(a) for a in ("0.0.0.0", "::", "::ffff:1.2.3.4")]
)  # noqa: S104
NUMBER = floats(64, is_finite=True)
POINT = joined((NUMBER, NUMBER), "({},{})")
POINTS = st.lists(POINT, min_size=1, max_size=4).map(",".join)
SIZE = floats(64, is_finite=True).map(lambda text: text.removeprefix("-"))
NUMERIC = (
    st.tuples(st.integers(-(10**30), 10**30), st.integers(-20, 20)).map(lambda p: f"{p[0]}e{p[1]}")
    | decimals(45, 12) | either("NaN", "Infinity", "-Infinity", "-0.000", "1.500", "1e131071",
    "1e-1000")
)  # fmt: skip


def hexed(size: int) -> Texts:
    return st.binary(min_size=size, max_size=size).map(lambda data: data.hex(":"))


def nets(is_network: bool) -> Texts:
    def spelled(drawn: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]) -> str:
        address, bits = drawn
        shown = f"{address}/{min(bits, address.max_prefixlen)}"
        return str(ipaddress.ip_network(shown, strict=False)) if is_network else shown

    drawn = st.tuples(ADDRESS, st.integers(0, 128)).map(spelled)
    return drawn if is_network else drawn | ADDRESS.map(str)


def lexeme(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def ranges(bound: st.SearchStrategy[Any], form: Callable[[Any], str] = str) -> Texts:
    def spelled(drawn: tuple[list[Any], str, str, bool, bool]) -> str:
        pair, left, right, has_least, has_most = drawn
        least, most = (quoted(form(v)) for v in sorted(pair))
        return f"{left}{least if has_least else ''},{most if has_most else ''}{right}"

    pair = st.lists(bound, min_size=2, max_size=2)
    drawn = st.tuples(pair, either("[", "("), either("]", ")"), st.booleans(), st.booleans())
    return either("empty") | drawn.map(spelled)


def arrays(item: Texts) -> Texts:
    """Of one dimension, with NULLs, and now and then with another lower bound than 1."""

    def spelled(items: list[str | None], least: int) -> str:
        body = ",".join("NULL" if i is None else quoted(i) for i in items)
        bounds = f"[{least}:{least + len(items) - 1}]=" if items and least != 1 else ""
        return f"{bounds}{{{body}}}"

    return st.builds(
        spelled, st.lists(st.none() | item, max_size=4), st.sampled_from([1, 1, 1, 0, 5])
    )


def both(name: str, sql: str, values: Texts, *unsupported: str) -> list[Kind]:
    """A type of the type table, and arrays of it."""
    nested = tuple(f"{{{m}}}" for m in unsupported)
    return [
        Kind(sql, values, name, unsupported),
        Kind(f"{sql}[]", arrays(values), name, (*nested, "{{NULL}}")),
    ]


SCALARS = (
    *both("bool", "boolean", either("true", "false")),
    *both("int2", "smallint", integers(-(2**15), 2**15 - 1)),
    *both("int4", "integer", integers(-(2**31), 2**31 - 1)),
    *both("int8", "bigint", integers(-(2**63), 2**63 - 1)),
    *both("oid", "oid", integers(0, 2**32 - 1)),
    *both("float4", "real", floats(32)),
    *both("float8", "double precision", floats(64)),
    *both("numeric", "numeric", NUMERIC),
    *both("numeric", "numeric(12,2)", decimals(12, 2), "NaN"),
    *both("numeric", "numeric(38,0)", decimals(38, 0), "NaN"),
    *both("numeric", "numeric(38,38)", decimals(38, 38), "NaN"),
    *both("numeric", "numeric(38,10)", decimals(38, 10), "NaN"),
    *both("numeric", "numeric(5,-2)", integers(-9999900, 9999900)),
    *both("numeric", "numeric(3,5)", integers(-999, 999).map(lambda text: f"{text}e-5")),
    *both("numeric", "numeric(40,2)", decimals(40, 2)),
    *both("text", "text", WORDS),
    *both("varchar", "varchar", WORDS),
    *both("varchar", "varchar(5)", SHORT),
    *both("bpchar", "bpchar", WORDS),
    *both("bpchar", "char(4)", SHORT),
    *both("name", "name", SHORT),
    *both("citext", "citext", WORDS),
    *both("xml", "xml", XML),
    *both("json", "json", JSON),
    *both("jsonb", "jsonb", JSON),
    *both("uuid", "uuid", st.uuids().map(str)),
    *both("bytea", "bytea", BYTES.map(lambda data: f"\\x{data.hex()}")),
    *both("date", "date", st.dates().map(str) | either("0001-01-01", "9999-12-31"), *INFINITE),
    *both("time", "time", times(6), "24:00"),
    *both("time", "time(3)", times(3), "23:59:59.9996"),
    *both("timestamp", "timestamp", moments(6), *INFINITE),
    *both("timestamp", "timestamp(3)", moments(3), "9999-12-31 23:59:59.9996"),
    *both("timestamptz", "timestamptz", moments(6, "+00"), *INFINITE),
    *both("timestamptz", "timestamptz(0)", moments(0, "+00"), "infinity"),
    *both("char", '"char"', st.characters(min_codepoint=1, max_codepoint=126) | either("")),
    *both("timetz", "timetz", joined((times(6), st.integers(10, 15).map(str)), "{}+{}:30")),
    *both("interval", "interval",
    joined((integers(-1200, 1200), integers(-400, 400), decimals(15, 6)),
    "{} mons {} days {} seconds")),
    *both("money", "money", decimals(18, 2)),
    *both("inet", "inet", nets(False)),
    *both("cidr", "cidr", nets(True)),
    *both("macaddr", "macaddr", hexed(6)),
    *both("macaddr8", "macaddr8", hexed(8)),
    *both("pg_lsn", "pg_lsn",
    st.tuples(*[st.integers(0, 2**32 - 1)] * 2).map(lambda p: f"{p[0]:X}/{p[1]:X}")),
    *both("tsvector", "tsvector",
    st.lists(LETTERS.map(lexeme) | either("'a b':3A,5", r"'it''s \\'"), max_size=4).map(" ".join)),
    *both("tsquery", "tsquery", st.lists(LETTERS.map(lexeme), max_size=3).map(" & !".join)),
    *both("bit", "bit(3)", st.text("01", min_size=3, max_size=3)),
    *both("varbit", "varbit", BITS),
    *both("varbit", "varbit(9)", BITS),
    *both("point", "point", POINT),
    *both("line", "line", joined((NUMBER, NUMBER), "{{1,{},{}}}")),
    *both("lseg", "lseg", joined((POINT, POINT), "[{},{}]")),
    Kind("box", joined((POINT, POINT), "{},{}"), "box"),
    *both("path", "path",
    POINTS.map(lambda text: f"[{text}]") | POINTS.map(lambda text: f"({text})")),
    *both("polygon", "polygon", POINTS.map(lambda text: f"({text})")),
    *both("circle", "circle", joined((POINT, SIZE), "<{},{}>")),
    *both("hstore", "hstore",
    st.dictionaries(SHORT.map(quoted), st.just("NULL") | SHORT.map(quoted), max_size=3).map(
        lambda pairs: ", ".join(f"{k}=>{v}" for k, v in pairs.items()))),
)  # fmt: skip
WHOLE = ranges(st.integers(-(2**31), 2**31 - 2))
TIMES = st.datetimes(max_value=dt.datetime(9998, 1, 1))
OTHERS = (
    *both("", "mood", either("sad", 'very "happy", {so}', "Ω")),
    *both("", "price", decimals(8, 2)),
    *both("", "padded", SHORT),
    *both("", "host", nets(False)),
    Kind("words", arrays(WORDS)),
    *both("", "floats", ranges(st.floats(allow_nan=False, allow_infinity=False))),
    *both("", "int4range", WHOLE),
    *both("", "int8range", ranges(st.integers(-(2**63), 2**63 - 2))),
    *both("", "numrange", ranges(st.decimals(-(10**12), 10**12, places=3, allow_nan=False))),
    *both("", "daterange", ranges(st.dates(max_value=dt.date(9998, 1, 1)))),
    *both("", "tsrange", ranges(TIMES)),
    *both("", "tstzrange", ranges(TIMES, lambda moment: f"{moment}+00")),
    *both("", "int4multirange",
    st.lists(WHOLE, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}")),
)  # fmt: skip
KINDS = (*SCALARS, *OTHERS)
