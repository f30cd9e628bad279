"""Describes a server's tables by queries of information_schema. The number of queries does not
depend on the number of tables. Changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import (
    Column,
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.mysql import sql
from replicators.sources.mysql.connections import Connection, connect, query
from replicators.sources.mysql.conversions import NUMBERED
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.types import NativeType, column_type

SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"

LIST = f"""
SELECT t.table_schema, t.table_name, t.table_rows, t.data_length,
       EXISTS (SELECT 1 FROM information_schema.statistics k
               WHERE k.table_schema = t.table_schema AND k.table_name = t.table_name
                 AND k.non_unique = 0
               GROUP BY k.index_name
               HAVING max(k.column_name IS NULL OR k.sub_part IS NOT NULL OR k.nullable = 'YES') = 0),
       (SELECT count(*) FROM information_schema.columns c
        WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name)
FROM information_schema.tables t
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND t.table_schema NOT IN {SYSTEM}
"""  # noqa: E501, S608

COLUMNS = """
SELECT table_schema, table_name, column_name, data_type, column_type, is_nullable, numeric_precision,
       numeric_scale, datetime_precision, character_set_name, character_maximum_length, extra,
       generation_expression, column_comment
FROM information_schema.columns WHERE table_schema = {schema} AND table_name IN ({names})
ORDER BY table_schema, table_name, ordinal_position
"""  # noqa: E501

COMMENTS = """
SELECT table_schema, table_name, table_comment FROM information_schema.tables
WHERE table_schema = {schema} AND table_name IN ({names})
"""

KEYS = """
SELECT s.table_schema, s.table_name, s.index_name, s.column_name, s.sub_part, s.nullable
FROM information_schema.statistics s
WHERE s.table_schema = {schema} AND s.table_name IN ({names}) AND s.non_unique = 0
ORDER BY s.table_schema, s.table_name, s.index_name <> 'PRIMARY', s.index_name, s.seq_in_index
"""

JSON_CHECKS = """
SELECT constraint_schema, table_name, constraint_name, check_clause
FROM information_schema.check_constraints
WHERE constraint_schema = {schema} AND table_name IN ({names}) AND check_clause LIKE 'json_valid(%'
"""

HIDDEN = ("ROW START", "ROW END")


class MysqlCatalog(Closing):
    """Catalog of one server; one connection, made at once."""

    def __init__(self, params: MysqlParams) -> None:
        self.params = params
        self._connection = connect(params)

    def list_tables(self) -> list[TableSummary]:
        """Base tables, never views, nor those of the system's databases."""
        where = f" AND t.table_schema = {sql.literal(self.params.database)}"
        text = LIST + (where if self.params.database else "")
        try:
            rows = query(self._connection, text)
        except pymysql.Error as err:
            raise translate(err, self.params) from err
        found = [
            TableSummary(TableId(schema, table), rows_estimated, size, bool(has_key), columns)
            for schema, table, rows_estimated, size, has_key, columns in rows
        ]
        return sorted(found, key=lambda t: t.id)

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        """The tables' schemas, by four queries per database. A column whose type can't be copied
        is included as `Unsupported`."""
        try:
            return describe(self._connection, tables, self.params.zero_dates)
        except pymysql.Error as err:
            raise translate(err, self.params) from err

    def close(self) -> None:
        """End the connection."""
        if self._connection.open:
            self._connection.close()


def describe(
    connection: Connection, tables: Sequence[TableSelection], zero_dates: str
) -> dict[TableId, TableSchema]:
    """As `Catalog.describe`, on an open connection."""
    wanted: dict[str, dict[str, TableSelection]] = defaultdict(dict)
    for selection in tables:
        wanted[selection.id.schema][selection.id.name] = selection
    found: dict[TableId, TableSchema] = {}
    for schema, chosen in wanted.items():
        found |= _describe_database(connection, schema, chosen, zero_dates)
    return found


