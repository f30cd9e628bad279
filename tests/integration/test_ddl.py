"""DDL while traffic runs, over the whole path: one run, many tables, each with a change of its own
(CORRECTNESS 5, 10, 21)."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from runners.models import Event
from tests.background import Background
from tests.harness import World, differing, table_rows
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.oldest_postgresql(is_long=True),
]

ROWS = 300
FAST_LOOKS = {"REPLICATOR_CATALOG_SECONDS": "1"}


@dataclass(frozen=True)
class Case:
    """A table's change: statements of one transaction; `is_copied`: only a fresh copy is right;
    `failing`: the code it fails with in place of being equal; `now`: where its rows are
    afterwards."""

    ddl: str
    is_copied: bool = False
    failing: str = ""
    now: str = ""


CASES = {
    "added": Case("ALTER TABLE shop.added ADD b int, ADD c text"),
    "defaults": Case(
        "ALTER TABLE shop.defaults ADD b int NOT NULL DEFAULT 7, ADD c text DEFAULT 'it''s "
        "\"{,}\\ ü',"
        " ADD d timestamptz DEFAULT now(), ADD e boolean DEFAULT true, ADD f numeric(9,2) "
        "DEFAULT 1.5,"
        " ADD g bytea DEFAULT '\\x00ff', ADD h date DEFAULT '2024-02-29', ADD j uuid DEFAULT"
        " '00000000-0000-0000-0000-0000000000ff', ADD k jsonb DEFAULT '{\"a\": [1, null]}'"
    ),
    "array_default": Case("ALTER TABLE shop.array_default ADD b int[] DEFAULT '{1,2}'", True),
    "volatile": Case("ALTER TABLE shop.volatile ADD b float8 DEFAULT random()", True),
    "dropped": Case("ALTER TABLE shop.dropped DROP a"),
    "renamed": Case("ALTER TABLE shop.renamed RENAME a TO z"),
    "swapped": Case(
        "ALTER TABLE shop.swapped RENAME a TO t; ALTER TABLE shop.swapped RENAME code TO a;"
        " ALTER TABLE shop.swapped RENAME t TO code"
    ),
    "remade": Case("ALTER TABLE shop.remade DROP a; ALTER TABLE shop.remade ADD a text", True),
    "longer": Case("ALTER TABLE shop.longer ALTER code TYPE varchar(90)"),
    "widened": Case("ALTER TABLE shop.widened ALTER n TYPE bigint USING n * 3", True),
    "narrowed": Case("ALTER TABLE shop.narrowed ALTER n TYPE smallint", True),
    "retyped": Case("ALTER TABLE shop.retyped ALTER a TYPE int USING length(a)", True),
    "rekeyed": Case(
        "UPDATE shop.rekeyed SET code = 'k' || id; ALTER TABLE shop.rekeyed DROP CONSTRAINT "
        "rekeyed_pkey;"
        " ALTER TABLE shop.rekeyed ADD PRIMARY KEY (code)",
        True,
    ),
    "key_named": Case("ALTER TABLE shop.key_named RENAME id TO no"),
    "full": Case("ALTER TABLE shop.full REPLICA IDENTITY FULL"),
    "called_else": Case(
        "ALTER TABLE shop.called_else RENAME TO other_name; INSERT INTO shop.other_name VALUES "
        "(-1);"
        " CREATE TABLE shop.called_else (id bigint PRIMARY KEY, v text); INSERT INTO "
        "shop.called_else VALUES (-2)",
        now="shop.other_name",
    ),
    "moved": Case("CREATE SCHEMA away; ALTER TABLE shop.moved SET SCHEMA away", now="away.moved"),
    "gone": Case("DROP TABLE shop.gone", failing="source:table-missing"),
    "made_again": Case(
        "DROP TABLE shop.made_again; CREATE TABLE shop.made_again (v text, id bigint PRIMARY "
        "KEY, q date);"
        " INSERT INTO shop.made_again SELECT 'again', i, '2024-01-01' FROM generate_series(1, "
        "50) i",
        True,
    ),
    "written_again": Case("ALTER TABLE shop.written_again ALTER v TYPE text USING upper(v)", True),
    "left": Case("ALTER PUBLICATION {publication} DROP TABLE ONLY shop.left", True),
}
PARTED = {
    "parts_added": "ALTER TABLE shop.parts_added ADD b int DEFAULT 5, ADD c text DEFAULT 'c'",
    "parts_emptied": "TRUNCATE shop.parts_emptied_1",
    "parts_renewed": "TRUNCATE shop.parts_renewed; INSERT INTO shop.parts_renewed VALUES (1, "
    "'new')",
}
"""What is done to tables of two partitions; what the log does not tell is the second only."""
WRITTEN = tuple(n for n in CASES if n not in ("gone", "called_else", "moved", "key_named", "idle"))


def make_tables(database: Database) -> None:
    database.execute("CREATE SCHEMA shop")
    for name in (*CASES, "idle"):
        database.execute(
            f"CREATE TABLE shop.{name} (id bigint PRIMARY KEY, v text, a text, n int, code "
            "varchar(10));"
            f"INSERT INTO shop.{name} SELECT i, 'v', 'a' || i, i, 'c' || i FROM "
            f"generate_series(1, {ROWS}) i"
        )
    database.execute(
        "CREATE TABLE shop.parts (id bigint, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);"
        "CREATE TABLE shop.parts_1 PARTITION OF shop.parts FOR VALUES FROM (0) TO (1000000);"
        "INSERT INTO shop.parts SELECT i, 'v' FROM generate_series(1, 100) i"
    )
    for name in PARTED:
        database.execute(
            f"CREATE TABLE shop.{name} (id bigint PRIMARY KEY, v text) PARTITION BY RANGE (id);"
            f"CREATE TABLE shop.{name}_1 PARTITION OF shop.{name} FOR VALUES FROM (0) TO (50);"
            f"CREATE TABLE shop.{name}_2 PARTITION OF shop.{name} FOR VALUES FROM (50) TO (1000);"
            f"INSERT INTO shop.{name} SELECT i, 'v' FROM generate_series(1, 99) i"
        )


class Writer(Background):
    """Writes every table whatever its schema is just then: rows come, go and change."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._next = 100_000

    def round(self, connection: psycopg.Connection) -> None:
        """One small transaction on each table."""
        self._next += 2
        for name in WRITTEN:
            first = "code, " if name == "rekeyed" else ""
            value = f"'k{self._next}', " if first else ""
            connection.execute(
                f"INSERT INTO shop.{name} ({first}id, v) VALUES ({value}{self._next}, 'new');"
                f"UPDATE shop.{name} SET v = v || '+' WHERE id % 50 = {self._next % 50};"
                f"DELETE FROM shop.{name} WHERE id = {self._next // 2 - 49_900}".encode()
            )
        connection.execute(f"INSERT INTO shop.parts VALUES ({self._next}, 'new')".encode())

    def _go(self) -> None:
        with self._database.connect() as connection:
            while not self._stop.wait(0.1):
                self.round(connection)


