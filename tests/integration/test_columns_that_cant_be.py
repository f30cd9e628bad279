"""Columns that come or go while a table is copied, so that its copy can't follow: the table says
why, the others go on."""

from __future__ import annotations

import pytest

from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]


def test_a_name_of_icebergs_and_a_table_without_columns(world_maker: MakeWorld) -> None:
    """Guards `naming.refuse_reserved`, `Evolver.mends_name` and `source:no-columns`: Spark's
    AnalysisException and ParseException were reported as unknown, again and again, and the first
    one after the renaming too."""
    seconds = {"REPLICATOR_CATALOG_SECONDS": "1"}
    with world_maker(environment=seconds) as world:
        world.start()
        world.settle()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN _pos int")
        world.database.execute("UPDATE shop.items SET _pos = 1 WHERE id < 5")
        world.database.execute(
            "ALTER TABLE shop.views DROP COLUMN n, DROP COLUMN page, DROP COLUMN at"
        )
        world.database.execute("INSERT INTO shop.views DEFAULT VALUES")
        world.until_states("failing target:column-reserved", "items")
        world.until_states("failing source:no-columns", "views")
        assert world.row("items").error_facts["column"] == "_pos"
        world.database.execute("ALTER TABLE shop.items RENAME COLUMN _pos TO pos")
        world.database.execute("UPDATE shop.pairs SET v = 'later' WHERE part = 1")
        world.assert_equal("items", "pairs")
        assert world.states()["views"] == "failing source:no-columns"
        assert world.stop() == 0
