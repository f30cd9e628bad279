"""A random adversary of the Kafka target: brokers and runs are killed while changes flow; every
promise of the topics is looked at. `SEED=... STEPS=...` repeats or lengthens the walk. The runs
need no JVM."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.harness import Traffic, until
from tests.kafka_servers import KafkaBroker, kafka_cluster, set_limit
from tests.kafka_world import LocalKafkaWorld
from tests.model.test_nemesis import SEED
from tests.world_fixtures import MakeWorld

STEPS = int(os.environ.get("STEPS", "200"))
LOOK_EVERY = 50
TABLES = ("items", "pairs")
pytestmark = [pytest.mark.crash, pytest.mark.long, pytest.mark.timeout(900 + 10 * STEPS)]


class Walk:
    """The actions. One broker of three is away at most, so what was acknowledged stays."""

    def __init__(self, world: Any, brokers: list[KafkaBroker]) -> None:
        self.world, self.brokers = world, brokers
        self.random = Random(SEED)
        self.traffic = Traffic(world.database, seed=2)
        self.away: KafkaBroker | None = None
        self.large = 60_000_000
        self.counts: Counter[str] = Counter()
        self.actions: list[tuple[int, Callable[[], None]]] = [
            (60, self.write),
            (8, self.write_large),
            (12, self.kill_broker),
            (14, self.start_broker),
            (4, self.kill_run),
            (1, self.copy_again),
            (1, self.truncate),
        ]

    def step(self) -> None:
        """One action by chance."""
        self.keep()
        weights = [weight for weight, _ in self.actions]
        ((_, act),) = self.random.choices(self.actions, weights)
        self.counts[act.__name__] += 1
        act()

    def keep(self) -> None:
        """What the supervisor does where a run ended, as it does for a broker that is away."""
        child = self.world.child
        if child.is_dead():
            self.counts["runs that ended"] += 1
            sys.stderr.write(f"nemesis: a run ended: {child.tail()[-1500:]}\n")
            child.end()
            self.world.start()

    def write(self) -> None:
        """Some transactions."""
        self.traffic.write(self.random.randint(1, 8))

    def write_large(self) -> None:
        """A row that its topic does not take, and then one that fits under the same key."""
        self.large += 1
        self.world.database.execute(
            "INSERT INTO shop.items (id, big) VALUES (%(id)s, repeat('x', 1500000))",
            {"id": self.large},
        )
        self.world.database.execute("UPDATE shop.items SET big = 's' WHERE id = %s", [self.large])

    def kill_broker(self) -> None:
        """A broker dies, unless one is away."""
        if self.away is None:
            self.away = self.random.choice(self.brokers)
            self.away.kill()

    def start_broker(self) -> None:
        """It comes back."""
        if self.away is not None:
            self.away.start()
            one = self.away
            until(lambda: one.members() == len(self.brokers), "the brokers are whole", 120.0)
            self.away = None

    def kill_run(self) -> None:
        """The run dies, and another one begins."""
        self.world.kill()
        self.world.start()

    def copy_again(self) -> None:
        """A re-sync."""
        self.world.resync(self.random.choice(TABLES))

    def truncate(self) -> None:
        """A TRUNCATE."""
        self.world.database.execute("TRUNCATE shop.pairs")

    def look(self) -> None:
        """Nothing is broken so far."""
        faults = self.world.faults(may_repeat=True)
        assert faults == [], faults[:5]


def test_no_walk_breaks_the_promises_of_topics(
    world_maker: MakeWorld, record_property: Callable[[str, object], None]
) -> None:
    """Guards order by key on one partition, marks that never go back, that nothing older follows
    them, and that the topics lead to the rows of the source in the end: over brokers and runs that
    are killed, copies made afresh, and messages that wait in quarantine meanwhile."""
    with kafka_cluster() as brokers:
        servers = ",".join(broker.address for broker in brokers)
        made: Any = world_maker(
            kind=LocalKafkaWorld, tables=TABLES, target={"servers": servers, "replicas": 3}
        )
        with made as world:
            walk = Walk(world, brokers)
            sys.stderr.write(f"nemesis: SEED={SEED} STEPS={STEPS}\n")
            world.start()
            world.until_states("replicating")
            record_property("seed", SEED)
            for number in range(1, STEPS + 1):
                walk.step()
                if number % LOOK_EVERY == 0:
                    walk.start_broker()
                    walk.look()
            walk.start_broker()
            walk.keep()
            sys.stderr.write(f"nemesis: {dict(walk.counts)}\n")
            prefix = world.target_params()[1]["topic_prefix"]
            set_limit(servers, f"{prefix}shop.items", 8 << 20)
            world.assert_equal()
            walk.look()
            assert world.stop() == 0
