"""The engines that statements can be made for. Each takes the target's types: `native` gives the
text of a column's type there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any

from sqlglot import exp

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Date, Enum, Json, String, Time, Timestamp, Uuid
from replicators.connectors.sql import trees
from replicators.connectors.sql.dialect import Joined, SqlDialect
from replicators.connectors.sql.literals import BACKSLASHES, Literals

Native = Callable[[Column], str]
MERGE_SINCE = 15
"""The PostgreSQL version with MERGE."""
BY_SOURCE_SINCE = 17
"""The PostgreSQL version whose MERGE has WHEN NOT MATCHED BY SOURCE."""
ANY_VALUE_SINCE = 16
_NUMBERS = "numbers"
_NUMBER = "number"


def _shown(query: exp.Select, value: exp.Expression, name: str) -> exp.Select:
    query.append("expressions", trees.called(value, name))
    return query


def _joined(query: exp.Select, text: exp.Expression, value: str, name: str) -> exp.Select:
    query.append("joins", exp.Join(this=text, kind="CROSS"))
    return _shown(query, trees.raw(value), name)


def _plus(value: exp.Expression, number: int) -> exp.Expression:
    return exp.Add(this=exp.Paren(this=value), expression=trees.whole(number))


def _place(low: exp.Expression) -> exp.Expression:
    """The number at a place that counts from 1."""
    here = trees.column(_NUMBER, _NUMBERS)
    sum_ = exp.Add(this=exp.Paren(this=low.copy()), expression=here)
    return exp.Sub(this=sum_, expression=trees.whole(1))


def _exploded(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    return _shown(query, trees.call("explode", trees.call("sequence", low, high)), name)


def _unnested(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    return _shown(query, trees.call("unnest", trees.call("generate_series", low, high)), name)


def _of_spark(column: Column, value: Any) -> str | None:
    """A time of day is text there; the literals of days and moments name their kind."""
    match column.type, value:
        case Timestamp(zone=zone), datetime():
            plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            word, end = ("TIMESTAMP", "Z") if zone else ("TIMESTAMP_NTZ", "")
            return f"{word} '{plain.isoformat(' ', 'microseconds')}{end}'"
        case Date(), date():
            return f"DATE '{value.isoformat()}'"
        case Time(), time():
            return f"'{value.isoformat('microseconds')}'"
    return None


def spark(native: Native) -> SqlDialect:
    """Spark with a table format: each statement is a commit of one table."""

    def fail(message: str, native: str) -> exp.Expression:
        return trees.cast(trees.call("raise_error", exp.Literal.string(message)), native)

    return SqlDialect(
        "spark",
        native,
        Literals("spark", BACKSLASHES, zone="Z", typed_text=(), special=_of_spark),
        _exploded,
        fail=fail,
        is_one_commit=True,
        has_short_names=True,
    )


def _arrays(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    made = exp.Unnest(
        expressions=[trees.call("GENERATE_ARRAY", low, high)],
        alias=exp.TableAlias(columns=[trees.name(_NUMBER)]),
    )
    query.append("joins", exp.Join(this=made, kind="CROSS"))
    return _shown(query, trees.column(_NUMBER), name)


def bigquery(native: Native) -> SqlDialect:
    """BigQuery: several statements of a script are one transaction. It has ERROR(), but nothing
    says that a MERGE does not compute what it inserts for rows that it then updates."""
    return SqlDialect(
        "bigquery",
        native,
        Literals("bigquery", BACKSLASHES, binary="FROM_HEX('{}')", typed_text=()),
        _arrays,
        has_null_safe=False,
    )


def _series(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    made = exp.Lateral(
        this=trees.call("generate_series", low, high),
        alias=exp.TableAlias(this=trees.name(_NUMBERS), columns=[trees.name(_NUMBER)]),
    )
    query.append("joins", exp.Join(this=made, kind="CROSS"))
    return _shown(query, trees.column(_NUMBER, _NUMBERS), name)


def _is_plain(column: Column) -> bool:
    """Text is ordered by a collation, and the types that are carried as text by their values."""
    return not isinstance(column.type, String | Enum | Json)


def _is_no_text(column: Column) -> bool:
    """Text is ordered in units of UTF-16, and a UUID from its end."""
    return not isinstance(column.type, String | Enum | Json | Uuid)


def postgresql(native: Native, version: int = BY_SOURCE_SINCE) -> SqlDialect:
    """PostgreSQL of a major version. MERGE with BY SOURCE is a full join, which needs a condition
    that can be hashed: keys that may be NULL have none."""
    return SqlDialect(
        "postgres",
        native,
        Literals("postgres", binary="decode('{}', 'hex')"),
        _series,
        has_merge=version >= MERGE_SINCE,
        has_by_source=version >= BY_SOURCE_SINCE,
        joins_nulls=False,
        has_any_value=version >= ANY_VALUE_SINCE,
        orders=_is_plain,
    )


def _flattened(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    ends = (trees.cast(low, "BIGINT"), trees.cast(_plus(high, 1), "BIGINT"))
    made = trees.call("ARRAY_GENERATE_RANGE", *ends)
    lateral = exp.Lateral(
        this=trees.call("FLATTEN", exp.Kwarg(this=trees.raw("INPUT"), expression=made)),
        alias=exp.TableAlias(this=trees.name(_NUMBERS)),
    )
    query.append("joins", exp.Join(this=lateral, kind="CROSS"))
    value = exp.Column(this=exp.Identifier(this="VALUE"), table=trees.name(_NUMBERS))
    return _shown(query, trees.cast(value, "BIGINT"), name)


def _of_snowflake(column: Column, value: Any) -> str | None:
    """A document: a CAST of its text would be a text inside of a VARIANT."""
    if not isinstance(column.type, Json) or not isinstance(value, str):
        return None
    return f"PARSE_JSON('{value.translate(BACKSLASHES)}')"


def snowflake(native: Native) -> SqlDialect:
    """Snowflake: its MERGE has no BY SOURCE, and TRUNCATE would end the transaction."""
    return SqlDialect(
        "snowflake", native, Literals("snowflake", BACKSLASHES, special=_of_snowflake), _flattened,
        has_by_source=False, joined=Joined.NAMED,
    )  # fmt: skip


def _counted(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, most: exp.Query
) -> exp.Select:
    """Numbers by a recursive query: such engines have no function that gives rows."""
    one = trees.select([trees.called(trees.raw("CAST(1 AS BIGINT)"), _NUMBER)], None)
    here = trees.column(_NUMBER, _NUMBERS)
    more = trees.select(
        [_plus(here, 1)],
        trees.table((_NUMBERS,)),
        where=exp.LT(this=here.copy(), expression=exp.Subquery(this=most)),
    )
    made = exp.CTE(
        this=exp.Union(this=one, expression=more, distinct=False),
        alias=exp.TableAlias(this=trees.name(_NUMBERS), columns=[trees.name(_NUMBER)]),
    )
    query.set("with_", exp.With(expressions=[made], recursive=True))
    until = exp.Sub(this=exp.Paren(this=high), expression=exp.Paren(this=low))
    on = exp.LTE(this=here.copy(), expression=_plus(until, 1))
    query.append("joins", trees.join(trees.table((_NUMBERS,)), on))
    return _shown(query, _place(low), name)


def _of_redshift(column: Column, value: Any) -> str | None:
    """A document: a CAST of its text would be a text inside of a SUPER."""
    if not isinstance(column.type, Json) or not isinstance(value, str):
        return None
    return f"JSON_PARSE({exp.Literal.string(value).sql(dialect='redshift')})"


def redshift(native: Native) -> SqlDialect:
    """Redshift: its MERGE takes no further conditions, and it has no null-safe comparison. A text
    with blanks at its end equals the one without, and is not ordered as Arrow orders it."""
    return SqlDialect(
        "redshift", native, Literals("redshift", binary="FROM_HEX('{}')", special=_of_redshift),
        _counted, has_merge=False, has_by_source=False, has_null_safe=False, joined=Joined.NAMED,
        orders=_is_plain, ignores_blanks=True,
    )  # fmt: skip


def _listed(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    """Numbers as the places in a JSON list. A recursive query ends after 1,000 rows."""
    count = exp.Sub(this=exp.Paren(this=high), expression=exp.Paren(this=low))
    listed = trees.call(
        "CONCAT",
        exp.Literal.string("[0"),
        trees.call("REPEAT", exp.Literal.string(",0"), count),
        exp.Literal.string("]"),
    )
    places = trees.raw(f"'$[*]' COLUMNS ({_NUMBER} FOR ORDINALITY)")
    made = exp.Table(
        this=trees.call("JSON_TABLE", listed, places),
        alias=exp.TableAlias(this=trees.name(_NUMBERS)),
    )
    query.append("joins", exp.Join(this=made, kind="CROSS"))
    return _shown(query, _place(low), name)


def mysql(native: Native, *, is_mariadb: bool = False) -> SqlDialect:
    """MySQL 8 and MariaDB 10.6: no MERGE, and no type names in CAST. MariaDB has no ANY_VALUE."""
    return SqlDialect(
        "mysql", native, Literals("mysql", casts=False, zone="", typed_text=()), _listed,
        has_merge=False, has_by_source=False, has_any_value=not is_mariadb,
        joined=Joined.TABLES,
    )  # fmt: skip


def _applied(
    query: exp.Select, low: exp.Expression, high: exp.Expression, name: str, _: exp.Query
) -> exp.Select:
    made = exp.Lateral(
        this=trees.call("GENERATE_SERIES", trees.cast(low, "BIGINT"), trees.cast(high, "BIGINT")),
        cross_apply=True,
        alias=exp.TableAlias(this=trees.name(_NUMBERS)),
    )
    query.append("laterals", made)
    return _shown(query, trees.column("value", _NUMBERS), name)


def tsql(native: Native) -> SqlDialect:
    """SQL Server 2022. Conditions are no values there."""
    return SqlDialect(
        "tsql", native,
        Literals("tsql", prefix="N", binary="0x{}", true="CAST(1 AS BIT)", false="CAST(0 AS BIT)"),
        _applied, has_null_safe=False, has_any_value=False, has_booleans=False,
        orders=_is_no_text,
    )  # fmt: skip


def duckdb(native: Native) -> SqlDialect:
    """DuckDB, which tests run the statements in. Its `error()` fails in a MERGE also for rows that
    are updated and not inserted."""
    return SqlDialect("duckdb", native, Literals("duckdb", binary="from_hex('{}')"), _unnested)
