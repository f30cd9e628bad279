"""At a start the target's token is compared with what our database remembers (CORRECTNESS 13), also
where that was restored."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from replicators.connectors.model.changes import last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import Token
from runners.engine.apply.merge import Merger
from runners.engine.changelog.segments import ChangeLog
from runners.engine.store.protocol import MemoryStore
from runners.engine.store.table_states import is_lasting
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import change_file, segment

TABLE = SCHEMA.id


@pytest.fixture
def store() -> MemoryStore:
    """Segments 5 to 8 are listed, 8 for another schema; the table is merged up to 5."""
    made = MemoryStore([TABLE])
    for number in (5, 6, 7, 8):
        made.record_segment(segment(number), Position(number * 100))
    made.record_decoded([5, 6, 7, 8], [change_file(6), change_file(8, version="v2")])
    made.table_event(TABLE, "table_snapshot_started", generation=1)
    made.table_event(TABLE, "table_snapshot_done", schema=SCHEMA, is_snapshot_done=True)
    made.table_progress(TABLE, token_sequence=last_sequence(4), merged_sequence=last_sequence(5))
    return made


def merger(store: MemoryStore, token: Token, log: ChangeLog) -> Merger:
    writer = cast(Any, SimpleNamespace(token=lambda table: token))
    unused = cast(Any, None)
    return Merger(unused, writer, store, log, "r1", unused, unused)


@pytest.mark.parametrize(
    ("sequence", "is_known"),
    [
        (last_sequence(4), True),  # as recorded
        (last_sequence(5), True),  # passed over since
        (last_sequence(7), True),  # merged, and not recorded
        (last_sequence(8) + 1, False),
        (last_sequence(950), False),
    ],
)
def test_a_target_that_is_ahead_is_adopted_only_where_the_merge_is_one_of_ours(
    store: MemoryStore, tmp_path: Path, sequence: int, is_known: bool
) -> None:
    """Guards `Merger._may_end`: where the program's database was restored, the change log's folder
    still has segments of the time since, and the source gives their changes again under new
    numbers. A token of that time that is adopted because such a number is in the folder has them
    merged twice: rows of append, of history and of tables without a key are doubled."""
    log = ChangeLog(str(tmp_path), "r1", "a")
    Path(log.segments, "000000001000-b.raw").touch()
    found = merger(store, Token("r1", 1, sequence, "u"), log)
    if is_known:
        found.recover(store.table(TABLE))
        row = store.table(TABLE)
        assert row.token_sequence == sequence
        assert row.merged_sequence == max(sequence, last_sequence(5))
    else:
        with pytest.raises(ReplicationError, match="target:table-ahead"):
            found.recover(store.table(TABLE))


def test_a_merge_that_ended_before_a_file_of_another_schema_is_one_of_ours(
    store: MemoryStore, tmp_path: Path
) -> None:
    """Guards the second half of `Merger._may_end`: `next_batch` ends before a new schema's first
    file, whose segment may come after numbers that a cut transaction had."""
    store.record_segment(segment(12), Position(1200))
    store.record_decoded([12], [change_file(12, version="v3")])
    log = ChangeLog(str(tmp_path), "r1", "a")
    merger(store, Token("r1", 1, last_sequence(11), "u"), log).recover(store.table(TABLE))
    assert store.table(TABLE).merged_sequence == last_sequence(11)


def test_a_target_that_is_ahead_is_not_tried_again() -> None:
    """Guards `may_be_tried_again`: after a restore the new segments' numbers pass the token in the
    end, and it would be adopted."""
    assert is_lasting("target:table-ahead", None)
    assert not is_lasting("target:table-missing", None)
