"""The decode job: raw segments to change files, one task per segment, columnar. Step 4 of the order
of writes."""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors import files as folder
from replicators.connectors.log import DecodedTable, PassedOver, Poison
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.tasks import Tasks
from runners.engine.changelog.segments import file_word, read_segment, write_error
from runners.engine.sizes import NO_LIMITS, Limits
from runners.engine.store.protocol import ChangeFileRow, SegmentRow


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """What a task needs for one segment. `limits`: what is copied of a row."""

    number: int
    path: str
    crc32: int
    prefix: str
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a decode job made. `faults`: a reason for each table with unsupported values. `passed`:
    the highest position of rows that were passed over, by the source's number of their table."""

    files: tuple[ChangeFileRow, ...]
    poisons: tuple[tuple[int, Poison], ...]
    faults: dict[TableId, str] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)


def load(path: str) -> Any:
    """The object at a dotted path `package.module:name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def decode_segment(task: DecodeTask, decoder: str) -> dict[str, Any]:
    """Decode one segment and write its change files, durable. Returns the facts as JSON. Runs in a
    task; its only side effect is files with its own attempt's name."""
    found = decode_unless(task, decoder)
    assert found is not None
    return found


def decode_unless(task: DecodeTask, decoder: str, grows: str = "") -> dict[str, Any] | None:
    """The same, but None where `ByteLog.grows` says that the body may take far more memory."""
    files: list[dict[str, Any]] = []
    poisons: list[dict[str, Any]] = []
    passed: list[tuple[int, int]] = []
    try:
        head, body = read_segment(task.path, task.crc32, task.number)
    except ReplicationError as err:
        if err.code != "log:segment-corrupt":
            raise
        return {"corrupt": err.facts, "files": [], "poisons": [], "passed": []}
    if grows and load(grows)(body):
        return None
    for found in load(decoder)(head, body, task.number):
        item = held(found, task.limits) if isinstance(found, DecodedTable) else found
        if isinstance(item, Poison):
            poisons.append(
                {"table": [item.table.schema, item.table.name], "offset": item.offset,
                 "code": item.code, "facts": item.facts, "position": item.position}
            )  # fmt: skip
        elif isinstance(item, PassedOver):
            passed.append((item.native_id, item.position))
        elif item.changes.num_rows or item.schema_at is not None:
            word = file_word(str(item.schema.id))
            files.append(write_file(f"{task.prefix}-{word}-{item.version}.parquet", item))
    if files:
        folder.sync_folder(os.path.dirname(task.prefix))
    return {"files": files, "poisons": poisons, "passed": passed}


def held(item: DecodedTable, limits: Limits) -> DecodedTable | Poison:
    """The changes without the values that can't be held, which are marked. Returns what stops the
    table instead if the table can't do without these values."""
    try:
        changes = limits.held(item.changes, item.schema)
    except ReplicationError as err:
        return Poison(item.schema.id, 0, err.code, {"table": str(item.schema.id), **err.facts})
    return replace(item, changes=changes)


