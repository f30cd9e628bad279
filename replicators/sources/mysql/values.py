"""Reads one table's row events into Arrow columns: slots, one arena of buffers, and their fill.
Knows no segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from replicators.connectors.arrow.buffers import Arena
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import arrow_type
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.forms import NotText, finish
from replicators.sources.mysql.schemas import code_of, label_texts
from replicators.sources.mysql.tablemaps import (
    BIT,
    ENUM,
    NEWDECIMAL,
    SET,
    MapColumn,
    length_rule,
)

MAX_CHARS = 2**31 - 1
WIDTHS = {
    k.INT1: 2, k.INT1 + k.UNSIGNED: 2, k.INT2: 2, k.INT2 + k.UNSIGNED: 4, k.INT3: 4,
    k.INT3 + k.UNSIGNED: 4,
    k.INT4: 4, k.INT4 + k.UNSIGNED: 8, k.INT8: 8, k.INT8 + k.UNSIGNED: 16, k.FLOAT: 4, k.DOUBLE: 8,
    k.DECIMAL: 16, k.YEAR: 2, k.DATE: 4, k.DATETIME: 8, k.TIMESTAMP: 8,
}  # fmt: skip
FIXED_FORMS = {k.UUID: 16, k.INET6: 16, k.INET4: 4}
TIME_CHARS, DECIMAL_CHARS, MOMENT_CHARS = 17, 68, 26

MOMENT_RULES = k.MOMENT_ZERO | k.MOMENT_FAIL
NO_DAY = "the date does not exist in the calendar"
REASONS = {
    k.ZERO_DATE: NO_DAY,
    k.NO_DATE: NO_DAY,
    k.PARTIAL: "its rows come with a part of their columns only",
}
TOO_LARGE = "the values of one segment are larger than 2 GiB"
UNSUPPORTED = "source:value-unsupported"


class ValueFault(Exception):
    """A value that can't be decoded: its event (the place among the table's events), its column,
    and a reason; no reason: damaged."""

    def __init__(self, event: int, column: str = "", reason: str = "", code: str = "") -> None:
        super().__init__(reason)
        self.event = event
        self.column = column
        self.reason = reason
        self.code = code

    @property
    def is_of_row(self) -> bool:
        """Whether other rows can be read without it: the value is unsupported."""
        return self.code == UNSUPPORTED and self.reason != TOO_LARGE


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a TABLE_MAP: the lengths of their values, the key's columns, and all
    labels."""

    columns: tuple[MapColumn, ...]
    widths: np.ndarray
    sizes: np.ndarray
    keys: np.ndarray

    @classmethod
    def of(cls, columns: Sequence[MapColumn], keys: Sequence[int]) -> Layout:
        """The layout of these columns. ValueError for a column of an unknown type."""
        rules = [length_rule(c) for c in columns]
        marks = np.zeros(len(columns), np.bool_)
        marks[list(keys)] = True
        return cls(
            tuple(columns),
            np.array([w for w, _ in rules], np.int64),
            np.array([s for _, s in rules], np.int64),
            marks,
        )


@dataclass(slots=True)
class Labels:
    """Texts of ENUMs and SETs, end to end."""

    data: bytearray = field(default_factory=bytearray)
    starts: list[int] = field(default_factory=lambda: [0])

    def add(self, texts: Sequence[str]) -> int:
        """Add texts; return the number of the first."""
        first = len(self.starts) - 1
        for text in texts:
            self.data += text.encode()
            self.starts.append(len(self.data))
        return first


@dataclass(frozen=True, slots=True)
class Images:
    """The contents of rows: operations, the event of each, after images, before images (None if
    there is no key)."""

    ops: np.ndarray
    event: np.ndarray
    after: list[pa.Array]
    before: pa.Array | None


