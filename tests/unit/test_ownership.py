"""Whether a replicator may write to a table, by what the table remembers."""

from __future__ import annotations

import pytest

from replicators.connectors.model.schema import TableId
from replicators.connectors.ownership import LiveTable, Written, own_token
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable, Token

TABLE = TargetTable(TableId("shop", "items"), "r1", 2, "u1")


def live(sequence: int, *, replicator: str = "r1", generation: int = 2,
    uuid: str = "u1") -> LiveTable:  # fmt: skip
    return LiveTable(replicator, uuid, Token(replicator, generation, sequence, uuid))


@pytest.mark.parametrize("written", [None, Written(7), Written(3, 7)])
def test_a_token_that_this_process_found_wrote_or_may_have_written_is_its_own(
    written: Written | None,
) -> None:
    """A commit whose end was not heard may be there: then it is not done again."""
    assert own_token(live(7), TABLE, written).sequence == 7


@pytest.mark.parametrize(
    ("found", "written", "code"),
    [
        (live(6), Written(7), "target:table-behind"),
        (live(7, generation=1), None, "target:table-behind"),
        (live(9), Written(7), "target:table-ahead"),
        (live(9), Written(7, 8), "target:table-ahead"),
        (live(7, generation=3), None, "target:table-ahead"),
        (live(7, replicator="r2"), None, "target:table-replaced"),
        (live(7, uuid="u2"), None, "target:table-replaced"),
        (None, None, "target:table-missing"),
    ],
)
def test_a_table_that_another_wrote_to_is_not_written_to(
    found: LiveTable | None, written: Written | None, code: str
) -> None:
    """Guards CORRECTNESS 13 and 29. An older run that was held up in the middle of an append may
    commit it after a newer one took over, since no catalog refuses a plain append; unseen, its rows
    would be there twice for ever."""
    with pytest.raises(ReplicationError) as caught:
        own_token(found, TABLE, written)
    assert caught.value.code == code
