"""The SQL text of a lakehouse target, for Iceberg and Delta alike: pure functions of schemas and
batches to strings.

Names go in through `quote`, values through `literal`. Nothing here calls a server or uses a Spark
session.
"""

# ruff: noqa: S608 - this module is where SQL is made: names go through `quote`, values through
# `literal`

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from typing import Any

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import (
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

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\000"})


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
    """A key's value as a literal of the target's type. `value` may be an Arrow scalar. Raises
    ValueError for a type that has no literal."""
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


def stored(kind: LogicalType, value: str) -> str:
    """An expression that converts a batch's value to the target's type. Only times of day
    differ."""
    match kind:
        case Time():
            return f"date_format(timestamp_micros({value}), 'HH:mm:ss.SSSSSS')"
        case Array(of=Time()):
            return f"transform({value}, e -> {stored(kind.of, 'e')})"
    return value


def read_type(kind: LogicalType) -> str:
    """The type that Spark uses to read a value of a batch."""
    match kind:
        case Time():
            return "BIGINT"
        case Array(of=of):
            return f"ARRAY<{read_type(of)}>"
    return fit(kind).native


def columns_ddl(columns: Sequence[Column]) -> str:
    """`name TYPE` for each column, as the target stores it."""
    return ", ".join(f"{quote(c.name)} {fit(c.type).native}" for c in columns)


def image_ddl(schema: TableSchema) -> str:
    """The schema that Spark uses to read Parquet files of whole rows."""
    return ", ".join(f"{quote(c.name)} {read_type(c.type)}" for c in schema.supported)


def image_columns(schema: TableSchema, types: Mapping[str, str]) -> list[str]:
    """Expressions that read whole rows in the target's types. `types` are the rows' present Spark
    types: a time of day that is text already is not converted."""
    return [
        quote(c.name)
        if types.get(c.name) == "string"
        else f"{stored(c.type, quote(c.name))} AS {quote(c.name)}"
        for c in schema.supported
    ]


def properties(values: Mapping[str, str]) -> str:
    """The inside of TBLPROPERTIES."""
    return ", ".join(f"{text(k)} = {text(v)}" for k, v in sorted(values.items()))


def create(
    target: str, schema: TableSchema, *, provider: str, location: str, values: Mapping[str, str]
) -> str:
    """CREATE TABLE. Every column is nullable, so that schema changes never have to relax one."""
    place = f"\nLOCATION {text(location)}" if location else ""
    return (
        f"CREATE TABLE {target} ({columns_ddl(schema.supported)})\nUSING {provider}{place}\n"
        f"TBLPROPERTIES ({properties(values)})"
    )


def touch(target: str) -> str:
    """An INSERT of no rows: a commit that only carries a token."""
    return f"INSERT INTO {target} SELECT * FROM {target} WHERE FALSE"


def create_tag(target: str, name: str, version: int, minutes: int) -> str:
    """A tag that keeps an Iceberg snapshot for at most `minutes`. The limit matters if nobody is
    left to drop the tag."""
    return (
        f"ALTER TABLE {target} CREATE TAG IF NOT EXISTS {quote(name)} AS OF VERSION {version} "
        f"RETAIN {minutes} MINUTES"
    )


def drop_tag(target: str, name: str) -> str:
    """Drop the tag, so that the snapshot may expire."""
    return f"ALTER TABLE {target} DROP TAG IF EXISTS {quote(name)}"


def truncate(target: str) -> str:
    """A commit that empties the table and carries the token. A plain DELETE would not carry it."""
    return f"INSERT OVERWRITE {target} SELECT * FROM {target} WHERE FALSE"


def add_column(target: str, column: Column) -> str:
    """ADD COLUMN; existing rows get NULL."""
    return f"ALTER TABLE {target} ADD COLUMN {quote(column.name)} {fit(column.type).native}"


def drop_column(target: str, name: str) -> str:
    """DROP COLUMN."""
    return f"ALTER TABLE {target} DROP COLUMN {quote(name)}"


def rename_column(target: str, name: str, new: str) -> str:
    """RENAME COLUMN; the rows keep their values."""
    return f"ALTER TABLE {target} RENAME COLUMN {quote(name)} TO {quote(new)}"


def fill_column(target: str, column: Column, value: Any) -> str:
    """UPDATE of one column of every row."""
    return f"UPDATE {target} SET {quote(column.name)} = {literal(column.type, value)}"


def widen_column(target: str, column: Column) -> str:
    """ALTER COLUMN to a wider type."""
    return f"ALTER TABLE {target} ALTER COLUMN {quote(column.name)} TYPE {fit(column.type).native}"


def set_properties(target: str, values: Mapping[str, str]) -> str:
    """SET TBLPROPERTIES."""
    return f"ALTER TABLE {target} SET TBLPROPERTIES ({properties(values)})"


def replace_table(target: str, staged: str, values: Mapping[str, str]) -> str:
    """Replace the rows and columns of `target` with those of a staged Delta table, in one
    commit."""
    return (
        f"CREATE OR REPLACE TABLE {target}\nUSING delta\nTBLPROPERTIES ({properties(values)})\n"
        f"AS SELECT * FROM {staged}"
    )


def snapshots(table: str) -> str:
    """All snapshots of an Iceberg table; `table` is its metadata table."""
    return f"SELECT snapshot_id, parent_id, summary FROM {table}"


def delete_all(target: str) -> str:
    """Delete all rows of a branch, without a token."""
    return f"DELETE FROM {target}"
