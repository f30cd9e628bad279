"""Problems with the names that tables get at a target, the same for every target's checks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.problem import Problem


def shared_names(
    tables: Sequence[TableSchema], place_of: Callable[[TableId], Hashable]
) -> Iterator[Problem]:
    """Tables that would share a place. `place_of` gives equal values for names that the target does
    not tell apart."""
    seen: dict[Hashable, TableId] = {}
    for table in tables:
        place = place_of(table.id)
        if place in seen:
            yield Problem.of("target:name-shared", table=table.id, other=seen[place])
        seen.setdefault(place, table.id)
