"""The SQL text of a lakehouse target, for Iceberg and Delta alike: pure functions of schemas and batches to strings.

Names go in through `quote`, values through `literal`; nothing here asks a server or knows a Spark session.
"""

# ruff: noqa: S608 - this module is where SQL is made: names go through `quote`, values through `literal`

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from typing import Any

from replicators.connectors.schema import Column, TableSchema
from replicators.connectors.target import FoldedBatch, KeyRange
from replicators.connectors.types import (
    Array,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Time,
    Timestamp,
)
from replicators.targets.lakehouse.types import fit

ROW_MISSING = "replicator: row missing"
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\0"})


def quote(name: str) -> str:
    """A name as an identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def path(names: Iterable[str]) -> str:
    """Name parts as one qualified identifier."""
    return ".".join(quote(n) for n in names)


def text(value: str) -> str:
    """A text literal."""
    return "'" + value.translate(_ESCAPES) + "'"


def _timestamp(kind: Timestamp, value: datetime) -> str:
    word = "TIMESTAMP" if kind.zone else "TIMESTAMP_NTZ"
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    zone = "Z" if kind.zone else ""
    return f"{word} '{plain.isoformat(' ', 'microseconds')}{zone}'"


def _clock(value: time) -> str:
    return text(value.isoformat("microseconds"))


def literal(  # noqa: C901 - one line for each type
    kind: LogicalType, value: Any
) -> str:
    """A key's value as a literal of the target's type; `value` may be an Arrow scalar. ValueError for what has none."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    match kind, plain:
        case _, None:
            return "NULL"
        case _, bool():
            return "TRUE" if plain else "FALSE"
        case Timestamp(), datetime():
            return _timestamp(kind, plain)
        case Date(), date():
            return f"DATE '{plain.isoformat()}'"
        case Time(), time():
            return _clock(plain)
        case Float(), int() | float():
            return f"CAST('{plain!r}' AS {fit(kind).native})"
        case ((Int() | Decimal()), int()):
            return f"CAST({plain} AS {fit(kind).native})"
        case ((Int() | Decimal()), PyDecimal()):
            return f"CAST({plain:f} AS {fit(kind).native})"
        case _, str():
            return text(plain)
        case _, bytes():
            return f"X'{plain.hex()}'"
    raise ValueError(f"no literal for {kind}")


def _stored(kind: LogicalType, value: str) -> str:
    """An expression that turns a batch's value into the target's: only times of day differ."""
    match kind:
        case Time():
            return f"date_format(timestamp_micros({value}), 'HH:mm:ss.SSSSSS')"
        case Array(of=Time()):
            return f"transform({value}, e -> {_stored(kind.of, 'e')})"
    return value


def _read_type(kind: LogicalType) -> str:
    match kind:
        case Time():
            return "BIGINT"
        case Array(of=of):
            return f"ARRAY<{_read_type(of)}>"
    return fit(kind).native


def columns_ddl(columns: Sequence[Column]) -> str:
    """`name TYPE` of each column, as the target stores it."""
    return ", ".join(f"{quote(c.name)} {fit(c.type).native}" for c in columns)


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema with which Spark reads the batch's Parquet files; times of day are read as microseconds."""
    fields = [f"{quote(c.name)} {_read_type(c.type)}" for c in batch.schema.supported]
    if not batch.append_only:
        fields.append("`_delete` BOOLEAN")
    if batch.unsent:
        fields.append("`_unsent` BINARY")
    if batch.unsent and batch.has_origins:
        key = ", ".join(
            f"{quote(n)}: {_read_type(batch.schema.column(n).type)}" for n in batch.schema.key
        )
        fields.append(f"`_origin` STRUCT<{key}>")
    return ", ".join(fields)


def image_ddl(schema: TableSchema) -> str:
    """The schema with which Spark reads Parquet files of whole rows."""
    return ", ".join(f"{quote(c.name)} {_read_type(c.type)}" for c in schema.supported)


def image_columns(schema: TableSchema, types: Mapping[str, str]) -> list[str]:
    """Expressions that read whole rows in the target's types; `types` are the Spark types the rows have now: a time of
    day that is text already stays as it is."""
    return [
        quote(c.name)
        if types.get(c.name) == "string"
        else f"{_stored(c.type, quote(c.name))} AS {quote(c.name)}"
        for c in schema.supported
    ]


def properties(values: Mapping[str, str]) -> str:
    """The inside of TBLPROPERTIES."""
    return ", ".join(f"{text(k)} = {text(v)}" for k, v in sorted(values.items()))


def create(
    target: str, schema: TableSchema, *, provider: str, location: str, values: Mapping[str, str]
) -> str:
    """CREATE TABLE; every column may be NULL, so that evolving never has to relax one."""
    place = f"\nLOCATION {text(location)}" if location else ""
    return (
        f"CREATE TABLE {target} ({columns_ddl(schema.supported)})\nUSING {provider}{place}\n"
        f"TBLPROPERTIES ({properties(values)})"
    )


