"""Partitions that keep their owner from writing while their table is in the stream (CORRECTNESS
20), and those that come with rows in the transaction that makes them (CORRECTNESS 21)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql.checks import PostgresqlChecks
from replicators.sources.postgresql.log import LogControl, LogReader
from replicators.sources.postgresql.snapshot import snapshot_again
from runners.models import Event
from tests.harness import World, differing
from tests.integration.postgresql_source import begin, changes, describe, params_of, read_all
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.oldest_postgresql(is_long=True),
]

SLOT = "partitions_slot"
ROOTS = {
    "counted": "(n int) PARTITION BY RANGE (n)",
    "keyed": "(n int NOT NULL) PARTITION BY RANGE (n)",
}


@pytest.fixture
def published(database: Database) -> Iterator[LogControl]:
    """Two partitioned tables in the stream, known by whole rows and by an index."""
    for name, columns in ROOTS.items():
        database.execute(f"CREATE TABLE {name} {columns}")
        database.execute(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (10)")
    database.execute(
        "CREATE UNIQUE INDEX by_n ON keyed (n); ALTER TABLE keyed REPLICA IDENTITY USING INDEX "
        "by_n;"
        " ALTER TABLE keyed_1 REPLICA IDENTITY FULL;"
        " ALTER TABLE counted REPLICA IDENTITY FULL; ALTER TABLE counted_1 REPLICA IDENTITY FULL"
    )
    params = params_of(database)
    LogReader(params, SLOT).prepare(describe(database, *ROOTS), None)
    with LogControl(params, SLOT) as control:
        yield control
        control.drop()


def add_part(database: Database, name: str) -> None:
    database.execute(f"CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (10) TO (20)")
    database.execute(f"INSERT INTO {name} VALUES (15)")


@pytest.mark.parametrize("name", sorted(ROOTS))
def test_a_partition_without_identity_is_reported_and_its_owner_can_write_again(
    database: Database, published: LogControl, name: str
) -> None:
    """Guards that a table is neither published nor copied while a partition of it would refuse its
    owner's updates: the copy would be followed by inserts only, or the owner could not write."""
    tables = describe(database, *ROOTS)
    assert published.refused(tables) == {}
    add_part(database, name)
    update = f"UPDATE {name} SET n = 16 WHERE n = 15"
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        database.execute(update)
    (mine,) = (t for t in tables if t.id.name == name)
    (statement,) = published.refused(tables).values()
    assert statement == f"ALTER TABLE public.{name}_2 REPLICA IDENTITY FULL;"

    published.remove_tables([mine])
    database.execute(update)
    published.add_tables(tables)
    database.execute("UPDATE " + name + " SET n = 17 WHERE n = 16")
    with snapshot_again(params_of(database), SLOT) as session:
        with pytest.raises(ReplicationError) as caught:
            session.plan(mine, rows_per_chunk=10)
        assert caught.value.code == "source:partition-identity"

    database.execute(statement)
    assert published.refused(tables) == {}
    published.add_tables(tables)
    database.execute("UPDATE " + name + " SET n = 18 WHERE n = 17")
    assert published.unpublished(tables) == []