def kinds(world: World, name: str) -> list[str]:
    found = Event.objects.filter(replicator=world.replicator, table_name=name).order_by("pk")
    return list(found.values_list("kind", flat=True))


def differences(world: World, name: str) -> list[str]:
    """Rows that the copy and the table it follows do not have equally often."""
    schema, _, now = (CASES[name].now if name in CASES else "").rpartition(".")
    with world.database.connect() as connection:
        rows = table_rows(connection, schema or "shop", now or name)
    return differing(rows, world.target_rows(name), ("id", "v"))


def equal(world: World, *names: str) -> None:
    """Wait until the copies are equal, every column compared; the last difference is reported where
    they never are."""
    for name in names:
        reported: list[str] = []

        def same(name: str = name, reported: list[str] = reported) -> bool:
            reported[:] = (
                differences(world, name)[:5] if world.row(name).is_snapshot_done else ["no copy"]
            )
            return not reported and world.states()[name] == "replicating"

        try:
            world.until(same, f"{name} is equal")
        except AssertionError as err:
            raise AssertionError(f"{name}: {reported} {kinds(world, name)}") from err


def only_where_due_copied_afresh(world: World) -> None:
    """Those tables have a second copy that need one, and it was said; no others."""
    due = {n for n, c in CASES.items() if c.is_copied} | {"parts_emptied"}
    for name in (*CASES, *PARTED):
        copied = world.row(name).generation > 1
        assert copied is (name in due), f"{name}: {kinds(world, name)}"
        assert not copied or "schema_resync" in kinds(world, name), name


def test_each_change_is_followed_copied_afresh_or_said(twin_maker: MakeWorld) -> None:
    """Guards the matching of columns by attnum (a rename would empty its column), the filling of
    old rows with attmissingval, the look at rewrites, OIDs, publication members, partitions and
    their files, the following of a table by its OID: each switched off leaves its table unequal or
    silent."""
    names = (*CASES, "idle", "parts", *PARTED)
    with twin_maker(prepare=make_tables, tables=names, environment=FAST_LOOKS) as world:
        child = world.start()
        world.settle()
        publication = f"{world.replicator.slot_name}_full"
        writer = Writer(world.database)
        with writer.going_on():
            for name in WRITTEN[:3]:
                world.moves_on(name)
            for case in CASES.values():
                world.database.execute(case.ddl.replace("{publication}", publication))
            world.database.execute("ALTER TABLE shop.idle ADD b int DEFAULT 5, ADD c text")
            world.database.execute("; ".join(PARTED.values()))
            world.database.execute(
                "CREATE TABLE shop.parts_2 PARTITION OF shop.parts FOR VALUES FROM (1000000) TO "
                "(2000000)"
            )
            world.moves_on("added")
            for case in CASES.values():
                if case.now:
                    world.database.execute(f"DELETE FROM {case.now} WHERE id < 10")
            assert world.row("parts").generation == 1, (
                "a partition that was made in place is no reason"
            )
            world.database.execute(
                "CREATE TABLE shop.parts_3 (LIKE shop.parts INCLUDING ALL);"
                "INSERT INTO shop.parts_3 SELECT i, 'old' FROM generate_series(2000001, 2000030) i"
            )
            world.database.execute(
                "ALTER TABLE shop.parts ATTACH PARTITION shop.parts_3 FOR VALUES FROM (2000000) "
                "TO (3000000)"
            )
            for name, case in CASES.items():
                if case.failing:
                    world.until_states(f"failing {case.failing}", name)
            world.until(lambda: world.row("parts").generation > 1, "the attached rows are read")
        equal(world, "idle", "parts", *PARTED, *(n for n, c in CASES.items() if not c.failing))
        only_where_due_copied_afresh(world)
        for name in ("added", "renamed", "dropped", "longer", "idle", "called_else", "moved"):
            assert "schema_followed" in kinds(world, name), name
        assert not child.is_dead()
        assert world.stop() == 0
