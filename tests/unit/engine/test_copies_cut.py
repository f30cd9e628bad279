"""A copy whose view of the source went away."""

from __future__ import annotations

from typing import Any

import pytest

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import TableId
from runners.engine.copier import CUTS, Copier
from runners.engine.store import TableRow
from runners.engine.view import SnapshotSource, View

ROW = TableRow(TableId("shop", "views"))


class Source(SnapshotSource):
    """Has no view, for the reason `code`, or because a stop was asked."""

    def __init__(self, code: str = "") -> None:
        self.code = code

    def view(self, table: TableId, *, is_exact: bool = False) -> View | None:
        if self.code:
            raise ReplicationError(self.code, table=table, right="SELECT")
        return None


def copier(source: Source) -> Copier:
    nothing: Any = None
    return Copier(nothing, source, nothing, "r")


@pytest.mark.parametrize("code", sorted(CUTS))
def test_a_copy_that_is_cut_off_begins_again_and_the_run_goes_on(code: str) -> None:
    """Guards that tables which can't go on with their chunks (no key, history, append) are copied again within the run: its end
    would stop every other table too."""
    made = copier(Source(code))
    assert made.is_due(ROW.id)
    assert not made.copy(ROW)
    assert not made.is_due(ROW.id)


def test_other_faults_of_a_copy_are_told() -> None:
    with pytest.raises(ReplicationError):
        copier(Source("source:select-right")).copy(ROW)


def test_a_copy_without_a_view_at_a_stop_is_not_recorded() -> None:
    assert not copier(Source()).copy(ROW)
