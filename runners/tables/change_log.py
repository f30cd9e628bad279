"""What REST says of a table's change log: how far it may be read, and its change files.

A reader sees what a merge would see: whole transactions up to the frontier, of the table's present
copy. `CORRECTNESS 2` and `16`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Min, QuerySet

from replicators.connectors import files
from replicators.connectors.model.changes import first_sequence, last_sequence
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.model.types import type_to_json
from replicators.models import Replicator
from runners.engine.store.protocol import TableRow, is_live, needs_log
from runners.models import ChangeFile, Progress, Segment, Table
from runners.store.mapping import selections, table_row

FILES_MOST = 1000
"""The most files of one answer."""
BLOCK_BYTES = 1 << 20
_SKIPPED = {"inserts": ("insert",), "updates": ("update",), "deletes": ("delete", "truncate")}


class ChangesRefused(Exception):
    """The table's changes can't be read; `code` says why, `message` what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class TableLog:
    """How a table's change log may be read.

    Changes with `kept_after` < sequence <= `until` are all there. Those of the table's present copy
    (`generation`) have at least the position `position`; earlier ones came with the copy.
    """

    row: TableRow
    schema: TableSchema | None
    kept_after: int
    until: int

    @property
    def generation(self) -> int:
        return self.row.generation

    @property
    def position(self) -> int:
        return self.row.snapshot_position


def frontier_sequence(replicator: Replicator) -> int:
    """The highest sequence up to which all transactions are whole and decoded (CORRECTNESS 2)."""
    mine = Segment.objects.filter(replicator=replicator)
    undecoded = mine.filter(is_decoded=False).aggregate(first=Min("number"))["first"]
    done = mine if undecoded is None else mine.filter(number__lt=undecoded)
    last = done.filter(is_closed=True).order_by("-number").values_list("number", flat=True).first()
    if last is not None:
        return last_sequence(last)
    first = mine.aggregate(first=Min("number"))["first"]
    return last_sequence(_last_segment(replicator) if first is None else first - 1)


def _last_segment(replicator: Replicator) -> int:
    found = Progress.objects.filter(replicator=replicator).values_list("last_segment", flat=True)
    return found.first() or 0


def _kept_after(replicator: Replicator) -> int:
    """The highest sequence that may be pruned."""
    first = Segment.objects.filter(replicator=replicator).aggregate(first=Min("number"))["first"]
    if first is None:
        return last_sequence(_last_segment(replicator))
    return first_sequence(first) - 1


def _is_followed(row: TableRow) -> bool:
    """Whether the log has every change of the present copy. A table that only a fresh copy can help
    may lack some."""
    return is_live(row) and row.is_snapshot_done and not row.is_resync_asked and needs_log(row)


def _files(replicator: Replicator, row: TableRow) -> QuerySet[ChangeFile]:
    """The files of the table that have changes of its present copy."""
    mine = ChangeFile.objects.filter(
        replicator=replicator,
        schema_name=row.id.schema,
        table_name=row.id.name,
        last_position__gte=row.snapshot_position,
    )
    return mine.exclude(inserts=0, updates=0, deletes=0, truncates=0)


def _refuse_filtered(row: TableRow) -> None:
    if row.filter or (row.schema is not None and row.schema.filter):
        raise ChangesRefused(
            "changes-filtered",
            "This table has a row filter. Its change log also holds rows that the filter leaves "
            "out, so nobody can read it. Read the target's table, or remove the filter.",
        )


def files_listed(
    replicator: Replicator, *, schema: str, name: str, after: int, upto: int | None, limit: int
) -> tuple[TableLog, list[ChangeFile]]:
    """How the table's log may be read, and its first files with changes after `after`, up to
    `upto`. `Table.DoesNotExist`, `ChangesRefused`.

    The order of the queries matters. A table is marked as failing before files that lack changes
    are listed. Files are pruned together with their segments.
    """
    frontier = frontier_sequence(replicator)
    table = Table.objects.shown().get(replicator=replicator, schema_name=schema, name=name)
    row = table_row(table, selections(replicator, TableId(schema, name)))
    _refuse_filtered(row)
    until = frontier if _is_followed(row) else min(frontier, row.merged_sequence)
    bound = until if upto is None else min(until, upto)
    mine = _files(replicator, row).filter(first_sequence__lte=bound)
    found = list(mine.filter(last_sequence__gt=after)[:limit])
    newest = mine.order_by("-last_sequence").first()
    known = row.schema
    if newest is not None and (known is None or newest.last_sequence > row.merged_sequence):
        known = TableSchema.from_json(newest.schema)
    return TableLog(row, known, _kept_after(replicator), until), found


def files_between(
    replicator: Replicator, *, schema: str, name: str, first: int, last: int
) -> list[ChangeFile]:
    """The files whose changes lie between the two sequences, in order. `Table.DoesNotExist`,
    `ChangesRefused`."""
    log, found = files_listed(
        replicator, schema=schema, name=name, after=first - 1, upto=last, limit=FILES_MOST
    )
    if first <= log.kept_after or not found:
        raise ChangesRefused(
            "changes-pruned",
            "These changes are no longer in the change log. List the table's change files again.",
        )
    return [f for f in found if first <= f.first_sequence and f.last_sequence <= last]


def content(paths: Iterable[str]) -> Iterator[bytes]:
    """The bytes of these files, one file after the other, in blocks. OSError."""
    for path in paths:
        with files.open_file(path) as file:
            while block := file.read(BLOCK_BYTES):
                yield block


def _columns(schema: TableSchema) -> dict[str, Any]:
    return {
        "columns": [{"name": c.name, "type": type_to_json(c.type)} for c in schema.columns],
        "key": list(schema.key),
    }


def log_json(log: TableLog, found: list[ChangeFile], *, after: int, shows_paths: bool) -> Any:
    """The form of REST's answer."""
    schemas = {f.version: _columns(TableSchema.from_json(f.schema)) for f in found}
    skipped = [op for kind in log.row.excluded for op in _SKIPPED[kind]]
    return {
        "schema": log.row.id.schema,
        "table": log.row.id.name,
        "generation": log.generation,
        "kept_after": log.kept_after,
        "until": log.until,
        "position": log.position,
        "skipped_operations": skipped,
        "columns": _columns(log.schema)["columns"] if log.schema is not None else [],
        "key": list(log.schema.key) if log.schema is not None else [],
        "after": found[-1].last_sequence if found else after,
        "schemas": schemas,
        "files": [_file_json(f, shows_paths=shows_paths) for f in found],
    }


def _file_json(file: ChangeFile, *, shows_paths: bool) -> dict[str, Any]:
    return {
        "first_sequence": file.first_sequence,
        "last_sequence": file.last_sequence,
        "first_committed_at": file.first_committed_at,
        "last_committed_at": file.last_committed_at,
        "rows": file.inserts + file.updates + file.deletes + file.truncates,
        "size_bytes": file.size_bytes,
        "crc32": file.crc32,
        "version": file.version,
        "path": file.path if shows_paths else "",
    }
