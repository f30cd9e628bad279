"""Problems with a chosen table's row filter, the same for every source's checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replicators.connectors.filters.language import FilterError, columns_of
from replicators.connectors.filters.types import Refusal, bind
from replicators.connectors.model.schema import Column, TableSchema, TableSelection
from replicators.connectors.problems.problem import Problem, Severity


def filter_problems(
    selection: TableSelection,
    table: TableSchema,
    refusal: Refusal,
    may_be_unsent: Callable[[Column], bool] = lambda _: False,
) -> Iterator[Problem]:
    """A filter that does not fit the table, and a filter whose value an update may leave out
    because the log has no whole old rows."""
    if not selection.filter:
        return
    try:
        expression = bind(selection.filter, table, refusal)
    except FilterError as err:
        yield Problem.of("source:filter-invalid", table=table.id, reason=str(err).rstrip("."))
        return
    if table.full_before:
        return
    for name in sorted(columns_of(expression) - set(table.key)):
        if may_be_unsent(table.column(name)):
            code = "source:filter-may-be-unsent"
            yield Problem.of(code, severity=Severity.WARNING, table=table.id, column=name)
