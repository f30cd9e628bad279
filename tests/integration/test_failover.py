"""A standby takes over: the run goes on there without loss, or says that the standby lacked
something (CORRECTNESS 23)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from demo.postgres import EmbeddedPostgres
from replicators.services import replicator_update
from runners.models import Progress
from tests.harness import Traffic, World
from tests.standby import promote, standby_of, until_received
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def timeline(world: World) -> Any:
    return Progress.objects.get(replicator=world.replicator).position["detail"].get("timeline")


def move(world: World, server: EmbeddedPostgres) -> None:
    """The replicator's source is now this server."""
    params = {**world.database.params, "host": server.host, "port": server.port}
    replicator_update(replicator=world.replicator, actor=None, source_params=params)
    world.database = replace(world.database, server=server)


@pytest.mark.long
def test_a_standby_that_has_everything_takes_over_without_loss(
    private_postgres: EmbeddedPostgres, twin_maker: MakeWorld
) -> None:
    """Guards FAILOVER in `slots.create_slot` and the timelines in `slots._verify_identity`: without
    a failover slot the standby has no slot, and every table would have to be copied afresh; with
    every other timeline refused, too."""
    primary = private_postgres
    with twin_maker(server=primary, tables=("items", "pairs")) as world:
        traffic = Traffic(world.database)
        name, slot = world.database.name, world.replicator.slot_name
        world.start()
        world.settle()
        made = "SELECT failover, temporary FROM pg_replication_slots WHERE slot_name = %s"
        assert world.database.execute(made, [slot]) == [(True, False)]
        with standby_of(primary, name) as standby:
            with traffic.going_on():
                world.until(
                    lambda: standby.execute(
                        "SELECT 1 FROM pg_replication_slots"
                        " WHERE slot_name = %s AND synced AND NOT temporary", [slot]
                    ),
                    "the slot is on the standby",
                )  # fmt: skip
                world.kill()
            assert timeline(world) == 1
            until_received(primary, standby)
            primary.stop()
            promote(standby)
            move(world, standby)
            Traffic(world.database, seed=2).write(20)
            generations = {t: world.row(t).generation for t in world.tables}
            world.start()
            world.assert_equal()
            assert timeline(world) == 2
            assert {t: world.row(t).generation for t in world.tables} == generations
            assert world.stop() == 0

            standby.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            primary.start()


@pytest.mark.long
def test_a_standby_that_lacks_what_was_captured_is_said_plainly(
    private_postgres: EmbeddedPostgres, twin_maker: MakeWorld
) -> None:
    """Guards `slots.switch_point` (CORRECTNESS 23): a position past the place where the standby
    left the timeline holds rows that the new primary never had; without the look they would stay in
    the copy for ever."""
    primary = private_postgres
    with twin_maker(server=primary, tables=("items", "pairs")) as world:
        world.start()
        world.settle()
        with standby_of(primary, world.database.name) as standby:
            until_received(primary, standby)
            standby.stop()
            Traffic(world.database).write(20)
            world.assert_equal()
            assert world.stop() == 0
            primary.stop()
            standby.start()
            promote(standby)
            move(world, standby)
            Traffic(world.database, seed=2).write(20)
            world.start()
            world.until_states("failing source:position-lost")
            reason = world.row("items").error_facts["reason"]
            assert reason == "a standby took over that had not yet received all of the log"
            for table in world.tables:
                world.resync(table)
            world.assert_equal()
            assert world.stop() == 0
            standby.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE NOT active"
            )
            primary.start()
