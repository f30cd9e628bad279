"""What a replicator's tables used of what the target's service allows within 24 hours."""

from __future__ import annotations

import time
from dataclasses import dataclass

from replicators.config import target_plugin
from replicators.connectors.budgets import Budget, Use, used, why_slower
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.options import Options
from runners.models import Table


@dataclass(frozen=True, slots=True)
class Spending:
    """A replicator's use of its target's budget. `merge_seconds` is the interval that people
    asked for."""

    budget: Budget
    use: Use
    merge_seconds: float
    now: float

    def used_by(self, row: Table) -> int:
        """What one table used."""
        return used(row.spent, self.now)

    def why_slower(self, row: Table) -> str:
        """Why the table is merged less often than asked; empty where it is not."""
        return why_slower(self.budget, self.used_by(row), self.use, self.merge_seconds)


def spending_of(replicator: Replicator) -> Spending | None:
    """None where the target's service counts nothing."""
    try:
        budget = target_plugin(replicator.target_kind).budget
    except ReplicationError:
        return None
    if budget is None:
        return None
    now = time.time()
    hours = Table.objects.filter(replicator=replicator).exclude(spent={})
    use = Use.of(hours.values_list("spent", flat=True), now)
    return Spending(budget, use, Options.readable(replicator.options).merge_seconds, now)
