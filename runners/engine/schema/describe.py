"""Describes the chosen tables at the source, also those that have another name there by now
(CORRECTNESS 21: tables are known by their number). Reads the catalog; the name is all that it
decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.source import Catalog, FindsByNumber

TRIES = 5


@dataclass(frozen=True, slots=True)
class Described:
    """`schemas`: the tables that exist, with all of their columns, by the name under which they
    were chosen. `renamed`: those whose name changed and that are not followed there."""

    schemas: Mapping[TableId, TableSchema]
    renamed: Mapping[TableId, TableId] = field(default_factory=dict)


def describe_tables(
    catalog: Catalog,
    tables: Sequence[TableSelection],
    known: Iterable[TableSchema],
    *,
    follows: bool,
) -> Described:
    """The schemas of `tables`. A table that is in `known` with its number is looked up by that
    number. Where it has another name now, it is described under that name (`follows`) or reported
    as renamed. Without a number, and where its number is gone, its name counts. A table that is
    renamed between the query for names and the query for schemas is looked up again: it exists, and
    must not count as gone."""
    schemas = {s.id: s for s in known}
    for _ in range(TRIES):
        now = names_now(catalog, list(schemas.values()))
        found = _described(catalog, tables, schemas, now, follows=follows)
        if all(_is_it(found, schemas[t], n) for t, n in now.items()):
            break
    return found


def _is_it(found: Described, known: TableSchema, now: TableId) -> bool:
    """Whether the described table is the one whose number the catalog had under the name `now`."""
    if known.id in found.renamed:
        return True
    schema = found.schemas.get(known.id)
    return schema is not None and (schema.native_id, schema.source_id) == (known.native_id, now)


def _described(
    catalog: Catalog,
    tables: Sequence[TableSelection],
    schemas: Mapping[TableId, TableSchema],
    now: Mapping[TableId, TableId],
    *,
    follows: bool,
) -> Described:
    renamed = {t: n for t, n in now.items() if n != schemas[t].source_id and not follows}
    names = {
        t.id: t.id if t.id in renamed else now.get(t.id, t.id)
        for t in sorted(tables, key=lambda t: t.id not in now)
    }
    wanted = {n: TableSelection(n) for n in names.values()}
    found = catalog.describe(list(wanted.values()))
    taken: set[int] = set()
    described: dict[TableId, TableSchema] = {}
    selections = {t.id: t for t in tables}
    for table, name in names.items():
        schema = found.get(name)
        if schema is None or schema.native_id in taken:
            continue  # the name belongs to a table that is followed by its number
        taken |= {schema.native_id} - {0}
        was_reported = table in schemas and schemas[table].called is not None
        called = name if was_reported or name != table else None
        described[table] = replace(schema, id=table, called=called, filter=selections[table].filter)
    return Described(described, renamed)


def names_now(catalog: Catalog, tables: Sequence[TableSchema]) -> dict[TableId, TableId]:
    """The tables' present names, by the names under which they were chosen. Empty for a source
    without numbers for tables."""
    numbers = {t.native_id: t.id for t in tables if t.native_id}
    if not numbers or not isinstance(catalog, FindsByNumber):
        return {}
    return {numbers[n]: now for n, now in catalog.find(list(numbers)).items()}
