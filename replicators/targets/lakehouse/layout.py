"""How a copy's files are divided and sorted: the rules that people write, what they mean for a
table, and their SQL. Parsing and text only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from replicators.targets.lakehouse.rules import fault

if TYPE_CHECKING:
    from replicators.targets.lakehouse.params import LakehouseParams

EVERY = "*"
MARK = "replicator.layout"
"""The property that says how a table was laid out."""
_NUMBERED = frozenset({"bucket", "truncate"})
_TEXTS = (String, Enum, Uuid, Time)
_TAKES: Mapping[str, tuple[type, ...]] = {
    "": (Boolean, Int, Decimal, Date, Timestamp, *_TEXTS),
    "year": (Date, Timestamp),
    "month": (Date, Timestamp),
    "day": (Date, Timestamp),
    "hour": (Timestamp,),
    "bucket": (Int, Decimal, Date, Timestamp, Bytes, *_TEXTS),
    "truncate": (Int, Decimal, Bytes, *_TEXTS),
}
"""The types of columns that each transform takes."""
_DELTA = (Boolean, Int, Decimal, Date)
"""The types of a partition in Delta. It can't tell an empty text from NULL there, and readers
disagree on moments."""
_UNSORTED = (Array, Json)
_FIELD = re.compile(
    r"\s*(?:(?P<transform>year|month|day|hour|bucket|truncate)\s*\(\s*(?:(?P<number>\d+)\s*,\s*)?"
    r"(?P<inner>[^,()]+?)\s*\)|(?P<plain>[^,()]+?))\s*(?:,|$)"
)
_SORTED = re.compile(r"\s*(?P<column>[^,()]+?)(?:\s+(?P<way>asc|desc))?\s*(?:,|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a partition: a column (no `transform`) or a transform of it."""

    column: str
    transform: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """A column by which files are sorted."""

    column: str
    is_falling: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A table's partition and order. `former`: columns of partitions that the table had before.
    Iceberg can't read files of such a partition once the column is gone."""

    partition: tuple[Field, ...] = ()
    order: tuple[Order, ...] = ()
    former: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.partition or self.order)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the table needs for it."""
        return frozenset(
            (*(f.column for f in self.partition), *(o.column for o in self.order), *self.former)
        )

    def to_text(self) -> str:
        """As a property holds it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """From a property; empty: none."""
        found: dict[str, list[Any]] = json.loads(text or "{}")
        return cls(
            tuple(Field(**f) for f in found.get("partition", ())),
            tuple(Order(**o) for o in found.get("order", ())),
            tuple(found.get("former", ())),
        )

    def following(self, numbers: Mapping[str, int], new: TableSchema) -> Layout:
        """This layout once the columns have the names that their `numbers` have in `new`."""
        names = {c.ordinal: c.name for c in new.supported if c.ordinal}

        def now(name: str) -> str:
            return names.get(numbers.get(name, 0), name)

        return Layout(
            tuple(replace(f, column=now(f.column)) for f in self.partition),
            tuple(replace(o, column=now(o.column)) for o in self.order),
            tuple(map(now, self.former)),
        )

    def after(self, before: Layout) -> Layout:
        """This layout for a table that had another one."""
        gone = sorted({f.column for f in before.partition} | set(before.former))
        return Layout(self.partition, self.order, tuple(gone))


def _split(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            raise ValueError(f"can't be read at {text[at:].strip()}")
        yield found
        at = found.end()


def _field(found: re.Match[str]) -> Field:
    transform, number = found["transform"] or "", int(found["number"] or 0)
    if (transform in _NUMBERED) != (number > 0):
        raise ValueError(f"needs a number in bucket and truncate only: {found[0].strip()}")
    return Field(found["inner"] or found["plain"], transform, number)


def _rules(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, list[re.Match[str]]]]:
    seen = set()
    for rule in filter(None, (r.strip() for r in text.split(";"))):
        table, colon, rest = (x.strip() for x in rule.partition(":"))
        if not (table and colon and rest):
            raise ValueError("must look like table: column; table: column")
        if table in seen:
            raise ValueError(f"has {table} twice")
        seen.add(table)
        yield table, list(_split(pattern, rest))


def partitions(text: str) -> dict[str, tuple[Field, ...]]:
    """The partition for each table, by its name as written. ValueError with a sentence."""
    return {t: tuple(map(_field, found)) for t, found in _rules(text, _FIELD)}


def orders(text: str) -> dict[str, tuple[Order, ...]]:
    """The order for each table, by its name as written. ValueError with a sentence."""
    return {
        t: tuple(Order(f["column"], (f["way"] or "").lower() == "desc") for f in found)
        for t, found in _rules(text, _SORTED)
    }


