"""The checks of copies that keep the past: they pass what is right and name what is not; and the
adversary's own writes run."""

from __future__ import annotations

import copy
import datetime as dt
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.model.further import FurtherWrites
from tests.model.past import (
    Base,
    Change,
    Past,
    append_failures,
    history_failures,
    multiset_failures,
    short,
    soft_failures,
)
from tests.model.sources import PostgresSource, Source
from tests.model.sources_mysql import MysqlSource
from tests.model.tables import KEYS, MODES
from tests.model.tables_mysql import history_of
from tests.model.watermarks import is_one_moment
from tests.model.writes import Writes
from tests.mysql_servers import fresh_sql_database
from tests.servers import Database

Rows = list[dict[str, Any]]
COLUMNS = ("id", "version", "n", "big")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def at(number: int) -> dt.datetime:
    return START + dt.timedelta(seconds=number)


def image(key: int, version: int) -> dict[str, Any]:
    return {"id": key, "version": version, "n": version, "big": short(f"b{key}")}


def row(key: int, version: int, **more: Any) -> dict[str, Any]:
    return {**image(key, version), "big": f"b{key}", **more}


# Keys 1 and 2 are copied; then 1 changes, goes and comes back, 2 moves to 3, 4 comes and goes in
# one transaction.
CHANGES = (
    Change(1, 1, 0, None, 1, image(1, 1)),
    Change(2, 1, 0, None, 2, {**image(2, 2)}),
    Change(3, 2, 1, 1, 1, image(1, 3)),
    Change(4, 3, 2, 1, None),
    Change(5, 4, 0, None, 1, image(1, 5)),
    Change(6, 5, 1, 2, 3, {**image(3, 6), "big": short("b2")}),
    Change(7, 6, 0, None, 4, image(4, 7)),
    Change(8, 6, 2, 4, None),
)
BASE = Base(asked=2, done=2)


def past() -> Past:
    made = Past()
    made.add(CHANGES)
    return made


def soft_rows() -> Rows:
    dead = {"_is_deleted": True, "_deleted_at": at(9)}
    alive = {"_is_deleted": False, "_deleted_at": None}
    return [row(1, 5, **alive), row(2, 2, **dead), row(3, 6, **alive, ) | {"big": "b2"},
        row(4, 7, **dead)]  # fmt: skip


def history_rows() -> Rows:
    def version(key: int, number: int, since: int, until: int | None) -> dict[str, Any]:
        ended = None if until is None else at(until)
        reported = {"_valid_from": at(since), "_valid_to": ended, "_is_current": until is None}
        return row(key, number, **reported)

    return [
        version(1, 1, 0, 3), version(1, 3, 3, 4), version(1, 5, 5, None), version(2, 2, 0, 6),
        version(3, 6, 6, None) | {"big": "b2"},
    ]  # fmt: skip


def log_rows() -> Rows:
    def change(sequence: int, operation: str, key: int, version: int) -> dict[str, Any]:
        reported = {"_sequence": sequence, "_operation": operation, "_unsent": None}
        return row(key, version, **reported)

    moved = change(13, "update", 3, 6) | {"big": None, "_unsent": ["big"]}
    return [
        change(0, "snapshot", 1, 1), change(0, "snapshot", 2, 2), change(7, "update", 1, 3),
        change(9, "delete", 1, 3), change(11, "insert", 1, 5), change(12, "delete", 2, 2), moved,
        change(15, "insert", 4, 7), change(17, "delete", 4, 7),
    ]  # fmt: skip


SOURCE = {1: row(1, 5), 3: row(3, 6) | {"big": "b2"}}
Mutation = Callable[[Rows], object]


def checked(mode: str, rows: Rows, base: Base = BASE) -> list[str]:
    if mode == "append":
        return append_failures(past(), rows, base, COLUMNS, SOURCE)
    check = soft_failures if mode == "soft" else history_failures
    return check(past(), rows, base, COLUMNS)


RIGHT = {"soft": soft_rows, "history": history_rows, "append": log_rows}


@pytest.mark.parametrize("mode", RIGHT)
def test_a_right_copy_passes_also_where_nobody_knows_when_it_was_made(mode: str) -> None:
    """A checker that found faults in what is right would be switched off."""
    assert checked(mode, RIGHT[mode]()) == []
    assert checked(mode, RIGHT[mode](), Base(asked=2)) == []


