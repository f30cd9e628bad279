"""Iceberg and Delta in a bucket of an S3 server that asks for keys: the rows of the source, over a
kill, read by the formats' own readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from replicators.connectors.addresses import one_name_of_s3
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import parse
from replicators.connectors.storage import Storage
from replicators.targets.lakehouse import catalog
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.errors import translate
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import OWNER
from tests.harness import CATALOG, NAMESPACE, Traffic, World
from tests.stores import RIGHTS, Keys, ObjectStore, object_store
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
TABLE = TableSchema(TableId("shop", "items"), (Column("id", Int(64), "bigint"),), ("id",))
WITHOUT = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"}
"""An environment that has no keys, and asks no machine for any."""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The server. This process has no keys in its environment."""
    with object_store() as made, pytest.MonkeyPatch.context() as patch:
        for name in made.environment:
            patch.delenv(name, raising=False)
        for name, value in WITHOUT.items():
            patch.setenv(name, value)
        yield made


@pytest.fixture(scope="module")
def users(store: ObjectStore) -> dict[str, Keys]:
    """By the right that they lack. From now on the server asks for keys."""
    lacking = ("", "s3:PutObject", "s3:DeleteObject", "s3:GetObject")
    made = {name: store.user(*(r for r in RIGHTS if r != name)) for name in lacking}
    store.require_keys()
    return made


@pytest.fixture
def user(users: dict[str, Keys]) -> Keys:
    """Who may do what the documentation asks for."""
    return users[""]


class OnS3(World):
    """The copies lie in a bucket. People write its address in both ways. `target` has the fields of
    its server; where it has none, the environment has them."""

    bucket: ClassVar[str] = "s3a://logs/lake"
    reader: ClassVar[dict[str, str]] = {}

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        return name, {**params, "warehouse": f"{self.bucket}/{self.folder.name}"}

    @property
    def place(self) -> str:
        return f"{one_name_of_s3(self.bucket)}/{self.folder.name}"

    def lake_table(self, name: str) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        found = {
            "s3.endpoint": self.reader["AWS_ENDPOINT_URL"],
            "s3.region": "us-east-1",
            "s3.access-key-id": self.reader["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": self.reader["AWS_SECRET_ACCESS_KEY"],
        }
        uri = f"sqlite:///{self.folder}/catalog.db"
        catalog = SqlCatalog(CATALOG, uri=uri, warehouse=self.place, **found)
        return catalog.load_table((NAMESPACE, name))

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        if self.format != "delta":
            return super().target_rows(name)
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        options = {**self.reader, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        table = DeltaTable(f"{self.place}/{NAMESPACE}/{name}", storage_options=options)
        done = QueryBuilder().register("t", table).execute("SELECT * FROM t")
        return list(pa.table(done.read_all()).to_pylist())


def named(store: ObjectStore, keys: Keys) -> dict[str, Any]:
    """The fields of the form."""
    return {
        "s3_endpoint": store.endpoint,
        "s3_region": "us-east-1",
        "s3_access_key": keys.access,
        "s3_secret_key": keys.secret,
    }


def environment(store: ObjectStore, keys: Keys) -> dict[str, str]:
    """The same, as the SDKs read it."""
    return {
        **WITHOUT,
        "AWS_ENDPOINT_URL": store.endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": keys.access,
        "AWS_SECRET_ACCESS_KEY": keys.secret,
    }


@pytest.mark.parametrize(
    ("form", "is_whole", "is_named"),
    [
        pytest.param("iceberg", False, True, id="iceberg"),
        *(
            pytest.param(f, True, n, id=f"{f}, whole, {how}", marks=pytest.mark.long)
            for f in ("iceberg", "delta")
            for n, how in ((True, "fields"), (False, "environment"))
        ),
    ],
)
@pytest.mark.long
def test_a_bucket_has_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld,
    store: ObjectStore,
    user: Keys,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    is_whole: bool,
    is_named: bool,
) -> None:
    """Guards the file system that Spark needs there, the readers that this program asks for a
    table's token, and the way of the keys to each of them: a first copy, changed keys, a SIGKILL
    while batches are merged, a new column, a fresh copy."""
    tables = ("items", "views") if is_whole else ("items",)
    around = environment(store, user)
    monkeypatch.setattr(OnS3, "reader", around)
    target = named(store, user) if is_named else {}
    if not is_named:
        for name, value in around.items():
            monkeypatch.setenv(name, value)
    given = WITHOUT if is_named else around
    with world_maker(
        kind=OnS3, format=form, tables=tables, environment=given, target=target
    ) as world:
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
        logged = "".join(p.read_text() for p in world.folder.glob("*.log"))
        assert user.secret not in logged
        assert user.access not in logged


def test_what_a_bucket_refuses_is_said_before_a_run(
    store: ObjectStore, users: dict[str, Keys], user: Keys, tmp_path: Path
) -> None:
    """Guards the preflight: a run that starts without its bucket, its keys or a right fails minutes
    later, with an error of Spark."""
    wrong = Keys(user.access, "another")

    def found(keys: Keys, bucket: str = "logs", **changed: Any) -> list[tuple[str, Any]]:
        given = {
            **named(store, keys),
            "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": f"s3://{bucket}/lake",
            **changed,
        }
        params: LakehouseParams = parse(LakehouseParams, given)
        with LakehouseChecks(params) as checks:
            problems = checks.connection() or checks.tables([TABLE], "")
        assert not any(keys.secret in str(p) for p in problems)
        return [(p.code, dict(p.facts).get("act")) for p in problems]

    assert found(user) == []
    assert [c for c, _ in found(wrong)] == ["target:bucket-keys"]
    assert found(users["s3:PutObject"]) == [("target:bucket-rights", "write to")]
    assert found(users["s3:DeleteObject"]) == [("target:bucket-rights", "delete from")]
    assert [c for c, _ in found(user, bucket="nowhere")] == ["target:bucket-missing"]
    gone = found(user, s3_endpoint="http://127.0.0.1:9")
    assert [c for c, _ in gone] == ["target:unreachable"]


def test_a_tables_state_is_read_from_its_bucket_without_spark(
    store: ObjectStore, users: dict[str, Keys], user: Keys, tmp_path: Path
) -> None:
    """Guards the look before each merge, and what it says where the bucket refuses it."""
    names = ("shop", "items")

    def of(keys: Keys, **changed: Any) -> LakehouseParams:
        given = {
            **named(store, keys),
            "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": "s3://logs/looked",
            **changed,
        }
        params: LakehouseParams = parse(LakehouseParams, given)
        return params

    def state(params: LakehouseParams) -> str:
        reader = catalog.Reader(params).opened()
        try:
            live = catalog.live_table(reader, names)
            return live.owner if live else ""
        except Exception as err:  # noqa: BLE001 - a run says its code
            found = translate(err, None, params.store)
            assert params.s3_secret_key not in str(found)
            return found.code
        finally:
            reader.close()

    own = of(user)
    made = catalog.open_catalog(own)
    made.create_tables()
    made.create_namespace("shop")
    assert state(own) == ""
    schema = Schema(NestedField(1, "id", LongType(), required=True))
    made.create_table(names, schema, properties={OWNER: "me"})
    made.close()
    assert state(own) == "me"
    for keys in (Keys(user.access, "another"), Keys("AKIANOBODY", "x"), users["s3:GetObject"]):
        assert state(of(keys)) == "target:not-writable"
    assert state(of(user, s3_endpoint="http://127.0.0.1:9")) == "target:unreachable"
    Storage(own.store).remove_folder("s3://logs/looked/shop")
    assert state(own) == "target:unreachable"
