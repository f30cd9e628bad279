"""The last changes that a replicator's target keeps, for the page. Values are masked for people who
may not read rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from replicators.connectors.addresses import MASK
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.pulling import Kept, PulledFeed
from replicators.models import Replicator
from runners.models import Table
from runners.subscribing.feeds import again, feed_of, listed, rows_of
from runners.subscribing.lines import change_lines, options_of

SHOWN = 20
LONGEST = 300
"""The most characters of a value that are shown."""
NEWEST_TABLES = 10
COLOURS = {"insert": "green", "update": "blue", "delete": "red", "truncate": "amber"}


@dataclass(frozen=True, slots=True)
class ChangeShown:
    """A change as people see it. `key` and `value` are JSON, or the mask."""

    table: str
    operation: str
    sequence: int
    committed_at: datetime
    key: str
    value: str

    @property
    def colour(self) -> str:
        """The colour of its operation."""
        return COLOURS.get(self.operation, "blue")


def recent_changes(replicator: Replicator, *, may_see: bool) -> list[ChangeShown]:
    """The last changes of all tables, newest first; none where the store does not answer."""
    try:
        feed = feed_of(replicator)
        return again(lambda: _recent(feed, replicator, may_see=may_see))
    except ReplicationError:
        return []


def _recent(feed: PulledFeed, replicator: Replicator, *, may_see: bool) -> list[ChangeShown]:
    tables = Table.objects.shown().filter(replicator=replicator, is_snapshot_done=True)
    found: list[ChangeShown] = []
    for table in tables.defer("schema").order_by("-merged_sequence")[:NEWEST_TABLES]:
        kept = listed(feed, table)
        if kept is not None:
            found += _of_table(feed, table, kept, may_see=may_see)
    return sorted(found, key=lambda c: -c.sequence)[:SHOWN]


def _of_table(
    feed: PulledFeed, table: Table, kept: Kept, *, may_see: bool
) -> Iterator[ChangeShown]:
    """The last changes of a table."""
    name, left = TableId(table.schema_name, table.name), SHOWN
    options = options_of("AFTER")
    for part in reversed(kept.changes):
        schema, batches = rows_of(feed, part)
        for batch in reversed(batches):
            some = batch.slice(max(0, batch.num_rows - left))
            left -= some.num_rows
            for text in change_lines(schema, some, name, options).to_pylist():
                yield _shown(json.loads(text), str(name), may_see=may_see)
            if left <= 0:
                return


def _shown(line: dict[str, object], table: str, *, may_see: bool) -> ChangeShown:
    def text(value: object) -> str:
        if value is None:
            return ""
        return json.dumps(value, ensure_ascii=False)[:LONGEST] if may_see else MASK

    return ChangeShown(
        table,
        str(line["operation"]),
        int(str(line["sequence"])),
        datetime.fromisoformat(str(line["committed_at"])),
        text(line["key"]),
        text(line["value"]),
    )
