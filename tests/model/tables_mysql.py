"""The adversary's tables on MariaDB and MySQL, and the triggers that note what happens to them in a
schema that nobody follows. A TRUNCATE fires none: whoever empties a table notes it beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.model.past import Change
from tests.model.tables import KEYS, MODES
from tests.mysql_servers import SqlDatabase

PLAIN = (
    "CREATE TABLE accounts (id bigint PRIMARY KEY, balance decimal(14,2), version bigint, memo "
    "text, extra json)",
    "CREATE TABLE ledger (account varchar(40), day int, amount decimal(14,2), version bigint,"
    " PRIMARY KEY (account, day))",
    "CREATE TABLE notes (id varchar(40) PRIMARY KEY, version bigint, big mediumtext, other text)",
    "CREATE TABLE clicks (n bigint, version bigint, page text, k bigint AUTO_INCREMENT PRIMARY "
    "KEY)",
)
HISTORY = (
    "CREATE DATABASE {history}",
    "CREATE TABLE {history}.events (n bigint AUTO_INCREMENT PRIMARY KEY, act bigint, tab "
    "varchar(40), op int,"
    " gone varchar(40), come varchar(40), version bigint)",
    "CREATE TABLE {history}.images (n bigint AUTO_INCREMENT PRIMARY KEY, tab varchar(40), op "
    "int, act bigint, gone bigint,"
    " come bigint, image json)",
)
KEPT = (
    "CREATE TABLE {table} (id bigint PRIMARY KEY, version bigint, n int, big mediumtext, tags "
    "varchar(20))"
)
FILL_KEPT = "INSERT INTO {table} SELECT i, {next}, 0, repeat(sha2(i, 256), 50), 'a' FROM {numbers}"
ALTERED = (
    "CREATE TABLE altered (id bigint PRIMARY KEY, version bigint, v text, n int, code varchar(10))"
)
FILL_ALTERED = "INSERT INTO altered (id, version, v) SELECT i, {next}, 'v' FROM {numbers}"
REST = (
    "CREATE TABLE visits (page varchar(40), n int, big mediumtext, at datetime(6))",
    "INSERT INTO visits SELECT concat('p', i % 20), nullif(i % 3, 0), repeat(sha2(i % 5, 256), "
    "50), '2026-01-01' FROM {numbers}",
    "CREATE TABLE picked (id bigint PRIMARY KEY, version bigint, n int, big mediumtext)",
    "INSERT INTO picked SELECT i, {next}, i % 100, repeat(sha2(i, 256), 50) FROM {numbers}",
    "CREATE TABLE odd (id int PRIMARY KEY, version bigint, at datetime, v varchar(100))",
    "INSERT INTO odd SELECT i, {next}, '2026-01-01', 'v' FROM {numbers} WHERE i <= 100",
)
OPERATIONS = ("INSERT", "UPDATE", "DELETE")
TRUNCATED = 3


def history_of(database: SqlDatabase) -> str:
    """The schema that holds what happened in a database."""
    return f"history_of_{database.name}"


def numbers(first: int, last: int) -> str:
    """What stands after FROM to give the numbers `i`."""
    rest = f"WITH RECURSIVE g AS (SELECT {first} i UNION ALL SELECT i + 1 FROM g WHERE i < {last})"
    return f"({rest} SELECT i FROM g) AS numbers"


def _trigger(table: str, op: int, note: str) -> list[str]:
    """One trigger. An update that changes nothing fires it too, though no row is logged: each real
    one has a new version."""
    name = f"noted_{table}_{op}"
    real = " WHERE NOT (OLD.version <=> NEW.version)" if OPERATIONS[op] == "UPDATE" else ""
    return [
        f"DROP TRIGGER IF EXISTS {name}",
        f"CREATE TRIGGER {name} AFTER {OPERATIONS[op]} ON {table} FOR EACH ROW {note} FROM "
        f"DUAL{real}",
    ]


def keys_and_version(history: str, table: str) -> list[str]:
    """The triggers that note keys and versions of a table."""
    made, key = [], KEYS[table]
    for op in range(3):
        gone = f"OLD.{key}" if op else "NULL"
        come = f"NEW.{key}, NEW.version" if op < 2 else "NULL, NULL"
        note = (
            f"INSERT INTO {history}.events (act, tab, op, gone, come, version)"
            f" SELECT coalesce(@act, 0), '{table}', {op}, {gone}, {come}"
        )
        made += _trigger(table, op, note)
    return made


def whole_rows(history: str, table: str, columns: Sequence[str]) -> list[str]:
    """The triggers that note whole rows of a table with these columns; its large value as
    SHA-256."""
    values = [f"'{c}', {'sha2(NEW.big, 256)' if c == 'big' else f'NEW.{c}'}" for c in columns]
    image = f"NEW.id, json_object({', '.join(values)})"
    made = []
    for op in range(3):
        gone, come = "OLD.id" if op else "NULL", image if op < 2 else "NULL, NULL"
        note = (
            f"INSERT INTO {history}.images (tab, op, act, gone, come, image)"
            f" SELECT '{table}', {op}, coalesce(@act, 0), {gone}, {come}"
        )
        made += _trigger(table, op, note)
    return made


def emptied(history: str, table: str) -> list[str]:
    """What notes that a table is emptied."""
    if table in MODES:
        return [
            f"INSERT INTO {history}.images (tab, op, act) VALUES ('{table}', {TRUNCATED}, @act)"
        ]
    if table in KEYS:
        return [
            f"INSERT INTO {history}.events (act, tab, op) VALUES (@act, '{table}', {TRUNCATED})"
        ]
    return []


def columns_of(database: SqlDatabase, table: str) -> dict[str, str]:
    """Names and types of a table's columns, without generated ones."""
    found: list[Any] = database.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        f" WHERE table_schema = '{database.name}' AND table_name = '{table}'"
        " AND coalesce(generation_expression, '') = '' ORDER BY ordinal_position"
    )
    return {name: str(kind) for name, kind in found}


def changes_since(database: SqlDatabase, table: str, number: int) -> list[Change]:
    """What happened to a table that keeps the past, after that number."""
    rows: list[Any] = database.execute(
        f"SELECT n, act, op, gone, come, image FROM {history_of(database)}.images"  # noqa: S608
        f" WHERE tab = '{table}' AND n > {number} ORDER BY n"
    )
    return [Change(*row[:5], None if row[5] is None else json.loads(row[5])) for row in rows]
