"""Reads whole tables of MySQL and MariaDB for the checker, through PyMySQL. Nothing of the
product."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from tests.model.reading import BATCH_ROWS

MOST_DIGITS = 38
_SHAPES = frozenset(
    {
        "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
        "multipolygon",
        "geometrycollection", "geomcollection",
    }
)  # fmt: skip
_COLUMNS = """
SELECT column_name, data_type, column_type FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_KEY = """
SELECT column_name FROM information_schema.key_column_usage
WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position
"""  # noqa: E501
_CHECKS = """
SELECT constraint_name FROM information_schema.check_constraints
WHERE constraint_schema = %s AND table_name = %s AND check_clause LIKE 'json_valid(%%'
"""


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _shown(name: str, kind: str, full: str) -> str:
    """The column in the form that a lakehouse has: what has no number or time there is text, a
    FLOAT all of its digits."""
    column = _quoted(name)
    if kind == "time" or (kind == "decimal" and int(re.findall(r"\d+", full)[0]) > MOST_DIGITS):
        return f"CAST({column} AS CHAR)"
    if kind == "float":
        return f"CAST({column} AS DOUBLE)"
    if kind == "bit" and full != "bit(1)":
        return f"CAST({column} AS UNSIGNED)"
    return f"SUBSTRING(CAST({column} AS BINARY), 5)" if kind in _SHAPES else column


class MysqlTable:
    """A table of a MySQL or MariaDB database, read in one consistent statement; `server` holds the
    driver's arguments, `where`: the rows for which this SQL holds."""

    def __init__(
        self, server: Mapping[str, Any], database: str, table: str, *, where: str = ""
    ) -> None:
        self._server = dict(server)
        self._where = f" WHERE {where}" if where else ""
        self._name = ".".join(_quoted(name) for name in (database, table))
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(_COLUMNS, [database, table])
            found = list(cursor.fetchall())
            cursor.execute(_KEY, [database, table])
            self.key = tuple(name for (name,) in cursor.fetchall())
            self.json = frozenset(name for name, kind, _ in found if kind == "json")
            if "mariadb" in str(connection.get_server_info()).lower():
                cursor.execute(_CHECKS, [database, table])
                self.json |= {name for (name,) in cursor.fetchall()}
        self.columns = tuple(name for name, _, _ in found)
        self._listed = ", ".join(_shown(*column) for column in found)
        self.bits = frozenset(name for name, _, full in found if full == "bit(1)")
        self.zoned = frozenset(name for name, kind, _ in found if kind == "timestamp")

    def _connect(self, **more: Any) -> pymysql.Connection[Any]:
        options = {"charset": "utf8mb4", "init_command": "SET time_zone = '+00:00'"}
        return pymysql.connect(**{**self._server, **options, **more})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row, once."""
        with self._connect(cursorclass=SSCursor) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {self._listed} FROM {self._name}{self._where}")  # noqa: S608 - a test's own names
            while batch := cursor.fetchmany(BATCH_ROWS):
                for values in batch:
                    yield self._neutral(dict(zip(self.columns, values, strict=True)))

    def _neutral(self, row: dict[str, Any]) -> dict[str, Any]:
        """In the forms that a lakehouse has: BIT(1) is a truth value, a TIMESTAMP has a zone."""
        for name in self.bits:
            row[name] = None if row[name] is None else row[name] == b"\1"
        for name in self.zoned:
            row[name] = None if row[name] is None else row[name].replace(tzinfo=dt.UTC)
        return row
