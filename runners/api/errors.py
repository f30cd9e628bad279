"""Registers how REST answers the exceptions of running replicators; imported for this effect."""

from __future__ import annotations

from replicators.api.errors import Answer, answers
from runners.models import NewTable, Table
from runners.services import IllegalTransition
from runners.tables.changes import TableRefused
from runners.verifications import VerifiedTable


@answers(IllegalTransition)
def _illegal(error: IllegalTransition) -> Answer:
    return Answer(409, "illegal-transition", error.message)


@answers(TableRefused)
def _table_refused(error: TableRefused) -> Answer:
    text = "The assessment found errors, so nothing was changed. Mend them, then ask again."
    return Answer(409, "table-refused", text, problems=[p.to_json() for p in error.problems])


@answers(VerifiedTable.DoesNotExist)
@answers(NewTable.DoesNotExist)
@answers(Table.DoesNotExist)
def _no_table(error: Exception) -> Answer:
    return Answer(404, "not-found", "This replicator has no such table.")
