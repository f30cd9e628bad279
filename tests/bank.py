"""A bank whose accounts lie in two tables: transfers move money from one table to the other in one
transaction, so what both hold together never changes at the source."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from replicators.connectors.model.schema import TableId
from replicators.targets.lakehouse.naming import PROGRESS
from runners.models import Watermark
from tests.harness import CATALOG, NAMESPACE, World
from tests.servers import Database

BANK_TABLES = ("checking", "saving")
ACCOUNTS = 200
TOTAL = Decimal(2 * ACCOUNTS * 1000)
SCHEMA = """
CREATE SCHEMA shop;
CREATE TABLE shop.checking (id bigint PRIMARY KEY, balance numeric(14, 2));
CREATE TABLE shop.saving (id bigint PRIMARY KEY, balance numeric(14, 2));
INSERT INTO shop.checking SELECT i, 1000 FROM generate_series(1, 200) i;
INSERT INTO shop.saving SELECT i, 1000 FROM generate_series(1, 200) i;
"""


def make_bank(database: Database) -> None:
    """Both tables, each account with the same balance."""
    database.execute(SCHEMA)


@contextmanager
def transfers(database: Database, seed: int = 1) -> Iterator[None]:
    """Transfers between random accounts of the two tables while the block runs, about 20
    transactions a second."""
    stop = threading.Event()

    def go() -> None:
        chance = random.Random(seed)
        with database.connect() as connection:
            while not stop.wait(0.05):
                cents = Decimal(chance.randint(-9999, 9999)) / 100
                with connection.transaction():
                    for table, change in zip(BANK_TABLES, (-cents, cents), strict=True):
                        update = f"UPDATE shop.{table} SET balance = balance + %s WHERE id = %s"
                        connection.execute(update.encode(), [change, chance.randint(1, ACCOUNTS)])

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def all_published(world: World) -> list[Watermark]:
    """The world's watermarks, oldest first; the first ones may lack a table that was not copied
    yet."""
    return list(Watermark.objects.filter(replicator=world.replicator).order_by("pk"))


def published(world: World) -> list[Watermark]:
    """Those that name both tables."""
    return [w for w in all_published(world) if len(w.versions) == len(BANK_TABLES)]


def version_sum(world: World, table: TableId, version: str) -> Decimal:
    """What a table's accounts hold at a version of the target, read without Spark."""
    if world.format == "delta":
        return _delta_sum(world, table.name, int(version))
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{world.folder}/catalog.db"
    lake: Any = SqlCatalog(CATALOG, uri=uri, warehouse=str(world.warehouse))
    rows = lake.load_table((NAMESPACE, table.name)).scan(snapshot_id=int(version)).to_arrow()
    assert rows.num_rows == ACCOUNTS
    return Decimal(sum(rows.column("balance").to_pylist()))


def _delta_sum(world: World, name: str, version: int) -> Decimal:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    opened = DeltaTable(str(world.warehouse / NAMESPACE / name), version=version)
    found = QueryBuilder().register("t", opened).execute("SELECT balance FROM t")
    rows = pa.table(found.read_all())
    assert rows.num_rows == ACCOUNTS
    return Decimal(sum(rows.column("balance").to_pylist()))


def reported_at_target(world: World) -> dict[int, set[tuple[str, str]]]:
    """The progress table in the target: (table, version) by sequence, read without Spark."""
    if world.format == "delta":
        from deltalake import DeltaTable

        rows = (
            DeltaTable(str(world.warehouse / NAMESPACE / PROGRESS)).to_pyarrow_table().to_pylist()
        )
    else:
        rows = world.lake_table(PROGRESS).scan().to_arrow().to_pylist()
    return {r["sequence"]: {(t["name"], t["version"]) for t in r["tables"]} for r in rows}


def sums(world: World, mark: Watermark) -> list[Decimal]:
    """What each table holds at the watermark."""
    return [version_sum(world, TableId(s, n), version) for s, n, version in mark.versions]
