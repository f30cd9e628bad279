"""Rows that are wrong in the target are written again from the source, while the table goes on
(`runners.engine.apply.repair`)."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.problems.errors import ReplicationError
from runners.engine import failpoints
from runners.engine.apply import repair
from runners.engine.apply.repair import Repairer
from runners.engine.store.protocol import TableState
from runners.engine.store.quarantine import QuarantinedRow
from runners.engine.store.repairs import RepairCounts
from tests.unit.engine.changes import Change, Key, Row, replay
from tests.unit.engine.mode_changes import transactions
from tests.unit.engine.repairing import Repaired, all_keys, at_once

START: dict[Key, Row] = {(n, "x"): {"a": f"a{n}", "b": f"b{n}"} for n in range(1, 6)}
DAMAGE = (
    "UPDATE {} SET a = 'wrong' WHERE id = 1",
    "DELETE FROM {} WHERE id = 2",
    "INSERT INTO {} (id, part, a) VALUES (9, 'x', 'extra')",
)
KEYS: tuple[Key, ...] = ((1, "x"), (2, "x"), (3, "x"), (8, "x"), (9, "x"))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)


def damaged(world: Repaired) -> Repaired:
    """Three rows are wrong: one differs, one is missing, and one is too much."""
    for statement in DAMAGE:
        if world.mode is Mode.HISTORY:
            statement = statement.replace("a)", "a, _is_current)").replace(
                "'extra'", "'extra', true"
            )
        world.damage(statement)
    return world


def finish(world: Repaired) -> None:
    """Turn until nothing is asked any more."""
    for _ in range(100):
        if not world.turn():
            return
    raise AssertionError("the repair does not end")


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.SOFT_DELETE, Mode.HISTORY])
def test_rows_are_written_again_and_the_token_stays(tmp_path: Path, mode: Mode) -> None:
    """Guards the comparison, the batch of each mode and the token: a batch of another sequence
    would leave changes out, and one that the token refuses would repair nothing."""
    world = damaged(Repaired(tmp_path, START, mode))
    before = world.copy.rows()
    assert world.repair(*KEYS) == RepairCounts(written=2, deleted=1, equal=2)
    assert world.current() == START
    assert world.token() == 1 and world.row.merged_sequence == 1
    assert world.repair(*KEYS) == RepairCounts(equal=5)
    if mode is Mode.HISTORY:
        wrong = [r for r in world.copy.rows() if r["a"] in ("wrong", "extra")]
        assert len(wrong) == 2 and not any(r["_is_current"] for r in wrong)
        assert all(r["_valid_to"] for r in wrong)
    untouched = [r for r in before if r["id"] in (4, 5)]
    assert [r for r in world.copy.rows() if r["id"] in (4, 5)] == untouched


def test_a_row_that_changes_meanwhile_is_read_again(tmp_path: Path) -> None:
    """Guards the look into the log: a row that was read before a change, and written after that
    change was merged, would bring the old values back for ever."""
    world = damaged(Repaired(tmp_path, START))
    world.ask((1, "x"), (3, "x"))
    world.turn()
    world.write(
        Change(Op.UPDATE, (1, "x"), ("new", "new")), Change(Op.UPDATE, (3, "x"), ("n", "n"))
    )
    world.settle()
    world.damage("UPDATE {} SET b = 'wrong' WHERE id = 3")
    world.turn()
    assert world.current()[1, "x"] == {"a": "new", "b": "new"}
    assert world.current()[3, "x"] == {"a": "n", "b": "wrong"}
    finish(world)
    assert world.source.asked[1] == [(1, "x"), (3, "x")]
    assert world.store.repaired[1] == RepairCounts(written=1, equal=1)
    del world.source.rows[2, "x"]  # nobody asked for these two
    assert world.current() == {**world.source.rows, (9, "x"): {"a": "extra", "b": None}}


def test_a_row_under_a_key_that_moves_is_read_again(tmp_path: Path) -> None:
    """Guards old keys in the log: the row of key 1 is gone at the source, since it has key 7 now.
    Taken away before that change is merged, its unsent value would be lost with it."""
    world = Repaired(tmp_path, START)
    world.write(Change(Op.UPDATE, (7, "x"), ("moved", None), frozenset({"b"}), old=(1, "x")))
    world.ask((1, "x"))
    world.turn()
    world.decode()
    world.turn()
    assert world.current()[1, "x"] == START[1, "x"], "the row was taken away too early"
    world.settle()
    finish(world)
    assert world.current() == world.source.rows
    assert world.current()[7, "x"] == {"a": "moved", "b": "b1"}
    assert world.store.repaired[1] == RepairCounts(equal=1)


def test_nothing_is_written_before_the_log_has_what_was_read(tmp_path: Path) -> None:
    """Guards the wait for the log's position: a change that the read shows and the log has not
    brought yet is not known to touch the key. With history it would be there twice."""
    world = Repaired(tmp_path, START, Mode.HISTORY)
    world.write(Change(Op.UPDATE, (1, "x"), ("new", "new"), at=5))
    world.ask((1, "x"))
    for _ in range(5):
        assert world.turn()
    assert len(world.copy.rows()) == len(START)
    world.settle()
    finish(world)
    assert world.current() == world.source.rows
    assert len(world.copy.rows()) == len(START) + 1, "the change is there twice"


def test_a_key_that_changes_without_end_is_left(tmp_path: Path) -> None:
    """Guards the end of a repair: one busy row must not keep it open for ever."""
    world = damaged(Repaired(tmp_path, START))
    world.ask((1, "x"), (9, "x"))
    for number in range(100):
        if not world.turn():
            break
        world.write(Change(Op.UPDATE, (1, "x"), (f"{number}", "b")))
        world.settle()
    assert world.store.repaired[1] == RepairCounts(deleted=1, left=1)
    assert (9, "x") not in world.current()


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_a_key_that_is_there_twice_is_there_once_again(tmp_path: Path, mode: Mode) -> None:
    """Guards doubled rows: a merge changes both of them, and both stay."""
    world = Repaired(tmp_path, START, mode)
    world.damage("INSERT INTO {} SELECT * FROM {} WHERE id = 1")
    assert world.repair((1, "x"), (2, "x")) == RepairCounts(written=1, equal=1)
    assert world.current() == START


def test_the_filter_and_the_quarantine_are_respected(tmp_path: Path) -> None:
    """Guards the row filter, whose rows are not in the copy, and quarantined keys, of which the
    target keeps what it had."""
    world = damaged(Repaired(tmp_path, START, filter="id <> 3"))
    world.damage("UPDATE {} SET a = 'older' WHERE id = 4")
    key = '{"id": "4", "part": "x"}'
    world.store.record_quarantined(
        world.schema.id, 1, [QuarantinedRow(1, key, "a: too large", b"")]
    )
    counts = world.repair((1, "x"), (3, "x"), (4, "x"))
    assert counts == RepairCounts(written=1, deleted=1, left=1)
    assert world.current()[4, "x"]["a"] == "older"
    assert (3, "x") not in world.current()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mode": Mode.APPEND}, "repair:append"),
        ({"mode": Mode.MULTISET}, "repair:keyless"),
        ({"excluded": ("deletes",)}, "repair:excluded"),
    ],
)
def test_what_can_not_be_repaired_is_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    """Guards the refusals: the table goes on, and the reason is recorded."""
    world = damaged(Repaired(tmp_path, START))
    rows = world.copy.rows()
    number = world.ask((1, "x"))
    world.store.table_progress(world.schema.id, **changes)
    world.turn()
    assert world.store.repairs_refused[number][0] == code
    assert world.copy.rows() == rows
    assert world.row.state is TableState.REPLICATING
    assert not world.turn()


def test_a_source_that_reads_no_rows_by_key_is_named(tmp_path: Path) -> None:
    """Guards the refusal for sources without `row_reader`, and for a table that is gone."""
    world = Repaired(tmp_path, START)
    world.repairer = Repairer(
        world.target, world.store, world.repairer._log, "r1", world.merger, None
    )
    first = world.ask((1, "x"))
    world.turn()
    assert world.store.repairs_refused[first][0] == "repair:source"
    second = world.ask((1, "x"))
    world.repairer.look([replace(world.row, is_chosen=False)])
    assert world.store.repairs_refused[second][0] == "repair:removed"


def test_a_fault_is_tried_again_and_never_stops_the_table(tmp_path: Path) -> None:
    """Guards faults of the source and of the target: the request stays until it is done, or is
    refused with the fault. The table replicates."""
    world = damaged(Repaired(tmp_path, START))
    world.source.fault = ReplicationError("source:connection-lost")
    number = world.ask((1, "x"))
    world.turn()
    world.turn()
    assert not world.store.repairs_refused
    world.source.fault = None
    finish(world)
    assert world.store.repaired[number] == RepairCounts(written=1)
    world.source.fault = ReplicationError("source:connection-lost")
    second = world.ask((2, "x"))
    for _ in range(2 * repair.MOST_TRIES):
        world.turn()
    assert world.store.repairs_refused[second][0] == "source:connection-lost"
    assert world.row.state is TableState.REPLICATING


class Killed(BaseException):
    """The process ends here."""


CUTS = [
    (mode, point)
    for mode in (Mode.MIRROR, Mode.SOFT_DELETE, Mode.HISTORY)
    for point in (*failpoints.REPAIR_NAMES, "batch_staged", "batch_merged")
    if point != "repair_cleared" or mode is Mode.MIRROR  # only a mirror removes doubled rows first
]


@pytest.mark.parametrize(("mode", "point"), CUTS)
def test_a_repair_that_is_cut_off_is_repeated_and_nothing_is_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, point: str
) -> None:
    """Guards the order of a repair's writes: at every place where the process may end, the rows are
    repaired or not, and the next run repeats it from the request."""
    world = damaged(Repaired(tmp_path, START, mode))
    if point == "repair_cleared":
        world.damage("INSERT INTO {} (id, part, a) VALUES (1, 'x', 'twice')")
    number = world.ask(*KEYS)
    hits: list[str] = []

    def hit(name: str) -> None:
        hits.append(name)
        if name == point:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(repair.failpoints, "hit", hit)
        patched.setattr("replicators.connectors.failpoints.hit", hit)
        with pytest.raises(Killed):
            finish(world)
    assert hits[-1] == point
    world.open_run()
    world.write(Change(Op.UPDATE, (4, "x"), ("later", "later"), at=9))
    world.settle()
    finish(world)
    assert number in world.store.repaired
    assert world.current() == world.source.rows
    if mode is Mode.HISTORY:
        wrong = [r for r in world.copy.rows() if r["a"] in ("wrong", "extra")]
        assert len(wrong) == 2 and len(world.copy.rows()) == 5 - 1 + 1 + 2 + 1


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.SOFT_DELETE, Mode.HISTORY])
@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 30))]
)
def test_repairs_under_traffic_leave_what_the_source_has(
    tmp_path: Path, mode: Mode, seed: int
) -> None:
    """Guards the whole of it by random walks: changes with unsent values, changed keys in chains,
    deletes and TRUNCATEs are captured, decoded and merged at any time between the steps of a
    repair, and rows of the target are changed by hand."""
    start, changes = transactions(seed, 60)
    rng = random.Random(seed)
    world = Repaired(tmp_path, start, mode)
    parts = [list(g) for _, g in itertools.groupby(changes, key=lambda c: c.transaction)]
    world.damage("UPDATE {} SET a = 'wrong' WHERE id % 2 = 0")
    world.ask(*all_keys(start, changes))
    while parts:
        match rng.randrange(4):
            case 0:
                world.write(*parts.pop(0))
            case 1:
                world.decode()
            case 2:
                world.merge()
            case 3:
                world.turn()
    world.settle()
    finish(world)
    world.ask(*all_keys(start, changes))
    finish(world)
    assert world.store.repaired[2].left == 0
    assert world.current() == replay(start, changes)


def test_an_unknown_fault_is_no_fault_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the table from a defect of the repair: it would fail, and with it what is merged."""
    world = damaged(Repaired(tmp_path, START))
    number = world.ask((1, "x"))

    def fails(*_: Any) -> Any:
        raise KeyError("a defect")

    monkeypatch.setattr(world.source, "read", fails)
    for _ in range(2 * repair.MOST_TRIES):
        world.turn()
    assert world.store.repairs_refused[number][0] == "internal:unexpected"
    assert world.row.state is TableState.REPLICATING
