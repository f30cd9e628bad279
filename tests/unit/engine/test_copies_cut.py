"""A copy whose view of the source went away."""

from __future__ import annotations

import time
from typing import Any

import pytest

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import TableId
from runners.engine.store import TableRow
from runners.engine.tables import CUTS, TableJobs

ROW = TableRow(TableId("shop", "views"))


def jobs_whose_copies_end_by(code: str) -> Any:
    """Only what a copy's job uses."""
    jobs: Any = object.__new__(TableJobs)
    jobs._copy_after = {}

    def copied(row: TableRow) -> None:
        raise ReplicationError(code, table=row.id, right="SELECT")

    jobs._copied = copied
    return jobs


@pytest.mark.parametrize("code", sorted(CUTS))
def test_a_copy_that_is_cut_off_begins_again_and_the_run_goes_on(code: str) -> None:
    """Guards that tables which can't go on with their chunks (no key, history, append) are copied again within the run: its end
    would stop every other table too."""
    jobs = jobs_whose_copies_end_by(code)
    jobs._snapshot(ROW)
    assert jobs._copy_after[ROW.id] > time.monotonic()


def test_other_faults_of_a_copy_are_told() -> None:
    with pytest.raises(ReplicationError):
        jobs_whose_copies_end_by("source:select-right")._snapshot(ROW)
