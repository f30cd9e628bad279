"""Describes the tables of a database. The number of queries does not depend on the number of
tables. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import psycopg

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import (
    Column,
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.model.types import Unsupported
from replicators.sources.postgresql.connections import connect
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.slots import SENDS_GENERATED
from replicators.sources.postgresql.types import NativeType, column_type

# For a table that was never analyzed, the rows are those that the server's statistics counted; its
# size is unknown. Our own tables beside copies are not listed.
LIST = """
SELECT n.nspname, c.relname,
       CASE WHEN c.relkind = 'p' THEN p.rows WHEN c.reltuples >= 0 THEN c.reltuples::bigint
            ELSE nullif(pg_stat_get_live_tuples(c.oid), 0) END,
       CASE WHEN c.relkind = 'p' THEN p.pages WHEN c.reltuples >= 0 OR c.relpages > 0 THEN c.relpages END::bigint
           * current_setting('block_size')::bigint,
       c.relreplident IN ('f', 'i') OR EXISTS (SELECT FROM pg_index i
           WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate),
       (SELECT count(*) FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
    SELECT sum(CASE WHEN l.reltuples >= 0 THEN l.reltuples ELSE nullif(pg_stat_get_live_tuples(l.oid), 0) END)::bigint AS rows,
           sum(l.relpages) FILTER (WHERE l.reltuples >= 0 OR l.relpages > 0) AS pages
    FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf
) p ON c.relkind = 'p'
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT starts_with(c.relname, '_replicator_')
ORDER BY n.nspname, c.relname
"""  # noqa: E501

# An index lists its key columns first, then the columns that it only includes. `parts` holds a
# positive number for a partition that was created as one, a negative number for one that was
# attached. A created partition and its system columns come from one transaction, and some column of
# its own is older than its membership. ATTACH writes every column again in the command that
# attaches; this also holds within the transaction that created and filled the table, whose rows no
# publication sent. The upper bits hold the transaction that made the table a partition: a partition
# that was detached and attached again has other bits.
TABLES = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relreplident::text, c.relkind::text, c.relpersistence::text,
       (SELECT (i.indkey::int2[])[0:i.indnkeyatts - 1] FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisprimary),
       (SELECT i.indimmediate FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisprimary),
       (SELECT (i.indkey::int2[])[0:i.indnkeyatts - 1] FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisreplident),
       NOT EXISTS (SELECT FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid
                   WHERE t.isleaf AND l.relreplident <> 'f'),
       CASE WHEN c.relkind = 'p' THEN p.storage ELSE c.relfilenode::text END,
       CASE WHEN c.relkind = 'p' THEN c.oid::bigint || coalesce(p.parts, '{}') END,
       CASE WHEN c.relkind = 'p' THEN p.files END, obj_description(c.oid, 'pg_class')
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
    SELECT md5(string_agg(l.relfilenode::text, ',' ORDER BY l.oid)) AS storage,
           array_agg(ARRAY[l.oid::bigint, l.relfilenode::bigint] ORDER BY l.oid)
               FILTER (WHERE l.relfilenode <> 0) AS files,
           array_agg((CASE WHEN h.xmin = s.xmin AND EXISTS (
                         SELECT FROM pg_attribute a WHERE a.attrelid = l.oid AND a.attnum > 0
                         AND a.xmin = h.xmin AND a.cmin::text::bigint < h.cmin::text::bigint) THEN 1 ELSE -1 END)
                     * (l.oid::bigint | ((h.xmin::text::bigint & 2147483647) << 32))
                     ORDER BY l.oid) AS parts
    FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid
    JOIN pg_inherits h ON h.inhrelid = l.oid
    JOIN pg_attribute s ON s.attrelid = l.oid AND s.attname = 'tableoid'
) p ON c.relkind = 'p'
JOIN unnest(%s::text[], %s::text[]) AS w(schema_name, table_name)
  ON w.schema_name = n.nspname AND w.table_name = c.relname
WHERE c.relkind IN ('r', 'p')
"""  # noqa: E501

