"""dlt, or another program, as a peer that loads a table of PostgreSQL into a target: its process,
and its answers. Where it is not installed or fails, the answer says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.peers.environments import Conversation, reason, talk
from benchmarks.programs import LIMIT_SECONDS, Ran
from benchmarks.report import Peer
from setup.machine import Missing

WRONG = "failed: its table does not hold what the source holds"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to load: dlt's backend reads the source, and files of this format are loaded. Another
    `program` is a module of `peers`, and `backend` is what it is called."""

    backend: str
    format: str
    program: str = "dlt"

    @property
    def name(self) -> str:
        """The peer's name in the table."""
        return f"dlt {self.backend}, {self.format}" if self.program == "dlt" else self.backend


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load needed; where there is none, `missing` says why."""

    name: str
    ran: Ran | None = None
    missing: str = ""

    def peer(self, rows: int, is_right: Callable[[], bool]) -> Peer:
        """The peer with its rows a second; no figure where what it loaded is not right."""
        if self.ran is None:
            return Peer(self.name, None, missing=self.missing)
        if not is_right():
            return Peer(self.name, None, missing=WRONG)
        return Peer(self.name, round(rows / self.ran.seconds), round(self.ran.memory_gib, 2))


class Dlt:
    """A process of dlt, or the reason why there is none."""

    def __init__(
        self, way: Way, asked: dict[str, Any], conversation: Conversation | None, missing: str = ""
    ) -> None:
        self._way = way
        self._asked = asked
        self._conversation = conversation
        self._missing = missing

    def load(self, limit_seconds: float = LIMIT_SECONDS) -> Loaded:
        """Load once."""
        if self._conversation is None:
            return Loaded(self._way.name, missing=self._missing)
        try:
            self._conversation.say(**self._asked)
            told = self._conversation.hear(limit_seconds)
        except (RuntimeError, OSError) as err:
            place.logger.warning("%s: %s", self._way.name, err)
            self._conversation, self._missing = None, reason(err)
            return Loaded(self._way.name, missing=self._missing)
        place.logger.info("%s: %s", self._way.name, told)
        return Loaded(self._way.name, Ran(told["seconds"], told["peak_mib"] / 1024))


@contextmanager
def dlt(
    folder: Path, way: Way, url: str, into: dict[str, str], dataset: str, key: str = ""
) -> Iterator[Dlt]:
    """A process of dlt for the table bench.events of the source `url`. With a `key` it merges the
    rows that came since its last load; without one it replaces the table."""
    here = folder / f"{way.program}_{way.backend}_{way.format}".replace(" ", "_")
    here.mkdir()
    asked = {
        "url": url, "schema": "bench", "table": "events", "backend": way.backend,
        "format": way.format, "into": into, "dataset": dataset, "key": key, "folder": str(here),
    }  # fmt: skip
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, here, ignore_errors=True)
        try:
            ready = Dlt(
                way, asked, stack.enter_context(talk(way.program, f"{way.program}_load", here))
            )
        except (Missing, OSError) as err:
            place.logger.warning("%s: %s", way.name, err)
            ready = Dlt(way, asked, None, reason(err))
        yield ready
