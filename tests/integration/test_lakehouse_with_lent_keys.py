"""Iceberg tables in a bucket of S3 whose keys a REST catalog lends for each table's folder: the
rows of the source over a kill, while keys end. Nothing in this process has keys of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import boto3
import psutil
import pytest
from django.utils import timezone

from replicators.connectors.params import parse
from replicators.models import Replicator
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import Traffic, World, command, make_shop, until
from tests.iceberg_rest import Gate, Lender, RestCatalogServer, hadoop_on
from tests.integration.test_lakehouse_on_rest import TABLE, OnRest, over_a_kill
from tests.integration.test_lakehouse_on_s3 import WITHOUT
from tests.shared_spark import SharedServer
from tests.stores import RIGHTS, Keys, ObjectStore, object_store
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]
LOGIN = ("catalog_user", "catalog_password", "catalog_token_uri", "catalog_scope")
UPKEEP = "REPLICATOR_MAINTAIN_EVERY_COMMITS"
SECONDS = 30.0
"""How long keys are lent; they end after twice that."""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The server. This process has no keys in its environment."""
    with object_store() as made, pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in WITHOUT.items():
            patch.setenv(name, value)
        yield made


@pytest.fixture(scope="module")
def owner(store: ObjectStore) -> Keys:
    """Who makes the keys that are lent, and may do all in the bucket."""
    made = store.user(*RIGHTS, "iam:*", "sts:*")
    store.require_keys()
    return made


@pytest.fixture(scope="module")
def server(store: ObjectStore, owner: Keys) -> Iterator[RestCatalogServer]:
    default = f"s3://{store.bucket}/default"
    with RestCatalogServer(hadoop=hadoop_on(store, owner), default=default) as made:
        yield made


@pytest.fixture
def gate(server: RestCatalogServer, store: ObjectStore, owner: Keys) -> Iterator[Gate]:
    with Gate(server.port, lender=Lender(store, owner, SECONDS)) as made:
        yield made


def fields(gate: Gate, store: ObjectStore, **more: str) -> dict[str, str]:
    """What a form says: no key of the store."""
    given = {"store_keys": "lent", "s3_endpoint": store.endpoint, "s3_region": "us-east-1"}
    return gate.fields(warehouse=f"s3://{store.bucket}/lake", **given, **more)


def place_of(store: ObjectStore) -> dict[str, str]:
    """What a reader with lent keys is told."""
    return {"s3.endpoint": store.endpoint, "s3.region": "us-east-1"}


def lying(store: ObjectStore, owner: Keys, within: str = "/") -> set[str]:
    """All files of the bucket, of such folders. The catalog's server marks folders by empty
    files."""
    client: Any = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name="us-east-1",
        aws_access_key_id=owner.access,
        aws_secret_access_key=owner.secret,
    )
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=store.bucket)
    found = {one["Key"] for page in pages for one in page.get("Contents", ())}
    return {key for key in found if within in key and not key.endswith("/")}


def test_the_copies_are_written_with_lent_keys_alone_over_a_kill(
    world_maker: MakeWorld,
    gate: Gate,
    store: ObjectStore,
    owner: Keys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards each way to a table's files: keys of one table open its own folder only, and end while
    the run goes on. A copy dies and is swept, old versions are expired, and columns change. Then
    the tables are dropped, and nothing of them stays."""
    monkeypatch.setattr(OnRest, "uri", gate.url)
    monkeypatch.setattr(OnRest, "reader", place_of(store))
    with world_maker(
        kind=OnRest,
        tables=("items", "pairs", "views"),
        target=fields(gate, store, history_minutes="0"),
        prepare=partial(make_shop, rows=2000),
        environment={UPKEEP: "1000"},
    ) as world:
        world.arm("snapshot_loaded")
        died = world.start()
        assert died.wait() != 0
        died.end()
        over_a_kill(world, gate)
        assert gate.lender is not None
        assert gate.lender.ended > 0
        assert gate.counts["lent again"] > 0
        before = lying(store, owner, "/data/")
        world.start(**{UPKEEP: "1"})
        world.database.execute("UPDATE shop.items SET extra = 8 WHERE id <= 5")
        until(lambda: before - lying(store, owner, "/data/"), "no old version was expired")
        assert world.stop() == 0
        assert {k.split("/")[0] for k in lying(store, owner)} == {"lake"}
        dropped(world)
        assert not [k for k in lying(store, owner) if k.startswith("lake/")]


def test_lent_keys_are_used_in_a_spark_that_replicators_share(
    world_maker: MakeWorld,
    server: RestCatalogServer,
    store: ObjectStore,
    owner: Keys,
    shared_spark: SharedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards sessions over Spark Connect, which have no Java: nothing of the process is needed. A
    catalog without a login has no secret that would keep a replicator out of it."""
    with Gate(server.port, lender=Lender(store, owner, SECONDS), is_open=True) as gate:
        monkeypatch.setattr(OnRest, "uri", gate.url)
        monkeypatch.setattr(OnRest, "reader", place_of(store))
        nobody = dict.fromkeys(LOGIN, "")
        with world_maker(
            kind=OnRest,
            tables=("items", "views"),
            target={**fields(gate, store), **nobody},
            environment=shared_spark.environment,
        ) as world:
            child = world.start()
            world.until_states("replicating")
            Traffic(world.database).write(10)
            world.assert_equal()
            started = psutil.Process(child.pid).children(recursive=True)
            assert "java" not in {process.name() for process in started}
            world.resync("items")
            world.assert_equal()
            assert world.stop() == 0
        assert gate.counts["lent"] > 10


def dropped(world: World) -> None:
    """Remove the copies, as the deletion of a replicator with its data does."""
    Replicator.objects.filter(pk=world.replicator.pk).update(deleting_since=timezone.now())
    command("drop_target", str(world.replicator.pk), environment=world._environment({}))


def test_what_a_catalog_does_not_lend_is_said_before_a_run(
    gate: Gate, store: ObjectStore, owner: Keys
) -> None:
    """Guards the assessment's trial: it uses keys that the catalog lends for its own table, and
    leaves nothing."""
    before = lying(store, owner)

    def told(**more: str) -> list[str]:
        params: LakehouseParams = parse(LakehouseParams, fields(gate, store, **more))
        with LakehouseChecks(params) as checks:
            problems = checks.connection() or checks.tables([TABLE], "")
        return [p.code for p in problems]

    assert told() == []
    assert told(current_views="true") == []
    assert gate.counts["lent"] == 2
    lender = gate.lender
    gate.lender = None
    assert told() == ["target:keys-not-lent"]
    gate.lender = Wrong(store, owner, SECONDS)
    assert told() == ["target:lent-keys"]
    gate.lender = lender
    assert told() == []
    assert lying(store, owner) == before


class Wrong(Lender):
    """Its keys open nothing."""

    def lend(self, location: str) -> dict[str, str]:
        return {**super().lend(location), "s3.secret-access-key": "another"}
