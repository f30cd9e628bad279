"""DDL of MariaDB and MySQL while traffic runs, over the whole path, with a kill on the way: each
change is followed, copied afresh or said, and every table that is left equals its source, read by
pyiceberg (CORRECTNESS 5, 6, 10, 21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pymysql
import pytest
from django.db import connections

from replicators.connectors.model.changes import last_sequence
from runners.models import Event, Segment
from tests.background import Background
from tests.harness import World
from tests.model.reading import iceberg_rows
from tests.model.reading_mysql import MysqlTable
from tests.model.verify import table_differences
from tests.mysql_servers import SqlDatabase
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1500)]

ROWS = 200
WAVE_SECONDS = 400.0
ENVIRONMENT = {"REPLICATOR_CATALOG_SECONDS": "2"}
MOST_BEHIND = 3
NO_SUCH_TABLE = 1146
TYPES = {"bigint": "long", "int": "int", "varchar": "string", "date": "date",
    "decimal": "decimal(8, 2)"}  # fmt: skip
FOLLOWED, COPIED, FAILED = "schema_followed", "schema_resync", "table_failed"


@dataclass(frozen=True)
class Change:
    """Statements on a table, the event that tells what became of them (none where nothing is to be
    told), and what it says."""

    table: str
    statements: Sequence[str]
    event: str = FOLLOWED
    says: str = ""


FIRST = (
    Change("added", ["ALTER TABLE added ADD b int NOT NULL DEFAULT 7 FIRST, ADD c varchar(20) "
                     "DEFAULT 'it''s' AFTER id,"
                     " ADD COLUMN (d decimal(8,2) DEFAULT 1.5, e date)"], says="column b added"),
    Change("dropped", ["ALTER TABLE dropped DROP COLUMN a"], says="column a dropped"),
    Change("renamed", ["ALTER TABLE renamed RENAME COLUMN a TO z"], says="column a renamed to z"),
    Change("swapped", ["ALTER TABLE swapped RENAME COLUMN a TO code, RENAME COLUMN code TO a"],
    says="renamed to code"),
    Change("widened", ["ALTER TABLE widened MODIFY n bigint, MODIFY code varchar(40) FIRST"],
    says="type of column n widened"),
    Change("emptied", ["TRUNCATE emptied"], ""),
)  # fmt: skip
SECOND = (
    Change("computed", ["ALTER TABLE computed ADD f int DEFAULT (3 + 4)"], COPIED,
    "values in old rows"),
    Change("narrowed", ["ALTER TABLE narrowed MODIFY big int"], COPIED, "column big changed"),
    Change("renamed", ["ALTER TABLE renamed CHANGE z y varchar(60) AFTER id"],
    says="column z renamed to y"),
    Change("ghost", [
        "CREATE TABLE _ghost_gho LIKE ghost",
        "ALTER TABLE _ghost_gho ADD g int DEFAULT 3",
        "INSERT IGNORE INTO _ghost_gho (id, v, a, n, big, code) SELECT id, v, a, n, big, code "
        "FROM ghost",
        "CREATE TABLE _ghost_del (id int) COMMENT = 'ghost-cut-over-sentry'",
        "DROP TABLE _ghost_del",
        "RENAME /* gh-ost */ TABLE `ghost` TO `_ghost_del`, `_ghost_gho` TO `ghost`",
    ], COPIED, "online schema change (gh-ost)"),
)  # fmt: skip
THIRD = (
    Change("called", ["RENAME TABLE called TO called_now"], FAILED),
    Change("gone", ["DROP TABLE gone"], FAILED),
    Change("toolkit", [
        "CREATE TABLE _toolkit_new LIKE toolkit",
        "ALTER TABLE _toolkit_new DROP COLUMN a",
        "CREATE TRIGGER pt_ins AFTER INSERT ON toolkit FOR EACH ROW REPLACE INTO _toolkit_new "
        "(id, v) VALUES (NEW.id, NEW.v)",
        "INSERT IGNORE INTO _toolkit_new (id, v, n, big, code) SELECT id, v, n, big, code FROM "
        "toolkit",
        "RENAME TABLE `toolkit` TO `_toolkit_old`, `_toolkit_new` TO `toolkit`",
        "DROP TABLE IF EXISTS `_toolkit_old`",
    ], COPIED, "online schema change (pt-online-schema-change)"),
    Change("added", ["ALTER TABLE added DROP COLUMN c, ADD k varchar(9) DEFAULT 'k' AFTER b"],
    says="column c dropped"),
)  # fmt: skip
FOURTH = (
    Change("gone", ["CREATE TABLE gone (v varchar(50), id bigint PRIMARY KEY, q date)",
    "INSERT INTO gone VALUES ('again', 1, '2024-02-29')"], COPIED, "created again"),
    Change("called", ["RENAME TABLE called_now TO called"], COPIED),
    Change("dropped", ["ALTER TABLE dropped ADD COLUMN a varchar(30) DEFAULT 'new' FIRST"],
    says="column a added"),
)  # fmt: skip
WAVES = (FIRST, SECOND, THIRD, FOURTH)
TABLES = tuple(dict.fromkeys(c.table for wave in WAVES for c in wave))


def make_tables(database: SqlDatabase) -> None:
    """All alike, with some rows."""
    rows = ", ".join(f"({i}, 'v', 'a{i}', {i}, {i}, 'c{i}')" for i in range(1, ROWS + 1))
    for name in TABLES:
        database.execute(
            f"CREATE TABLE {name} (id bigint PRIMARY KEY, v varchar(50), a varchar(30), n int, "
            "big bigint, code varchar(10))",
            f"INSERT INTO {name} VALUES {rows}",
        )


class Writer(Background):
    """Writes every table that is there, whatever its schema is just then: rows come, change and go.
    Where the run is behind, as on a busy machine, it waits, so that each wave of changes meets
    traffic and not a backlog."""

    end_seconds = 60.0

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._next = 100_000
        self._fault: BaseException | None = None

    def _round(self, cursor: pymysql.cursors.Cursor) -> None:
        self._next += 1
        for name in TABLES:
            try:
                cursor.execute(f"INSERT INTO {name} (id, v) VALUES ({self._next}, 'new')")
                cursor.execute(f"UPDATE {name} SET v = 'u{self._next}' WHERE id % 50 = "
                               f"{self._next % 50}")  # fmt: skip
                cursor.execute(f"DELETE FROM {name} WHERE id = {self._next - 99_990}")
            except pymysql.err.ProgrammingError as err:
                if err.args[0] != NO_SUCH_TABLE:
                    raise

    def _go(self) -> None:
        waiting = Segment.objects.filter(replicator=self._world.replicator, is_decoded=False)
        try:
            with self._world.database.connect() as connection, connection.cursor() as cursor:
                while not self._stop.wait(0.3):
                    if waiting.count() <= MOST_BEHIND:
                        self._round(cursor)
        except BaseException as err:  # noqa: BLE001 - reported where the writing is ended
            self._fault = err
        finally:
            connections.close_all()

    def end(self) -> None:
        super().end()
        assert self._fault is None, self._fault


def reported(world: World, name: str) -> list[str]:
    """A table's events, in order: kind and what it says."""
    found = Event.objects.filter(replicator=world.replicator, table_name=name).order_by("pk")
    return [f"{e.kind} {e.facts.get('change', '')} {e.code}".strip() for e in found]


