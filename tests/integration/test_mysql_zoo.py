"""A zoo of MySQL and MariaDB: every form of statement on tables that are followed, with no row
behind it and then with some, compared."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pymysql
import pytest

from runners.models import Event
from tests.integration.zoo_mysql import ZOO, Live, zoo_of
from tests.model.reading import iceberg_rows
from tests.model.reading_mysql import MysqlTable
from tests.model.verify import table_differences
from tests.mysql_servers import SqlDatabase
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3000), pytest.mark.long]

LEVEL_SECONDS = 1500.0
SETTLE_SECONDS = 150.0
KEYLESS = {"_row_hash", "_occurrence"}


def _run(database: SqlDatabase, live: Live, statements: Sequence[str]) -> None:
    try:
        database.execute(*(s.replace("{t}", live.name) for s in statements))
    except pymysql.err.MySQLError as err:
        raise AssertionError(f"{live.name}: {err}") from err


def make_zoo(database: SqlDatabase, tables: Sequence[Live]) -> None:
    """Every table with its rows."""
    for live in tables:
        made = f"CREATE TABLE {{t}} ({live.columns}){live.rest}"
        _run(database, live, [made, f"INSERT INTO {{t}} VALUES {live.fill}", *live.before])


def change_all(database: SqlDatabase, tables: Sequence[Live]) -> None:
    """Rows right before each table's statements, and none behind them."""
    for live in tables:
        _run(database, live, ["UPDATE {t} SET v = 'before' WHERE id = 4", *live.statements])


def write_all(database: SqlDatabase, tables: Sequence[Live]) -> None:
    """A row more, one changed and one less."""
    said = (
        "SET SESSION sql_mode = ''",
        "INSERT INTO {t} (id, v) VALUES (1000, 'new')",
        "UPDATE {t} SET v = 'after' WHERE id = 7",
        "DELETE FROM {t} WHERE id = 9",
    )
    for live in tables:
        if live.writes:
            _run(database, live, said)


def level(world: MysqlWorld, names: Sequence[str]) -> None:
    """Everything committed by now is merged, or its table fails."""
    mark = world.mark()

    def is_level() -> bool:
        going = [n for n, s in world.states().items() if not s.startswith("failing")]
        return world.is_merged(mark, going)

    world.until(is_level, f"level past {mark}", LEVEL_SECONDS)


def settle(world: MysqlWorld, tables: Sequence[Live]) -> None:
    """Wait for the states that should be: what a look into the source's catalog mends takes a
    minute. One that never comes is reported by the comparison."""
    flavour = world.database.server.flavour
    wanted = {
        t.name: f"failing {t.code(flavour)}" if t.code(flavour) else "replicating" for t in tables
    }
    with suppress(AssertionError):
        world.until(
            lambda: {n: world.states()[n] for n in wanted} == wanted, "states", SETTLE_SECONDS
        )


def reported(world: MysqlWorld, name: str) -> list[str]:
    found = Event.objects.filter(replicator=world.replicator, table_name=name).order_by("pk")
    return [f"{e.kind} {e.facts.get('change', '')} {e.code}".strip() for e in found]


def differences(world: MysqlWorld, name: str) -> list[str]:
    """Rows and columns that differ between a table and its copy."""
    source = MysqlTable(world.driver, world.schema, name)
    uri = f"sqlite:///{world.folder}/catalog.db"
    columns, rows = iceberg_rows(uri, str(world.warehouse), "lake", ("shop", name))
    _, _, found = table_differences(source, columns, rows)
    wrong = [str(d) for d in found[:5]]
    if set(columns) - KEYLESS != set(source.columns):
        wrong.append(f"columns {columns}, not {source.columns}")
    return wrong


def _listed(wrong: dict[str, list[str]]) -> str:
    return "\n".join(f"{name}: {line}" for name, lines in wrong.items() for line in lines)


def compared(world: MysqlWorld, tables: Sequence[Live]) -> dict[str, list[str]]:
    """What is not as it should be: the state, or the rows of those that go on."""
    flavour, states = world.database.server.flavour, world.states()
    wrong: dict[str, list[str]] = {}
    for live in tables:
        wanted = f"failing {live.code(flavour)}" if live.code(flavour) else "replicating"
        if states[live.name] != wanted:
            wrong[live.name] = [states[live.name], *reported(world, live.name)]
        elif wanted == "replicating" and (found := differences(world, live.name)):
            wrong[live.name] = [*found, *reported(world, live.name)]
    return wrong


@pytest.mark.parametrize("part", sorted(ZOO))
@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
def test_a_zoo_of_statements_ends_equal_or_says_why_not(
    request: pytest.FixtureRequest, world_maker: MakeWorld, flavour: str, part: str
) -> None:
    """Guards copies that differ under *replicating*: quiet tables after each statement, and the
    same tables written again."""
    tables = zoo_of(part, flavour)
    names = tuple(t.name for t in tables)
    with world_maker(
        server=request.getfixturevalue(flavour), kind=MysqlWorld, tables=names,
        prepare=lambda database: make_zoo(database, tables),
    ) as world:  # fmt: skip
        assert isinstance(world, MysqlWorld)
        world.start()
        level(world, names)
        change_all(world.database, tables)
        level(world, names)
        settle(world, tables)
        quiet = compared(world, tables)
        write_all(world.database, tables)
        level(world, names)
        settle(world, tables)
        written = compared(world, tables)
        assert not quiet, _listed(quiet)
        assert not written, _listed(written)
        assert world.stop() == 0
