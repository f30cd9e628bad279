"""What copies that keep the past must hold, told from what really happened at the source (triggers
keep it, see `tests.model.tables`). Pure: knows no database and no engine."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from tests.model.fingerprint import canonical

INSERT, UPDATE, DELETE, TRUNCATE = range(4)
WORDS = ("insert", "update", "delete", "truncate")
SHOWN = 5
Row = Mapping[str, Any]
_END = dt.datetime.max.replace(tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Change:
    """One row's change: number in order, transaction, operation (0 insert, 1 update, 2 delete, 3
    truncate), key before and after, and the row after it with its large value as SHA-256."""

    number: int
    transaction: int
    op: int
    old: int | None = None
    new: int | None = None
    image: Row | None = None


@dataclass(slots=True)
class Base:
    """When the present copy of a table was made, as far as the one who asked for it knows: it holds
    everything after number `done`, nothing that ended before `asked`. `done` is None until the copy
    was seen whole."""

    asked: int = 0
    done: int | None = None


@dataclass(slots=True)
class Past:
    """A table's past: the living `rows`, each key's last image `ever`, when keys `died`, its images
    at transactions' ends by life (`lives`, with their numbers; `ends`: when each ended), and every
    change as a log (`log`: number, operation, key)."""

    number: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    ever: dict[int, Row] = field(default_factory=dict)
    died: dict[int, int] = field(default_factory=dict)
    lives: dict[int, list[list[tuple[int, Row]]]] = field(default_factory=dict)
    ends: dict[int, list[int]] = field(default_factory=dict)
    log: list[tuple[int, str, int | None]] = field(default_factory=list)

    def add(self, changes: Iterable[Change]) -> None:
        """More changes, in order, whole transactions only."""
        for _, group in groupby(changes, key=lambda c: c.transaction):
            touched: dict[int, None] = {}
            for change in group:
                self.number = change.number
                touched |= dict.fromkeys(self._apply(change))
            for key in touched:
                self._end(key)

    def _end(self, key: int) -> None:
        lives = self.lives.setdefault(key, [[]])
        if key in self.rows:
            lives[-1].append((self.number, self.rows[key]))
        elif lives[-1]:
            lives.append([])
            self.ends.setdefault(key, []).append(self.number)

    def _apply(self, change: Change) -> list[int]:
        if change.op == TRUNCATE:
            gone = list(self.rows)
            self.log.append((change.number, WORDS[TRUNCATE], None))
            for key in gone:
                self._die(key, change.number)
            return gone
        touched = []
        if change.old is not None and change.old != change.new:
            touched.append(change.old)
            self.log.append((change.number, WORDS[DELETE], change.old))
            self._die(change.old, change.number)
        if change.new is not None and change.image is not None:
            touched.append(change.new)
            self.log.append((change.number, WORDS[change.op], change.new))
            self.rows[change.new] = self.ever[change.new] = change.image
        return touched

    def lived_at(self, key: int, number: int) -> bool:
        """Whether a row had this key once that number's transaction was done."""
        ends = [*self.ends.get(key, ()), self.number + 1]
        lives = [life for life in self.lives.get(key, ()) if life]
        return any(life[0][0] <= number < end for life, end in zip(lives, ends, strict=False))

    def _die(self, key: int, number: int) -> None:
        self.rows.pop(key, None)
        self.died[key] = number


def short(value: Any) -> Any:
    """A large text as its SHA-256, as the triggers keep it."""
    if not isinstance(value, str):
        return value
    return hashlib.sha256(value.encode()).hexdigest()


def same(row: Row, image: Row, columns: Sequence[str]) -> bool:
    """Whether a copied row is that image, in the source's present columns."""
    return all(
        canonical(short(row.get(c)) if c == "big" else row.get(c)) == canonical(image.get(c))
        for c in columns
    )


def soft_failures(past: Past, rows: Iterable[Row], base: Base, columns: Sequence[str]) -> list[str]:
    """What is wrong with a copy by soft delete: a row that never was, a flag on a living row or
    none on a dead one, other values than a dead row had at last, a row that is missing though it
    lived since the copy was made, or there twice."""
    reported, seen = [], set()
    done = past.number if base.done is None else base.done
    for row in rows:
        key = row["id"]
        is_gone = key not in past.rows
        if key in seen:
            reported.append(f"{key} is there twice")
        seen.add(key)
        if key not in past.ever:
            reported.append(f"{key} never was")
        elif row["_is_deleted"] != is_gone or (row["_deleted_at"] is not None) != is_gone:
            reported.append(f"{key}: flagged {row['_is_deleted']} at {row['_deleted_at']}")
        elif is_gone and past.died[key] <= base.asked:
            reported.append(f"{key} was gone before the copy was made")
        elif not same(row, past.ever[key], columns):
            reported.append(f"{key}: {_shown(row, columns)}, at last {dict(past.ever[key])}")
    wanted = {*past.rows, *(k for k, n in past.died.items() if n > done)}
    return reported[:SHOWN] + [f"{k} is missing" for k in sorted(wanted - seen)[:SHOWN]]


