"""Schema changes on tables that nobody writes afterwards, over the whole path: the statement in
the log is enough. And a foreign key that comes later: a table whose copy would drift does not say
that it replicates."""

from __future__ import annotations

import pytest

from tests.mysql_servers import SqlDatabase
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

CHANGES = {
    "again": ["DROP COLUMN a, ADD COLUMN a varchar(50) DEFAULT 'z' AFTER id"],
    "swapped": ["RENAME COLUMN k TO k2, RENAME COLUMN k2 TO k"],
    "changed": ["CHANGE k k2 int AFTER id, CHANGE k2 k int AFTER id"],
    "turned": ["RENAME COLUMN k TO t_", "RENAME COLUMN k2 TO k", "RENAME COLUMN t_ TO k2"],
    "refilled": ["DROP k, CHANGE k2 k int", "ADD k2 int DEFAULT 3"],
    "crossed": ["CHANGE k a int, CHANGE a k varchar(50)"],
}
"""Each ends with the names and types of before, or nearly so: the catalog shows no difference."""
COPIED = {"again"}
CHILD, PARENT, VERSIONED = "child", "parent", "versioned"
TABLES = (*CHANGES, CHILD, PARENT, VERSIONED)
KEY = "ADD CONSTRAINT fk FOREIGN KEY (k) REFERENCES parent (id) ON DELETE CASCADE"


def make_tables(database: SqlDatabase) -> None:
    """All alike, with some rows."""
    rows = ", ".join(f"({i}, 'a{i}', {i}, {100 + i})" for i in range(1, 21))
    for name in TABLES:
        database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, a varchar(50), k int, k2 int)",
            f"INSERT INTO {name} VALUES {rows}",
        )


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
@pytest.mark.long
def test_a_statement_is_followed_though_no_row_comes_after_it(
    request: pytest.FixtureRequest, twin_maker: MakeWorld, flavour: str
) -> None:
    """Guards tables that would stay wrong under *replicating*, with no lag, until somebody writes
    them; and the re-sync of a table whose foreign key deletes rows without logging it, which made
    it *replicating* though each delete was missed from then on."""
    with twin_maker(
        server=request.getfixturevalue(flavour), kind=MysqlWorld, prepare=make_tables, tables=TABLES
    ) as world:  # fmt: skip
        assert isinstance(world, MysqlWorld)
        world.start()
        world.assert_equal()
        for name, statements in CHANGES.items():
            world.database.execute(*(f"ALTER TABLE {name} {said}" for said in statements))
        world.database.execute(f"ALTER TABLE {CHILD} {KEY}", "DELETE FROM parent WHERE id = 1")
        world.assert_equal(*CHANGES)
        assert {n for n in CHANGES if world.row(n).generation > 1} == COPIED
        if flavour == "mariadb":
            _refused_until_the_key_is_gone(world)
            _refused_while_it_keeps_its_past(world)
        world.assert_equal()
        assert world.stop() == 0


def _refused_until_the_key_is_gone(world: MysqlWorld) -> None:
    world.until_states("failing source:cascade", CHILD)
    before = world.row(CHILD).generation
    world.resync(CHILD)
    failed = "failing source:cascade"
    world.until(
        lambda: world.row(CHILD).generation > before and world.states()[CHILD] == failed,
        "the re-sync is refused",
    )
    facts = world.row(CHILD).error_facts
    assert (facts["constraint"], facts["rule"]) == ("fk", "DELETE CASCADE")
    assert len(world.target_rows(CHILD)) == 20
    world.database.execute(f"ALTER TABLE {CHILD} DROP FOREIGN KEY fk")
    world.resync(CHILD)


def _refused_while_it_keeps_its_past(world: MysqlWorld) -> None:
    """Copied afresh it went on as *replicating*, and updates and deletes of it were lost: they are
    logged by the end of a row's time too."""
    world.database.execute(
        f"ALTER TABLE {VERSIONED} ADD SYSTEM VERSIONING", f"DELETE FROM {VERSIONED} WHERE id = 9"
    )
    world.until_states("failing source:table-versioned", VERSIONED)
    world.database.execute(f"ALTER TABLE {VERSIONED} DROP SYSTEM VERSIONING")
    world.resync(VERSIONED)
