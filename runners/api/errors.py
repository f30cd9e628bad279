"""How the exceptions of running things are answered; imported for its effect."""

from __future__ import annotations

from replicators.api.errors import Answer, answers
from runners.models import NewTable, Table
from runners.services import IllegalTransition


@answers(IllegalTransition)
def _illegal(error: IllegalTransition) -> Answer:
    return Answer(409, "illegal-transition", error.message)


@answers(NewTable.DoesNotExist)
@answers(Table.DoesNotExist)
def _no_table(error: Exception) -> Answer:
    return Answer(404, "not-found", "This replicator has no such table.")
