"""Values of MariaDB and MySQL that the target can't hold: the rows wait beside it, by key, until
something fits."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from runners.services import table_replay
from tests.harness import World, until
from tests.local.world import local_twin
from tests.model.tables_mysql import numbers
from tests.mysql_servers import SqlDatabase
from tests.mysql_world import MysqlWorld
from tests.quarantined import keys, waiting
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]

TABLES = ("odd", "fine")
SOURCE = {"zero_dates": "fail"}
FIT = "day BETWEEN '0001-01-01' AND '9999-12-31' AND month(day) * dayofmonth(day) > 0"


def execute(database: SqlDatabase, *statements: str) -> None:
    """In a session that lets days without month and day in."""
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'STRICT_TRANS_TABLES'")
        for statement in statements:
            cursor.execute(statement)


def make_tables(database: SqlDatabase) -> None:
    execute(
        database,
        "CREATE TABLE odd (id int PRIMARY KEY, day date, v varchar(100))",
        f"INSERT INTO odd SELECT i, '2026-01-01', 'v' FROM {numbers(1, 600)}",
        "UPDATE odd SET day = '2026-00-00' WHERE id IN (100, 500)",
        "CREATE TABLE fine (id int PRIMARY KEY, v varchar(100))",
        f"INSERT INTO fine SELECT i, 'v' FROM {numbers(1, 100)}",
    )


def fitting(database: SqlDatabase) -> dict[int, str]:
    """The source's rows whose days exist."""
    rows: list[Any] = database.execute(f"SELECT id, v FROM odd WHERE {FIT}")
    return {int(row[0]): str(row[1]) for row in rows}


def target(world: World) -> dict[int, str]:
    return {r["id"]: r["v"] for r in world.target_rows("odd")}


@pytest.mark.parametrize(
    ("flavour", "kind"),
    [
        ("mariadb", local_twin(MysqlWorld)),
        pytest.param("mariadb", MysqlWorld, marks=pytest.mark.long),
        pytest.param("mysql", MysqlWorld, marks=pytest.mark.long),
    ],
    ids=["mariadb, local", "mariadb", "mysql"],
)
def test_days_that_do_not_exist_wait_and_come_when_they_fit(
    request: pytest.FixtureRequest, world_maker: MakeWorld, flavour: str, kind: type[MysqlWorld]
) -> None:
    """Guards CORRECTNESS 30 from the binlog and from copies that converge, through a kill, a mend,
    a delete and a replay. Where the decoder does not tell which rows hold such a value, the table
    stops; where NULL goes in unasked, a value is lost unseen."""
    with world_maker(
        server=request.getfixturevalue(flavour), kind=kind, prepare=make_tables,
        tables=TABLES,
        source=SOURCE, options={"unsupported_values": "quarantine"},
    ) as world:  # fmt: skip
        database: Any = world.database
        child = world.start()
        world.settle()
        assert waiting(world) == keys(100, 500)
        assert target(world) == fitting(database)

        world.arm("rows_quarantined")
        execute(
            database,
            "UPDATE odd SET day = '0000-00-00', v = 'held' WHERE id IN (7, 8, 9)",
            "UPDATE odd SET v = 'goes on' WHERE id = 10",
        )
        until(child.is_dead, "death at rows_quarantined")
        assert child.wait() == -signal.SIGKILL
        child.end()
        execute(
            database,
            "UPDATE odd SET v = 'held too' WHERE id = 8",
            "UPDATE odd SET day = '2026-03-03' WHERE id = 9",
        )
        world.start()
        world.settle()
        assert waiting(world) == keys(7, 8, 100, 500)
        held = target(world)
        assert [held[i] for i in (7, 8)] == ["v", "v"]
        assert {i: v for i, v in held.items() if i not in (7, 8)} == fitting(database)

        execute(
            database,
            "UPDATE odd SET day = '2026-02-02' WHERE id IN (7, 100)",
            "UPDATE odd SET day = '2026-02-00' WHERE id = 20",
            "DELETE FROM odd WHERE id = 20",
        )
        world.settle()
        assert waiting(world) == keys(8, 500)
        assert {i: v for i, v in target(world).items() if i != 8} == fitting(database)

        table_replay(replicator=world.replicator, schema=world.schema, name="odd", actor=None)
        world.until(lambda: not world.row("odd").is_replay_asked, "the replay is done")
        world.settle()
        assert not waiting(world)
        assert target(world) == {**fitting(database), 8: "held too", 500: "v"}
        assert world.stop() == 0
