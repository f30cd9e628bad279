"""Append: every change becomes its own row, of the table's columns or a message."""

from __future__ import annotations

from sqlglot import exp

from replicators.connectors.model.modes import stored
from replicators.connectors.sql import trees
from replicators.connectors.sql.merge.parts import STAGED, Parts
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.sql.trees import column


def steps(parts: Parts) -> list[Step]:
    """INSERT of every row of a batch."""
    names = [c.name for c in stored(parts.batch.schema, parts.batch.mode).supported]
    shown: list[exp.Expression] = [column(n) for n in names]
    rows = trees.select(shown, trees.aliased(parts.staged, STAGED))
    return [Statement(trees.insert(parts.target, names, rows))]
