"""The policies for schema changes on MySQL and MariaDB, over the whole path: what each leaves of a
copy, without a row behind the statement and then with some; and tables that leave out a kind of
change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.harness import differing
from tests.mysql_servers import SqlDatabase
from tests.mysql_world import MysqlWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200), pytest.mark.long]

ROWS = 20
STOPPED, UNLOGGED = "failing source:schema-changed", "failing source:change-unlogged"
DDL = {
    "added": "ADD b int DEFAULT 7 FIRST",
    "dropped": "DROP a",
    "renamed": "RENAME COLUMN a TO z",
    "widened": "MODIFY n bigint, MODIFY v varchar(90)",
    "retyped": "MODIFY n varchar(20)",
    "again": "DROP a, ADD a varchar(30) DEFAULT 'z' AFTER v",
    "swapped": "RENAME COLUMN n TO m, RENAME COLUMN m TO n",
    "rekeyed": "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)",
    "computed": "ADD b int DEFAULT (3 + 4)",
    "same": "MODIFY n int COMMENT 'x', ADD INDEX (a)",
}
CHANGED = [n for n in DDL if n not in ("rekeyed", "computed", "same")]
KEPT_OUT = {"inserts": "no_inserts", "updates": "no_updates", "deletes": "no_deletes"}
TABLES = (*DDL, *KEPT_OUT.values())
WORK = (
    "INSERT INTO {t} (id, v, a) VALUES (50, 'new', 'x')",
    "UPDATE {t} SET v = 'changed' WHERE id = 3",
    "DELETE FROM {t} WHERE id = 4",
    "UPDATE {t} SET id = 55 WHERE id = 5",
)
LATER = (
    "INSERT INTO {t} (id, v) VALUES (51, 'new')",
    "UPDATE {t} SET v = 'changed' WHERE id = 6",
    "DELETE FROM {t} WHERE id = 7",
)


@dataclass(frozen=True)
class Case:
    """A policy: the tables that stop, and columns by table that the copy has beside the source's,
    or lacks; `empty`: those of the former that read NULL."""

    stops: Mapping[str, str]
    kept: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    empty: bool = False


NEVER = {"rekeyed": UNLOGGED, "computed": UNLOGGED}
CASES = {
    "lenient": Case(
        {**NEVER, **dict.fromkeys(("renamed", "retyped", "again", "swapped"), STOPPED)},
        kept={"dropped": "a"}
    ),
    "ignore": Case(
        {**NEVER, **dict.fromkeys(("widened", "retyped", "again", "swapped"), STOPPED)},
        kept={"dropped": "a", "renamed": "a"}, lacking={"added": "b", "renamed": "z"}, empty=True,
    ),
    "stop": Case({**NEVER, **dict.fromkeys(CHANGED, STOPPED)}),
}  # fmt: skip


def make_tables(database: SqlDatabase) -> None:
    """All alike, with some rows."""
    rows = ", ".join(f"({i}, 'v{i}', 'a{i}', {i}, {100 + i})" for i in range(1, ROWS + 1))
    for name in TABLES:
        database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v varchar(50), a varchar(30), n int, m int)",
            f"INSERT INTO {name} VALUES {rows}",
        )


def differences(world: MysqlWorld, name: str, case: Case) -> list[str]:
    """How the copy differs from the source beside what the policy leaves in it, or out of it."""
    kept, lacking = case.kept.get(name), case.lacking.get(name)
    source = [{k: v for k, v in r.items() if k != lacking} for r in world.source_rows(name)]
    target = world.target_rows(name)
    if kept:
        values = {r["id"]: r.pop(kept) for r in target}
        if values[8] != (None if case.empty else "a8") or values.get(51) is not None:
            return [f"{kept}: {values}"]
    return differing(source, target, ("id",))


def wait(world: MysqlWorld, case: Case) -> None:
    """Each table stops, or is as the policy leaves it."""
    for name, state in case.stops.items():
        world.until_states(state, name)
    going = [n for n in DDL if n not in case.stops]
    world.settle(*going)
    for name in going:
        found = differences(world, name, case)
        assert not found, (name, found[:5])
        assert world.row(name).generation == 1, f"{name} was copied afresh"


def left_out(world: MysqlWorld, kind: str, source: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a copy without these changes holds, once `WORK`, an added column `z` and `LATER` are
    done."""
    rows = {r["id"]: r for r in source}
    before = {i: {"id": i, "v": f"v{i}", "a": f"a{i}", "n": i, "m": 100 + i,
        "z": 9} for i in range(1, ROWS + 1)}  # fmt: skip
    if kind == "inserts":
        del rows[50], rows[51]
    elif kind == "deletes":
        rows |= {i: before[i] for i in (4, 7)}
    else:
        del rows[55]
        rows |= {i: before[i] for i in (3, 5, 6)}
    return list(rows.values())


def is_left_out(world: MysqlWorld, kind: str) -> bool:
    name = KEPT_OUT[kind]
    return not differing(left_out(world, kind, world.source_rows(name)), world.target_rows(name))


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
@pytest.mark.parametrize("policy", sorted(CASES))
def test_each_policy_has_its_effect_on_statements_alone_and_with_rows(
    request: pytest.FixtureRequest, world_maker: MakeWorld, policy: str, flavour: str
) -> None:
    """Guards the reading of the policy where only the log's statement tells the change; and that
    inserts, updates and deletes that are left out stay so across an added column."""
    case = CASES[policy]
    choices = {name: {"excluded": [kind]} for kind, name in KEPT_OUT.items()}
    with world_maker(
        server=request.getfixturevalue(flavour), kind=MysqlWorld, prepare=make_tables,
        tables=TABLES,
        options={"schema_changes": policy}, choices=choices,
    ) as world:  # fmt: skip
        assert isinstance(world, MysqlWorld)
        world.start()
        world.settle()
        world.database.execute(*(f"ALTER TABLE {name} {said}" for name, said in DDL.items()))
        for name in KEPT_OUT.values():
            said = (*WORK, "ALTER TABLE {t} ADD z int DEFAULT 9", *LATER)
            world.database.execute(*(s.replace("{t}", name) for s in said))
        wait(world, case)
        for name in DDL:
            if name != "rekeyed":
                world.database.execute(*(s.replace("{t}", name) for s in LATER))
        wait(world, case)
        for kind, name in KEPT_OUT.items():
            if policy == "lenient":
                world.until(partial(is_left_out, world, kind), f"without {kind}")
            elif policy == "stop":
                world.until_states(STOPPED, name)
        assert all(len(world.target_rows(n)) == ROWS for n in case.stops)
        assert world.stop() == 0