@pytest.mark.parametrize(
    "change",
    [
        "DROP CONSTRAINT t_pkey",
        "REPLICA IDENTITY NOTHING",
        "DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) DEFERRABLE",
    ],
)
def test_a_table_that_lost_its_identity_keeps_its_owner_from_nothing(
    database: Database, change: str
) -> None:
    """Guards `slots.release`: a table that stops for its key's change, or had stopped before, waits
    for a person, and as long as it is in the stream its owner's updates and deletes fail."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)")
    database.execute("CREATE TABLE other (id int PRIMARY KEY)")
    tables = describe(database, "t", "other")
    LogReader(params_of(database), SLOT).prepare(tables, None)
    with LogControl(params_of(database), SLOT) as control:
        assert control.refused(tables) == {} and control.unpublished(tables) == []
        database.execute(f"ALTER TABLE t {change}")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            database.execute("UPDATE t SET n = 2")
        assert control.refused(tables) == {}
        database.execute("UPDATE t SET n = 2")
        assert control.unpublished(tables) == tables[:1]
        control.drop()


@pytest.mark.parametrize(
    ("root", "part", "is_refused"),
    [
        ("DEFAULT", "USING INDEX part_mail", True),
        ("FULL", "USING INDEX part_mail", True),
        ("USING INDEX p_mail", "DEFAULT", True),
        ("USING INDEX p_mail", "USING INDEX p_1_id_mail_idx", False),
        ("USING INDEX p_mail", "FULL", False),
        ("DEFAULT", "USING INDEX p_1_id_mail_idx", False),
        ("FULL", "DEFAULT", False),
    ],
)
def test_a_partition_that_sends_another_key_than_its_tables_is_reported(
    database: Database, root: str, part: str, is_refused: bool
) -> None:
    """Guards deletes and changed keys: they come without the table's key, and would find no row of
    the copy."""
    database.execute(
        "CREATE TABLE p (id int PRIMARY KEY, mail text NOT NULL) PARTITION BY RANGE (id);"
        "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
        "CREATE UNIQUE INDEX p_mail ON p (id, mail); CREATE UNIQUE INDEX part_mail ON p_1 (mail);"
        f"ALTER TABLE p REPLICA IDENTITY {root}; ALTER TABLE p_1 REPLICA IDENTITY {part}"
    )
    with LogControl(params_of(database), SLOT) as control:
        tables = describe(database, "p")
        statements = list(control.refused(tables).values())
        wanted = "ALTER TABLE public.p_1 REPLICA IDENTITY FULL;"
        assert statements == [wanted] * is_refused
        database.execute(wanted)
        assert control.refused(tables) == {}


def test_the_assessment_says_it_before(database: Database, published: LogControl) -> None:
    """Guards `slots.refusing` in `checks.tables`: by whole rows the table counts as one without a
    key; by an index it would be published, and its owner's updates fail."""
    add_part(database, "keyed")
    with PostgresqlChecks(params_of(database)) as checks:
        (problem,) = checks.tables([TableSelection(TableId("public", "keyed"))])
    assert problem.code == "source:partition-identity"
    assert "ALTER TABLE public.keyed_2 REPLICA IDENTITY FULL;" in problem.message.suggestion


@pytest.mark.parametrize("name", ["keyed", "bare"])
def test_a_partition_that_is_not_logged_is_reported(database: Database, name: str) -> None:
    """Guards `slots.UNLOGGED`: a table in a publication can't be made unlogged, but a partition of
    it can, and from then on nothing of it comes by the log."""
    key = "PRIMARY KEY" if name == "keyed" else ""
    database.execute(
        f"CREATE TABLE {name} (n int {key}) PARTITION BY RANGE (n);"
        f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (10)"
    )
    tables = describe(database, name)
    reader, session = begin(database, SLOT, tables)
    session.close()
    with reader, LogControl(params_of(database), SLOT) as control:
        assert control.refused(tables) == {}
        database.execute(f"ALTER TABLE {name}_1 SET UNLOGGED; INSERT INTO {name} VALUES (1)")
        assert changes(read_all(reader, control), tables) == {}
        statement = f"ALTER TABLE public.{name}_1 SET LOGGED;"
        assert list(control.refused(tables).values()) == [statement]
        with (
            snapshot_again(params_of(database), SLOT) as later,
            pytest.raises(ReplicationError) as caught,
        ):
            later.plan(tables[0], rows_per_chunk=10)
        assert caught.value.code == "source:partition-identity"
        with PostgresqlChecks(params_of(database)) as checks:
            problems = checks.tables([TableSelection(tables[0].id)])
        assert statement in problems[-1].message.suggestion
        database.execute(statement)
        assert control.refused(tables) == {}
        control.drop()


