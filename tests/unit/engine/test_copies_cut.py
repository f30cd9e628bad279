"""A copy whose view of the source went away, or that has to wait for one."""

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
    """Has no view, for the reason `code`, or because others copy in the present one."""

    def __init__(self, code: str = "") -> None:
        self.code = code
        self.ended: list[TableId] = []

    def view(self, table: TableId, *, is_exact: bool = False) -> View | None:
        if self.code:
            raise ReplicationError(self.code, table=table, right="SELECT")
        return None

    def done(self, table: TableId) -> None:
        self.ended.append(table)


def copier(source: Source) -> Copier:
    nothing: Any = None
    return Copier(nothing, source, nothing, "r")


@pytest.mark.parametrize("code", sorted(CUTS))
def test_a_copy_that_is_cut_off_begins_again_and_the_run_goes_on(code: str) -> None:
    """Guards that tables which can't go on with their chunks (no key, history, append) are copied again within the run: its end
    would stop every other table too."""
    source = Source(code)
    made = copier(source)
    assert made.is_due(ROW.id)
    assert not made.copy(ROW)
    assert not made.is_due(ROW.id)
    assert source.ended == [ROW.id], "a view that is never given back lets no other be opened"


def test_other_faults_of_a_copy_are_told() -> None:
    source = Source("source:select-right")
    with pytest.raises(ReplicationError):
        copier(source).copy(ROW)
    assert source.ended == [ROW.id]


def test_a_table_without_a_view_yet_waits_and_leaves_its_place_to_others() -> None:
    """Fails where it is asked again at every turn, or waits in one of the few threads that copy."""
    made = copier(Source())
    assert not made.copy(ROW)
    assert not made.is_due(ROW.id)