# PostgreSQL keeps the value of old rows in a new column with the tables that hold rows. For a
# partitioned table these are its partitions, and their values may differ.
COLUMNS = """
WITH wanted AS (SELECT unnest(%s::oid[]) AS oid),
parts AS (
    SELECT w.oid, l.attname, min(l.attmissingval::text) AS low, max(l.attmissingval::text) AS high
    FROM wanted w CROSS JOIN LATERAL pg_partition_tree(w.oid) t
    JOIN pg_attribute l ON l.attrelid = t.relid AND l.attnum > 0 AND l.atthasmissing
    WHERE t.isleaf GROUP BY w.oid, l.attname
)
SELECT a.attrelid::bigint, a.attnum::int, a.attname, a.atttypid::bigint, a.atttypmod,
       format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.attgenerated::text, a.attisdropped,
       coalesce(a.attmissingval::text, p.low), p.low <> p.high, a.xmin::text::bigint,
       col_description(a.attrelid, a.attnum)
FROM wanted w
JOIN pg_attribute a ON a.attrelid = w.oid AND a.attnum > 0
LEFT JOIN parts p ON p.oid = w.oid AND p.attname = a.attname
ORDER BY a.attrelid, a.attnum
"""
NAMES = """
SELECT c.oid::bigint, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%s::oid[]) AND c.relkind IN ('r', 'p')
"""  # noqa: E501

TYPES = """
WITH RECURSIVE used AS (
    SELECT t.oid, t.typname, t.typtype, t.typelem, t.typcategory, t.typbasetype, t.typtypmod
    FROM pg_type t WHERE t.oid = ANY(%s::oid[])
  UNION
    SELECT t.oid, t.typname, t.typtype, t.typelem, t.typcategory, t.typbasetype, t.typtypmod
    FROM used u JOIN pg_type t
      ON t.oid = u.typbasetype OR (t.oid = u.typelem AND u.typcategory = 'A')
)
SELECT u.oid::bigint, u.typname, u.typtype::text,
       CASE WHEN u.typcategory = 'A' THEN u.typelem ELSE 0 END::bigint,
       u.typbasetype::bigint, u.typtypmod,
       ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = u.oid ORDER BY e.enumsortorder)
FROM used u
"""  # noqa: E501


STORED = "s"


class TypeBook:
    """Types by OID, with their elements, bases and labels, read by one query."""

    def __init__(self, connection: psycopg.Connection[Any], oids: Sequence[int]) -> None:
        self.sends_generated = connection.info.server_version >= SENDS_GENERATED
        rows = connection.execute(TYPES, [sorted(set(oids))]).fetchall()
        self._rows = {row[0]: row for row in rows}

    def native(self, oid: int, typmod: int) -> NativeType:
        """The type of a column declared with `oid` and `typmod`."""
        _, name, kind, element, base, base_typmod, labels = self._rows[oid]
        return NativeType(
            oid=oid,
            name=name,
            typmod=typmod,
            kind=kind,
            element=self.native(element, typmod) if element else None,
            base=self.native(base, base_typmod) if base else None,
            labels=tuple(labels),
        )


class PostgresqlCatalog(Closing):
    """Catalog of one database; one connection, made at once."""

    def __init__(self, params: PostgresqlParams) -> None:
        self.params = params
        self._connection = connect(params)

    def list_tables(self) -> list[TableSummary]:
        """Plain and partitioned tables (a partitioned one stands for its partitions), never views,
        foreign, temporary or unlogged tables, nor those of the system's schemas."""
        try:
            rows = self._connection.execute(LIST).fetchall()
        except psycopg.Error as err:
            raise translate(err, self.params) from err
        return [
            TableSummary(TableId(schema, table), rows_estimated, size, has_key, columns)
            for schema, table, rows_estimated, size, has_key, columns in rows
        ]

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        """The tables' schemas, by three queries. A column whose type can't be copied is included as
        `Unsupported`."""
        try:
            return describe(self._connection, tables)
        except psycopg.Error as err:
            raise translate(err, self.params) from err

    def find(self, numbers: Sequence[int]) -> dict[int, TableId]:
        """The current names of the tables with these OIDs."""
        try:
            rows = self._connection.execute(NAMES, [list(numbers)]).fetchall()
        except psycopg.Error as err:
            raise translate(err, self.params) from err
        return {oid: TableId(schema, name) for oid, schema, name in rows}

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def describe(
    connection: psycopg.Connection[Any], tables: Sequence[TableSelection]
) -> dict[TableId, TableSchema]:
    """As `Catalog.describe`, on an open connection, which may be inside its snapshot."""
    wanted = {t.id: t for t in tables}
    found = connection.execute(
        TABLES, [[t.schema for t in wanted], [t.name for t in wanted]]
    ).fetchall()
    columns: dict[int, list[tuple[Any, ...]]] = {row[0]: [] for row in found}
    oids = []
    for row in connection.execute(COLUMNS, [list(columns)]).fetchall():
        columns[row[0]].append(row)
        oids += [] if row[8] else [row[3]]
    book = TypeBook(connection, oids)
    return {
        schema.id: schema
        for row in found
        for schema in [_table(row, columns[row[0]], wanted[TableId(row[1], row[2])], book)]
    }