def level(world: World, *names: str) -> None:
    """Wait until everything of these tables that was committed by now is merged, while more is
    written."""
    mark = world.mark()
    world.until(lambda: world.position() >= mark, f"captured past {mark}", WAVE_SECONDS)
    end = last_sequence(world.last_segment())

    def is_level() -> bool:
        rows = [world.row(n) for n in names]
        return all(r.state == "replicating" and r.merged_sequence >= end for r in rows)

    world.until(is_level, f"{names} merged past {end}", WAVE_SECONDS)


def take(world: World, changes: Sequence[Change]) -> None:
    """Make the changes."""
    for change in changes:
        world.database.execute(*change.statements)


def wait(world: World, changes: Sequence[Change]) -> None:
    """Wait until what the changes caused is reported, and the tables that go on are level."""

    def is_reported(change: Change) -> bool:
        return any(
            e.startswith(change.event) and change.says in e for e in reported(world, change.table)
        )

    for change in changes:
        if change.event:
            try:
                world.until(lambda c=change: is_reported(c), f"{change} is reported", WAVE_SECONDS)  # type: ignore[misc]
            except AssertionError as err:
                raise AssertionError(f"{change}: {reported(world, change.table)}\n{err}") from err
    level(world, *(c.table for c in changes if c.event != FAILED))


def assert_same(world: MysqlWorld, name: str) -> None:
    """Columns, types and rows are those of the source."""
    source = MysqlTable(world.driver, world.schema, name)
    found = world.database.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        f" WHERE table_schema = '{world.schema}' AND table_name = '{name}'"
    )
    fields = world.lake_table(name).schema().fields
    assert {f.name: str(f.field_type) for f in fields} == {n: TYPES[t] for n, t in found}, name
    uri = f"sqlite:///{world.folder}/catalog.db"
    target = iceberg_rows(uri, str(world.warehouse), "lake", ("shop", name))
    ours, theirs, wrong = table_differences(source, *target)
    assert not wrong, (name, str(ours), str(theirs), [str(w) for w in wrong[:10]])
    assert ours.rows


@pytest.mark.long
@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
def test_each_change_is_followed_copied_afresh_or_said(
    request: pytest.FixtureRequest, world_maker: MakeWorld, flavour: str
) -> None:
    """Guards the columns by the statements of the log (a swap would exchange its values), the
    defaults of old rows, the fresh copies of what the log does not show, and the log's word before
    the catalog's: `called` gets its other name while nothing runs, and where the stream forgot
    tables that the catalog lacks, it would be reported as missing."""
    with world_maker(
        server=request.getfixturevalue(flavour), kind=MysqlWorld, prepare=make_tables,
        tables=TABLES,
        environment=ENVIRONMENT, options={"seal_seconds": 1.0, "merge_seconds": 2.0},
    ) as world:  # fmt: skip
        assert isinstance(world, MysqlWorld)
        world.start()
        world.settle()
        with Writer(world).going_on():
            level(world, *TABLES)
            take(world, FIRST)
            wait(world, FIRST)
            take(world, SECOND)
            wait(world, SECOND)
            take(world, THIRD[2:])
            world.kill()
            take(world, THIRD[:2])
            world.start()
            wait(world, THIRD)
            assert world.states()["called"] == "failing source:table-renamed"
            assert world.row("called").error_facts["now"] == f"{world.schema}.called_now"
            assert world.states()["gone"] == "failing source:table-missing"
            take(world, FOURTH)
            wait(world, FOURTH)
        world.settle()
        for name in TABLES:
            assert_same(world, name)
        copied = {c.table for wave in WAVES for c in wave if c.event == COPIED}
        assert {n for n in TABLES if world.row(n).generation > 1} == copied
        assert world.stop() == 0
