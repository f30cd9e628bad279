"""Dialects with plain types, for tests of the statements that `connectors.sql` makes."""

from __future__ import annotations

from collections.abc import Callable

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Time,
    Timestamp,
)
from replicators.connectors.sql import engines
from replicators.connectors.sql.dialect import SqlDialect
from replicators.targets.lakehouse.types import fit

_NAMES: dict[str, tuple[str, ...]] = {
    # bool, int, float, text, bytes, date, time, moment, wall clock, array
    "bigquery": (
        "BOOL", "INT64", "FLOAT64", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP", "DATETIME",
        "ARRAY<{}>",
    ),
    "postgres": (
        "boolean", "bigint", "double precision", "text", "bytea", "date", "time",
        "timestamptz", "timestamp", "{}[]",
    ),
    "mysql": (
        "BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR(200) COLLATE utf8mb4_bin", "VARBINARY(200)", "DATE",
        "TIME(6)", "DATETIME(6)", "DATETIME(6)", "JSON",
    ),
    "snowflake": (
        "BOOLEAN", "BIGINT", "DOUBLE", "TEXT", "BINARY", "DATE", "TIME(6)", "TIMESTAMP_TZ(6)",
        "TIMESTAMP_NTZ(6)", "ARRAY",
    ),
    "redshift": (
        "BOOLEAN", "BIGINT", "DOUBLE PRECISION", "VARCHAR(65535)", "VARBYTE", "DATE", "TIME",
        "TIMESTAMPTZ", "TIMESTAMP", "SUPER",
    ),
    "tsql": (
        "BIT", "BIGINT", "FLOAT(53)", "NVARCHAR(400) COLLATE Latin1_General_100_BIN2",
        "VARBINARY(400)", "DATE", "TIME(6)", "DATETIMEOFFSET(6)", "DATETIME2(6)", "NVARCHAR(MAX)",
    ),
    "duckdb": (
        "BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMPTZ",
        "TIMESTAMP", "{}[]",
    ),
}  # fmt: skip
_DECIMAL = {"postgres": "numeric", "bigquery": "NUMERIC"}


def native(engine: str) -> Callable[[Column], str]:
    """The text of a column's type in an engine."""
    if engine == "spark":
        return lambda column: fit(column.type).native
    return lambda column: _native(engine, column.type)


def _native(engine: str, kind: LogicalType) -> str:
    names = _NAMES[engine]
    match kind:
        case Boolean():
            return names[0]
        case Int():
            return names[1]
        case Float():
            return names[2]
        case Decimal(precision=p, scale=s):
            return f"{_DECIMAL.get(engine, 'DECIMAL')}({p}, {s})"
        case Bytes():
            return names[4]
        case Date():
            return names[5]
        case Time():
            return names[6]
        case Timestamp(zone=zone):
            return names[7 if zone else 8]
        case Array(of=of):
            return names[9].format(_native(engine, of))
    return names[3]


DIALECTS: dict[str, SqlDialect] = {
    "spark": engines.spark(native("spark")),
    "bigquery": engines.bigquery(native("bigquery")),
    "postgres": engines.postgresql(native("postgres"), 17),
    "postgres14": engines.postgresql(native("postgres"), 14),
    "mysql": engines.mysql(native("mysql")),
    "snowflake": engines.snowflake(native("snowflake")),
    "redshift": engines.redshift(native("redshift")),
    "tsql": engines.tsql(native("tsql")),
}
DUCKDB = engines.duckdb(native("duckdb"))