def _range(column: str, kind: LogicalType, one: KeyRange) -> str:
    low, high = literal(kind, one.low), literal(kind, one.high)
    if low == "NULL" or high == "NULL":
        return f"{column} IS NULL"
    if low == high:
        return f"{column} = {low}"
    return f"{column} BETWEEN {low} AND {high}"


def key_ranges(batch: FoldedBatch, alias: str) -> str:
    """A predicate over the first key column that holds for every key of the batch; '' where there is none. Few keys are
    listed: then the text of Spark's compiled program stays the same from merge to merge, and it is compiled once."""
    schema = batch.schema
    if not (batch.ranges or batch.keys) or not schema.key:
        return ""
    column = schema.column(schema.key[0])
    if isinstance(column.type, Array):
        return ""
    name = f"{alias}.{quote(column.name)}"
    try:
        if batch.keys:
            return f"{name} IN ({', '.join(literal(column.type, k) for k in batch.keys)})"
        return f"({_ranges(name, column.type, batch.ranges)})"
    except ValueError:
        return ""


def _ranges(name: str, kind: LogicalType, ranges: Sequence[KeyRange]) -> str:
    """One of the ascending ranges holds: halved again and again, so that a row costs a few comparisons, not two for each
    range."""
    if len(ranges) == 1:
        return _range(name, kind, ranges[0])
    middle = len(ranges) // 2
    left, right = ranges[:middle], ranges[middle:]
    low, high = literal(kind, right[0].low), literal(kind, left[-1].high)
    if "NULL" in (low, high):
        return " OR ".join(_range(name, kind, r) for r in ranges)
    return (
        f"{name} <= {high} AND ({_ranges(name, kind, left)}) "
        f"OR {name} >= {low} AND ({_ranges(name, kind, right)})"
    )


def key_match(schema: TableSchema, left: str, right: str) -> str:
    """Equality of keys, NULL equal to NULL where a key column may be NULL."""
    parts = []
    for name in schema.key:
        sign = "<=>" if schema.column(name).nullable else "="
        parts.append(f"{left}.{quote(name)} {sign} {right}.{quote(name)}")
    return " AND ".join(parts)


def _bit(batch: FoldedBatch, column: str) -> str:
    at = [c.name for c in batch.schema.columns].index(column)
    byte = f"conv(hex(substring(b.`_unsent`, {at // 8 + 1}, 1)), 16, 10)"
    return f"coalesce((CAST({byte} AS INT) & {1 << (at % 8)}) <> 0, FALSE)"


def _fail(condition: str, value: str, native: str) -> str:
    return f"CASE WHEN {condition} THEN CAST(raise_error({text(ROW_MISSING)}) AS {native}) ELSE {value} END"


def _source_column(batch: FoldedBatch, column: Column) -> str:
    name, plain = quote(column.name), _stored(column.type, f"b.{quote(column.name)}")
    if column.name in batch.unsent and batch.has_origins:
        taken = f"b.`_origin` IS NOT NULL AND {_bit(batch, column.name)}"
        found = _fail("o.`_found` IS NULL", f"o.{name}", fit(column.type).native)
        return f"CASE WHEN {taken} THEN {found} ELSE {plain} END AS {name}"
    return f"{plain} AS {name}"


def merge_source(target: str, batch: FoldedBatch, view: str) -> str:
    """The rows of a batch in the target's types, with a flag for each unsent column; unsent values that belong to a row
    under another key are read from the target."""
    shown = [_source_column(batch, c) for c in batch.schema.supported]
    shown.append("b.`_delete` AS `_delete`")
    own = " AND b.`_origin` IS NULL" if batch.has_origins else ""
    shown += [f"({_bit(batch, n)}{own}) AS {quote(unsent_flag(batch, n))}" for n in batch.unsent]
    if not (batch.unsent and batch.has_origins):
        return f"SELECT {', '.join(shown)} FROM {view} AS b"
    key = batch.schema.key
    inner = [f"{quote(n)}" for n in dict.fromkeys((*key, *batch.unsent))]
    ranges = key_ranges(batch, "r")
    where = f" WHERE {ranges}" if ranges else ""
    origin = " AND ".join(
        f"{_stored(batch.schema.column(n).type, f'b.`_origin`.{quote(n)}')} <=> o.{quote(n)}"
        for n in key
    )
    return (
        f"SELECT {', '.join(shown)} FROM {view} AS b LEFT JOIN "
        f"(SELECT {', '.join(inner)}, TRUE AS `_found` FROM {target} AS r{where}) AS o "
        f"ON b.`_origin` IS NOT NULL AND {origin}"
    )


def missing(target: str, batch: FoldedBatch, view: str) -> str:
    """The keys of a batch's rows with unsent columns whose row, under its old key where that changed, is not there."""
    schema = batch.schema
    shown = ", ".join(f"b.{quote(n)}" for n in schema.key)
    rows = f"SELECT {shown} FROM {view} AS b WHERE b.`_unsent` IS NOT NULL"
    if batch.truncate:
        return rows
    pairs = []
    for name in schema.key:
        own = f"b.{quote(name)}"
        if batch.has_origins:
            own = f"CASE WHEN b.`_origin` IS NULL THEN {own} ELSE b.`_origin`.{quote(name)} END"
        pairs.append(f"{_stored(schema.column(name).type, own)} <=> r.{quote(name)}")
    ranges = key_ranges(batch, "r")
    where = " AND ".join([*pairs, *([ranges] if ranges else [])])
    return f"{rows} AND NOT EXISTS (SELECT 1 FROM {target} AS r WHERE {where})"


