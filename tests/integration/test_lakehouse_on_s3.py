"""Iceberg and Delta in a bucket of an S3 server: the rows of the source, over a kill, read by the
formats' own readers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from replicators.connectors.addresses import one_name_of_s3
from replicators.connectors.params import parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import CATALOG, NAMESPACE, Traffic, World
from tests.stores import ObjectStore, object_store
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The server; this process reaches it too, by its environment."""
    with object_store() as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made


class OnS3(World):
    """The copies lie in a bucket. People write its address in both ways."""

    bucket: ClassVar[str] = "s3a://logs/lake"

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        return name, {**params, "warehouse": f"{self.bucket}/{self.folder.name}"}

    @property
    def place(self) -> str:
        return f"{one_name_of_s3(self.bucket)}/{self.folder.name}"

    def lake_table(self, name: str) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            CATALOG,
            uri=f"sqlite:///{self.folder}/catalog.db",
            warehouse=self.place,
            **{"s3.endpoint": os.environ["AWS_ENDPOINT_URL"]},
        )
        return catalog.load_table((NAMESPACE, name))

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        if self.format != "delta":
            return super().target_rows(name)
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        options = {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        table = DeltaTable(f"{self.place}/{NAMESPACE}/{name}", storage_options=options)
        done = QueryBuilder().register("t", table).execute("SELECT * FROM t")
        return list(pa.table(done.read_all()).to_pylist())


@pytest.mark.parametrize(
    ("form", "is_whole"),
    [
        pytest.param("iceberg", False, id="iceberg"),
        pytest.param("iceberg", True, id="iceberg, whole", marks=pytest.mark.long),
        pytest.param("delta", True, id="delta, whole", marks=pytest.mark.long),
    ],
)
def test_a_bucket_has_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld, store: ObjectStore, form: str, is_whole: bool
) -> None:
    """Guards the file system that Spark needs there, and the readers that this program asks for a
    table's token: a first copy, changed keys, a SIGKILL while batches are merged, a new column, a
    fresh copy."""
    tables = ("items", "views") if is_whole else ("items",)
    with world_maker(kind=OnS3, format=form, tables=tables, environment=store.environment) as world:
        assert isinstance(world, OnS3)
        params: LakehouseParams = parse(LakehouseParams, world.target_params()[1])
        with LakehouseChecks(params) as checks:
            assert [p.code for p in checks.connection()] == []
        traffic = Traffic(world.database)
        world.start()
        world.until_states("replicating")
        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        if is_whole:
            world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int DEFAULT 7")
        traffic.write(10)
        world.start()
        world.assert_equal()
        if is_whole:
            world.resync("views")
            traffic.write(5)
            world.assert_equal()
        assert world.stop() == 0


def test_a_bucket_that_is_not_there_is_said(store: ObjectStore, tmp_path: Path) -> None:
    """Guards the preflight: a run that starts without its bucket fails minutes later."""
    given = {"catalog_uri": f"sqlite:///{tmp_path}/catalog.db"}
    for bucket, codes in (("logs", []), ("nowhere", ["target:unreachable"])):
        params: LakehouseParams = parse(
            LakehouseParams, {**given, "warehouse": f"s3://{bucket}/lake"}
        )
        with LakehouseChecks(params) as checks:
            assert [p.code for p in checks.connection()] == codes