def _describe_database(
    connection: Connection, schema: str, chosen: dict[str, TableSelection], zero_dates: str
) -> dict[TableId, TableSchema]:
    def ask(text: str) -> list[tuple[Any, ...]]:
        names = ", ".join(sql.literal(n) for n in chosen)
        return query(connection, text.format(schema=sql.literal(schema), names=names))

    columns: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in ask(COLUMNS):
        columns[row[1]].append(row[2:])
    keys: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in ask(KEYS):
        keys[row[1]].append(row[2:])
    comments = {row[1]: row[2] or "" for row in ask(COMMENTS)}
    checked: set[tuple[str, str]] = set()
    if _is_mariadb(connection):
        checked = {
            (row[1], row[2])
            for row in ask(JSON_CHECKS)
            if row[3] == f"json_valid({sql.name(row[2])})"
        }
    return {
        TableId(schema, name): _table(
            TableId(schema, name),
            rows,
            keys[name],
            {column for table, column in checked if table == name},
            chosen[name],
            zero_dates,
            comments.get(name, ""),
        )
        for name, rows in columns.items()
        if name in chosen
    }


def _is_mariadb(connection: Connection) -> bool:
    return "mariadb" in str(connection.get_server_info()).lower()


def _table(
    table: TableId,
    rows: list[tuple[Any, ...]],
    indexes: list[tuple[Any, ...]],
    json_columns: set[str],
    selection: TableSelection,
    zero_dates: str,
    comment: str,
) -> TableSchema:
    primary, key, key_index = _keys(indexes)
    chosen = set(selection.columns) | set(key)
    kept = [r for r in rows if not selection.columns or r[0] in chosen]
    kept = [r for r in kept if not str(r[9]).upper().endswith(HIDDEN)]
    return TableSchema(
        id=table,
        columns=tuple(
            _column(r, r[0] in json_columns, _kept_apart(zero_dates) if r[0] in key else zero_dates)
            for r in kept
        ),
        key=key,
        primary_key=primary,
        # The log has whole rows of every table. They are decoded only where nothing else identifies
        # rows.
        full_before=not key,
        filter=selection.filter,
        upto=1,  # the log tells the changes of columns
        key_index=key_index,
        layout=tuple((0, str(r[0]), 0) for r in rows),
        comment=comment,
    )


def _kept_apart(zero_dates: str) -> str:
    """How to treat zero dates in a key column: a date that does not exist stops the table. It can't
    become NULL, because a NULL in a key would match no row."""
    return "fail" if zero_dates == "null" else zero_dates


def _column(row: tuple[Any, ...], is_json: bool, zero_dates: str) -> Column:
    (
        name,
        data_type,
        full,
        nullable,
        precision,
        scale,
        digits,
        charset,
        length,
        extra,
        expression,
        comment,
    ) = row
    native = NativeType(
        name=data_type.lower(),
        full=full,
        precision=precision,
        scale=scale,
        seconds_digits=digits,
        charset=charset,
        length=length,
        is_json=is_json,
    )
    kind, wire = column_type(native, zero_dates)
    generated = bool(expression) and "GENERATED" in str(extra).upper()
    shown = full + (NUMBERED if "auto_increment" in str(extra).lower() else "")
    return Column(name, kind, shown, nullable == "YES", 0, generated, wire, comment=comment or "")


def _keys(indexes: list[tuple[Any, ...]]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The primary key; the columns that identify a row; the name of their index. Rows are
    identified by the primary key, or by the first unique index without NULLs and prefixes."""
    by_name: dict[str, list[tuple[Any, ...]]] = {}
    for index, *rest in indexes:
        by_name.setdefault(index, []).append(tuple(rest))
    primary = tuple(column for column, _, _ in by_name.pop("PRIMARY", ()))
    if primary:
        return primary, primary, ""
    for name, parts in by_name.items():
        if all(
            column and sub_part is None and nullable != "YES"
            for column, sub_part, nullable in parts
        ):
            return (), tuple(column for column, _, _ in parts), name
    return (), (), ""
