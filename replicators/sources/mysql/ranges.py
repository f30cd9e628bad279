"""Cuts a table's key into ranges with about equally many rows."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Enum, Int
from replicators.connectors.mysql import sql
from replicators.sources.mysql.connections import Connection, query, records

End = tuple[Any, ...]

SIZE = """
SELECT table_rows, data_length FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The server's estimates."""

    rows: int
    row_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """The rows with keys after `after`, up to and including `upto` (None: from the first, to the
    last), and their estimated number."""

    rows: int
    after: End | None = None
    upto: End | None = None


def table_size(connection: Connection, table: TableId) -> Size | None:
    """The server's estimates for a table; None if there is no such table."""
    found = query(connection, SIZE, table.schema, table.name)
    if not found:
        return None
    rows, data = int(found[0][0] or 0), int(found[0][1] or 0)
    return Size(rows, data // rows if rows else 0)


def key_ranges(
    connection: Connection, table: TableSchema, rows: int, rows_per_chunk: int
) -> list[Part]:
    """Parts that cover every key once. `rows`: the server's estimate, which may be outdated."""
    if rows <= rows_per_chunk:
        if not key_at(connection, table, Part(rows), rows_per_chunk * 5 // 4):
            return [Part(rows)]
        return _by_walking(connection, table, rows_per_chunk)
    if isinstance(table.column(table.key[0]).type, Int) and len(table.key) == 1:
        return _by_halves(connection, table, rows, rows_per_chunk)
    return _by_walking(connection, table, rows_per_chunk)


def _by_halves(
    connection: Connection, table: TableSchema, rows: int, rows_per_chunk: int
) -> list[Part]:
    """Integer keys: halve the key's range until the server's own estimate of a part is small
    enough."""
    key, name = sql.name(table.key[0]), sql.table(table.id)
    low, high = query(connection, f"SELECT min({key}) + 0, max({key}) + 0 FROM {name}")[0]  # noqa: S608
    if low is None:
        return [Part(0)]
    parts: list[tuple[int, int, int]] = []
    waiting = [(int(low), int(high))]
    while waiting:
        first, last = waiting.pop()
        estimate = _estimate(connection, table, f"{key} BETWEEN {first} AND {last}")
        if estimate <= rows_per_chunk * 3 // 2 or first == last:
            parts.append((first, last, estimate))
            continue
        middle = (first + last) // 2
        waiting += [(middle + 1, last), (first, middle)]
    parts = _joined(_levelled(parts, rows), rows_per_chunk)
    return between([(last,) for _, last, _ in parts[:-1]], [n for _, _, n in parts])


def _levelled(parts: list[tuple[int, int, int]], rows: int) -> list[tuple[int, int, int]]:
    """The parts with estimates scaled down so that they sum up to `rows`, if the server's sum was
    higher. The server often doubles the estimate of a range, but not that of the whole table."""
    total = sum(n for _, _, n in parts)
    if total <= rows:
        return parts
    return [(first, last, max(1, n * rows // total)) for first, last, n in parts]


def _joined(parts: list[tuple[int, int, int]], rows_per_chunk: int) -> list[tuple[int, int, int]]:
    """Join neighbours that are small together, up to a quarter over the requested size."""
    joined: list[tuple[int, int, int]] = []
    for first, last, rows in parts:
        if joined and joined[-1][2] + rows <= rows_per_chunk * 5 // 4:
            joined[-1] = (joined[-1][0], last, joined[-1][2] + rows)
        else:
            joined.append((first, last, rows))
    return joined


def _estimate(connection: Connection, table: TableSchema, condition: str) -> int:
    column, rows = sql.name(table.key[0]), sql.table(table.id)
    text = f"EXPLAIN FORMAT=TRADITIONAL SELECT {column} FROM {rows} WHERE {condition}"  # noqa: S608
    return max((int(r.get("rows") or 0) for r in records(connection, text)), default=0)


@dataclass(frozen=True, slots=True)
class _Key:
    """A column of a key: how a query selects and compares it. The servers sort ENUMs by the
    positions of their labels and SETs by their bits, but compare both with a text as texts. So an
    ENUM is compared by its later labels, and a SET as a number. A value whose text is less exact
    than itself, or whose bytes compare differently, is selected as a number."""

    name: str
    labels: tuple[str, ...] = ()
    asked: str = ""
    compared: str = ""

    @classmethod
    def of(cls, column: Column) -> _Key:
        name = sql.name(column.name)
        labels = column.type.values if isinstance(column.type, Enum) else ()
        if column.wire == "set":
            return cls(name, labels, f"{name} + 0", f"{name} + 0")
        if column.wire in ("bit", "float"):
            return cls(name, labels, f"{name} + 0{'e0' if column.wire == 'float' else ''}", name)
        return cls(name, labels, name, name)

    def after(self, value: Any, *, or_same: bool = False) -> str:
        """The condition for values that sort behind this one."""
        if not self.labels:
            return f"{self.compared} {'>=' if or_same else '>'} {literal(value)}"
        # A value outside the labels is the empty text, which sorts before all of them.
        place = self.labels.index(value) if value in self.labels else -1
        later = self.labels[max(0, place + (not or_same)) :]
        same = ("",) if or_same and place < 0 else ()
        wanted = ", ".join(sql.literal(x) for x in (*same, *later))
        return f"{self.name} IN ({wanted})" if wanted else "FALSE"


def _by_walking(connection: Connection, table: TableSchema, rows_per_chunk: int) -> list[Part]:
    """Other keys: walk along the index and note the key after each such number of rows."""
    ends: list[End] = []
    while True:
        rest = Part(0, ends[-1] if ends else None)
        found = key_at(connection, table, rest, rows_per_chunk - 1)
        if found is None:
            break
        ends.append(found)
    return between(ends, [rows_per_chunk] * (len(ends) + 1))


def key_at(connection: Connection, table: TableSchema, part: Part, number: int) -> End | None:
    """The key of a part's row, counted from 0 in the key's order; None if there is no such row."""
    keys = keys_of(table)
    asked = ", ".join(k.asked for k in keys)
    names = ", ".join(k.name for k in keys)
    found = query(
        connection,
        f"SELECT {asked} FROM {sql.table(table.id)}{condition(table, part)} ORDER BY {names}"  # noqa: S608
        f" LIMIT 1 OFFSET {number}",
    )
    return found[0] if found else None


def between(
    ends: Sequence[End], rows: Sequence[int], after: End | None = None, upto: End | None = None
) -> list[Part]:
    """Parts up to each end, and one behind the last end, with their estimates."""
    edges = [after, *ends, upto]
    return [Part(n, edges[i], edges[i + 1]) for i, n in enumerate(rows)]


def keys_of(table: TableSchema) -> list[_Key]:
    """The columns of the key."""
    return [_Key.of(table.column(k)) for k in table.key]


def condition(table: TableSchema, part: Part) -> str:
    """` WHERE ...` for a part, or ""."""
    keys, said = keys_of(table), []
    if part.after is not None:
        said.append(_after(keys, part.after))
    if part.upto is not None:
        said.append(f"NOT ({_after(keys, part.upto)})")
    return f" WHERE {' AND '.join(said)}" if said else ""


def _after(keys: Sequence[_Key], end: End) -> str:
    """The condition for keys after `end`, in a form for which the servers use the index."""
    first, value = keys[0], end[0]
    if len(keys) == 1:
        return first.after(value)
    rest = _after(keys[1:], end[1:])
    return f"{first.after(value, or_same=True)} AND ({first.after(value)} OR ({rest}))"


def literal(value: Any) -> str:
    """A key's value in SQL."""
    if isinstance(value, (bytes, bytearray)):
        return f"x'{bytes(value).hex()}'"
    if isinstance(value, (int, Number)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
        whole = abs(int(seconds))
        sign = "-" if seconds < 0 else ""
        micros = abs(value).microseconds
        return f"'{sign}{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{micros:06}'"
    return sql.literal(str(value))