def test_a_table_that_became_a_partition_of_another_one_that_is_copied_is_reported(
    database: Database,
) -> None:
    """Guards `slots.PARTS`: its changes come under the other's name alone from then on, and its own
    copy would stand still without a word. Taken out of the stream, it is still reported."""
    database.execute(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE alone (id int PRIMARY KEY)"
    )
    tables = describe(database, "p", "alone")
    reader, session = begin(database, SLOT, tables)
    session.close()
    with reader, LogControl(params_of(database), SLOT) as control:
        assert control.refused(tables) == {}
        database.execute("ALTER TABLE p ATTACH PARTITION alone FOR VALUES FROM (0) TO (10)")
        database.execute("INSERT INTO alone VALUES (1)")
        assert list(changes(read_all(reader, control), tables)) == ["p"]
        statement = "ALTER TABLE public.p DETACH PARTITION public.alone;"
        assert control.refused(tables) == {tables[1].id: statement}
        control.remove_tables([tables[1]])
        assert control.refused(tables) == {tables[1].id: statement}
        with PostgresqlChecks(params_of(database)) as checks:
            (problem,) = checks.tables([TableSelection(t.id) for t in tables])
            assert checks.tables([TableSelection(tables[1].id)]) == []
        assert statement in problem.message.suggestion
        control.remove_tables([tables[0]])
        assert control.refused(tables) == {}
        control.drop()


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_partition_sends_what_its_own_identity_says(database: Database, identity: str) -> None:
    """Guards large values: the root's identity is FULL, so a key comes as a whole row of NULLs
    where the partition's is not, and NULL would be written over what was not sent."""
    database.execute(
        "CREATE TABLE p (id int PRIMARY KEY, n int, big text) PARTITION BY RANGE (id);"
        "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
        "ALTER TABLE p_1 ALTER big SET STORAGE EXTERNAL; ALTER TABLE p REPLICA IDENTITY FULL;"
        f"ALTER TABLE p_1 REPLICA IDENTITY {identity}"
    )
    big = "x" * 9000
    database.execute(f"INSERT INTO p VALUES (1, 1, '{big}')")  # noqa: S608
    tables = describe(database, "p")
    reader, session = begin(database, SLOT, tables)
    session.close()
    with reader, LogControl(params_of(database), SLOT) as control:
        database.execute("UPDATE p SET id = 2; UPDATE p SET n = 2; DELETE FROM p")
        (found,) = changes(read_all(reader, control), tables)["p"]
        control.drop()
    is_full = identity == "FULL"
    unsent = None if is_full else bytes([0b100])
    assert found["_unchanged"].to_pylist() == [unsent, unsent, None]
    assert found["big"].to_pylist() == [big if is_full else None] * 2 + [None]
    before = found["_before"].to_pylist()
    if is_full:
        assert before[0] == {"id": 1, "n": 1, "big": big}
    else:
        assert before == [{"id": 1}, None, {"id": 2}]


def make_tables(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.counted (n int) PARTITION BY RANGE (n);"
        "CREATE TABLE shop.counted_1 PARTITION OF shop.counted FOR VALUES FROM (0) TO (10);"
        "ALTER TABLE shop.counted REPLICA IDENTITY FULL; ALTER TABLE shop.counted_1 REPLICA "
        "IDENTITY FULL;"
        "CREATE TABLE shop.days (n int PRIMARY KEY) PARTITION BY RANGE (n);"
        "CREATE TABLE shop.days_1 PARTITION OF shop.days FOR VALUES FROM (0) TO (10);"
        "INSERT INTO shop.days VALUES (1), (2); INSERT INTO shop.counted VALUES (1), (1), (2)"
    )


def is_same(world: World, name: str) -> bool:
    rows = [{"n": r["n"]} for r in world.target_rows(name)]
    return not differing(world.source_rows(name), rows)


@pytest.mark.long
def test_partitions_are_never_a_silent_hole(world_maker: MakeWorld) -> None:
    """Guards the look at partitions over the whole path: one that was made, filled and attached at
    once is copied, and a table whose partition refuses updates leaves the stream, says the
    statement that mends it, and comes back after it."""
    environment = {"REPLICATOR_CATALOG_SECONDS": "1"}
    with world_maker(
        prepare=make_tables, tables=("counted", "days"), environment=environment
    ) as world:
        world.start()
        world.settle()
        world.database.execute(
            "BEGIN; CREATE TABLE shop.days_2 (n int PRIMARY KEY); INSERT INTO shop.days_2 VALUES "
            "(11), (12);"
            " ALTER TABLE shop.days ATTACH PARTITION shop.days_2 FOR VALUES FROM (10) TO (20); "
            "COMMIT"
        )
        world.database.execute(
            "CREATE TABLE shop.counted_2 PARTITION OF shop.counted FOR VALUES FROM (10) TO (20);"
            "INSERT INTO shop.counted VALUES (11), (11)"
        )
        world.until_states("failing source:partition-identity", "counted")
        world.database.execute("DELETE FROM shop.counted WHERE n = 11")
        world.until(lambda: is_same(world, "days"), "the attached rows are there")
        reported = Event.objects.get(replicator=world.replicator, kind="schema_resync")
        assert reported.table_name == "days"
        world.database.execute(world.row("counted").error_facts["statement"])
        world.until_states("replicating", "counted")
        world.database.execute(
            "INSERT INTO shop.counted VALUES (12), (12); DELETE FROM shop.counted WHERE n = 2"
        )
        world.settle()
        assert is_same(world, "counted") and is_same(world, "days")
        assert world.stop() == 0
