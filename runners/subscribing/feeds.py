"""What a replicator's target keeps for subscribers, with a short memory of what lies there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from replicators.config import target_plugin
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.pulling import Kept, KeptTable, Part, PulledFeed
from replicators.models import Replicator
from replicators.services import target_of
from runners.models import Table

KNOWN_TABLES = 200
KNOWN_BYTES = 64 << 20
"""Parts that several subscribers read at the same time are read from the store once."""
T = TypeVar("T")
Rows = tuple[TableSchema, tuple[pa.RecordBatch, ...]]


def feed_of(replicator: Replicator) -> PulledFeed:
    """What its target keeps; `config:unknown-kind` where the plugin is gone, ReplicationError where
    the target keeps nothing."""
    plugin = target_plugin(replicator.target_kind)
    if plugin.feed is None:
        raise ReplicationError("subscriber:no-feed")
    return plugin.feed(target_of(replicator))


def kept_table(table: Table) -> KeptTable:
    """The name of the table's present generation."""
    source = TableId(table.schema_name, table.name)
    return KeptTable(source, str(table.replicator_id), table.generation)


@dataclass(slots=True)
class _Memory:
    """The last listings, and the rows of the last parts read. Shared by all threads."""

    lock: threading.Lock
    listings: OrderedDict[tuple[int, int, int], Kept]
    parts: OrderedDict[str, Rows]
    size: int = 0


_memory = _Memory(threading.Lock(), OrderedDict(), OrderedDict())


def forget() -> None:
    """Forget what was read, so that it is read again."""
    with _memory.lock:
        _memory.listings.clear()
        _memory.parts.clear()
        _memory.size = 0


def listed(feed: PulledFeed, table: Table) -> Kept | None:
    """What is there of the table up to what is recorded."""
    key = (table.pk, table.generation, table.merged_sequence)
    with _memory.lock:
        if key in _memory.listings:
            _memory.listings.move_to_end(key)
            return _memory.listings[key]
    found = feed.kept(kept_table(table), table.merged_sequence)
    if found is not None:
        with _memory.lock:
            _memory.listings[key] = found
            while len(_memory.listings) > KNOWN_TABLES:
                _memory.listings.popitem(last=False)
    return found


def rows_of(feed: PulledFeed, part: Part) -> Rows:
    """A part's schema and rows."""
    with _memory.lock:
        if part.path in _memory.parts:
            _memory.parts.move_to_end(part.path)
            return _memory.parts[part.path]
    schema, batches = feed.read(part)
    found = schema, tuple(batches)
    size = _size(found)
    if size <= KNOWN_BYTES // 4:
        with _memory.lock:
            if part.path not in _memory.parts:
                _memory.parts[part.path] = found
                _memory.size += size
            while _memory.size > KNOWN_BYTES:
                _, gone = _memory.parts.popitem(last=False)
                _memory.size -= _size(gone)
    return found


def _size(rows: Rows) -> int:
    return sum(b.nbytes for b in rows[1])


def again(act: Callable[[], T]) -> T:
    """Do it; once more where a part that was listed was joined or removed meanwhile. `log:store`
    where the store does not answer."""
    try:
        return act()
    except FileNotFoundError:
        forget()
    except OSError as err:
        raise ReplicationError("log:store") from err
    try:
        return act()
    except OSError as err:
        raise ReplicationError("log:store") from err
