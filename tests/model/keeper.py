"""Keeps a run going as the supervisor would: one that died where it was told to, or that ended by a
fault of its source that passes, is started again; any other end fails the walk."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.message import Retry
from runners.engine import failpoints
from tests.harness import DEADLINE_SECONDS, Child, World

EXIT_ERROR = 3
MOST_ARMED = 4
EVERY_SECONDS = 0.2


class Keeper:
    """The only one who starts and ends runs of a walk. `counts` gets what they died of."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        self.world = world
        self.counts = counts
        self.armed: list[str] = []

    def tend(self) -> None:
        """Start the run again where it has ended; AssertionError where it had no reason to."""
        child = self.world.child
        if child is None or not child.is_dead():
            return
        child.end()
        self._count(child, child.wait())
        self.world.start()

    def _count(self, child: Child, code: int) -> None:
        if code == -signal.SIGKILL:
            hit = [n for n in failpoints.NAMES if self._is_hit(n, child)]
            assert hit, f"the run was killed, though not by us\n{child.tail()}"
            self.counts[f"died at {hit[0]}"] += 1
            self._forget(hit)
            return
        error = child.run.error_code
        is_passing = code == EXIT_ERROR and message_of(error).retry is Retry.AUTO
        assert is_passing, f"the run ended with {code}, {error}\n{child.tail()}"
        self.counts[f"ended by {error}"] += 1

    def _forget(self, names: Iterable[str]) -> None:
        self.armed = [n for n in self.armed if n not in names]

    def _is_hit(self, name: str, child: Child) -> bool:
        flag = self.world.flag(name)
        return flag.exists() and flag.read_text() == str(child.pid)

    def arm(self, rng: random.Random) -> None:
        """The run will die when it comes to some step, now or much later."""
        free = [n for n in failpoints.NAMES if n not in self.armed]
        name = rng.choice(free)
        if len(self.armed) >= MOST_ARMED:
            self.disarm(self.armed[0])
        self.armed.append(name)
        self.world.arm(name)

    def disarm(self, *names: str) -> None:
        """The run dies there no more (default: anywhere)."""
        for name in names or tuple(self.armed):
            with suppress(FileExistsError), self.world.flag(name).open("x") as flag:
                flag.write("off")
        self._forget(names or tuple(self.armed))
        self.tend()

    def until(self, holds: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> Any:
        """Poll until `holds` is true, and keep the run going meanwhile."""
        end = time.monotonic() + seconds
        while not (found := holds()):
            self.tend()
            if time.monotonic() > end:
                reported = f"{what}\n{self.world.states()}\n{self.world.unmerged()}"
                tail = self.world.child.tail() if self.world.child else ""
                raise AssertionError(f"not within {seconds:.0f} s: {reported}\n{tail}")
            time.sleep(EVERY_SECONDS)
        return found

    def stop(self) -> None:
        """A pause: the run ends in order, unless it dies at an armed step just then."""
        self.tend()
        child = self.world.child
        assert child is not None
        code = self.world.stop()
        if code:
            self._count(child, code)

    def kill(self) -> None:
        """kill -9 wherever it is."""
        self.tend()
        self.world.kill()
        child = self.world.child
        assert child is not None
        self._forget([n for n in self.armed if self._is_hit(n, child)])
