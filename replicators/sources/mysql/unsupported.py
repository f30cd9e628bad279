"""Reads rows that hold unsupported values: those values become NULL, and are listed with their
reasons. Slower than `values` and `columns`; used only after these found such a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.unsupported import UnsupportedValues, refilled, unsupported_values
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import String, arrow_type
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.forms import NotText, finish
from replicators.sources.mysql.values import REASONS, Images, ValueFault

FAILS, ANY = "_fail", "_any"
"""Behind the wire word of a moment: none of those that the calendar lacks may be NULL; all of them
are."""
Place = tuple[Column, int]


class Read(Protocol):
    """`values.read_images` of known events, given the after and before images' columns and the
    columns left as bytes."""

    def __call__(
        self, after: Sequence[Place], before: Sequence[Place], raw: frozenset[str], /
    ) -> Images: ...


def read_with_unsupported(
    read: Read, after: Sequence[Place], before: Sequence[Place], key: Sequence[str]
) -> tuple[Images, UnsupportedValues]:
    """The images. Raises ValueFault only for faults that make rows unreadable: damage, or an
    unsupported value in a key."""
    images, bad = _without(read, after, before, set(key))
    columns, faults = list(images.after[: len(after)]), []
    shown = dict(zip(_moments(after, bad), images.after[len(after) :], strict=True))
    for i, (column, _) in enumerate(after):
        if column.name not in bad:
            continue
        if is_moment(column):
            found = no_days(_faults(columns[i], shown[after[i]]), column)
        else:
            columns[i], found = fitting(columns[i], column, finish)
        faults += [(row, i, reason) for row, reason in found]
    reported = unsupported_values(faults, len(images.ops), [c for c, _ in after])
    old = images.before
    if old is not None and bad:
        # Dates that don't exist are NULL here already; no other date is changed.
        fits = {
            c.name: fitting(old.field(i), c, finish)[0]
            for i, (c, _) in enumerate(before)
            if c.name in bad and not is_moment(c)
        }
        old = refilled(old, [c for c, _ in before], fits)
    return replace(images, after=columns, before=old), reported


def _without(
    read: Read, after: Sequence[Place], before: Sequence[Place], key: set[str]
) -> tuple[Images, set[str]]:
    """Read with the columns that hold unsupported values made lenient: dates that don't exist
    become NULL, texts stay bytes. Returns the images and the names of these columns. Behind the
    after images come their moments as text, which show which values were NULL at the source."""
    bad: set[str] = set()
    while True:
        texts = [(_as_text(c), n) for c, n in _moments(after, bad)]
        asked = [*_lenient(after, bad), *texts]
        try:
            return read(asked, _lenient(before, bad), frozenset(bad)), bad
        except ValueFault as fault:
            if not fault.is_of_row or fault.column in key | bad:
                raise
            bad.add(fault.column)


def _moments(places: Sequence[Place], bad: set[str]) -> list[Place]:
    return [(c, n) for c, n in places if c.name in bad and is_moment(c)]


def _lenient(places: Sequence[Place], bad: set[str]) -> list[Place]:
    return [
        (replace(c, wire=_base(c) + ANY) if c.name in bad and is_moment(c) else c, n)
        for c, n in places
    ]


def _as_text(column: Column) -> Column:
    return replace(column, type=String(), wire=_base(column) + "_text")


def _base(column: Column) -> str:
    return column.wire.partition("_")[0]


def is_moment(column: Column) -> bool:
    """A date or moment that is not carried as text."""
    return _base(column) in ("date", "datetime", "timestamp") and not column.wire.endswith("_text")


def _faults(values: pa.Array, texts: pa.Array) -> np.ndarray:
    """The faults, as in `kernels`, of moments that came as NULL but are not NULL at the source."""
    is_none = pc.and_(values.is_null(), texts.is_valid())
    has_none = pc.match_substring_regex(texts, "^.{4}-(00|..-00)").fill_null(False)
    found = pc.if_else(has_none, k.ZERO_DATE, k.NO_DATE)
    return np.where(is_none.to_numpy(zero_copy_only=False), found.to_numpy(), 0)


# --- of one column, the same for log and snapshot ---------------------------------------------------------------------  # noqa: E501


def no_days(faults: np.ndarray, column: Column) -> list[tuple[int, str]]:
    """The rows with a date that the calendar does not have and that must not become NULL, with the
    reason."""
    is_lost = faults > 0 if column.wire.endswith(FAILS) else faults == k.NO_DATE
    return [(int(row), REASONS[k.NO_DATE]) for row in np.flatnonzero(is_lost)]


def fitting(
    values: pa.Array, column: Column, form: Callable[[pa.Array, Column], pa.Array]
) -> tuple[pa.Array, list[tuple[int, str]]]:
    """The bytes in the column's form, with unsupported values (NotText) as NULL, and the rows of
    these with the reasons. Halving finds them."""
    pieces: list[pa.Array] = []
    faults: list[tuple[int, str]] = []

    def take(first: int, count: int) -> None:
        # A copy, because `form` may read its input's buffers from their beginning.
        part = values.take(pa.array(range(first, first + count), pa.int64()))
        try:
            pieces.append(form(part, column))
        except (NotText, pa.ArrowInvalid) as err:
            if count == 1:
                faults.append((first, why(err)))
                pieces.append(pa.nulls(1, arrow_type(column.type)))
                return
            take(first, count // 2)
            take(first + count // 2, count - count // 2)

    take(0, len(values))
    return pa.concat_arrays(pieces), faults


def why(err: Exception) -> str:
    """The reason to show people, without the value."""
    return str(err) if isinstance(err, NotText) else "it does not fit its type"
