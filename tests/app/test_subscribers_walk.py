"""A random walk: writes, crashes of the run, crashes of the readers, forgotten checkpoints, new
copies, tidying up. In the end each reader has the rows that the table has, and it saw every change
in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from replicators.connectors.contract.sink import START, Change
from replicators.connectors.model.changes import Op
from runners.subscribing import keeping
from runners.subscribing.feeds import forget
from tests.app.subscriber_world import FeedWorld, Reader

pytestmark = pytest.mark.django_db

STEPS = 120


class Replica:
    """A reader with the rows that it made of the changes. It crashes by losing what it had not
    confirmed, or also its checkpoint."""

    def __init__(self, client: Client, world: FeedWorld, name: str) -> None:
        self.reader = Reader(client, world, name)
        self.reader.register()
        self.rows: dict[int, str | None] = dict(world.model)
        self.checkpoint: str | None = None
        self.saved = dict(self.rows), self.checkpoint
        self.highest, self.resolved = 0, ""
        self.sequences: set[int] = set()

    def poll(self, limit: int) -> bool:
        """One answer; False where there was nothing new."""
        given = {} if self.checkpoint is None else {"checkpoint": self.checkpoint}
        is_new, taken = False, []
        self.saved = dict(self.rows), self.checkpoint
        for line in self.reader.lines(limit=limit, **given):
            if line["type"] == "change":
                is_new = True
                self._change(line)
            elif line["type"] == "resolved":
                assert line["resolved_at"] >= self.resolved
                self.resolved = line["resolved_at"]
            elif line["type"] == "snapshot_needed":
                is_new = True
                taken.append(self._snapshot())
            else:
                self.checkpoint = "-".join([line["checkpoint"], *taken])
        return is_new

    def _change(self, line: dict[str, Any]) -> None:
        sequence = line["sequence"]
        if sequence > self.highest:
            assert line["committed_at"] >= self.resolved, "older than a resolved time"
            self.highest = sequence
        else:
            assert sequence in self.sequences, "a change came late that was never seen"
        self.sequences.add(sequence)
        apply(self.rows, line)

    def _snapshot(self) -> str:
        self.rows.clear()
        lines = self.reader.lines("snapshot", schema="shop", table="orders")
        for line in lines:
            if line["type"] == "change":
                apply(self.rows, line)
        end = str(lines[-1]["checkpoint"])
        self.highest = max(self.highest, int(end.split(".")[2]))
        self.sequences |= set(range(self.highest + 1))
        return end

    def crash(self, *, forgets: bool) -> None:
        """It has only what it had when it asked last, and comes with the checkpoint of then."""
        rows, checkpoint = self.saved
        self.rows, self.checkpoint = dict(rows), None if forgets else checkpoint


def apply(rows: dict[int, str | None], line: dict[str, Any]) -> None:
    if line["operation"] == "truncate":
        rows.clear()
    elif line["operation"] == "delete":
        rows.pop(line["key"][0], None)
    else:
        rows[line["key"][0]] = line["value"]["note"]


class Writer:
    """What the source does, and the run."""

    def __init__(self, world: FeedWorld, rng: random.Random) -> None:
        self.world, self.rng, self.at = world, rng, 0.0
        self.rows: dict[int, str | None] = world.model

    def changes(self) -> Iterator[Change]:
        """A few changes after each other, applied to the model."""
        for n in range(1, self.rng.randint(2, 12)):
            sequence, key = self.world.sequence + n, self.rng.randint(1, 12)
            self.at += self.rng.choice([0, 1, 1, 2, -3])
            note = f"s{sequence}"
            if key in self.rows and self.rng.random() < 0.3:
                del self.rows[key]
                yield Change(sequence, Op.DELETE, key, at=self.at)
            elif self.rng.random() < 0.02:
                self.rows.clear()
                yield Change(sequence, Op.TRUNCATE, 0, at=self.at)
            elif key in self.rows and self.rng.random() < 0.2:
                other = self.rng.randint(20, 30)
                del self.rows[key]
                self.rows[other] = note
                yield Change(sequence, Op.UPDATE, other, note, self.at, old_id=key)
            elif key in self.rows:
                self.rows[key] = note
                yield Change(sequence, Op.UPDATE, key, note, self.at)
            else:
                self.rows[key] = note
                yield Change(sequence, Op.INSERT, key, note, self.at)

    def write(self) -> None:
        """A delivery. Perhaps the run was killed before it was recorded, and it comes again with
        more changes."""
        some = list(self.changes())
        if self.rng.random() < 0.3:
            self.world.deliver(some[: self.rng.randint(1, len(some))])
            self.world.open()
        self.world.change(*some)

    def copy_again(self) -> None:
        self.world.copy(sorted(self.rows.items()), at=self.world.sequence + 5)

    def resolve(self) -> None:
        self.at = max(self.at, 0.0)
        self.world.resolve(self.at)


@pytest.mark.long_with(*(f"seed{n}" for n in range(2, 12)))
@pytest.mark.parametrize("seed", range(12), ids=lambda n: f"seed{n}")
def test_every_reader_sees_every_change_in_order(
    tmp_path: Path, browser: Client, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Guards the guarantees of docs/subscribers.md. A failure names its seed."""
    monkeypatch.setattr(keeping, "FOLD_BYTES", 1)
    monkeypatch.setattr(keeping, "JOINED", 3)
    rng = random.Random(seed)
    world = FeedWorld(tmp_path)
    world.model = {1: "a", 2: "b"}
    world.copy([(1, "a"), (2, "b")])
    writer = Writer(world, rng)
    replicas = [Replica(browser, world, f"r{n}") for n in range(3)]
    for _ in range(STEPS):
        act = rng.random()
        if act < 0.4:
            writer.write()
        elif act < 0.75:
            rng.choice(replicas).poll(rng.choice([3, 1000]))
        elif act < 0.85:
            rng.choice(replicas).crash(forgets=rng.random() < 0.5)
        elif act < 0.92:
            writer.resolve()
        elif act < 0.98:
            hours = timedelta(hours=rng.choice([0.1, 2, 100]))
            keeping.keep_feeds(datetime.fromtimestamp(START.timestamp(), UTC) + hours)
            forget()
        else:
            writer.copy_again()
    for replica in replicas:
        while replica.poll(1000):
            pass
        assert replica.rows == world.model, (seed, replica.reader.name)
