"""Converts the engine's rows to models and back; no queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from replicators.config import mode_of, parse_tables
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import UNSUPPORTED, TableId, TableSchema, TableSelection
from replicators.models import Replicator
from replicators.options import Options
from runners.engine.store.copies import CopyChunk, CopyRow
from runners.engine.store.protocol import (
    ChangeFileRow,
    SegmentRow,
    TableRow,
    TableState,
)
from runners.engine.store.quarantine import QuarantinedRow
from runners.models import ChangeFile, Segment, SnapshotChunk, SnapshotCopy, Table
from runners.models import QuarantinedRow as Quarantined

_SAME = frozenset(
    {
        "generation", "table_uuid", "merged_sequence", "token_sequence", "snapshot_position",
        "schema_sequence", "resolved_at", "starts_after",
        "is_snapshot_done", "error_code", "error_facts", "failures", "failing_seconds",
        "is_given_up", "is_resync_asked",
        "is_drop_asked", "is_replay_asked", "rows_quarantined", "spent",
    }
)  # fmt: skip


def moment(seconds: float | None) -> datetime | None:
    """Seconds since the epoch as a datetime."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def seconds(at: datetime | None) -> float | None:
    """Seconds since the epoch of a datetime."""
    return None if at is None else at.timestamp()


def selections(
    replicator: Replicator, only: TableId | None = None
) -> dict[TableId, TableSelection]:
    """The chosen tables (or `only` this one), with the columns, rows and mode of each copy.

    The replicator's options apply where a table sets none of its own.
    """
    said = replicator.tables
    if only is not None:
        said = [t for t in said if (t["schema"], t["name"]) == (only.schema, only.name)]
        if not said:
            return {}
    options = Options.parse(replicator.options)
    return {
        t.id: replace(
            t,
            mode=mode_of(replicator.target_kind, t.mode, options.mode),
            unsupported=t.unsupported or options.unsupported_values,
        )
        for t in parse_tables(said)
    }


def table_row(row: Table, chosen: Mapping[TableId, TableSelection]) -> TableRow:
    """The engine's view of a table; `chosen` as `selections` gives it."""
    name = TableId(row.schema_name, row.name)
    selection = chosen.get(name, TableSelection(name))
    return TableRow(
        id=name,
        is_chosen=row.is_chosen,
        columns=selection.columns,
        excluded=selection.excluded,
        filter=selection.filter,
        mode=Mode(row.mode),
        mode_asked=Mode(selection.mode or Mode.MIRROR),
        unsupported=selection.unsupported or UNSUPPORTED[0],
        state=TableState(row.state),
        schema=TableSchema.from_json(row.schema) if row.schema else None,
        retry_at=seconds(row.retry_at),
        rewind_to=seconds(row.rewind_to),
        **{name: getattr(row, name) for name in _SAME},
    )


def table_values(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of a `TableRow`'s fields as values of `Table`. Raises TypeError for an unknown
    field."""
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "schema":
            values["schema"] = value.to_json() if value is not None else None
        elif name in {"retry_at", "rewind_to"}:
            values[name] = moment(value)
        elif name == "mode":
            values["mode"] = str(value)
        elif name in _SAME:
            values[name] = value
        else:
            raise TypeError(f"{name} is not a field of a table's row")
    return values


def segment_model(replicator: Replicator, row: SegmentRow) -> Segment:
    """A segment's row, not saved."""
    return Segment(
        replicator=replicator,
        number=row.number,
        path=row.path,
        size_bytes=row.size_bytes,
        crc32=row.crc32,
        position=row.position.to_json(),
        is_closed=row.is_closed,
        messages=row.messages,
        is_decoded=row.is_decoded,
        sealed_at=datetime.fromtimestamp(row.sealed_at, UTC),
    )


def segment_row(row: Segment) -> SegmentRow:
    """The engine's view of a segment."""
    return SegmentRow(
        number=row.number,
        path=row.path,
        size_bytes=row.size_bytes,
        crc32=row.crc32,
        position=Position.from_json(row.position),
        is_closed=row.is_closed,
        messages=row.messages,
        is_decoded=row.is_decoded,
        sealed_at=row.sealed_at.timestamp(),
    )


_FILE_SAME = (
    "path", "version", "first_sequence", "last_sequence", "first_committed_at",
    "last_committed_at", "first_position", "last_position", "size_bytes", "crc32",
    "has_key_changes", "faults",
)  # fmt: skip


def file_model(replicator: Replicator, row: ChangeFileRow) -> ChangeFile:
    """A change file's row, not saved."""
    return ChangeFile(
        replicator=replicator,
        segment_number=row.segment,
        schema_name=row.table.schema,
        table_name=row.table.name,
        schema=row.schema.to_json(),
        inserts=row.counts.inserts,
        updates=row.counts.updates,
        deletes=row.counts.deletes,
        truncates=row.counts.truncates,
        unsent=list(row.unsent),
        **{name: getattr(row, name) for name in _FILE_SAME},
    )


def file_row(row: ChangeFile) -> ChangeFileRow:
    """The engine's view of a change file."""
    return ChangeFileRow(
        table=TableId(row.schema_name, row.table_name),
        segment=row.segment_number,
        schema=TableSchema.from_json(row.schema),
        counts=OpCounts(row.inserts, row.updates, row.deletes, row.truncates),
        unsent=tuple(row.unsent),
        **{name: getattr(row, name) for name in _FILE_SAME},
    )


_CHUNK_SAME = ("number", "spec", "rows_estimated", "path", "rows", "is_done")


def copy_model(table: Table, row: CopyRow) -> SnapshotCopy:
    """An unfinished snapshot's row without its chunks, not saved."""
    return SnapshotCopy(
        table=table,
        generation=row.generation,
        schema=row.schema.to_json(),
        layout=row.layout,
        position=row.position,
        segment_number=row.segment,
        folder=row.folder,
    )


def chunk_model(copy: SnapshotCopy, row: CopyChunk) -> SnapshotChunk:
    """A chunk's row, not saved."""
    return SnapshotChunk(copy=copy, **{name: getattr(row, name) for name in _CHUNK_SAME})


def copy_row(table: TableId, row: SnapshotCopy) -> CopyRow:
    """The engine's view of an unfinished snapshot."""
    return CopyRow(
        table=table,
        generation=row.generation,
        schema=TableSchema.from_json(row.schema),
        layout=row.layout,
        position=row.position,
        segment=row.segment_number,
        folder=row.folder,
        chunks=tuple(
            CopyChunk(**{name: getattr(c, name) for name in _CHUNK_SAME}) for c in row.chunks.all()
        ),
    )


def quarantined_model(table: Table, generation: int, row: QuarantinedRow) -> Quarantined:
    """A quarantined row, not saved."""
    return Quarantined(
        table=table,
        generation=generation,
        sequence=row.sequence,
        key=row.key,
        reason=row.reason,
        image=row.image,
    )


def quarantined_row(row: Quarantined) -> QuarantinedRow:
    """The engine's view of a quarantined row."""
    return QuarantinedRow(row.sequence, row.key, row.reason, bytes(row.image), row.is_accepted)
