"""Steps of tables' columns from the log, kept with its position. Their number is limited, in all
and per table. The text of an added column is its value in old rows (`definitions`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from replicators.connectors.model.schema import TableId
from replicators.connectors.schema.steps import SchemaStep, StepKind
from replicators.sources.mysql.queries import Statement

KEPT_A_TABLE = 40
KEPT = 500
FORGOTTEN = "more changes than are remembered"


@dataclass(frozen=True, slots=True)
class TableStep:
    """A step of a table."""

    table: TableId
    step: SchemaStep

    def to_json(self) -> list[Any]:
        return [self.table.schema, self.table.name, *self.step.to_json()]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Self:
        schema, name, *step = data
        return cls(TableId(str(schema), str(name)), SchemaStep.from_json(step))


def with_statement(
    known: tuple[TableStep, ...], said: Statement, position: int
) -> tuple[TableStep, ...]:
    """The steps after a statement that ends at `position`. If there are too many, a table's steps
    become one that can't be followed."""
    if not said.steps:
        return known
    table = said.tables[0]
    fresh = tuple(TableStep(table, replace(s, position=position)) for s in said.steps)
    found = known + fresh
    if sum(s.table == table for s in found) > KEPT_A_TABLE:
        found = _forgotten(found, table)
    counts = Counter(s.table for s in found)
    while len(found) > KEPT and max(counts.values()) > 1:
        oldest = next(s.table for s in found if counts[s.table] > 1)
        found, counts[oldest] = _forgotten(found, oldest), 1
    return found


def _forgotten(steps: tuple[TableStep, ...], table: TableId) -> tuple[TableStep, ...]:
    last = next(s.step.position for s in reversed(steps) if s.table == table)
    one = TableStep(table, SchemaStep(last, StepKind.REWRITTEN, text=FORGOTTEN))
    return (*(s for s in steps if s.table != table), one)


def steps_of(steps: Iterable[TableStep], table: TableId) -> tuple[SchemaStep, ...]:
    """The steps of one table."""
    return tuple(s.step for s in steps if s.table == table)