class _Slot:
    """An output column and where its buffers lie (bytes in the arena, -1: none)."""

    def __init__(
        self, column: Column, sent: MapColumn, place: int, labels: Labels, charsets: dict[int, str]
    ) -> None:
        self.column = column
        self.place = place
        self.code = code_of(column, sent)
        self.p1, self.p2 = sent.meta, 0
        self.max_chars = 0
        if sent.kind == NEWDECIMAL:
            self.p1, self.p2 = sent.meta >> 8, sent.meta & 0xFF
        elif sent.kind == BIT:
            self.p1 = (sent.meta >> 8) * 8 + (sent.meta & 0xFF)
        elif sent.kind in (ENUM, SET):
            texts = label_texts(sent, charsets)
            self.p1, self.p2 = labels.add(texts), len(texts)
            sizes = [len(t.encode()) for t in texts] or [0]
            self.max_chars = max(sizes) if sent.kind == ENUM else sum(sizes) + len(sizes)
        elif self.code in FIXED_FORMS:
            self.p1, self.code = FIXED_FORMS[self.code], k.PADDED
        elif self.code == k.VECTOR:
            self.code = k.BYTES
        self.valid = self.data = self.offsets = self.chars = -1
        self.rows = 0

    @property
    def width(self) -> int:
        if self.code == k.BIT:
            return 0 if self.p1 == 1 else (16 if self.p1 == 64 else 8)
        return WIDTHS[self.code & ~MOMENT_RULES if self.is_moment else self.code]

    @property
    def is_moment(self) -> bool:
        """Whether some of its values may become NULL that are not NULL in the log."""
        return self.code & ~MOMENT_RULES in (k.DATE, k.DATETIME, k.TIMESTAMP)

    def _most_chars(self, rows: int, chars: int) -> int:
        if self.code == k.PADDED:
            return rows * self.p1
        if self.code in (k.ENUM, k.SET):
            return rows * self.max_chars
        if self.code == k.TIME:
            return rows * TIME_CHARS
        if self.code == k.DECIMAL_TEXT:
            return rows * DECIMAL_CHARS
        return rows * MOMENT_CHARS if self.code >= k.MOMENT_TEXT else chars

    def lay_out(self, arena: Arena, rows: int, chars: int, nulls: int) -> None:
        self.rows = rows
        if nulls or self.is_moment:
            self.valid = arena.place((rows + 7) // 8)
        if self.code < k.TEXT:
            self.data = arena.place((rows + 7) // 8 if not self.width else self.width * rows)
            return
        most = self._most_chars(rows, chars)
        if most > MAX_CHARS:
            raise ValueFault(0, self.column.name, TOO_LARGE, UNSUPPORTED)
        self.offsets = arena.place(4 * (rows + 1))
        self.chars = arena.place(most)

    def describe(self, line: np.ndarray) -> None:
        line[k.S_COLUMN], line[k.S_CODE] = self.place, self.code
        line[k.S_P1], line[k.S_P2] = self.p1, self.p2
        line[k.S_VALID] = self.valid
        if self.data >= 0:
            line[k.S_DATA] = self.data // min(self.width or 1, 8)
        line[k.S_OFFSETS] = self.offsets // 4
        line[k.S_POS] = line[k.S_CHARS] = max(self.chars, 0)

    def build(self, arena: Arena, line: np.ndarray, *, is_raw: bool) -> pa.Array:
        nulls = int(line[k.S_NULLS])
        valid = arena.buffer(self.valid, (self.rows + 7) // 8)
        if self.code >= k.TEXT:
            used = int(line[k.S_POS] - line[k.S_CHARS])
            chars = arena.buffer(self.chars, used)
            buffers = [valid, arena.buffer(self.offsets, 4 * (self.rows + 1)), chars]
            array = pa.Array.from_buffers(pa.binary(), self.rows, buffers, nulls)
            try:
                return array if is_raw else finish(array, self.column)
            except NotText as err:
                raise ValueFault(-1 - err.row, self.column.name, str(err), UNSUPPORTED) from err
        size = (self.rows + 7) // 8 if not self.width else self.width * self.rows
        buffers = [valid, arena.buffer(self.data, size)]
        return pa.Array.from_buffers(arrow_type(self.column.type), self.rows, buffers, nulls)


def measure(
    body: np.ndarray, events: np.ndarray, mine: np.ndarray, layout: Layout, counts: np.ndarray
) -> np.ndarray:
    """Check a table's events and count their rows into `counts`. Returns the sums that
    `read_images` needs."""
    totals = np.zeros((k.T_FIELDS, len(layout.columns)), np.int64)
    fault, at = k.measure(
        body, events, mine, layout.widths, layout.sizes, layout.keys, totals, counts
    )
    if fault == k.PARTIAL:
        raise ValueFault(at, "", "", "source:row-image")
    if fault:
        raise ValueFault(at)
    return totals


def read_images(
    body: np.ndarray,
    events: np.ndarray,
    mine: np.ndarray,
    layout: Layout,
    totals: np.ndarray,
    rows: int,
    columns: Sequence[tuple[Column, int]],
    key: Sequence[tuple[Column, int]],
    charsets: dict[int, str],
    *,
    has_whole_before: bool,
    raw: frozenset[str] = frozenset(),
) -> Images:
    """Decode measured events. `columns` and `key` are the columns to decode, with their numbers in
    the rows. `key` holds those of the before image; with `has_whole_before` every update has one.
    Texts and the like of the columns in `raw` stay bytes. Raises ValueFault for the first value
    that can't be decoded."""
    labels = Labels()
    width = len(layout.columns)
    slots = [_Slot(c, layout.columns[n], n, labels, charsets) for c, n in columns]
    slots += [_Slot(c, layout.columns[n], width + n, labels, charsets) for c, n in key]
    arena = Arena(tail=64)
    for slot in slots:
        is_before = slot.place >= width
        place = slot.place - width if is_before else slot.place
        chars = int(totals[k.T_CHARS_BEFORE if is_before else k.T_CHARS, place])
        nulls = rows if is_before else int(totals[k.T_NULLS, place])
        slot.lay_out(arena, rows, chars, nulls)
    place = arena.place((rows + 7) // 8) if key else -1
    struct_valid = np.array([place, 0, has_whole_before], np.int64)
    views = arena.open()
    lines = np.zeros((len(slots), k.S_FIELDS), np.int64)
    for slot, line in zip(slots, lines, strict=True):
        slot.describe(line)
    ops, event = np.empty(rows, np.int8), np.empty(rows, np.int32)
    block = max(8, min(512, (1 << 16) // max(width, 1)) // 8 * 8)
    fault, row, bad = k.fill(
        body, events, mine, layout.widths, layout.sizes, layout.keys, lines, ops, event,
        struct_valid,
        np.frombuffer(bytes(labels.data) or b"\0", np.uint8), np.array(labels.starts, np.int64),
        block, *views,
    )  # fmt: skip
    if fault:
        reason = REASONS.get(fault, "")
        code = UNSUPPORTED if reason else ""
        raise ValueFault(int(event[row]) if row < rows else 0, slots[bad].column.name, reason, code)
    arrays = [
        s.build(arena, line, is_raw=s.column.name in raw)
        for s, line in zip(slots, lines, strict=True)
    ]
    before = None
    if key:
        before = pa.Array.from_buffers(
            pa.struct([pa.field(c.name, arrow_type(c.type)) for c, _ in key]),
            rows,
            [arena.buffer(int(struct_valid[0]), (rows + 7) // 8)],
            rows - int(struct_valid[1]),
            children=arrays[len(columns) :],
        )
    return Images(ops, event, arrays[: len(columns)], before)