def write_file(path: str, item: DecodedTable) -> dict[str, Any]:
    """Write a change file. Returns its facts, as `file_row` reads them. The file is durable, but
    its folder's entry is not yet."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        item.changes, sink, compression="zstd", compression_level=1, use_dictionary=False,
        write_statistics=False, row_group_size=262_144,
    )  # fmt: skip
    data = sink.getvalue()
    try:
        folder.write(path, data, is_durable=True)
    except OSError as err:
        raise write_error(err) from err
    return _facts(item, path, data)


def _facts(item: DecodedTable, path: str, data: pa.Buffer) -> dict[str, Any]:
    changes = item.changes
    sequence, at, position = _places(item)
    return {
        "path": path,
        "version": item.version,
        "schema": item.schema.to_json(),
        "counts": [
            item.counts.inserts,
            item.counts.updates,
            item.counts.deletes,
            item.counts.truncates,
        ],
        "sequence": sequence,
        "at": [at[0] / 1e6, at[1] / 1e6],
        "position": position,
        "size": len(data),
        "crc32": zlib.crc32(data),
        "has_unsent": changes.column("_unchanged").null_count < changes.num_rows,
        "has_key_changes": _has_before_on_update(changes),
        **_faults(changes),
    }


def _places(item: DecodedTable) -> tuple[list[int], list[int], list[int]]:
    """First and last sequence, commit time and position of a file."""
    changes, place = item.changes, item.schema_at
    if place is not None and not changes.num_rows:
        return [place.sequence] * 2, [place.committed_at] * 2, [place.position] * 2
    sequence = changes.column("_sequence")
    at = pc.min_max(changes.column("_committed_at").cast(pa.int64()))
    position = pc.min_max(changes.column("_position"))
    return (
        [sequence[0].as_py(), sequence[-1].as_py()],
        [at["min"].as_py(), at["max"].as_py()],
        [position["min"].as_py(), position["max"].as_py()],
    )


def _faults(changes: pa.Table) -> dict[str, Any]:
    """How many rows have unsupported values, and the reason of the first one."""
    if "_faulty" not in changes.column_names:
        return {"faults": 0, "fault": ""}
    reasons = changes.column("_fault_reason").drop_null()
    return {"faults": len(reasons), "fault": reasons[0].as_py()}


def _has_before_on_update(changes: pa.Table) -> bool:
    if "_before" not in changes.column_names:
        return False
    updates = pc.and_(pc.equal(changes.column("_op"), 1), pc.is_valid(changes.column("_before")))
    return bool(pc.any(updates).as_py())


def decode_segments(
    tasks: Tasks,
    segments: Sequence[DecodeTask],
    decoder: str,
    *,
    is_here: bool = False,
    grows: str = "",
) -> Decoded:
    """Decode a run of segments, in tasks or in this process (`is_here`), where those that grow
    (`ByteLog.grows`) go to tasks too; the caller lists the files in one transaction."""
    here = [decode_unless(s, decoder, grows) if is_here else None for s in segments]
    left = [s for s, done in zip(segments, here, strict=True) if done is None]
    there = iter(
        tasks.map(partial(decode_segment, decoder=decoder), left, is_urgent=True) if left else ()
    )
    results = [next(there) if done is None else done for done in here]
    files: list[ChangeFileRow] = []
    poisons: list[tuple[int, Poison]] = []
    faults: dict[TableId, str] = {}
    passed: dict[int, int] = {}
    for number, result in zip((s.number for s in segments), results, strict=True):
        if "corrupt" in result:
            raise ReplicationError("log:segment-corrupt", **result["corrupt"])
        found = [file_row(number, f) for f in result["files"]]
        files += found
        for file, facts in zip(found, result["files"], strict=True):
            if file.faults:
                faults.setdefault(file.table, facts["fault"])
        poisons += [
            (
                number,
                Poison(TableId(*p["table"]), p["offset"], p["code"], p["facts"], p["position"]),
            )
            for p in result["poisons"]
        ]
        for table, position in result["passed"]:
            passed[table] = max(position, passed.get(table, position))
    return Decoded(tuple(files), tuple(poisons), faults, passed)


def file_row(segment: int, facts: dict[str, Any]) -> ChangeFileRow:
    """The row of a change file."""
    schema = TableSchema.from_json(facts["schema"])
    return ChangeFileRow(
        table=schema.id,
        segment=segment,
        path=facts["path"],
        version=facts["version"],
        schema=schema,
        counts=OpCounts(*facts["counts"]),
        first_sequence=facts["sequence"][0],
        last_sequence=facts["sequence"][1],
        first_committed_at=facts["at"][0],
        last_committed_at=facts["at"][1],
        first_position=facts["position"][0],
        last_position=facts["position"][1],
        size_bytes=facts["size"],
        crc32=facts["crc32"],
        unsent=("*",) if facts["has_unsent"] else (),
        has_key_changes=facts["has_key_changes"],
        faults=facts["faults"],
    )


def task_for(row: SegmentRow, prefix: str, limits: Limits = NO_LIMITS) -> DecodeTask:
    """The task of a segment."""
    return DecodeTask(row.number, row.path, row.crc32, prefix, limits)
