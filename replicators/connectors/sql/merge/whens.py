"""The parts of a MERGE."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from replicators.connectors.sql import trees
from replicators.connectors.sql.merge.parts import SOURCE, TARGET, Parts
from replicators.connectors.sql.steps import Statement
from replicators.connectors.sql.trees import column

Sets = Sequence[tuple[str, exp.Expression]]


def merge(
    parts: Parts,
    source: exp.Table | exp.Subquery,
    on: exp.Expression,
    whens: Sequence[exp.When],
) -> Statement:
    """MERGE into the target, `TARGET`, of a source, `SOURCE`."""
    for when in whens:
        if when.args.get("condition") is not None:
            when.set("condition", parts.dialect.test(when.args["condition"]))
    return Statement(
        exp.Merge(
            this=trees.aliased(parts.target, TARGET),
            using=trees.aliased(source, SOURCE),
            on=on,
            whens=exp.Whens(expressions=list(whens)),
        )
    )


def deleted(condition: exp.Expression) -> exp.When:
    """WHEN MATCHED AND ... THEN DELETE."""
    return exp.When(matched=True, condition=condition, then=trees.raw("DELETE"))


def updated(sets: Sets, condition: exp.Expression | None = None) -> exp.When:
    """WHEN MATCHED THEN UPDATE."""
    return exp.When(matched=True, condition=condition, then=_update(sets))


def inserted(
    names: Sequence[str], values: Sequence[exp.Expression], condition: exp.Expression | None = None
) -> exp.When:
    """WHEN NOT MATCHED THEN INSERT."""
    then = exp.Insert(
        this=exp.Tuple(expressions=[column(n) for n in names]),
        expression=exp.Tuple(expressions=list(values)),
    )
    return exp.When(matched=False, condition=condition, then=then)


def rest(sets: Sets, condition: exp.Expression) -> exp.When:
    """WHEN NOT MATCHED BY SOURCE THEN UPDATE: the target's rows that no row of the source
    matches."""
    return exp.When(matched=False, source=True, condition=condition, then=_update(sets))


def _update(sets: Sets) -> exp.Update:
    return exp.Update(expressions=[trees.equal(column(n), value) for n, value in sets])
