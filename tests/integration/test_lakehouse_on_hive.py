"""Iceberg tables that a Hive metastore lists: the rows of the source, over a kill, read by
pyiceberg. The metastore is Hive 2.3.10, whose jars PySpark brings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import CATALOG, NAMESPACE, Traffic, World
from tests.hive_metastore import HiveMetastore
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]
TABLE = TableSchema(TableId("shop", "items"), (Column("id", Int(64), "bigint"),), ("id",))


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    with HiveMetastore() as made:
        yield made


@pytest.fixture
def locking(request: pytest.FixtureRequest, metastore: HiveMetastore) -> Iterator[HiveMetastore]:
    """A metastore with locks, or without."""
    if not request.param:
        yield metastore
        return
    with HiveMetastore(has_locks=True) as made:
        yield made


class OnHive(World):
    """The tables are listed by a Hive metastore."""

    uri: ClassVar[str] = ""

    def lake_table(self, name: str) -> Any:
        from pyiceberg.catalog.hive import HiveCatalog

        return HiveCatalog(CATALOG, uri=self.uri).load_table((self.namespace, name))

    @property
    def namespace(self) -> str:
        """The metastore has one catalog for all worlds."""
        return f"{NAMESPACE}_{self.folder.name}"


@pytest.mark.parametrize("locking", [False, True], indirect=True, ids=["compares", "locks"])
def test_a_hive_metastore_lists_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld,
    locking: HiveMetastore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards the settings of Spark and of pyiceberg: a first copy, a SIGKILL while batches are
    merged, a new column, a fresh copy. The metastore compares versions, or commits take its locks:
    then a lock that the killed run held ends by itself, and others are let go."""
    has_locks = locking.has_locks
    monkeypatch.setattr(OnHive, "uri", locking.uri)
    target = {"catalog": "hive", "catalog_uri": locking.uri, "catalog_locks": has_locks}
    with world_maker(kind=OnHive, tables=("items", "views"), target=target) as world:
        params: LakehouseParams = parse(LakehouseParams, world.target_params()[1])
        with LakehouseChecks(params) as checks:
            assert [p.code for p in checks.connection() + checks.tables([TABLE], "")] == []
        traffic = Traffic(world.database)
        world.start()
        world.until_states("replicating")
        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int DEFAULT 7")
        traffic.write(10)
        world.start()
        world.assert_equal()
        world.resync("views")
        traffic.write(5)
        world.assert_equal()
        assert world.stop() == 0
        if has_locks:
            assert locking.lock_number() > 10
            assert locking.locks() == []


def test_what_is_wrong_with_a_hive_metastore_is_said_before_a_run(
    metastore: HiveMetastore, tmp_path: Path
) -> None:
    """Guards the preflight, and that its trial leaves nothing."""

    def told(**fields: Any) -> list[str]:
        given = {"catalog": "hive", "catalog_uri": metastore.uri, "warehouse": str(tmp_path)}
        params: LakehouseParams = parse(LakehouseParams, {**given, **fields})
        with LakehouseChecks(params) as checks:
            problems = checks.connection() or checks.tables([TABLE], "")
        return [p.code.removeprefix("target:catalog-") for p in problems]

    assert told() == []
    assert told(catalog_locks=False) == []
    assert told(name_case="upper") == ["name"]
    assert told(catalog_uri="thrift://127.0.0.1:9") == ["unreachable"]
    with HiveMetastore(is_strict=True) as strict:
        assert told(catalog_uri=strict.uri) == ["columns"]
    assert list(tmp_path.iterdir()) == []
