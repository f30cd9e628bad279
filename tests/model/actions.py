"""What happens to a replicator and to its servers: pauses, deaths, cuts, outages, and what people
ask for while it runs. Nothing here waits for what was asked to be done, except where it says so."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from django.utils import timezone

from replicators.config import parse_tables
from runners.services import IllegalTransition
from runners.tables.changes import table_change
from runners.tables.rewinding import rewind_window
from tests.harness import World
from tests.model.keeper import Keeper
from tests.model.past import Base
from tests.model.sources import Source
from tests.model.writes import Writes

FAULTS = frozenset({"pause", "kill", "die_later", "restart_source", "cut", "target_outage"})
MOST_EXTRA = 2
UP_OF_TEN = 7
"""Of ten faults of a run so many wait until it captures; the others meet it wherever it is, mostly
while it starts."""


class Actions:
    """`tables`: those that are followed now; `bases`: when each copy was asked for, by table that
    keeps the past; `pending`: tables whose copies may take a while to be what was asked for, though
    nothing of the log is unmerged."""

    def __init__(
        self,
        world: World,
        source: Source,
        writes: Writes,
        rng: random.Random,
        counts: Counter[str],
        tables: tuple[str, ...],
    ) -> None:
        self.world = world
        self.source = source
        self.writes = writes
        self.random = rng
        self.counts = counts
        self.keeper = Keeper(world, counts)
        self.tables = list(tables)
        self.bases: dict[str, Base] = {}
        self.pending: set[str] = set()
        self.conditions: dict[str, str] = {"picked": "n < 50"}
        self.extra: list[str] = []
        self._made = 0

    # --- to the run ----------------------------------------------------------------------------------------------  # noqa: E501
    def _often_up(self) -> None:
        if self.random.randrange(10) >= UP_OF_TEN:
            return
        segments = self.world.last_segment()
        self.writes.transfer()
        self.keeper.until(lambda: self.world.last_segment() > segments, "the run captures")

    def breathe(self) -> None:
        """Something more is merged."""
        merged = self.world.row("accounts").merged_sequence
        self.writes.transfer()
        self.keeper.until(
            lambda: self.world.row("accounts").merged_sequence > merged, "accounts moves on"
        )

    def pause(self) -> None:
        """Pause, write, resume."""
        self._often_up()
        self.keeper.stop()
        self.writes.transfer()
        self.world.start()

    def kill(self) -> None:
        """kill -9 wherever the run is."""
        self._often_up()
        self.writes.transfer()
        self.keeper.kill()
        self.writes.toast()
        self.world.start()

    def die_later(self) -> None:
        """kill -9 when the run comes to one step of the order of writes, which may be much
        later."""
        self.keeper.arm(self.random)

    # --- to its servers ------------------------------------------------------------------------------------------  # noqa: E501
    def restart_source(self) -> None:
        """The source server restarts, at once or in order."""
        self._often_up()
        self.source.restart(self.random.choice((False, True)))

    def cut(self) -> None:
        """Every connection of the replicator is cut by an administrator."""
        self._often_up()
        self.source.cut()

    def target_outage(self) -> None:
        """The target lets nobody write while more is captured."""
        if not self.world.can_be_away:
            self.writes.transfer()
            return
        segments = self.world.last_segment()
        self.writes.transfer()
        self.keeper.until(lambda: self.world.last_segment() > segments, "the run captures")
        with self.world.target_away():
            segments = self.world.last_segment()
            self.writes.toast()
            child = self.world.child
            assert child is not None
            self.keeper.until(
                lambda: self.world.last_segment() > segments or self.world.child is not child,
                "capture goes on",
            )
            self.writes.toast()

    # --- what people ask for -------------------------------------------------------------------------------------  # noqa: E501
    def _asked(self, name: str) -> None:
        base = self.bases.get(name)
        if base is not None and base.done is not None:
            base.asked, base.done = self.source.past_number(name), None

    def resync(self) -> None:
        """One table is copied again while the others go on."""
        self.copy_again(self.random.choice(self.tables))

    def copy_again(self, name: str) -> None:
        """This table is copied again."""
        self._asked(name)
        self.world.resync(name)

    def leave_and_come(self) -> None:
        """A table is followed no longer, and later again, taken up in between or not."""
        name = self.random.choice([t for t in self.tables if t not in ("accounts", "notes")])
        waits = self.random.choice((True, False))
        # A watermark names the versions of the ledger, which must stay to be read.
        keeps = self.random.choice((True, False)) or name == "ledger"
        self._asked(name)
        self.world.remove(name, keep_target=keeps)
        self.writes.transfer()
        if waits:
            self.keeper.until(lambda: self.world.row(name).state == "removed", f"{name} is removed")
            self.writes.burst()
            self._asked(name)
        self.world.add(name)

    def rewind(self) -> None:
        """A table is taken back to some time inside the window, and brought level again."""
        name = self.random.choice(self.tables)
        window, share = rewind_window(self.world.replicator), self.random.random()
        moment = window.earliest + share * (timezone.now() - window.earliest)
        try:
            self.world.rewind(name, moment)
        except IllegalTransition:
            self.counts["rewind refused when asked"] += 1

    def filter_else(self) -> None:
        """Other rows of a table are to be copied."""
        if "picked" not in self.tables:
            return self.resync()
        condition = f"n < {self.random.choice((30, 50, 70))}"
        self.world.replicator.refresh_from_db()
        known = {t.id.name: t for t in parse_tables(self.world.replicator.tables)}
        selection = replace(known["picked"], filter=condition)
        table_change(
            is_assessed=False, replicator=self.world.replicator, selection=selection, actor=None
        )
        self.conditions["picked"] = condition
        self.world.choices = {**self.world.choices, "picked": {"filter": condition}}
        self.pending.add("picked")
        return None

    def new_table(self) -> None:
        """A table is made at the source and added."""
        if len(self.extra) >= MOST_EXTRA:
            return self.drop_table()
        self._made += 1
        name = f"extra_{self._made}"
        self.source.run(
            (
                f"CREATE TABLE {name} (id bigint PRIMARY KEY, version bigint, page text)",
                f"INSERT INTO {name} SELECT i, {self.source.next}, 'x' FROM "
                f"{self.source.series(1, 300)}",
            )
        )
        self.world.add(name)
        self.extra.append(name)
        self.tables.append(name)
        return None

    def write_extra(self) -> None:
        """A transaction over the tables that were added."""
        self._write(self.extra)

    def _write(self, names: list[str]) -> None:
        at = self.random.randint(1, 300)
        for name in names:
            self.source.run(
                (
                    f"DELETE FROM {name} WHERE id = {at}",
                    f"INSERT INTO {name} VALUES ({at}, {self.source.next}, 'again')",
                    f"UPDATE {name} SET page = 'u', version = {self.source.next} WHERE id % 7 = "
                    f"{at % 7}",
                )
            )

    def drop_table(self) -> None:
        """A table that was added goes, first here or first at the source."""
        if not self.extra:
            return self.new_table()
        name = self.extra.pop(self.random.randrange(len(self.extra)))
        self.tables.remove(name)
        is_first, keeps = self.random.choice((True, False)), self.random.choice((True, False))
        self._write([name])
        if is_first:
            self.source.run((f"DROP TABLE {name}",))
        self.world.remove(name, keep_target=keeps)
        if not is_first:
            self.source.run((f"DROP TABLE {name}",))
        return None