def partition_fault(text: str) -> str:
    """What is wrong with a text of partitions."""
    return fault(partitions, text)


def order_fault(text: str) -> str:
    """What is wrong with a text of orders."""
    return fault(orders, text)


def has_transform(text: str) -> bool:
    """Whether a partition is of more than plain columns."""
    return any(f.transform for fields in partitions(text).values() for f in fields)


def names_of(table: TableId) -> tuple[str, str, str]:
    """How rules may name a table, the strictest first."""
    return str(table), table.name, EVERY


def _asked(params: LakehouseParams, table: TableId) -> tuple[str, tuple[Field, ...], str, Any]:
    by_field, by_order = partitions(params.partition_by), orders(params.sort_by)
    names = names_of(table)
    part = next((n for n in names if n in by_field), "")
    order = next((n for n in names if n in by_order), "")
    return part, by_field.get(part, ()), order, by_order.get(order, ())


def layout_of(params: LakehouseParams, schema: TableSchema) -> Layout:
    """What the rules say for a table. A rule that does not fit its columns is left out."""
    if not (params.partition_by or params.sort_by):
        return Layout()
    _, fields, _, order = _asked(params, schema.id)
    columns = {c.name: c for c in schema.supported}
    if any(_field_fault(columns.get(f.column), f, params.format) for f in fields):
        fields = ()
    if any(_order_fault(columns.get(o.column)) for o in order):
        order = ()
    return Layout(fields, order)


def faults(params: LakehouseParams, schema: TableSchema) -> Iterator[tuple[str, str]]:
    """The columns of a table's own rules that don't fit, with the reason."""
    part, fields, ordered, order = _asked(params, schema.id)
    columns = {c.name: c for c in schema.supported}
    for field in fields if part != EVERY else ():
        if reason := _field_fault(columns.get(field.column), field, params.format):
            yield field.column, reason
    for one in order if ordered != EVERY else ():
        if reason := _order_fault(columns.get(one.column)):
            yield one.column, reason


def unused(params: LakehouseParams, tables: Sequence[TableId]) -> list[str]:
    """The tables that rules name and that are not chosen."""
    named = {*partitions(params.partition_by), *orders(params.sort_by)}
    return sorted(named - {n for t in tables for n in names_of(t)} - {EVERY})


def _field_fault(column: Column | None, field: Field, form: str) -> str:
    if column is None:
        return "the table has no such column"
    if form == "delta" and not isinstance(column.type, _DELTA):
        return "a partition of Delta takes whole numbers, decimals, booleans and dates only"
    if not isinstance(column.type, _TAKES[field.transform]):
        what = f"{field.transform}()" if field.transform else "a partition"
        return f"{what} takes no column of this type"
    return ""


def _order_fault(column: Column | None) -> str:
    if column is None:
        return "the table has no such column"
    return "files can't be sorted by this type" if _is_unsorted(column.type) else ""


def _is_unsorted(kind: LogicalType) -> bool:
    return isinstance(kind, _UNSORTED)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def field_sql(field: Field) -> str:
    """A part of a partition in Spark's SQL."""
    name = _quoted(field.column)
    if not field.transform:
        return name
    if field.transform in _NUMBERED:
        return f"{field.transform}({field.number}, {name})"
    return f"{field.transform}s({name})"


def order_sql(order: Sequence[Order]) -> str:
    """The columns of an order in Spark's SQL."""
    return ", ".join(
        f"{_quoted(o.column)} {'DESC NULLS LAST' if o.is_falling else 'ASC NULLS FIRST'}"
        for o in order
    )


def partitioned_by(layout: Layout) -> str:
    """The clause of CREATE TABLE; empty for no partition."""
    made = ", ".join(map(field_sql, layout.partition))
    return f" PARTITIONED BY ({made})" if made else ""


def changes(target: str, before: Layout, after: Layout) -> Iterator[str]:
    """The statements that give an Iceberg table another layout. Files stay as they are."""
    for field in before.partition:
        if field not in after.partition:
            yield f"ALTER TABLE {target} DROP PARTITION FIELD {field_sql(field)}"
    for field in after.partition:
        if field not in before.partition:
            yield f"ALTER TABLE {target} ADD PARTITION FIELD {field_sql(field)}"
    if before.order != after.order:
        how = f"LOCALLY ORDERED BY {order_sql(after.order)}" if after.order else "UNORDERED"
        yield f"ALTER TABLE {target} WRITE {how}"
