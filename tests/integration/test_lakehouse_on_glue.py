"""Iceberg tables that AWS Glue's catalog lists, in a bucket: the rows of the source, over a kill
and over a renaming that was cut off, read by pyiceberg. Glue and the bucket are those of moto,
which asks for keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import parse
from replicators.targets.lakehouse import naming
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import CATALOG, NAMESPACE, Traffic, World
from tests.integration.test_catalog_password import command_words
from tests.integration.test_lakehouse_on_s3 import WITHOUT, environment, named
from tests.stores import RIGHTS, Keys, ObjectStore, object_store
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
TABLE = TableSchema(TableId("shop", "items"), (Column("id", Int(64), "bigint"),), ("id",))
OF_GLUE = tuple(
    f"glue:{act}{of}"
    for of, acts in {
        "Database": ("Get", "Create", "Delete"),
        "Databases": ("Get",),
        "Table": ("Get", "Create", "Update", "Delete"),
        "Tables": ("Get",),
    }.items()
    for act in acts
)
"""The rights that the setup step names."""


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
    lacking = ("", "s3:PutObject", "glue:GetDatabases", "glue:CreateDatabase", "glue:CreateTable",
        "glue:UpdateTable", "glue:DeleteTable", "glue:DeleteDatabase")  # fmt: skip
    made = {n: store.user(*(r for r in (*RIGHTS, *OF_GLUE) if r != n)) for n in lacking}
    store.require_keys()
    return made


@pytest.fixture
def user(users: dict[str, Keys]) -> Keys:
    """Who may do what the documentation asks for."""
    return users[""]


def fields(store: ObjectStore, keys: Keys) -> dict[str, Any]:
    """What a form says."""
    return {**named(store, keys), "catalog": "glue", "catalog_uri": store.endpoint}


class OnGlue(World):
    """The copies lie in a bucket, and Glue lists them."""

    bucket: ClassVar[str] = "s3://logs/lake"
    reader: ClassVar[dict[str, str]] = {}

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        where = {"catalog_uri": "", **(self.target or {})}
        return name, {**params, "warehouse": f"{self.bucket}/{self.folder.name}", **where}

    def glue(self) -> Any:
        """The catalog as a reader opens it."""
        from pyiceberg.catalog.glue import GlueCatalog

        found = {
            f"{of}.{name}": value
            for of in ("s3", "glue")
            for name, value in {
                "endpoint": self.reader["AWS_ENDPOINT_URL"],
                "region": "us-east-1",
                "access-key-id": self.reader["AWS_ACCESS_KEY_ID"],
                "secret-access-key": self.reader["AWS_SECRET_ACCESS_KEY"],
            }.items()
        }
        return GlueCatalog(CATALOG, **found)

    def lake_table(self, name: str) -> Any:
        return self.glue().load_table((self.namespace, name))

    @property
    def namespace(self) -> str:
        """The server has one catalog for all worlds."""
        return f"{NAMESPACE}_{self.folder.name}"

    def cut_off_a_renaming(self, name: str) -> None:
        """Leave what Glue has when a process ends in the midst of it: both names lead to the
        table."""
        params: LakehouseParams = parse(LakehouseParams, self.target_params()[1])
        names = naming.names(params, TableId("shop", name))
        space, staged = naming.staging_names(
            names, str(self.replicator.pk), self.row(name).generation
        )
        client = self.glue().glue
        live = client.get_table(DatabaseName=self.namespace, Name=name)["Table"]
        kept = {k: live[k] for k in ("TableType", "Parameters", "StorageDescriptor")}
        client.create_table(DatabaseName=space, TableInput={"Name": staged, **kept})


@pytest.mark.long
@pytest.mark.parametrize("is_named", [True, False], ids=["fields", "environment"])
def test_glue_lists_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld,
    store: ObjectStore,
    user: Keys,
    monkeypatch: pytest.MonkeyPatch,
    is_named: bool,
) -> None:
    """Guards the settings of Spark and of pyiceberg, and the way of the keys to each of them: a
    first copy, a SIGKILL while batches are merged, a new column, a fresh copy. The fresh copy comes
    after a renaming that was cut off: it leaves the live table's files alone."""
    around = environment(store, user)
    monkeypatch.setattr(OnGlue, "reader", around)
    target = fields(store, user) if is_named else {"catalog": "glue"}
    if not is_named:
        for name, value in around.items():
            monkeypatch.setenv(name, value)
    given = WITHOUT if is_named else around
    tables = ("items", "views") if is_named else ("items",)
    with world_maker(kind=OnGlue, tables=tables, environment=given, target=target) as world:
        assert isinstance(world, OnGlue)
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
        child = world.start()
        world.assert_equal()
        words = command_words(child.pid)
        assert any("spark" in word.lower() for word in words)
        assert not any(user.secret in word for word in words)
        if is_named:
            world.cut_off_a_renaming("views")
            world.resync("views")
            traffic.write(5)
            world.assert_equal()
            staged = world.glue().list_tables(naming.STAGING_NAMESPACE)
            assert staged == [], "a renaming that was cut off is ended"
        assert world.stop() == 0
        logged = "".join(p.read_text() for p in world.folder.glob("*.log"))
        assert user.secret not in logged
        assert user.access not in logged


@pytest.mark.long
def test_what_glue_refuses_is_said_before_a_run(
    store: ObjectStore, users: dict[str, Keys], user: Keys
) -> None:
    """Guards the preflight: a run that lacks a right in Glue fails minutes later, with an error of
    Spark."""

    def found(keys: Keys, **changed: Any) -> list[tuple[str, Any]]:
        given = {**fields(store, keys), "warehouse": "s3://logs/lake", **changed}
        params: LakehouseParams = parse(LakehouseParams, given)
        with LakehouseChecks(params) as checks:
            problems = checks.connection() or checks.tables([TABLE], "")
        assert not any(keys.secret in str(p) for p in problems)
        return [(p.code.removeprefix("target:"), dict(p.facts).get("act")) for p in problems]

    assert found(user) == []
    wrong = [c for c, _ in found(Keys(user.access, "another"))]
    assert wrong == ["bucket-keys", "catalog-refused"]
    assert found(users["s3:PutObject"]) == [("bucket-rights", "write to")]
    acts = {
        "GetDatabases": "open the warehouse",
        "CreateDatabase": "create a namespace",
        "CreateTable": "create a table",
        "UpdateTable": "change a table",
        "DeleteTable": "rename a table",
        "DeleteDatabase": "drop a namespace",
    }
    for right, act in acts.items():
        assert found(users[f"glue:{right}"]) == [("catalog-rights", act)]
    assert found(user, catalog_uri="http://127.0.0.1:9") == [("catalog-unreachable", None)]
    assert found(user, name_case="upper") == [("catalog-name", None)]
