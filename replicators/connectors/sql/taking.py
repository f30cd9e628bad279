"""What the assessment says of tables at a SQL target that are to be taken over."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.target import SqlMergeTarget


def take_over_problems(
    target: SqlMergeTarget, tables: Sequence[TableSchema], replicator: str
) -> list[Problem]:
    """Tables that are not there, are another replicator's, or have other columns."""
    faults = [target.take_over_fault(table, replicator) for table in tables]
    return [_problem(fault) for fault in faults if fault is not None]


def _problem(fault: Any) -> Problem:
    return Problem.of(fault.code, table=fault.table, **fault.facts)


def rules_of(
    table: TableSchema, target: str, keys: Collection[set[str]], rules: Sequence[str]
) -> Iterator[Problem]:
    """An existing table needs a unique index over the key. `keys`: the columns of each unique
    index. `rules`: what of the table's own may refuse a row."""
    if set(table.key) not in keys:
        columns = ", ".join(table.key)
        yield Problem.of("target:take-over-key", table=table.id, target=target, columns=columns)
    if rules:
        yield Problem.of(
            "target:take-over-bound",
            severity=Severity.WARNING,
            table=table.id,
            target=target,
            things=", ".join(rules),
        )