def history_failures(
    past: Past, rows: Iterable[Row], base: Base, columns: Sequence[str]
) -> list[str]:
    """What is wrong with a history: a key's versions must be the last of its images at the ends of
    transactions, in order, from the copy on; without overlap, without gap within a life, the
    current one at the end and alone."""
    by_key: dict[int, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row["id"], []).append(row)
    reported = []
    for key in sorted({*by_key, *past.lives}):
        lives = [life for life in past.lives.get(key, ()) if life]
        found = sorted(by_key.get(key, ()), key=_in_time)
        done = past.number if base.done is None else base.done
        had = past.lived_at(key, done)
        wrong = _versions_failure(lives, found, (base.asked, done, had), columns)
        if not wrong and bool(found and found[-1]["_is_current"]) != (key in past.rows):
            wrong = "is not current where it lives, or is where it does not"
        if wrong:
            reported.append(f"{key} {wrong}")
    return reported[:SHOWN]


def _in_time(row: Row) -> tuple[Any, ...]:
    return row["_valid_from"], row["_valid_to"] or _END, row["version"]


def _versions_failure(
    lives: list[list[tuple[int, Row]]],
    found: list[Row],
    base: tuple[int, int, bool],
    columns: Sequence[str],
) -> str:
    """`base`: when the copy was asked for and done, and whether the row was there then."""
    asked, done, had = base
    expected = [(number, i, image) for i, life in enumerate(lives) for number, image in life]
    least = sum(n > done for n, _, _ in expected) + had
    most = sum(n > asked for n, _, _ in expected) + 1
    if not least <= len(found) <= most:
        return f"has {len(found)} versions, not {least} to {most}"
    tail = expected[len(expected) - len(found) :]
    if len(found) > len(expected):
        return f"has {len(found)} versions of {len(expected)} that ever were"
    for row, (_, _, image) in zip(found, tail, strict=True):
        if not same(row, image, columns):
            return f"has the version {_shown(row, columns)} in place of {dict(image)}"
    for row in found:
        if row["_is_current"] != (row["_valid_to"] is None):
            return "has a version that is current and ended, or neither"
    for (one, other), (before, after) in zip(
        pairwise(found), pairwise([i for _, i, _ in tail]), strict=True
    ):
        ended, began = one["_valid_to"], other["_valid_from"]
        if ended is None or ended > began or (ended < began and before == after):
            return f"has a version to {ended} before one from {began}"
    return ""


def append_failures(
    past: Past,
    rows: Sequence[Row],
    base: Base,
    columns: Sequence[str],
    source: Mapping[int, Row],
) -> list[str]:
    """What is wrong with an appended log: its changes must be the last of those that happened, each
    once and in order, from the copy on, and replayed over the rows of the copy they must give the
    `source`."""
    logged = sorted(
        (r for r in rows if r["_operation"] != "snapshot"),
        key=lambda r: r["_sequence"],
    )
    found = [(r["_operation"], r["id"]) for r in logged]
    least = sum(n > (past.number if base.done is None else base.done) for n, _, _ in past.log)
    most = sum(n > base.asked for n, _, _ in past.log)
    if not least <= len(found) <= most:
        return [f"{len(found)} changes, not {least} to {most}"]
    tail = [(op, key) for _, op, key in past.log[len(past.log) - len(found) :]]
    for at, (expected, seen) in enumerate(zip(tail, found, strict=True)):
        if expected != seen:
            return [f"change {at} of {len(found)} is {seen} in place of {expected}"]
    return _replay_failures(rows, logged, columns, source)


def _replay_failures(
    rows: Sequence[Row], logged: Sequence[Row], columns: Sequence[str], source: Mapping[int, Row]
) -> list[str]:
    copied = [r for r in rows if r["_operation"] == "snapshot"]
    held = {r["id"]: {c: r.get(c) for c in columns} for r in copied}
    if len(held) < len(copied):
        return [f"{len(copied) - len(held)} keys are in the first copy twice"]
    moved: tuple[Any, dict[str, Any]] = (None, {})
    for row in logged:
        operation, key = row["_operation"], row["id"]
        is_moved = operation == "update" and moved[0] == row["_sequence"] - 1
        if operation == WORDS[TRUNCATE]:
            held.clear()
            continue
        if (key in held) == (operation == WORDS[INSERT] or is_moved):
            return [f"replayed, {operation} of {key} at {row['_sequence']} does not fit"]
        if operation == WORDS[DELETE]:
            moved = row["_sequence"], held.pop(key)
            continue
        before = moved[1] if is_moved else held.get(key, {})
        unsent = set(row["_unsent"] or ())
        held[key] = {c: before.get(c) if c in unsent else row.get(c) for c in columns}
    reported = [
        f"replayed, {k} is only in one of both" for k in sorted(held.keys() ^ source.keys())
    ]
    reported += [
        f"replayed, {k} is {_shown(held[k], columns)}"
        for k in sorted(held.keys() & source.keys())
        if any(canonical(held[k][c]) != canonical(source[k].get(c)) for c in columns)
    ]
    return reported[:SHOWN]


def multiset_failures(rows: Iterable[Row]) -> list[str]:
    """What is wrong with the numbers of equal rows of a table without a key: from 1, without a gap,
    each once."""
    numbers: dict[Any, list[int]] = {}
    for row in rows:
        numbers.setdefault(row["_row_hash"], []).append(row["_occurrence"])
    return [
        f"equal rows are numbered {sorted(found)}"
        for found in numbers.values()
        if sorted(found) != [*range(1, len(found) + 1)]
    ][:SHOWN]


def _shown(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    return {c: short(row.get(c)) if c == "big" else row.get(c) for c in columns}
