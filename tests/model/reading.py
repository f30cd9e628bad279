"""Reads whole tables for the checker: PostgreSQL through psycopg, Iceberg through pyiceberg, Delta
through deltalake. No Spark, and nothing of the product."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

BATCH_ROWS = 10_000
_JSON = {"json", "jsonb"}
_TEXT = {
    "uuid",
    "xml",
    "time without time zone",
    "USER-DEFINED",
    "money",
    "interval",
    "inet",
    "cidr",
}
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, NULL),
       t.typtype = 'e' OR t.typcategory = 'R' OR (t.typname = 'numeric' AND a.atttypmod = -1)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)
"""  # noqa: E501


def quoted(schema: str, table: str) -> str:
    """The table's name for SQL."""
    return ".".join('"' + n.replace('"', '""') + '"' for n in (schema, table))


def _shown(name: str, kind: str, is_text: bool) -> str:
    """As the log has it: a cast to text gives another text of some types (`10.0.0.1/32` for
    `10.0.0.1`)."""
    column = '"' + name.replace('"', '""') + '"'
    if is_text or kind in _TEXT or kind in _JSON:
        return f"CASE WHEN {column} IS NOT NULL THEN format('%s', {column}) END"
    return column


def same_json(text: str | None) -> str | None:
    """JSON with its keys sorted and its blanks left out: what two sides may write differently."""
    return None if text is None else json.dumps(json.loads(text), sort_keys=True)


class PostgresTable:
    """A table of a PostgreSQL database, read in one consistent statement; `only`: without those
    that inherit from it; `where`: the rows for which this SQL holds."""

    def __init__(
        self, dsn: str, schema: str, table: str, *, only: bool = False, where: str = ""
    ) -> None:
        self._dsn = dsn
        self._where = f" WHERE {where}" if where else ""
        self._name = quoted(schema, table)
        self._only = "ONLY " if only else ""
        with psycopg.connect(dsn) as connection:
            found = connection.execute(_COLUMNS, [self._name]).fetchall()
            self.key = tuple(r[0] for r in connection.execute(_KEY, [self._name]))
        self.columns = tuple(r[0] for r in found)
        self.json = frozenset(r[0] for r in found if r[1] in _JSON)
        self._listed = ", ".join(_shown(*r) for r in found)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row, once."""
        options = "-c TimeZone=UTC -c extra_float_digits=1"
        with (
            psycopg.connect(self._dsn, options=options) as connection,
            connection.cursor("checker") as cursor,
        ):
            cursor.itersize = BATCH_ROWS
            listed = f"SELECT {self._listed} FROM {self._only}{self._name}{self._where}"  # noqa: S608
            cursor.execute(listed.encode())
            for values in cursor:
                yield dict(zip(self.columns, values, strict=True))


def _batches(data: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in data.to_batches(BATCH_ROWS):
        yield from batch.to_pylist()


def iceberg_rows(
    uri: str, warehouse: str, catalog: str, names: tuple[str, str]
) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """Columns and rows of an Iceberg table's current snapshot."""
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog(catalog, uri=uri, warehouse=warehouse).load_table(names).scan().to_arrow()
    return tuple(found.column_names), _batches(found)


def delta_rows(folder: Path) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """Columns and rows of a Delta table's current version."""
    from deltalake import DeltaTable, QueryBuilder

    done = QueryBuilder().register("t", DeltaTable(str(folder))).execute("SELECT * FROM t")
    found = pa.table(done.read_all())
    return tuple(found.column_names), _batches(found)


_ADDED = {
    "_is_deleted": {"_is_deleted", "_deleted_at"},
    "_is_current": {"_valid_from", "_valid_to", "_is_current"},
    "_row_hash": {"_row_hash", "_occurrence"},
}


def present(
    columns: Sequence[str], rows: Iterable[dict[str, Any]]
) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """Columns and rows of a copy as the source should have them: without the flagged rows of a
    soft-deleted copy, the current rows of a history, and without the columns that say so or that
    number equal rows. Other copies stay as they are."""
    mark = next((m for m, added in _ADDED.items() if added <= set(columns)), "")
    if not mark:
        return tuple(columns), iter(rows)
    kept = tuple(c for c in columns if c not in _ADDED[mark])
    if mark == "_row_hash":
        return kept, ({c: r[c] for c in kept} for r in rows)
    wanted = mark == "_is_current"
    return kept, ({c: r[c] for c in kept} for r in rows if bool(r[mark]) is wanted)


def delta_at(folder: Path, version: int) -> pa.Table:
    """A Delta table's rows at a version."""
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(str(folder), version=version)
    return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())


def as_text_of_time(value: Any) -> Any:
    """Times of day are kept as text with six decimals; PostgreSQL drops trailing zeros."""
    if isinstance(value, str) and len(value) >= 8 and value[2:3] == value[5:6] == ":":
        try:
            return dt.time.fromisoformat(value).isoformat("microseconds")
        except ValueError:
            return value
    return value
