"""Cuts parts of a table that hold too many bytes. It measures the rows' lengths at the server,
because an average does not tell them.

The server sums up every part, within a time that is short compared with the copy. The remaining
parts are judged by the rows at both of their ends. Tables whose rows can't be long are not
measured.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pymysql

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.mysql import sql
from replicators.sources.mysql.connections import Connection, query
from replicators.sources.mysql.ranges import Part, between, condition, key_at, keys_of

LEAST_SECONDS, MOST_SECONDS = 0.5, 20.0
SHORTEST_SECONDS = 0.01
BYTES_PER_SECOND = 2 << 30
SAMPLE_ROWS = 20
NUMBER_BYTES = 8
CHARACTER_BYTES = 4
LONG = frozenset({"text", "bytes", "json", "json_text", "geometry", "vector"})
TIMED_OUT = (1969, 3024)
_LIMITED = re.compile(r"(?:var)?(char|binary)\((\d+)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A part and its bytes. `is_exact`: the server summed them up."""

    part: Part
    size: int
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a chunk should hold."""

    size: int
    rows: int


def cut_by_bytes(
    connection: Connection,
    table: TableSchema,
    parts: Sequence[Part],
    limits: Limits,
    table_bytes: int,
) -> list[Part]:
    """The parts, cut and joined by bytes. Parts more than a quarter over the limit are cut into
    several; parts found small are joined; a single row stays whole. `table_bytes`: the server's
    estimate."""
    most = _most_bytes(table)
    if most is not None and max(p.rows for p in parts) * most <= limits.size * 5 // 4:
        return list(parts)
    seconds = min(MOST_SECONDS, max(LEAST_SECONDS, table_bytes / BYTES_PER_SECOND))
    cutting = _Cutting(connection, table, limits, time.monotonic() + seconds)
    return cutting.joined([piece for part in parts for piece in cutting.pieces(part)])


def _most_bytes(table: TableSchema) -> int | None:
    """The greatest length of a row; None if no limit matters."""
    sizes = [_limit_of(c) for c in table.columns]
    return None if None in sizes else sum(s for s in sizes if s is not None)


def _limit_of(column: Column) -> int | None:
    if not _is_long(column):
        return NUMBER_BYTES
    found = _LIMITED.match(column.native)
    if found is None:
        return None
    return int(found[2]) * (CHARACTER_BYTES if found[1].lower() == "char" else 1)


def _is_long(column: Column) -> bool:
    return column.wire.partition(":")[0] in LONG


class _Cutting:
    """Measures parts of one table until a deadline, and cuts them."""

    def __init__(
        self, connection: Connection, table: TableSchema, limits: Limits, until: float
    ) -> None:
        self._connection = connection
        self._table = table
        self._limits = limits
        self._until = until
        long = [f"COALESCE(OCTET_LENGTH({sql.name(c.name)}), 0)" for c in table.columns if _is_long(c)]  # fmt: skip  # noqa: E501
        self._length = " + ".join([*long, str(NUMBER_BYTES * (len(table.columns) - len(long)))])

    def pieces(self, part: Part) -> list[_Measured]:
        """The part, or the pieces that it is cut into."""
        found: list[_Measured] = []
        waiting = [part]
        while waiting:
            measured = self._measure(waiting.pop())
            cut = self._cut(measured)
            if cut:
                waiting += reversed(cut)
            else:
                found.append(measured)
        return found

    def _measure(self, part: Part) -> _Measured:
        left = self._until - time.monotonic()
        summed = self._summed(part, left) if left > SHORTEST_SECONDS else None
        return summed or self._sampled(part)

    def _summed(self, part: Part, seconds: float) -> _Measured | None:
        """The exact bytes; None if summing them up takes too long."""
        # Each server ignores the other's time limit.
        limited = f"SET STATEMENT max_statement_time = {seconds:.3f} FOR"
        text = (
            f"/*M! {limited} */ SELECT /*+ MAX_EXECUTION_TIME({math.ceil(1000 * seconds)}) */"  # noqa: S608 - all quoted
            f" COUNT(*), SUM({self._length}) FROM "
            f"{sql.table(self._table.id)}{condition(self._table, part)}"
        )
        try:
            rows, size = query(self._connection, text)[0]
        except pymysql.err.OperationalError as err:
            if err.args[0] not in TIMED_OUT:
                raise
            return None
        return _Measured(replace(part, rows=int(rows)), int(size or 0), is_exact=True)

    def _sampled(self, part: Part) -> _Measured:
        """Estimated bytes, from the rows at both ends."""
        names = [k.name for k in keys_of(self._table)]
        kept = condition(self._table, part)
        rows = [
            f"(SELECT {self._length} AS n FROM {sql.table(self._table.id)}{kept}"  # noqa: S608 - all quoted
            f" ORDER BY {', '.join(n + way for n in names)} LIMIT {SAMPLE_ROWS})"
            for way in ("", " DESC")
        ]
        text = f"SELECT COALESCE(AVG(n), 0) FROM ({' UNION ALL '.join(rows)}) AS ends"  # noqa: S608
        average = float(query(self._connection, text)[0][0])
        return _Measured(part, int(part.rows * average))

    def _cut(self, measured: _Measured) -> list[Part]:
        """Pieces with equally many rows; none if the part is small enough, or one row."""
        part = measured.part
        if measured.size <= self._limits.size * 5 // 4 or part.rows <= 1:
            return []
        number = min(part.rows, math.ceil(measured.size / self._limits.size))
        step = part.rows // number
        ends, rest = [], part
        for _ in range(number - 1):
            end = key_at(self._connection, self._table, rest, step - 1)
            if end is None:
                break
            ends.append(end)
            rest = replace(part, after=end)
        rows = [step] * len(ends) + [part.rows - step * len(ends)]
        return between(ends, rows, part.after, part.upto) if ends else []

    def joined(self, pieces: Sequence[_Measured]) -> list[Part]:
        """Join neighbours that are small together."""
        joined: list[_Measured] = []
        for piece in pieces:
            if joined and self._fit(joined[-1], piece):
                last = joined[-1]
                whole = Part(last.part.rows + piece.part.rows, last.part.after, piece.part.upto)
                joined[-1] = _Measured(whole, last.size + piece.size, is_exact=True)
            else:
                joined.append(piece)
        return [m.part for m in joined]

    def _fit(self, one: _Measured, other: _Measured) -> bool:
        return (
            one.is_exact
            and other.is_exact
            and one.size + other.size <= self._limits.size
            and one.part.rows + other.part.rows <= self._limits.rows
        )