def _column(row: tuple[Any, ...], book: TypeBook) -> Column:
    _, number, name, oid, typmod, native, nullable, generated, _, missing, _, _, comment = row
    kind, wire = column_type(book.native(oid, typmod))
    if not _is_sent(generated, book):
        kind, wire = Unsupported(native), ""
    value = _element(missing)
    return Column(name, kind, native, nullable, number, bool(generated), wire, value, comment or "")


def _element(text: str | None) -> str | None:
    """The only element of an array, from the array's text form."""
    if text is None:
        return None
    inner = text[1:-1]
    if not inner.startswith('"'):
        return inner
    return re.sub(r"\\(.)", r"\1", inner[1:-1], flags=re.DOTALL)


def _table(
    row: tuple[Any, ...], rows: list[tuple[Any, ...]], selection: TableSelection, book: TypeBook
) -> TableSchema:
    oid, schema, table, identity, _, _, primary, is_immediate, index, full, *rest = row
    file, parts, files, comment = rest
    columns = [c for c in rows if not c[8]]
    by_number = {c[1]: c[2] for c in columns}
    primary_key = tuple(by_number[n] for n in primary or ())
    immediate = (
        primary_key if is_immediate else ()
    )  # two rows may share a deferred key within a statement
    index_key = tuple(by_number[n] for n in index or ())
    key = {"d": immediate, "f": immediate, "i": index_key}.get(identity, ())
    chosen = set(selection.columns) | set(key)
    kept = [c for c in columns if not selection.columns or c[2] in chosen]
    return TableSchema(
        id=TableId(schema, table),
        columns=tuple(_column(c, book) for c in kept),
        key=key,
        primary_key=primary_key,
        native_id=oid,
        full_before=identity == "f" and full,
        filter=selection.filter,
        storage=_storage(file, kept, book),
        partitions=tuple(parts or ()),
        marks=_marks(file, files, columns, is_parted=bool(parts)),
        layout=tuple((c[1], "" if c[8] else c[2], c[3]) for c in rows if _is_sent(c[7], book)),
        comment=comment or "",
    )


def _storage(file: str | None, columns: list[tuple[Any, ...]], book: TypeBook) -> str:
    """`TableSchema.storage`: the file or files that hold the rows, then two sorts of columns. First
    come columns whose value in old rows differs between partitions, which no fill can give. Then
    come generated columns that the log does not send: once such a column becomes a plain one, its
    old rows hold values that the log never carried."""
    parted = (str(c[1]) for c in columns if c[10])
    unsent = (f"g{c[1]}" for c in columns if c[7] and not _is_sent(c[7], book))
    return ":".join([file or "", *parted, *unsent])


def _is_sent(generated: str, book: TypeBook) -> bool:
    """Whether the log carries a column with this `attgenerated`; "" is a plain column."""
    return not generated or (generated == STORED and book.sends_generated)


def _marks(
    file: str, files: list[list[int]] | None, columns: list[tuple[Any, ...]], *, is_parted: bool
) -> tuple[tuple[int, int], ...]:
    """The value of `TableSchema.marks`: a partitioned table's partitions and their files; for other
    tables the file, and the last writer of each column's catalog row."""
    if is_parted:
        return tuple((oid, at) for oid, at in files or ())
    return ((0, int(file)), *((c[1], c[11]) for c in columns))
