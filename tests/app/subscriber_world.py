"""A replicator whose target keeps changes for subscribers, written as a run writes: the sink
delivers, then the table's row records it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.test import Client

from replicators.connectors.contract.sink import START, Change, batch, snapshot
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.target import Resolved, TargetTable
from replicators.models import Replicator
from replicators.targets.subscribers.params import SubscribersParams
from replicators.targets.subscribers.writer import SubscribersSink
from runners.engine.tasks.local import LocalTasks
from runners.models import Table
from runners.states import TableState
from runners.subscribing.feeds import forget
from tests.app.factories import make_replicator

ORDERS = TableId("shop", "orders")
SCHEMA = TableSchema(
    ORDERS,
    (Column("id", Int(64), "bigint", False, 1), Column("note", String(), "text", ordinal=2)),
    ("id",),
    ("id",),
)


class FeedWorld:
    """The replicator and what it has written so far."""

    def __init__(self, folder: Path, **params: Any) -> None:
        forget()
        where = {"location": f"{folder}/feeds", **params}
        self.replicator: Replicator = make_replicator(
            target_kind="subscribers",
            target_params=where,
            tables=[{"schema": "shop", "name": "orders"}],
        )
        self.params = SubscribersParams(**where)
        self.open()
        self.generation = 0
        self.sequence = 0
        self.model: dict[int, str | None] = {}

    def open(self) -> None:
        """The sink as a new run opens it."""
        self.sink = SubscribersSink(self.params, LocalTasks(2))

    @property
    def table(self) -> Table:
        """The table's row."""
        return Table.objects.get(replicator=self.replicator, name="orders")

    @property
    def target(self) -> TargetTable:
        return TargetTable(ORDERS, str(self.replicator.pk), self.generation)

    def mark(self, **values: Any) -> None:
        Table.objects.filter(pk=self.table.pk).update(**values)

    def copy(self, rows: Sequence[tuple[int, Any]], at: int | None = None) -> None:
        """A first copy, or one that is made again."""
        self.generation += 1
        self.sequence = at if at is not None else self.sequence + 10
        self.mark(generation=self.generation, is_snapshot_done=False)
        self.sink.begin(self.target, SCHEMA)
        self.sink.deliver(self.target, snapshot(rows, SCHEMA, 1, self.sequence))
        self.mark(
            is_snapshot_done=True, merged_sequence=self.sequence, state=TableState.REPLICATING
        )

    def deliver(self, changes: Sequence[Change], schema: TableSchema = SCHEMA) -> None:
        """Changes that reach the target. The program has not recorded them yet."""
        known = self.table
        is_marked = known.resolved_at > 0
        resolved = max(1e-6, known.resolved_at - START.timestamp()) if is_marked else 0.0
        made = batch(changes, schema, known.merged_sequence, 2, resolved)
        self.sink.deliver(self.target, made)

    def change(self, *changes: Change, schema: TableSchema = SCHEMA) -> None:
        """Changes that were delivered and recorded."""
        self.deliver(changes, schema)
        self.sequence = changes[-1].sequence
        self.mark(merged_sequence=self.sequence)

    def resolve(self, seconds: float) -> None:
        """A mark, so many seconds after the first change."""
        at = max(self.table.resolved_at, START.timestamp() + seconds)
        self.mark(resolved_at=at)
        self.sink.resolved(self.target, Resolved(self.sequence, at))


class Reader:
    """A program that reads by HTTP."""

    def __init__(self, client: Client, world: FeedWorld, name: str = "search") -> None:
        self.client, self.name = client, name
        self.all = f"/api/v1/replicators/{world.replicator.pk}/subscribers/"
        self.url = f"{self.all}{name}/"

    def register(self, status: int = 201, **more: Any) -> Any:
        body = {"name": self.name, **more}
        answer = self.client.post(self.all, json.dumps(body), content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json()

    def raw(self, what: str, status: int = 200, **query: Any) -> Any:
        answer = self.client.get(f"{self.url}{what}/", query)
        assert answer.status_code == status, answer.content
        return answer

    def lines(self, what: str = "changes", **query: Any) -> list[dict[str, Any]]:
        return lines_of(self.raw(what, **query))


def lines_of(answer: Any) -> list[dict[str, Any]]:
    """The lines of an answer."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return [json.loads(line) for line in body.splitlines()]


def found(lines: Sequence[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    """Operation, key and value of the changes among lines."""
    return [(n["operation"], n["key"], n["value"]) for n in lines if n["type"] == "change"]
