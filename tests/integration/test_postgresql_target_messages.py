"""Messages of all tables in one table of a real PostgreSQL server, also over kills of a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import TargetTable
from replicators.targets.postgresql.checks import PostgresqlTargetChecks
from tests.harness import until
from tests.model.modes import Ledger, make_tables
from tests.postgres_target import writer_of, writer_params
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
ALL = "shop._replicator_messages"
COLUMNS = (Column("id", Int(64), "bigint"), Column("note", String(), "text"))
ORDERS = TableSchema(TableId("shop", "orders"), COLUMNS, ("id",), ("id",))
NOTES = replace(ORDERS, id=TableId("shop", "no'tes"))


@pytest.fixture
def target(database: Database, tmp_path: Path) -> Iterator[SqlMergeTarget]:
    made = writer_of(writer_params(database), tmp_path)
    yield made
    made.close()


def copied(
    target: SqlMergeTarget, schema: TableSchema, generation: int, *rows: Any,
    mode: Mode = Mode.MESSAGES,
) -> TargetTable:  # fmt: skip
    """A published generation of a table."""
    table = TargetTable(schema.id, "r1", generation, mode=mode)
    target.begin_snapshot(table, schema)
    place = target.snapshot_place(table, schema)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), place.arrow), path)
    target.load_snapshot_files(table, schema, [path])
    return replace(table, table_uuid=target.publish_snapshot(table, schema, 10 * generation))


def message(schema: TableSchema, number: int) -> dict[str, Any]:
    return {"table": str(schema.id), "message_id": number, "key": f"[{number}]", "value": "{}"}


def there(database: Database) -> list[tuple[str, int]]:
    return database.execute(f'SELECT "table", message_id FROM {ALL} ORDER BY 1, 2')  # noqa: S608


def test_a_fresh_copy_replaces_the_messages_of_one_table_only(
    target: SqlMergeTarget, database: Database
) -> None:
    """Guards `message_table`: every table's messages in one, its own replaced at once, also while
    somebody reads them all; and a table that gets another mode, or goes, leaves it."""
    copied(target, ORDERS, 1, message(ORDERS, 1), message(ORDERS, 2))
    copied(target, NOTES, 1, message(NOTES, 1))
    assert there(database) == [("shop.no'tes", 1), ("shop.orders", 1), ("shop.orders", 2)]
    with database.connect() as reader, reader.transaction():
        reader.execute(f"SELECT count(*) FROM {ALL}")  # noqa: S608
        again = threading.Thread(target=copied, args=(target, ORDERS, 2, message(ORDERS, 3)))
        again.start()
        waits = "SELECT 1 FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
        until(lambda: database.execute(waits, [ALL]), lambda: "the copy waits for the reader")
        found = reader.execute(f"SELECT count(*) FROM {ALL} WHERE message_id < 3").fetchone()  # noqa: S608
        assert found == (3,)
    again.join()
    assert there(database) == [("shop.no'tes", 1), ("shop.orders", 3)]
    with PostgresqlTargetChecks(writer_params(database)) as checks:
        assert checks.tables([ORDERS, NOTES], "r1") == []
    copied(target, ORDERS, 3, {"id": 7, "note": "n"}, mode=Mode.MIRROR)
    assert there(database) == [("shop.no'tes", 1)]
    assert database.execute("SELECT * FROM shop.orders") == [(7, "n")]
    copied(target, ORDERS, 4, message(ORDERS, 9))
    target.drop(replace(TargetTable(NOTES.id, "r1", 1), mode=Mode.MESSAGES))
    assert there(database) == [("shop.orders", 9)]


@pytest.fixture
def copies(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """The target's database."""
    with fresh_database(postgres) as made:
        yield made


def rebuilt(found: list[tuple[str, Any, dict[str, Any]]], table: str) -> dict[int, dict[str, Any]]:
    """A table's rows from its messages, in order."""
    rows: dict[int, dict[str, Any]] = {}
    gone: dict[str, Any] = {}
    for name, key, value in found:
        if name != f"shop.{table}":
            continue
        if value["_operation"] == "truncate":
            rows.clear()
        elif value["_operation"] == "delete":
            gone = rows.pop(key[0])
        else:
            is_new = value["_operation"] in ("read", "insert")
            known = rows.get(key[0], {} if is_new else gone)
            rows[key[0]] = {**known, **value["after"]}
    return rows


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def test_the_messages_rebuild_the_source_s_rows_over_a_kill(
    world_maker: MakeWorld, copies: Database
) -> None:
    """Guards the whole path: the first copy by tasks, the token of a merge that was cut off before
    its record (CORRECTNESS 13), unsent values, changed keys, TRUNCATE, and a new column, which
    changes no table."""
    tables = ("versions", "changes")
    with world_maker(
        prepare=make_tables, tables=tables, modes=dict.fromkeys(tables, "messages"),
        kind=PostgresTargetWorld, copies=copies,
    ) as world:  # fmt: skip
        ledger = Ledger(world.database, tables)
        world.start()
        world.settle()
        world.arm("target_merged")
        child = world.child
        assert child is not None
        for table in tables:
            ledger.busy_day(table)
        until(child.is_dead, lambda: f"death in a merge\n{child.tail()}")
        assert child.wait() == -signal.SIGKILL, child.tail()
        child.end()
        world.disarm("target_merged")
        world.start()
        world.database.execute("ALTER TABLE shop.versions ADD COLUMN extra numeric")
        world.database.execute("UPDATE shop.versions SET extra = 1.50 WHERE id > 1000")
        for table in tables:
            ledger.busy_day(table)
        world.settle()
        found = copies.execute(f'SELECT "table", key, value FROM {ALL} ORDER BY message_id')  # noqa: S608
        for table in tables:
            # Rows from before the new column have no value of it in their messages.
            wanted = {
                row["id"]: without_nulls(row)
                for (row,) in world.database.execute(f"SELECT to_jsonb(t) FROM shop.{table} t")  # noqa: S608
            }
            rows = {key: without_nulls(row) for key, row in rebuilt(found, table).items()}
            assert rows == wanted
            reads = [v for n, _, v in found if (n, v["_operation"]) == (f"shop.{table}", "read")]
            assert len(reads) == ledger.first
        logged = [(v["_operation"], k and k[0]) for n, k, v in found if n == "shop.changes"]
        assert logged[ledger.first :] == ledger.log["changes"]
        assert any(v.get("_unsent") == ["big"] for _, _, v in found)
        text = f"SELECT count(*) FROM {ALL} WHERE value::jsonb->'after'->>'extra' = '1.50'"  # noqa: S608
        assert copies.execute(text)[0][0] > 0
        assert world.stop() == 0
        assert world.left_over("changes") == set()
