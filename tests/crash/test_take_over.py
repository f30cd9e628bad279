"""Tables that a dump brought into PostgreSQL are taken over: with a kill at each step, and with
rows that changed between the dump and the start."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from assessments.services import assess
from demo.postgres import EmbeddedPostgres, wheel_binaries
from replicators.config import ReplicatorConfig
from runners.states import RepairState
from runners.supervision.verifications import _verify_taken_over
from runners.verifications import Verification
from tests.crash.test_failpoints import died_at
from tests.crash.test_repair import ask, done
from tests.harness import Traffic
from tests.postgres_target import ROLE
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.timeout(600)]
TABLES = ("items", "pairs")


@pytest.fixture
def copies(postgres: EmbeddedPostgres) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


def dumped(world: PostgresTargetWorld) -> None:
    """The tables and their rows, as `pg_dump` takes them, owned by the target's role."""
    world.target_params()
    dump, load = (str(wheel_binaries() / name) for name in ("pg_dump", "psql"))
    command = [dump, "--schema=shop", "--no-owner", "--no-privileges", world.database.dsn]
    text = subprocess.run(command, check=True, capture_output=True).stdout
    loaded = [load, "-q", "-v", "ON_ERROR_STOP=1", world.there.dsn]
    subprocess.run(loaded, input=text, check=True, capture_output=True)
    world.there.execute(f"ALTER SCHEMA shop OWNER TO {ROLE}")
    for name in TABLES:
        world.there.execute(f"ALTER TABLE shop.{name} OWNER TO {ROLE}")


def test_tables_of_a_dump_are_taken_over_without_a_copy(
    world_maker: MakeWorld, copies: Database
) -> None:
    """Guards `take_over` and its record: no row is written, a run that dies before or after it
    takes the same tables over once, each change from the first start on arrives, and what changed
    between the dump and the start is found by the verification that is asked for by itself, and
    repaired."""
    with world_maker(
        kind=PostgresTargetWorld, copies=copies, tables=TABLES, options={"first_copy": "take_over"}
    ) as world:
        assert isinstance(world, PostgresTargetWorld)
        dumped(world)
        world.database.execute("UPDATE shop.items SET note = 'since the dump' WHERE id = 5")
        world.database.execute("DELETE FROM shop.items WHERE id = 6")
        before = copies.execute("SELECT 'shop.items'::regclass::oid")
        traffic = Traffic(world.database, seed=51)
        for step in ("snapshot_begun", "snapshot_recorded"):
            world.arm(step)
            died_at(world, world.start(), step)
        world.start()
        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        world.start()
        world.settle()
        after = copies.execute("SELECT 'shop.items'::regclass::oid")
        assert after[0][0] == before[0][0], "the table was copied"
        assert not world.differences("pairs")
        assert {row.partition(": ")[2] for row in world.differences("items", ("id",))} == {
            "id=5",
            "id=6",
        }

        type(world.replicator).objects.filter(pk=world.replicator.pk).update(
            desired_state="running"
        )
        for _ in range(2):
            _verify_taken_over()
        asked = Verification.objects.get(replicator=world.replicator)
        assert {t.name for t in asked.tables.all()} == set(TABLES)

        found = done(world, [ask(world, "items", [{"id": 5}, {"id": 6}])])
        assert found[0].state == RepairState.DONE
        assert (found[0].rows_written, found[0].rows_deleted) == (1, 1)
        world.assert_equal()
        world.database.execute("ALTER TABLE shop.pairs ADD COLUMN later int DEFAULT 3")
        traffic.write(10)
        world.assert_equal()
        assert world.stop() == 0


def codes(world: PostgresTargetWorld, options: dict[str, str], mode: str = "mirror") -> list[str]:
    """What the assessment says of the target."""
    kind, params = world.target_params()
    found = assess(
        ReplicatorConfig.parse(
            {
                "name": "n",
                "source_kind": "postgresql",
                "source_params": world.database.params | {"database": world.database.name},
                "target_kind": kind,
                "target_params": params,
                "tables": [{"schema": "shop", "name": n} for n in TABLES],
                "options": {**options, "mode": mode},
            }
        )
    )
    return sorted(p.code for p in found.problems if p.code.startswith("target:"))


def test_the_assessment_says_what_can_not_be_taken_over(
    world_maker: MakeWorld, copies: Database
) -> None:
    """Guards `TakeOverChecks`: a table that is there is an error without the option, and with it
    one that is not there, has another type or no unique key, or is in another mode. What may refuse
    rows is a warning."""
    over = {"first_copy": "take_over"}
    with world_maker(kind=PostgresTargetWorld, copies=copies, tables=TABLES) as world:
        assert isinstance(world, PostgresTargetWorld)
        assert codes(world, over) == ["target:take-over-missing"] * 2
        dumped(world)
        assert codes(world, {}) == ["target:table-taken"] * 2
        assert codes(world, over) == []
        assert codes(world, over, "soft_delete") == ["target:take-over-mode"] * 2
        copies.execute("ALTER TABLE shop.items ADD UNIQUE (note)")
        copies.execute("ALTER TABLE shop.pairs DROP COLUMN big")
        assert codes(world, over) == ["target:take-over-bound", "target:take-over-columns"]
        copies.execute("ALTER TABLE shop.items DROP CONSTRAINT items_pkey")
        assert codes(world, over) == [
            "target:take-over-bound",
            "target:take-over-columns",
            "target:take-over-key",
        ]
