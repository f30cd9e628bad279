"""What changed between two descriptions of one table. Pure: it says what is different, and `policy`
decides what to do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from replicators.connectors.model.schema import Column, TableSchema, part_number
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)

WRITTEN_AGAIN = "rows that were there were written again"


class ChangeKind(StrEnum):
    """Kinds of change. WIDENED: every value of the old type is a value of the new type with the
    same meaning. RETYPED: any other change of a type. REPLACED: a column was dropped and made again
    under its name. REWRITTEN: the source changed existing rows, and the log does not have these
    changes. TABLE_REPLACED: another table has the old name."""

    ADDED = "added"
    DROPPED = "dropped"
    RENAMED = "renamed"
    WIDENED = "widened"
    RETYPED = "retyped"
    REPLACED = "replaced"
    KEY_CHANGED = "key_changed"
    REWRITTEN = "rewritten"
    PARTITIONS_CHANGED = "partitions_changed"
    TABLE_REPLACED = "table_replaced"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change. `old` and `new` are the column before and after, where the change is about one.
    `text` describes it in words."""

    kind: ChangeKind
    text: str
    old: Column | None = None
    new: Column | None = None


def is_wider(  # noqa: C901 - one line for each type
    old: LogicalType, new: LogicalType
) -> bool:
    """Whether every value of `old` is a value of `new` with the same meaning and the same text."""
    match old, new:
        case Int(), Int():
            return _holds_integer(old, new)
        case Int(bits=bits, signed=signed), Decimal(precision=precision, scale=scale):
            return precision - scale >= len(str(2 ** (bits - signed)))
        case Decimal(), Decimal():
            whole = new.precision - new.scale >= old.precision - old.scale
            return whole and new.scale >= old.scale
        case Float(), Float():
            return new.bits >= old.bits
        case (String(length=a), String(length=b)) | (Bytes(length=a), Bytes(length=b)):
            return b is None or (a is not None and b >= a)
        case Enum(), Enum():
            return set(old.values) <= set(new.values)
        case ((Enum() | Uuid() | Json()), String()):
            return new.length is None
        case Time(), Time():
            return new.precision >= old.precision
        case Timestamp(), Timestamp():
            return new.zone == old.zone and new.precision >= old.precision
        case Array(), Array():
            return is_wider(old.of, new.of)
    return old == new


def _holds_integer(old: Int, new: Int) -> bool:
    if old.signed == new.signed:
        return new.bits >= old.bits
    return new.signed and new.bits > old.bits


def compare(old: TableSchema, new: TableSchema) -> tuple[SchemaChange, ...]:
    """The changes that lead from `old` to `new`; none where a copy made for `old` takes rows of
    `new` as they are.

    Columns are matched by `ordinal`; where either has none (0), by name.
    """
    if old.native_id and new.native_id and old.native_id != new.native_id:
        return (SchemaChange(ChangeKind.TABLE_REPLACED, "the table was dropped and made again"),)
    changes = _columns(old, new)
    key, key_now = _reported_keys(old, new)
    if key != key_now:
        before, after = (", ".join(s.key) or "none" for s in (old, new))
        changes.append(
            SchemaChange(ChangeKind.KEY_CHANGED, f"key changed from ({before}) to ({after})")
        )
    is_moved = bool(old.storage and new.storage and old.storage != new.storage)
    moving = (ChangeKind.ADDED, ChangeKind.WIDENED, ChangeKind.RETYPED)
    text = _rewritten(old, new)
    if is_moved and any(c.kind in moving for c in changes):
        text = WRITTEN_AGAIN
    if text:
        changes.append(SchemaChange(ChangeKind.REWRITTEN, text))
    if old.partitions and new.partitions:
        changes += _partitions(old, new)
    return tuple(changes)


def _rewritten(old: TableSchema, new: TableSchema) -> str:
    """Describes that rows were written again although no column looks different; '' where they were
    not.

    A part gets another file after a TRUNCATE of it, which the log does not have, and after a
    clean-up. These two can't be told apart. A whole table's TRUNCATE is in the log, and a clean-up
    alters no column.
    """
    before, after = dict(old.marks), dict(new.marks)
    changed = {n for n in before.keys() & after.keys() if before[n] != after[n]}
    if 0 in after:
        altered = changed & {c.ordinal for c in old.columns}
        return WRITTEN_AGAIN if 0 in changed and altered else ""
    return f"partitions emptied or written again: {len(changed)}" if changed else ""


