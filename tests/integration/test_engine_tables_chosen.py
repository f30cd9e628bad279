"""Tables are added, removed and copied afresh while the run runs; the others never pause
(CORRECTNESS 18)."""

from __future__ import annotations

import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from runners.models import ChangeFile, Event
from runners.tables.changes import table_change
from tests.background import Background
from tests.harness import Traffic, World, differing
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

LAG_SECONDS = 90.0  # a busy machine merges slowly; a table that pauses falls behind without end


def known_lag(world: World, name: str) -> float:
    """Seconds; waits for the first heartbeat that came back, before which nobody knows."""

    def known() -> list[float]:
        lag = world.row(name).lag_seconds
        return [] if lag is None else [lag]

    return float(world.until(known, f"the lag of {name}")[0])


def goes_on(world: World, *names: str) -> None:
    """These tables are merged on, and are not far behind."""
    for name in names:
        world.moves_on(name)
        assert known_lag(world, name) < LAG_SECONDS, f"{name} is far behind"


class Reader(Background):
    """Counts a target table's rows again and again, as somebody who reads it would."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        self._world, self._name = world, name
        self.counts: list[int] = []

    def _go(self) -> None:
        while not self._stop.wait(0.1):
            self.counts.append(len(self._world.target_rows(self._name)))


def kinds(world: World, name: str) -> list[str]:
    found = Event.objects.filter(replicator=world.replicator, table_name=name).order_by("pk")
    return list(found.values_list("kind", flat=True))


def test_tables_come_and_go_while_the_others_go_on(twin_maker: MakeWorld) -> None:
    """Without the new slot's wait, a transaction that was open at the publication would be in
    neither the copy nor the stream; with it in the wrong thread, the other tables would stand
    still. A selection that is not frozen with the segments would lose the first changes of a table
    that was added. A merge that waited for a copy would stand still while one is held; a copy
    loaded into the live rows would show a reader fewer of them, or some twice (CORRECTNESS 15)."""
    with twin_maker(tables=("items", "pairs")) as world:
        traffic = Traffic(world.database)
        held = world.folder / "held"
        child = world.start(
            REPLICATOR_SNAPSHOT_WAIT_SECONDS="60",
            REPLICATOR_FAILPOINTS=f"snapshot_loaded=hold:{held}",
        )
        world.settle()
        assert world.published() == {"items", "pairs"}

        with traffic.going_on(), world.database.connect() as holder:
            with holder.transaction():
                holder.execute("INSERT INTO shop.views VALUES (-1, 'open', now())")
                pid = holder.info.backend_pid
                world.add("views")
                world.until(
                    lambda: f"process {pid}, open for" in world.log_text(), "who is waited for"
                )
                assert world.row("views").state == "waiting"
                goes_on(world, "items", "pairs")
                assert world.row("views").state == "waiting", "it was copied beside what it lacks"
            world.until_states("replicating", "views")
            goes_on(world, "items", "views")

            world.remove("pairs")
            world.until(lambda: world.row("pairs").state == "removed", "pairs is removed")
            assert world.published() == {"items", "views"}
            goes_on(world, "items", "views")
        left = ChangeFile.objects.filter(replicator=world.replicator, table_name="pairs")
        assert not left.exists()
        assert world.target_rows("pairs"), "the target's table was to stay"
        world.assert_equal("items", "views")
        assert world.differences("pairs"), "it was followed on"

        reader = Reader(world, "views")
        with traffic.going_on(), reader.going_on():
            held.touch()
            world.resync("views")
            world.add("pairs")
            world.until(lambda: "snapshotting" in world.states().values(), "one is copied")
            for _ in range(2):
                goes_on(world, "items")
            assert "snapshotting" in world.states().values(), "the copy was not held"
            held.unlink()
            world.until(lambda: "table_resync_asked" in kinds(world, "views")
                        and world.row("views").generation == 2,
                        "views is copied afresh")  # fmt: skip
            world.until_states("replicating", "views", "pairs")
            goes_on(world, "views")
        assert reader.counts == sorted(reader.counts), "a reader saw fewer rows than before"
        assert reader.counts[0] < reader.counts[-1]
        world.assert_equal("items", "pairs", "views")
        assert kinds(world, "pairs").count("table_added") == 1

        world.remove("pairs", keep_target=False)
        world.until(lambda: world.row("pairs").state == "removed", "pairs is removed again")
        assert not world.has_target("pairs")
        assert not child.is_dead()
        assert world.stop() == 0


@pytest.mark.long
def test_what_is_chosen_while_nothing_runs_is_taken_up_by_the_next_run(
    twin_maker: MakeWorld,
) -> None:
    """Guards the start of a run (`engine/scheduler.py`, CORRECTNESS 18): a table added meanwhile is
    published before it is copied, so that nothing between is lost; a removed one leaves the
    publication."""
    with twin_maker(tables=("items", "pairs")) as world:
        traffic = Traffic(world.database)
        world.start()
        world.settle()
        assert world.stop() == 0
        world.add("views")
        world.remove("pairs")
        traffic.write(10)
        world.start()
        world.assert_equal("items", "views")
        world.until(lambda: world.row("pairs").state == "removed", "pairs is removed")
        assert world.published() == {"items", "views"}
        assert world.stop() == 0


def test_columns_that_are_chosen_later_are_filled_for_old_rows(twin_maker: MakeWorld) -> None:
    """Guards a selection of columns on the whole path, and that one made wider copies the table
    afresh: following it by the log alone would leave the new column empty in every row that does
    not change."""
    some = ("id", "n")
    with twin_maker(tables=("items",), choices={"items": {"columns": some}}) as world:
        traffic = Traffic(world.database)
        world.start()
        traffic.write(10)
        world.settle()

        def chosen(*names: str) -> None:
            rows = [{n: r[n] for n in names} for r in world.source_rows("items")]
            assert not differing(rows, world.target_rows("items"), ("id",))

        chosen(*some)
        with traffic.going_on():
            items = TableSelection(TableId("shop", "items"), (*some, "big"))
            table_change(
                is_assessed=False, replicator=world.replicator, selection=items, actor=None
            )
            world.until(lambda: world.row("items").generation == 2, "items is copied afresh")
            world.until_states("replicating", "items")
        world.settle()
        chosen(*some, "big")
        assert world.stop() == 0


@pytest.mark.long
def test_a_wait_that_takes_too_long_is_given_up_said_and_tried_again(
    twin_maker: MakeWorld,
) -> None:
    """A forgotten transaction, here also a prepared one, must not keep the copy's thread or the run
    for ever."""
    with twin_maker(tables=("items", "pairs")) as world:
        child = world.start(REPLICATOR_SNAPSHOT_WAIT_SECONDS="2")
        world.settle()
        with world.database.connect() as holder, holder.transaction():
            holder.execute("INSERT INTO shop.views VALUES (-1, 'open', now())")
            world.add("views")
            world.until_states("failing source:snapshot-waits", "views")
            assert str(holder.info.backend_pid) in world.row("views").error_facts["holder"]
            left = world.database.execute(
                "SELECT count(*) FROM pg_replication_slots WHERE temporary"
            )
            assert left[0][0] == 0, "the slot that was given up is still there"
        world.assert_equal("items", "pairs", "views")
        assert not child.is_dead()
        assert world.stop() == 0
