"""A random adversary against the whole data path; `SEED=... STEPS=... FORMAT=iceberg|delta make nemesis` repeats or lengthens its walk."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

import pytest

from demo.postgres import EmbeddedPostgres
from tests.model.machine import TABLES, Machine, make_source
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "200"))
FORMAT = os.environ.get("FORMAT", "iceberg")
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
pytestmark = [pytest.mark.crash, pytest.mark.timeout(600 + 10 * STEPS)]


def test_no_random_walk_of_changes_kills_and_cuts_makes_source_and_target_differ(
    world_maker: MakeWorld, record_property: Callable[[str, object], None]
) -> None:
    """Guards the whole of CORRECTNESS as far as the walk goes. It fails where any of these is switched off: whole
    transactions by position (1), the frontier (2), stable row numbers (3), the truncate barrier (6), the delete half of a
    changed key (8), filling of unsent columns (9), key ranges over old keys (11), the token in the target (13)."""
    sys.stderr.write(f"nemesis: SEED={SEED} STEPS={STEPS} FORMAT={FORMAT}\n")
    with (
        EmbeddedPostgres() as server,
        world_maker(server=server, prepare=make_source, tables=TABLES, format=FORMAT) as world,
    ):
        world.start()
        world.until_states("replicating")
        machine = Machine(world, SEED, server)
        try:
            machine.walk(STEPS)
        except BaseException:
            sys.stderr.write(f"nemesis: SEED={SEED}, step {len(machine.told)} of {STEPS}\n")
            raise
        finally:
            sys.stderr.write(f"nemesis: {dict(machine.counts)}\nnemesis: {machine.figures}\n")
            record_property("seed", SEED)
            record_property("walk", machine.figures)
        assert world.stop() == 0