@pytest.mark.parametrize(
    ("mode", "change"),
    [
        ("soft", lambda r: r.pop(1)),
        ("soft", lambda r: r.append(dict(r[0]))),
        ("soft", lambda r: r[1].update(_is_deleted=False, _deleted_at=None)),
        ("soft", lambda r: r[0].update(_deleted_at=at(1))),
        ("soft", lambda r: r[1].update(n=9)),
        ("soft", lambda r: r[2].update(big=None)),
        ("soft", lambda r: r.append(row(9, 1, _is_deleted=True, _deleted_at=at(1)))),
        ("history", lambda r: r.pop(1)),
        ("history", lambda r: r.pop(3)),
        ("history", lambda r: r.append(dict(r[1]))),
        ("history", lambda r: r[0].update(_valid_to=at(2))),
        ("history", lambda r: r[0].update(_valid_to=at(4))),
        ("history", lambda r: r[3].update(_valid_to=None, _is_current=True)),
        ("history", lambda r: r[2].update(_is_current=False)),
        ("history", lambda r: r[4].update(big=None)),
        ("append", lambda r: r.pop(2)),
        ("append", lambda r: r.append(dict(r[8]))),
        ("append", lambda r: r[2].update(_sequence=19)),
        ("append", lambda r: r[4].update(n=9)),
        ("append", lambda r: r[6].update(_unsent=None)),
        ("append", lambda r: r.pop(0)),
    ],
)
def test_whatever_is_wrong_with_a_copy_that_keeps_the_past_is_found(
    mode: str, change: Mutation
) -> None:
    """Guards the checker: each change of a right copy is one that some fault of a fold or a merge
    would make."""
    rows = copy.deepcopy(RIGHT[mode]())
    change(rows)
    assert checked(mode, rows)


def test_rows_from_before_a_fresh_copy_are_found() -> None:
    """Guards that a re-sync begins anew: what was gone before is in none."""
    assert checked("soft", soft_rows(), Base(asked=6, done=6))
    assert checked("history", history_rows(), Base(asked=6, done=6))
    assert checked("append", log_rows(), Base(asked=6, done=6))


def test_numbers_of_equal_rows_are_checked() -> None:
    """Guards the check `multiset_failures` itself: a gap in the numbers of equal rows must be seen,
    or a row that is lost twice passes."""
    rows = [{"_row_hash": b"a", "_occurrence": n} for n in (1, 2, 3)]
    assert not multiset_failures(rows)
    assert multiset_failures([rows[0], rows[2]])


def walked(source: Source, times: int) -> None:
    """Every write so many times; then what was noted must be the tables."""
    rng = random.Random(5)
    alterations = source.alterations(source, rng)
    parts = (Writes(source, rng), FurtherWrites(source, rng))
    actions = [
        getattr(part, name)
        for part in parts
        for name in dir(part)
        if not name.startswith("_") and callable(getattr(part, name))
    ]
    actions = [*actions, alterations.write, *alterations.ways()] * times
    rng.shuffle(actions)
    for act in actions:
        act()
    alterations.call_else()
    alterations.call_again()
    grown = emptied = False
    for table in MODES:
        model = Past()
        model.add(source.changes(table, 0))
        rows = {r["id"]: r for r in source.table(table).rows()}
        assert model.number == source.past_number(table) > 100, table
        assert rows.keys() == model.rows.keys()
        emptied |= any(op == "truncate" for _, op, _ in model.log)
        columns = source.table(table).columns
        grown |= len(columns) > len(COLUMNS) + 1
        shown = [dict(r, _is_deleted=False, _deleted_at=None) for r in rows.values()]
        gone = Base(asked=model.number, done=model.number)
        assert not soft_failures(model, shown, gone, columns)
    assert grown and emptied
    history = [e[1:] for e in source.events(0)]
    for table, key in KEYS.items():
        versions = {str(r[key]): r["version"] for r in source.table(table).rows()}
        assert is_one_moment(history, {table: versions})
        assert not is_one_moment(history, {table: {**versions, "none": 1 << 60}})


@pytest.mark.integration
def test_every_write_of_the_adversary_runs_and_its_model_is_the_source(database: Database) -> None:
    """Guards the walk itself: statements that do nothing or fail would make it say less than it
    seems to, and a model that differs from the source would find faults that are none."""
    PostgresSource.prepare(database)
    world: Any = SimpleNamespace(database=database)
    walked(PostgresSource(world, None), 15)


@pytest.mark.integration
@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
@pytest.mark.long
def test_so_does_every_write_on_the_other_servers(
    request: pytest.FixtureRequest, flavour: str
) -> None:
    """Guards the same there, and the notes that are made beside a TRUNCATE."""
    with fresh_sql_database(request.getfixturevalue(flavour)) as made:
        driver = {**made.params}
        world: Any = SimpleNamespace(database=made, schema=made.name, driver=driver)
        try:
            MysqlSource.prepare(made)
            walked(MysqlSource(world, made.server), 8)
        finally:
            made.execute(f"DROP DATABASE IF EXISTS {history_of(made)}")
