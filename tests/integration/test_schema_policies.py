"""The policies for schema changes and for tables that come and go, over the whole path on
PostgreSQL: what each leaves of a table's copy, and the event that tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest

from runners.models import Event, NewTable, Progress
from tests.harness import World, differing, table_rows
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.long,
    pytest.mark.oldest_postgresql(is_long=True),
]

FAST_LOOKS = {"REPLICATOR_CATALOG_SECONDS": "1"}
STOPPED = "failing source:schema-changed"
DDL = {
    "added": "ALTER TABLE shop.added ADD b int DEFAULT 7",
    "dropped": "ALTER TABLE shop.dropped DROP a",
    "renamed": "ALTER TABLE shop.renamed RENAME a TO z",
    "longer": "ALTER TABLE shop.longer ALTER code TYPE varchar(90)",
    "retyped": "ALTER TABLE shop.retyped ALTER n TYPE text",
    "rekeyed": "ALTER TABLE shop.rekeyed DROP CONSTRAINT rekeyed_pkey;"
    " ALTER TABLE shop.rekeyed ADD PRIMARY KEY (code)",
    "made_again": "DROP TABLE shop.made_again; CREATE TABLE shop.made_again (id bigint PRIMARY "
    "KEY, a text)",
    "called_else": "ALTER TABLE shop.called_else RENAME TO other_name",
    "gone": "DROP TABLE shop.gone",
}
TABLES = (*DDL, "quiet")


@dataclass(frozen=True)
class Case:
    """A policy: `states` of tables that do not replicate on, `events` of those that do, `kept`:
    columns that the copy has beside the source's; `empty`: those that read NULL; `lacking`: those
    that it does not have."""

    options: dict[str, str]
    states: dict[str, str]
    events: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    empty: dict[str, str] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)


GOING = {"called_else": "failing source:table-renamed", "gone": "failing source:table-missing"}
COMMON = dict.fromkeys(("retyped", "rekeyed", "made_again"), STOPPED)
CASES = {
    "lenient": Case(
        {"schema_changes": "lenient", "new_tables": "add", "vanished_tables": "drop"},
        {**COMMON, "called_else": GOING["called_else"], "renamed": STOPPED, "gone": "removed"},
        {"added": "schema_followed", "dropped": "schema_kept", "longer": "schema_followed"},
        kept={"dropped": "a"},
    ),
    "ignore": Case(
        {"schema_changes": "ignore", "new_tables": "ignore", "vanished_tables": "keep"},
        {**COMMON, **GOING, "longer": STOPPED},
        {"added": "schema_kept", "dropped": "schema_kept", "renamed": "schema_kept"},
        kept={"dropped": "a", "renamed": "a"},
        empty={"dropped": "a", "renamed": "a"},
        lacking={"added": "b", "renamed": "z"},
    ),
    "stop": Case(
        {"schema_changes": "stop", "new_tables": "ask", "vanished_tables": "keep"},
        {
            **COMMON, **GOING,
            **dict.fromkeys(("added", "dropped", "renamed", "longer"), STOPPED),
        },
    ),
}  # fmt: skip


def make_tables(database: Database) -> None:
    database.execute("CREATE SCHEMA shop")
    for name in TABLES:
        database.execute(
            f"CREATE TABLE shop.{name} (id bigint PRIMARY KEY, a text, n int, code varchar(10) "
            "NOT NULL);"
            f"INSERT INTO shop.{name} SELECT i, 'a' || i, i, 'c' || i FROM generate_series(1, "
            "100) i"
        )


def write(world: World, *names: str) -> None:
    """One row more and one changed, whatever schema the table has."""
    for name in names:
        world.database.execute(
            f"INSERT INTO shop.{name} (id, code) VALUES (1000, 'new');"
            f"UPDATE shop.{name} SET code = 'changed' WHERE id = 7"
        )


def kinds(world: World, name: str) -> list[str]:
    found = Event.objects.filter(replicator=world.replicator, table_name=name).order_by("pk")
    return list(found.values_list("kind", flat=True))


def differences(world: World, name: str, case: Case) -> list[str]:
    """How the copy differs from the source beside what the policy leaves in it, or out of it."""
    kept, lacking = case.kept.get(name), case.lacking.get(name)
    source = [{k: v for k, v in r.items() if k != lacking} for r in world.source_rows(name)]
    target = [{k: v for k, v in r.items() if k != kept} for r in world.target_rows(name)]
    return differing(source, target, ("id",))


def is_equal(world: World, name: str, case: Case) -> bool:
    return not differences(world, name, case)


def is_reported(world: World, name: str, kind: str) -> bool:
    return kind in kinds(world, name)


def assert_effects(world: World, case: Case) -> None:
    """What each table's copy is in the end."""
    going_on = [n for n in TABLES if n not in case.states]
    for name in going_on:
        world.until(partial(is_equal, world, name, case), f"{name} goes on")
        assert world.row(name).generation == 1, f"{name} was copied afresh"
    for name, kind in case.events.items():
        world.until(partial(is_reported, world, name, kind), f"{name} {kind}")
    for name, column in case.kept.items():
        values = {r["id"]: r[column] for r in world.target_rows(name)}
        assert values[1000] is None and len(values) == 101
        assert values[50] == (None if case.empty.get(name) else "a50"), f"{name}.{column}"
    for name, state in case.states.items():
        world.until_states(state, name)
    for name, state in case.states.items():
        if state.startswith("failing"):
            assert "table_failed" in kinds(world, name), name
            assert len(world.target_rows(name)) in (100, 101), f"{name}: its rows stay"


