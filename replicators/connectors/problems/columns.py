"""Problems with the columns of a chosen table, the same for every source's checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from replicators.connectors.model.changes import is_reserved
from replicators.connectors.model.schema import TableSchema, TableSelection
from replicators.connectors.model.types import Unsupported
from replicators.connectors.problems.problem import Problem, Severity


def column_problems(
    selection: TableSelection,
    table: TableSchema,
    partial: Mapping[str, str],
    own: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Problem]:
    """Columns that can't be copied; columns that lose something (`partial`: why, by wire name;
    `own`: why at a target that has the column's own type, empty where it loses nothing there);
    chosen columns that do not exist; a table without any column."""
    if not table.supported:
        yield Problem.of("source:no-columns", table=table.id)
    for column in table.columns:
        facts: dict[str, Any] = {"table": table.id, "column": column.name}
        if is_reserved(column.name):
            yield Problem.of("source:column-reserved", **facts)
        facts["native"] = column.native
        if isinstance(column.type, Unsupported) and column.generated:
            yield Problem.of("source:column-generated", **facts)
        elif isinstance(column.type, Unsupported):
            yield Problem.of("source:column-unsupported", **facts)
        elif column.wire in partial:
            facts["reason"] = partial[column.wire]
            if column.wire in own:
                facts["own_reason"] = own[column.wire]
            yield Problem.of("source:column-partial", severity=Severity.WARNING, **facts)
    for missing in sorted(set(selection.columns) - {c.name for c in table.columns}):
        yield Problem.of("source:column-missing", table=table.id, column=missing)
