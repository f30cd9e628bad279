"""A run's process that does what the test says."""

from __future__ import annotations

from runners.engine.processes import Process


class FakeProcess:
    """`code` None: it lives. `leftovers`: how often `end` finds something that won't die."""

    def __init__(self, pid: int = 4_000_000) -> None:
        self.pid = pid
        self.code: int | None = None
        self.is_terminated = False
        self.ends = 0
        self.leftovers = 0

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.is_terminated = True

    def end(self) -> bool:
        self.ends += 1
        if self.code is None:
            self.code = -9
        self.leftovers -= 1
        return self.leftovers < 0


class FakeSpawn:
    """Starts fake processes and remembers them with their leases."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        self.leases: list[str] = []

    def __call__(self, run_id: str, lease: str) -> Process:
        self.started.append(FakeProcess())
        self.leases.append(lease)
        return self.started[-1]
