"""Rows as text, column by column in Arrow: lines for LOAD DATA LOCAL where the server allows it,
and INSERT statements where it does not. MySQL has no binary load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pymysql

from replicators.connectors.arrow.texts import around, digits, lists, text
from replicators.connectors.mysql import sql
from replicators.targets.mysql.errors import Refused

_TEXT = pa.large_string()


class TooLong(pymysql.Error):
    """A row that no statement could hold."""


def inserts(table: str, rows: pa.RecordBatch, most_bytes: int) -> Iterator[bytes]:
    """INSERT statements with all rows. None is longer than `most_bytes`, but for one that has a
    single row. `table` is quoted. `Refused`."""
    if not rows.num_rows:
        return
    offsets, data = _rows(rows, _LITERALS)
    begin = f"INSERT INTO {table} VALUES ".encode()  # noqa: S608 - quoted
    at = 0
    while at < rows.num_rows:
        limit = offsets[at] + most_bytes - len(begin)
        upto = max(at + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        yield begin + bytes(data[int(offsets[at]) : int(offsets[upto]) - 1])
        at = upto


def load_data(table: str, columns: pa.Schema) -> str:
    """The statement that takes `lines` of these columns. `table` is quoted."""
    places, parts = [], []
    for at, field in enumerate(columns):
        name = sql.name(field.name)
        is_bytes = _is_bytes(field.type)
        places.append(f"@c{at}" if is_bytes else name)
        parts += [f"{name} = unhex(@c{at})"] * is_bytes
    put = f" SET {', '.join(parts)}" if parts else ""
    return (
        f"LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4 "
        r"FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n' "
        f"({', '.join(places)}){put}"
    )


def lines(rows: pa.RecordBatch, most_bytes: int) -> memoryview:
    """All rows as lines for `load_data`. `TooLong` where one is longer than `most_bytes`, and
    `Refused`."""
    if not rows.num_rows:
        return memoryview(b"")
    offsets, data = _rows(rows, _LINES)
    if np.diff(offsets).max() > most_bytes:
        raise TooLong
    return data[int(offsets[0]) : int(offsets[-1])]


@dataclass(frozen=True, slots=True)
class _Form:
    """How rows are written: around a row and between its values, and each kind of value."""

    begin: str
    between: str
    end: str
    null: str
    text: Callable[[pa.Array], pa.Array]
    hexadecimal: Callable[[pa.Array], pa.Array]


def _rows(rows: pa.RecordBatch, form: _Form) -> tuple[np.ndarray, memoryview]:
    """The bytes of all rows, and where each of them begins and ends."""
    named = zip(rows.columns, rows.schema, strict=True)
    first, *others = (_values(a, f.name, form) for a, f in named)
    if form.begin:
        first = pc.binary_join_element_wise(pa.scalar(form.begin, _TEXT), first, _NOTHING)
    joined = pc.binary_join_element_wise(first, *others, pa.scalar(form.between, _TEXT))
    ended = pc.binary_join_element_wise(joined, pa.scalar(form.end, _TEXT), _NOTHING)
    _, ends, body = ended.buffers()
    return np.frombuffer(ends, np.int64, len(ended) + 1, offset=8 * ended.offset), memoryview(body)


def _values(values: pa.Array, name: str, form: _Form) -> pa.Array:
    """A column's values."""
    kind = values.type
    if pa.types.is_null(kind):
        return pa.array([form.null] * len(values), _TEXT)
    return pc.fill_null(_written(values, kind, name, form), form.null)


def _written(values: pa.Array, kind: pa.DataType, name: str, form: _Form) -> pa.Array:
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(_TEXT)
    if pa.types.is_integer(kind):
        return values.cast(_TEXT)
    if _is_bytes(kind):
        return form.hexadecimal(digits(values))
    if pa.types.is_list(kind):
        return form.text(lists(values))
    if pa.types.is_floating(kind) and not pc.all(pc.fill_null(pc.is_finite(values), True)).as_py():
        raise Refused(f"column {name}: MySQL has no NaN and no infinity")
    return form.text(text(values, kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _quoted(values: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(values, "\\", "\\\\")
    return around("'", pc.replace_substring(escaped, "'", "\\'"), "'")


def _escaped(values: pa.Array) -> pa.Array:
    for found, put in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n")):
        values = pc.replace_substring(values, found, put)
    return values


_NOTHING = pa.scalar("", _TEXT)
_LITERALS = _Form("(", ",", "),", "NULL", _quoted, lambda values: around("x'", values, "'"))
_LINES = _Form("", "\t", "\n", "\\N", _escaped, lambda values: values)