def unsent_flag(batch: FoldedBatch, column: str) -> str:
    """The name of the flag that says that `column` was not sent; no column of the table has it."""
    names = {c.name.casefold() for c in batch.schema.columns}
    flag = f"_unsent_{[c.name for c in batch.schema.columns].index(column)}"
    while flag.casefold() in names:
        flag += "_"
    return flag


def merge(target: str, batch: FoldedBatch, view: str) -> str:
    """MERGE of a folded batch. A new row with unsent columns fails the statement with `ROW_MISSING`."""
    schema = batch.schema
    columns = list(schema.supported)
    flags = {n: f"s.{quote(unsent_flag(batch, n))}" for n in batch.unsent}

    def updated(column: Column) -> str:
        name = quote(column.name)
        if column.name in flags:
            return f"t.{name} = CASE WHEN {flags[column.name]} THEN t.{name} ELSE s.{name} END"
        return f"t.{name} = s.{name}"

    def inserted(column: Column) -> str:
        name = f"s.{quote(column.name)}"
        return (
            _fail(flags[column.name], name, fit(column.type).native)
            if column.name in flags
            else name
        )

    ranges = key_ranges(batch, "t")
    on = key_match(schema, "t", "s") + (f"\n  AND {ranges}" if ranges else "")
    return (
        f"MERGE INTO {target} AS t\nUSING ({merge_source(target, batch, view)}) AS s\nON {on}\n"
        f"WHEN MATCHED AND s.`_delete` THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {', '.join(updated(c) for c in columns)}\n"
        f"WHEN NOT MATCHED AND NOT s.`_delete` THEN INSERT ({', '.join(quote(c.name) for c in columns)}) "
        f"VALUES ({', '.join(inserted(c) for c in columns)})"
    )


def _image(batch: FoldedBatch) -> list[str]:
    shown = []
    for column in batch.schema.supported:
        value = _stored(column.type, f"b.{quote(column.name)}")
        if column.name in batch.unsent:
            value = _fail(_bit(batch, column.name), value, fit(column.type).native)
        shown.append(f"{value} AS {quote(column.name)}")
    return shown


def append(target: str, batch: FoldedBatch, view: str) -> str:
    """INSERT of every row of a batch."""
    return (
        f"INSERT INTO {target}{_names(batch)}\nSELECT {', '.join(_image(batch))} FROM {view} AS b"
    )


def replace(target: str, batch: FoldedBatch, view: str) -> str:
    """INSERT OVERWRITE: the batch's surviving rows become the whole table."""
    where = "" if batch.append_only else " WHERE NOT b.`_delete`"
    return f"INSERT OVERWRITE {target}{_names(batch)}\nSELECT {', '.join(_image(batch))} FROM {view} AS b{where}"


def _names(batch: FoldedBatch) -> str:
    return f" ({', '.join(quote(c.name) for c in batch.schema.supported)})"


def touch(target: str) -> str:
    """An INSERT of nothing: a commit that carries a token only."""
    return f"INSERT INTO {target} SELECT * FROM {target} WHERE FALSE"


def truncate(target: str) -> str:
    """A commit that leaves the table empty, and carries the token (a plain DELETE would not)."""
    return f"INSERT OVERWRITE {target} SELECT * FROM {target} WHERE FALSE"


def add_column(target: str, column: Column) -> str:
    """ADD COLUMN, NULL in the rows that are there."""
    return f"ALTER TABLE {target} ADD COLUMN {quote(column.name)} {fit(column.type).native}"


def drop_column(target: str, name: str) -> str:
    """DROP COLUMN."""
    return f"ALTER TABLE {target} DROP COLUMN {quote(name)}"


def widen_column(target: str, column: Column) -> str:
    """ALTER COLUMN to a wider type."""
    return f"ALTER TABLE {target} ALTER COLUMN {quote(column.name)} TYPE {fit(column.type).native}"


def set_properties(target: str, values: Mapping[str, str]) -> str:
    """SET TBLPROPERTIES."""
    return f"ALTER TABLE {target} SET TBLPROPERTIES ({properties(values)})"


def replace_table(target: str, staged: str, values: Mapping[str, str]) -> str:
    """One commit that makes the rows and columns of a staged Delta table those of `target`."""
    return (
        f"CREATE OR REPLACE TABLE {target}\nUSING delta\nTBLPROPERTIES ({properties(values)})\n"
        f"AS SELECT * FROM {staged}"
    )


def snapshots(table: str) -> str:
    """Every snapshot of an Iceberg table; `table` is its metadata table."""
    return f"SELECT snapshot_id, parent_id, summary FROM {table}"


def delete_all(target: str) -> str:
    """Empty a branch, without a token."""
    return f"DELETE FROM {target}"
