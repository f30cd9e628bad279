"""What clients over DB-API do alike (`connectors.sql.dbapi`), on SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import engines
from replicators.connectors.sql.client import AskedColumns
from replicators.connectors.sql.dbapi import DbApiClient
from replicators.connectors.sql.steps import Check, Statement

AHEAD = "target:table-ahead"


class _Connection(sqlite3.Connection):
    def cursor(self, *_: Any) -> Any:
        return closing(super().cursor())


class _Client(DbApiClient[sqlite3.Connection]):
    """It counts the statements of its connection."""

    faults = (sqlite3.Error,)
    dialect = engines.duckdb(lambda column: "TEXT")

    def __init__(self, path: Path) -> None:
        super().__init__(lambda: sqlite3.connect(path, isolation_level=None, factory=_Connection))
        self.said: list[str] = []
        with self.asking() as connection:
            connection.set_trace_callback(self.said.append)

    def is_open(self, connection: sqlite3.Connection) -> bool:
        return True

    def translated(self, err: BaseException) -> Exception:
        return ReplicationError("internal:unexpected", name_of_error=str(err))

    def begin(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")


def _parsed(text: str) -> Any:
    return sqlglot.parse_one(text)


def test_a_check_of_a_change_is_asked_only_where_nothing_was_changed(tmp_path: Path) -> None:
    """Guards `Check.is_of_change`: the number of changed rows says what its query would, in one
    round trip less. Where no row was changed the query decides, and other checks are always
    asked."""
    client = _Client(tmp_path / "db")
    with client.asking() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, 'a' AS c")
    lost = _parsed("SELECT 1 AS lost WHERE NOT EXISTS (SELECT 1 FROM t WHERE c = 'b')")
    change = Statement(_parsed("UPDATE t SET c = 'b' WHERE c = 'a'"))
    client.said.clear()
    client.run([change, Check(lost, AHEAD, is_of_change=True)], job="j")
    assert not any("lost" in text for text in client.said)
    with pytest.raises(ReplicationError, match=AHEAD) as refused:
        client.run([change, Check(_parsed("SELECT 1 AS lost"), AHEAD, is_of_change=True)], job="j")
    assert refused.value.code == AHEAD
    client.said.clear()
    client.run([Statement(_parsed("UPDATE t SET c = 'b'")), Check(lost, AHEAD)], job="j")
    assert any("lost" in text for text in client.said)
    client.close()


def test_columns_are_asked_for_once_and_only_where_they_are_needed() -> None:
    """Guards `AskedColumns`: a merge looks at a table's identity only."""
    asked: list[int] = []
    columns = AskedColumns(lambda: asked.append(1) or {"id": "bigint"})  # type: ignore[func-returns-value]
    assert asked == []
    assert dict(columns) == {"id": "bigint"} and len(columns) == 1
    assert columns.get("n", "") == "" and asked == [1]
