"""What the checks of several targets say in the same way. It opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import LogicalType
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.connectors.target import Fit, FitKind


def unsupported_columns(
    tables: Sequence[TableSchema], fit: Callable[[LogicalType], Fit]
) -> list[Problem]:
    """The columns whose types have no place in the target."""
    return [
        Problem.of(
            "target:column-unsupported",
            table=table.id,
            column=column.name,
            native=column.native,
            reason=fitted.reason,
        )
        for table in tables
        for column in table.supported
        if (fitted := fit(column.type)).kind is FitKind.UNSUPPORTED
    ]


def reported(
    translated: Callable[[], AbstractContextManager[None]], act: Callable[[], object]
) -> list[Problem]:
    """Act, and report the error that comes of it. `translated`: raises the driver's errors as
    `ReplicationError`s."""
    try:
        with translated():
            act()
    except ReplicationError as err:
        return [Problem(err.code, table=err.table, facts=tuple(err.facts.items()))]
    return []
