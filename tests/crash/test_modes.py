"""Soft delete, history and append over the whole path: real PostgreSQL, a real run, killed between
the target's commit and its record for each mode, and every row, version and change is there
once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import World, differing, until
from tests.local.world import DuckCopies
from tests.model.modes import Ledger, in_log_order, make_tables
from tests.model.reading import present
from tests.world_fixtures import LOCAL, MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]
MODES = {"softly": "soft_delete", "versions": "history", "changes": "append"}


@pytest.fixture(
    params=[LOCAL, *(pytest.param(f, marks=pytest.mark.long) for f in ("iceberg", "delta"))]
)
def world(world_maker: MakeWorld, request: pytest.FixtureRequest) -> Iterator[World]:
    """A replicator with a table in each mode, its snapshot done."""
    kind = DuckCopies if request.param == LOCAL else World
    with world_maker(
        kind=kind, prepare=make_tables, tables=tuple(MODES), modes=MODES, format=request.param
    ) as made:
        made.start()
        made.settle()
        yield made


def died_in_its_merge(world: World, ledger: Ledger, table: str) -> None:
    """The run is killed once the target has a merge of the table that is not recorded, and another
    takes over."""
    world.arm("target_merged")
    child = world.child
    assert child is not None
    ledger.busy_day(table)
    until(child.is_dead, lambda: f"death in a merge of {table}\n{child.tail()}")
    assert child.wait() == -signal.SIGKILL, child.tail()
    child.end()
    world.disarm("target_merged")
    ledger.busy_day(table)
    world.start()


@pytest.mark.long
def test_each_mode_keeps_everything_once_over_kills(world: World) -> None:
    """Guards the token of each mode's commit (CORRECTNESS 13): were it not looked at, the merge
    that was cut off would come again, as second versions and second rows of the log. Also the
    modes' folds and statements on PostgreSQL's own messages: unsent TOAST values, changed keys,
    TRUNCATE, revivals."""
    ledger = Ledger(world.database, tuple(MODES))
    for table in MODES:
        died_in_its_merge(world, ledger, table)
        world.settle(table)
    softly(world, ledger)
    versions(world, ledger)
    changes(world, ledger)


def softly(world: World, ledger: Ledger) -> None:
    """Living rows are the source's, all that ever were are there, the dead ones flagged with their
    last values."""
    found = world.target_rows("softly")
    _, alive = present(tuple(found[0]), found)
    assert differing(world.source_rows("softly"), list(alive)) == []
    assert {r["id"] for r in found} == set(ledger.ever["softly"])
    for row in found:
        assert row["_is_deleted"] == (row["_deleted_at"] is not None)
        assert ledger.ever["softly"][row["id"]] == ledger.values_of(row)


def versions(world: World, ledger: Ledger) -> None:
    """Current rows are the source's; a key's versions are its images in order, without overlap,
    without gap while it lived."""
    found = world.target_rows("versions")
    _, current = present(tuple(found[0]), found)
    assert differing(world.source_rows("versions"), list(current)) == []
    by_key: dict[int, list[dict[str, Any]]] = {}
    for row in sorted(found, key=lambda r: (r["_valid_from"], r["_is_current"])):
        by_key.setdefault(row["id"], []).append(row)
    for key, rows in by_key.items():
        lives = [life for life in ledger.lives["versions"][key] if life]
        assert [ledger.values_of(r) for r in rows] == [v for life in lives for v in life]
        assert all(a["_valid_to"] <= b["_valid_from"] for a, b in zip(rows, rows[1:], strict=False))
        gaps = sum(a["_valid_to"] != b["_valid_from"] for a, b in zip(rows, rows[1:], strict=False))
        assert gaps <= len(lives) - 1
    assert set(by_key) == {k for k, lives in ledger.lives["versions"].items() if any(lives)}


def changes(world: World, ledger: Ledger) -> None:
    """Every change of the log once, in order, after the snapshot's rows."""
    found = world.target_rows("changes")
    assert sum(r["_operation"] == "snapshot" for r in found) == ledger.first
    assert in_log_order(found) == ledger.log["changes"]
    updates = [r for r in found if r["_operation"] == "update"]
    assert any(r["_unsent"] == ["big"] and r["big"] is None for r in updates)