def _reported_keys(old: TableSchema, new: TableSchema) -> list[tuple[int | str, ...]]:
    """The keys by the columns' numbers, so that a key is the same after its column was renamed. By
    names where either description has no numbers."""
    found = [tuple(s.column(n).ordinal for n in s.key) for s in (old, new)]
    if all(all(numbers) for numbers in found):
        return list(found)
    return [old.key, new.key]


def _columns(old: TableSchema, new: TableSchema) -> list[SchemaChange]:
    numbers = {c.ordinal: c for c in old.columns if c.ordinal}
    names = {c.name: c for c in old.columns}
    changes: list[SchemaChange] = []
    kept: set[str] = set()
    for column in new.columns:
        known, namesake = numbers.get(column.ordinal), names.get(column.name)
        if known is None and namesake is not None:
            kept.add(namesake.name)
            if column.ordinal and namesake.ordinal:
                changes.append(_replaced(namesake, column))
                continue
            known = namesake
        if known is None:
            changes.append(
                SchemaChange(ChangeKind.ADDED, f"column {column.name} added", None, column)
            )
            continue
        kept.add(known.name)
        changes += _same_column(known, column)
    gone = [c for c in old.columns if c.name not in kept]
    dropped = [SchemaChange(ChangeKind.DROPPED, f"column {c.name} dropped", c) for c in gone]
    return dropped + changes


def _replaced(old: Column, new: Column) -> SchemaChange:
    text = f"column {new.name} dropped and made again"
    return SchemaChange(ChangeKind.REPLACED, text, old, new)


def with_known_labels(old: TableSchema, new: TableSchema) -> TableSchema:
    """A schema from the log, whose enums also get the values that the copy's enums have. A schema
    that lacks some of them was described before they were added, or after they were renamed while
    rows with them came. The next look into the catalog says which."""
    numbers = {c.ordinal: c for c in old.columns if c.ordinal}
    columns = tuple(_joined(numbers.get(c.ordinal), c) for c in new.columns)
    return new if columns == new.columns else replace(new, columns=columns)


def _joined(old: Column | None, new: Column) -> Column:
    if old is None or old.native != new.native:
        return new
    return replace(new, type=_both(old.type, new.type))


def _both(old: LogicalType, new: LogicalType) -> LogicalType:
    match old, new:
        case Enum(), Enum() if not set(old.values) <= set(new.values):
            return Enum((*old.values, *(v for v in new.values if v not in old.values)))
        case Array(), Array():
            return Array(_both(old.of, new.of))
    return new


def _labels_text(name: str, old: LogicalType, new: LogicalType) -> str:
    """How the values of an enum changed; '' where the column is no enum."""
    if isinstance(old, Array) and isinstance(new, Array):
        old, new = old.of, new.of
    if not isinstance(old, Enum) or not isinstance(new, Enum):
        return ""
    gone = [v for v in old.values if v not in new.values]
    come = [v for v in new.values if v not in old.values]
    reported = [
        f"{word} {', '.join(map(repr, some))}"
        for word, some in (("without", gone), ("with", come))
        if some
    ]
    return f"values of column {name} changed: {' and '.join(reported)}" if reported else ""


def _same_column(old: Column, new: Column) -> list[SchemaChange]:
    changes = []
    if old.name != new.name:
        text = f"column {old.name} renamed to {new.name}"
        changes.append(SchemaChange(ChangeKind.RENAMED, text, old, new))
    if old.type != new.type:
        wider = is_wider(old.type, new.type)
        kind = ChangeKind.WIDENED if wider else ChangeKind.RETYPED
        word = "widened" if wider else "changed"
        text = f"type of column {new.name} {word} from {old.native} to {new.native}"
        if old.native == new.native:
            text = f"type of column {new.name}, {new.native}, {word} at the source"
            text = _labels_text(new.name, old.type, new.type) or text
        changes.append(SchemaChange(kind, text, old, new))
    return changes


def _partitions(old: TableSchema, new: TableSchema) -> list[SchemaChange]:
    before, after = ({part_number(n) for n in s.partitions} for s in (old, new))
    attached = [n for n in new.partitions if _has_come(n, old.partitions, before)]
    reported = []
    if attached:
        reported.append(f"partitions attached: {len(attached)}")
    if before - after:
        reported.append(f"partitions detached or dropped: {len(before - after)}")
    return [SchemaChange(ChangeKind.PARTITIONS_CHANGED, text) for text in reported]


def _has_come(part: int, known: Collection[int], numbers: Collection[int]) -> bool:
    """Whether a part has come with rows since then: it is a new part with rows, or it was away in
    between."""
    number = part_number(part)
    if number not in numbers:
        return part < 0
    since = abs(part) >> 32
    times = [abs(n) >> 32 for n in known if part_number(n) == number]
    return bool(since) and all(t and t != since for t in times)
