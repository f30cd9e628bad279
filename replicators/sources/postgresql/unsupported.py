"""Reads rows that hold unsupported values: those values become NULL, and are listed with their
reasons. Much slower than `values`; used only after `values` found such a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from replicators.connectors.arrow.unsupported import UnsupportedValues, refilled, unsupported_values
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Bytes, arrow_type
from replicators.sources.postgresql.values import (
    Images,
    Input,
    ValueFault,
    read_copied,
    read_images,
)

ROWS_AT_ONCE = 1024
T = TypeVar("T")


def read_images_with_unsupported(
    given: Input, after: list[Column], before: list[Column], where: dict[str, int], keys: np.ndarray
) -> tuple[Images, UnsupportedValues]:
    """As `read_images`. Raises ValueFault only for faults that make rows unreadable: a damaged
    message, or an unsupported value in a key."""
    key = {name for name, number in where.items() if keys[number]}

    def read(bad: set[str]) -> Images:
        return read_images(given, _raw(after, bad), _raw(before, bad), where, keys)

    images, bad = _without(read, key)
    columns, faults = list(images.after), []
    for i in [i for i, c in enumerate(after) if c.name in bad]:

        def part(first: int, count: int, column: Column = after[i]) -> pa.Array:
            rows = replace(given, rows=given.rows[first : first + count])
            return read_images(rows, [column], [], where, keys).after[0]

        columns[i], found = _fitting(part, len(given.rows), after[i])
        faults += [(row, i, reason) for row, reason in found]
    old = images.before
    if old is not None and bad:
        old = refilled(old, before, _fitting_before(given, before, bad, where, keys))
    return replace(images, after=columns, before=old), unsupported_values(
        faults, len(given.rows), after
    )


def _fitting_before(
    given: Input, before: list[Column], bad: set[str], where: dict[str, int], keys: np.ndarray
) -> dict[str, pa.Array]:
    """The before images' columns, with unsupported values as NULL. No row is quarantined for these:
    only a row's new values wait, not its old ones."""
    found = {}
    for column in [c for c in before if c.name in bad]:

        def part(first: int, count: int, one: Column = column) -> pa.Array:
            rows = replace(given, rows=given.rows[first : first + count])
            old = read_images(rows, [], [one], where, keys).before
            assert old is not None, "a column was asked for"
            return old.field(0)

        found[column.name], _ = _fitting(part, len(given.rows), column)
    return found


def read_copied_with_unsupported(
    body: np.ndarray, row_at: np.ndarray, columns: list[Column], key: Sequence[str]
) -> tuple[list[pa.Array], UnsupportedValues]:
    """As `read_copied`, with unsupported values as NULL."""
    arrays, bad = _without(lambda bad: read_copied(body, row_at, _raw(columns, bad)), set(key))
    rows, faults = len(row_at) - 1, []
    for i in [i for i, c in enumerate(columns) if c.name in bad]:
        others = _raw(columns, bad - {columns[i].name})

        def part(first: int, count: int, number: int = i, some: list[Column] = others) -> pa.Array:
            return read_copied(body, row_at[first : first + count + 1], some)[number]

        arrays[i], found = _fitting(part, rows, columns[i])
        faults += [(row, i, reason) for row, reason in found]
    return arrays, unsupported_values(faults, rows, columns)


def _without(read: Callable[[set[str]], T], key: set[str]) -> tuple[T, set[str]]:
    """Read with the columns that hold unsupported values left raw. Also returns the names of these
    columns."""
    bad: set[str] = set()
    while True:
        try:
            return read(bad), bad
        except ValueFault as fault:
            if not fault.is_of_row or fault.column in key | bad:
                raise
            bad.add(fault.column)


def _raw(columns: list[Column], bad: set[str]) -> list[Column]:
    return [replace(c, type=Bytes(), wire="text") if c.name in bad else c for c in columns]


def _fitting(
    part: Callable[[int, int], pa.Array], rows: int, column: Column
) -> tuple[pa.Array, list[tuple[int, str]]]:
    """The column's values, with unsupported ones as NULL, and the rows of these with the
    reasons."""
    pieces: list[pa.Array] = []
    faults: list[tuple[int, str]] = []
    for first in range(0, rows, ROWS_AT_ONCE):
        for found in _pieces(part, first, min(ROWS_AT_ONCE, rows - first)):
            if isinstance(found, tuple):
                faults.append(found)
                pieces.append(pa.nulls(1, arrow_type(column.type)))
            else:
                pieces.append(found)
    return pa.concat_arrays(pieces), faults


def _pieces(
    part: Callable[[int, int], pa.Array], first: int, count: int
) -> Iterator[pa.Array | tuple[int, str]]:
    """Values of the rows, split at unsupported values. The rows before such a value are read in one
    call, unless they hold a fault that only storing finds."""
    while count:
        try:
            yield part(first, count)
            return
        except ValueFault as fault:
            if not fault.is_of_row:
                raise
            yield from _pieces(part, first, fault.row)
            yield first + fault.row, fault.reason
            first, count = first + fault.row + 1, count - fault.row - 1
