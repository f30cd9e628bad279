"""A world whose target keeps changes for subscribers. What it holds is what a reader makes of the
answers."""

from __future__ import annotations

import json
from typing import Any

from replicators.connectors.model.schema import TableId
from runners.subscribers import Subscriber
from runners.subscribing import reading
from runners.subscribing.feeds import feed_of, forget, kept_table
from runners.subscribing.services import subscriber_register
from runners.subscribing.snapshot import snapshot
from tests.harness import World


class SubscribersWorld(World):
    """In a folder. A table's rows are those of its snapshot."""

    def target_params(self) -> tuple[str, dict[str, Any]]:
        return "subscribers", {"location": str(self.warehouse), **self.target}

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        table = self.row(name)
        feed = feed_of(self.replicator)
        kept = feed.kept(kept_table(table), table.merged_sequence)
        if kept is None or not table.is_snapshot_done:
            return []
        found = snapshot(feed, TableId(self.schema, name), kept, table.merged_sequence)
        return [row for one in found for row in one.rows.to_pylist()]


class LocalSubscribersWorld(SubscribersWorld):
    """Its runs need no JVM."""

    program = ("-m", "tests.local.run")


class Follower:
    """A subscriber that keeps keys and notes of a table, and checks the order of what it gets."""

    def __init__(self, world: World, name: str, table: str) -> None:
        self.row: Subscriber = subscriber_register(
            replicator=world.replicator, name=name, actor=None
        )
        self.world, self.table, self.checkpoint = world, table, ""
        self.rows: dict[str, Any] = {}
        self.highest, self.changes, self.copies = 0, 0, 0

    def poll(self) -> bool:
        """One answer about the table; False where nothing is new."""
        forget()
        asked = reading.question(
            self.row, schema=self.world.schema, table=self.table, checkpoint=self.checkpoint,
            limit=1000,
        )  # fmt: skip
        is_new, taken = False, []
        for text in reading.as_lines(reading.answer(asked, wait=1.0), "AFTER").splitlines():
            line = json.loads(text)
            if line["type"] == "change":
                is_new = True
                self._change(line)
            elif line["type"] == "snapshot_needed":
                is_new = True
                taken.append(self._snapshot())
            elif line["type"] == "checkpoint":
                self.checkpoint = "-".join([line["checkpoint"], *taken])
        return is_new

    def _change(self, line: dict[str, Any]) -> None:
        assert line["sequence"] >= self.highest, "out of order"
        self.highest = line["sequence"]
        self.changes += 1
        key = json.dumps(line["key"])
        if line["operation"] == "truncate":
            self.rows.clear()
        elif line["operation"] == "delete":
            self.rows.pop(key, None)
        else:
            self.rows[key] = line["value"]

    def _snapshot(self) -> str:
        self.copies += 1
        self.rows.clear()
        found = reading.snapshot_asked(
            self.row, schema=self.world.schema, name=self.table, checkpoint=""
        )
        for text in b"".join(found.as_lines("AFTER")).splitlines():
            line = json.loads(text)
            if line["type"] == "change":
                self.rows[json.dumps(line["key"])] = line["value"]
        self.highest = found.place.sequence
        return found.checkpoint

    def catch_up(self) -> None:
        """Poll until nothing is new."""
        while self.poll():
            pass