@pytest.mark.parametrize("policy", sorted(CASES))
def test_each_policy_has_its_effect_and_tells_it(world_maker: MakeWorld, policy: str) -> None:
    """Guards the reading of the policy by all that meets a change (decoding, merging, the look into
    the catalog, the tables that came or went): one that went by `evolve` would follow what is to
    stay, or copy afresh what is to stop."""
    case = CASES[policy]
    with world_maker(
        prepare=make_tables, tables=TABLES, environment=FAST_LOOKS, options=case.options
    ) as world:
        child = world.start()
        world.settle()
        world.until(
            lambda: Progress.objects.get(replicator=world.replicator).schemas_seen, "first look"
        )
        for statements in DDL.values():
            world.database.execute(statements)
        world.database.execute(
            "CREATE TABLE shop.fresh (id bigint PRIMARY KEY); INSERT INTO shop.fresh VALUES (1), "
            "(2)"
        )
        write(
            world, *(n for n in TABLES if n not in ("called_else", "gone", "made_again", "rekeyed"))
        )
        assert_effects(world, case)
        assert_new_table(world, case.options["new_tables"])
        assert_vanished(world, case.options["vanished_tables"])
        assert not child.is_dead()
        assert world.stop() == 0


def assert_new_table(world: World, policy: str) -> None:
    """`add` copies it, `ask` asks, `ignore` does and says nothing."""
    reported = Event.objects.filter(replicator=world.replicator, kind="tables_appeared")
    asked = NewTable.objects.filter(replicator=world.replicator, is_ignored=False)
    if policy == "ignore":
        assert not reported.exists() and "fresh" not in world.states()
        return
    world.until(reported.exists, "the new table is reported")
    names = {t for facts in reported.values_list("facts", flat=True) for t in facts["tables"]}
    assert "shop.fresh" in names
    if policy == "ask":
        assert asked.filter(name="fresh").exists() and "fresh" not in world.states()
    else:
        world.until(lambda: world.states().get("fresh") == "replicating", "it is added", 120)
        world.until(lambda: len(world.target_rows("fresh")) == 2, "its rows are there")


def assert_vanished(world: World, policy: str) -> None:
    """`drop` takes the copy away too, `keep` leaves its rows."""
    if policy == "keep":
        assert len(world.target_rows("gone")) == 100
        return
    world.until(lambda: not (world.warehouse / "shop" / "gone" / "data").exists(), "it is dropped")


def test_a_renamed_table_is_followed_also_where_nothing_ran(world_maker: MakeWorld) -> None:
    """Guards the following of a table by its OID over a restart: known by its name it would be
    missed, or a new table of that name taken for it; the fresh copy that a person asks for is of
    the renamed one too."""

    def differ(name: str) -> list[str]:
        with world.database.connect() as connection:
            return differing(table_rows(connection, "shop", name), world.target_rows("quiet"))

    with world_maker(
        prepare=make_tables, tables=("quiet", "added"), environment=FAST_LOOKS
    ) as world:
        world.start()
        world.settle()
        world.database.execute("ALTER TABLE shop.quiet RENAME TO first_name")
        assert world.stop() == 0
        world.database.execute(
            "CREATE TABLE shop.quiet (id bigint PRIMARY KEY); INSERT INTO shop.quiet VALUES (5)"
        )
        world.start()
        write(world, "first_name", "added")
        world.settle()
        assert not differ("first_name")
        world.until(lambda: "schema_followed" in kinds(world, "quiet"), "it is reported")
        world.database.execute("ALTER TABLE shop.first_name RENAME TO second_name")
        assert world.stop() == 0
        world.start()
        world.database.execute("DELETE FROM shop.second_name WHERE id < 20")
        world.settle()
        assert not differ("second_name") and world.row("quiet").generation == 1
        world.resync("quiet")
        world.until(lambda: world.row("quiet").generation == 2, "it is copied afresh")
        world.database.execute("DELETE FROM shop.second_name WHERE id < 30")
        world.settle()
        assert not differ("second_name")
        assert Event.objects.filter(kind="schema_followed", table_name="quiet").count() == 2
        assert world.stop() == 0
