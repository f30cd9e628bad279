"""Every mode's statements run in DuckDB, as one MERGE and as several statements of a transaction:
both must leave the same rows, or both must refuse the batch."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.sql.dialect import Joined
from replicators.connectors.sql.relation import relation
from tests.sql_dialects import DUCKDB
from tests.sql_world import MODES, Rows, World, many

ONE = DUCKDB
SEVERAL = replace(DUCKDB, has_merge=False, has_any_value=False)
NAMED = replace(SEVERAL, joined=Joined.NAMED, has_null_safe=False)
HALF = replace(DUCKDB, has_by_source=False)
"""MERGE without BY SOURCE, as PostgreSQL 15 and Snowflake have it."""


@pytest.mark.parametrize(("mode", "no_inserts"), MODES)
def test_several_statements_leave_what_one_merge_leaves(mode: Mode, no_inserts: bool) -> None:
    """Guards the path of engines without a full MERGE: an UPDATE that sees what an earlier
    statement of the same transaction wrote leaves other rows than one MERGE does."""
    refused = changed = 0
    with duckdb.connect(config={"threads": 1}) as db:

        def run(text: str) -> Rows:
            return db.execute(text).fetchall()

        for world in many(20, mode, no_inserts=no_inserts):
            expected = world.after(ONE, run, "main")
            for other in (SEVERAL, NAMED, HALF):
                assert world.after(other, run, "main") == expected, world.batch
            refused += isinstance(expected, str)
            changed += expected != sorted(world.before, key=repr)
    assert changed > 12
    assert refused or no_inserts


def test_every_column_of_a_mode_is_staged() -> None:
    """Guards `relation`: a column that the mode's statements read and no file fills."""
    for mode, _ in MODES:
        made = relation(World(1, mode).batch)
        added = {c.name for c in extra_columns(mode)} - {"_is_deleted", "_is_current"}
        assert added <= {c.name for c in made.columns}
        assert len({c.name.casefold() for c in made.columns}) == len(made.columns)
