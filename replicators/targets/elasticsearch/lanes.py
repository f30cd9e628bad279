"""Writes lanes into an index; a task runs this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from replicators.connectors.arrow.images import unsent_masks
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import Lane
from replicators.targets.elasticsearch.bulk import Bulk, Sent
from replicators.targets.elasticsearch.client import Search
from replicators.targets.elasticsearch.documents import beyond, cuts, documents, pieces
from replicators.targets.elasticsearch.params import OBJECTS, ElasticsearchParams
from replicators.targets.elasticsearch.refused import put_aside
from replicators.targets.elasticsearch.unsent import complete


@dataclass(frozen=True, slots=True)
class Look:
    """What lanes have. `truncated_at`: the sequence of their last TRUNCATE; 0: they have none.
    `is_partial`: some changes lack values."""

    rows: int = 0
    truncated_at: int = 0
    is_partial: bool = False

    def __add__(self, other: Look) -> Look:
        return Look(
            self.rows + other.rows,
            max(self.truncated_at, other.truncated_at),
            self.is_partial or other.is_partial,
        )


@dataclass(frozen=True, slots=True)
class LaneWork:
    """Lanes to write in their order. `floor`: rows up to this sequence count no more. `refused`:
    the index for refused documents, and what is noted in it."""

    lanes: tuple[Lane, ...]
    schema: TableSchema
    params: ElasticsearchParams
    alias: str
    version_type: str
    refused: str
    meta: dict[str, Any]
    floor: int = 0
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What a task did. `refused`: why documents were refused, with their numbers."""

    rows: int
    written: int
    old: int
    refused: dict[str, int]


def look(lane: Lane, schema: TableSchema) -> Look:
    """Read a lane to see what it has."""
    found = Look()
    for batch in lane.read():
        is_truncate = pc.equal(batch.column("_op"), int(Op.TRUNCATE))
        last = pc.max(batch.column("_sequence").filter(is_truncate)).as_py() or 0
        masks = unsent_masks(batch.column("_unchanged"), schema)
        found += Look(batch.num_rows, last, bool(masks))
    return found


@dataclass(frozen=True, slots=True)
class Looking:
    """`look` for a table, to be mapped over lanes."""

    schema: TableSchema

    def __call__(self, lane: Lane) -> Look:
        return look(lane, self.schema)


def write(work: LaneWork) -> Done:
    """Write the lanes. The documents are durable when this returns."""
    search = Search(work.params)
    bulk = Bulk(
        search, work.schema.id, work.alias, work.params.bulk_megabytes << 20, work.version_type
    )
    as_objects = work.params.json == OBJECTS
    rows, old, sent = 0, 0, Sent()
    reasons: dict[str, int] = {}
    for lane in work.lanes:
        for batch in lane.read():
            rows += batch.num_rows
            for piece in pieces(beyond(batch, work.floor)):
                parts = cuts(piece, work.schema) if work.is_partial else [piece]
                for part in parts:
                    made = documents(part, work.schema, as_objects)
                    sent.add(bulk.send(made.whole))
                    sent.add(complete(bulk, work.refused, made.partial))
                    sent.add(bulk.send(made.moved))
                    put_aside(bulk, work.refused, work.meta, sent.refused)
                    for one in sent.refused:
                        reasons[one.kind] = reasons.get(one.kind, 0) + 1
                    sent.refused.clear()
                    old += len(sent.newer)
                    sent.newer.clear()
    return Done(rows, sent.written, old, reasons)
