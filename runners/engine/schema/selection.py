"""Which of a source table's columns are followed: the columns that people chose, without those that
the policy leaves out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.schema import Column, TableSchema, TableSelection
from replicators.connectors.schema.policy import SchemaPolicy
from runners.engine.store.protocol import TableRow


def known_schema(row: TableRow | None) -> TableSchema | None:
    """The schema of the table's copy, if that copy is to stay. None for a table that waits for a
    fresh copy."""
    if row is None or not row.is_snapshot_done or row.is_resync_asked:
        return None
    return row.schema


def followed(
    found: TableSchema,
    selection: TableSelection,
    known: TableSchema | None,
    policy: SchemaPolicy,
    columns: ColumnKnowledge,
) -> TableSchema:
    """The description of a table with all of its columns, cut to those that are followed.

    A chosen column that has another name by now is known by its ordinal (`columns`: how columns are
    known). With IGNORE only columns of the copy's schema are followed, under their names. The
    copy's schema, or its names, are kept with it, so that log written before a rename can be read.
    """
    numbers = {c.name: c.ordinal for c in known.columns if c.ordinal} if known else {}
    kept = [c for c in found.supported if _is_chosen(c, found, selection, numbers)]
    left_out: list[str] = []
    if policy is SchemaPolicy.IGNORE and known is not None:
        schema = {(c.name, c.ordinal) for c in known.columns} | {(c.name, 0) for c in known.columns}
        same = [c for c in kept if (c.name, c.ordinal) in schema or c.name in found.key]
        left_out, kept = [c.name for c in kept if c not in same], same
    found = replace(found, columns=tuple(kept), left_out=tuple(left_out))
    if columns is ColumnKnowledge.BY_STATEMENTS:
        is_kept = known is not None and policy is not SchemaPolicy.IGNORE
        return replace(found, known=known.bare if known and is_kept else None)
    return replace(found, former=tuple(sorted(numbers.items())))


def _is_chosen(
    column: Column, found: TableSchema, selection: TableSelection, numbers: dict[str, int]
) -> bool:
    if not selection.columns or column.name in found.key or column.name in selection.columns:
        return True
    present = {c.name for c in found.columns}
    renamed = {numbers.get(n, 0) for n in selection.columns if n not in present} - {0}
    return column.ordinal in renamed


def unmoved(before: Sequence[TableSchema], after: Sequence[TableSchema]) -> list[TableSchema]:
    """The schemas of `before` that are the same in `after`, wherever in the log each was read."""
    now = {s.id: _reported(s) for s in after}
    return [s for s in before if now.get(s.id) == _reported(s)]


def _reported(schema: TableSchema) -> TableSchema:
    """The schema without its places in the log and its number in the stream."""
    return replace(schema, upto=0, read_upto=0, member=0)
