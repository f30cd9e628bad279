"""The adversary: a seeded random walk over what may happen to a replicator, at its source and to its run. It writes to the
source through SQL and to the product only through a `World`; the checker looks afterwards."""

from __future__ import annotations

import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runners.models import ChangeFile, Watermark
from tests.harness import World, until
from tests.model.history import failures, file_events
from tests.model.reading import delta_at, delta_rows, iceberg_rows
from tests.model.sources import ACCOUNTS, TABLES, Source
from tests.model.verify import table_differences
from tests.model.watermarks import is_one_moment, keys_and_versions

KEYS = {"accounts": "id", "ledger": "day", "notes": "id"}
WATERMARKS_A_CHECK = 3
STEPS_OF_A_CHANGE = (
    "segment_renamed", "segment_recorded", "source_acknowledged", "change_files_written",
    "change_files_listed", "target_merged", "merge_recorded",
)  # fmt: skip
FAULTS = frozenset({"pause", "kill", "die_at_a_step", "restart_source", "cut", "target_outage"})


@dataclass
class Machine:
    """Walks `steps` random steps. What it did is in `told`; the same seed does the same."""

    world: World
    seed: int
    source: Source
    told: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    added: int = 0
    columns: list[str] = field(default_factory=list)
    largest_lag: float = 0.0
    captured: int = 0
    doubled: int = 0
    looked_at: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.next = 10_000

    # --- at the source -------------------------------------------------------------------------------------------
    def _sql(self, *statements: str) -> None:
        self.source.run(statements)

    def _id(self) -> int:
        return self.random.randint(1, ACCOUNTS)

    def transfer(self) -> None:
        """Money moves between accounts, with a line in the ledger: the sum stays."""
        one, two, cents = self._id(), self._id(), self.random.randint(1, 900)
        self.next += 1
        move = "UPDATE accounts SET balance = balance {} {}, version = {} WHERE id = {}"
        self._sql(
            move.format("-", cents / 100, self.source.next, one),
            move.format("+", cents / 100, self.source.next, two),
            f"INSERT INTO ledger VALUES ('a{one}', {self.next}, {cents / 100}, {self.source.next})",
        )

    def swap(self) -> None:
        """Two keys change places within one transaction."""
        one, two = self._id(), self._id()
        take = "UPDATE accounts SET id = {}, version = {} WHERE id = {}"
        self._sql(
            take.format(-1, self.source.next, one),
            take.format(one, self.source.next, two),
            take.format(two, self.source.next, -1),
        ) if one != two else self.transfer()

    def chain(self) -> None:
        """A key changes twice, and its old row comes back new."""
        one = self._id()
        take = "UPDATE accounts SET id = {}, version = {} WHERE id = {}"
        self._sql(
            take.format(-1, self.source.next, one),
            take.format(-2, self.source.next, -1),
            f"INSERT INTO accounts (id, balance, version, memo, extra) VALUES ({one}, 7, {self.source.next}, 'again', NULL)",
            "DELETE FROM accounts WHERE id = -2",
        )

    def toast(self) -> None:
        """Updates that do not send the large value, before and after one that does."""
        key = f"n{self.random.randint(1, 200)}"
        self._sql(
            f"UPDATE notes SET other = 'u{self.next}', version = {self.source.next} WHERE id = '{key}'",
            f"UPDATE notes SET big = concat(big, 'x'), version = {self.source.next} WHERE id = '{key}' AND length(big) < 6000",
            f"UPDATE notes SET other = 'v', version = {self.source.next} WHERE id = '{key}'",
        )

    def rename(self) -> None:
        """A key of a row with a large value that is not sent changes."""
        key = self.random.randint(1, 200)
        self._sql(
            f"UPDATE notes SET id = 'r{key}', version = {self.source.next} WHERE id = 'n{key}'",
            f"UPDATE notes SET id = 'n{key}', version = {self.source.next} WHERE id = 'r{key}'",
        )

    def come_and_go(self) -> None:
        """Insert, update and delete; delete and insert again; in one batch."""
        self.next += 2
        new, old = self.next, self._id()
        self._sql(
            f"INSERT INTO accounts (id, balance, version, memo, extra) VALUES ({new}, 1, {self.source.next}, NULL, '{{}}')",
            f"UPDATE accounts SET memo = 'é ''q''', version = {self.source.next} WHERE id = {new}",
            f"DELETE FROM accounts WHERE id = {new}",
            f"DELETE FROM accounts WHERE id = {old}",
            f"INSERT INTO accounts (id, balance, version, memo, extra) VALUES ({old}, 5, {self.source.next}, 'back', '[1, null]')",
        )

    def rollback(self) -> None:
        """A savepoint and a whole transaction that never happened."""
        self._sql(
            f"INSERT INTO clicks (n, version, page) VALUES (1, {self.source.next}, 'kept')",
            "SAVEPOINT before_it",
            f"INSERT INTO clicks (n, version, page) VALUES (2, {self.source.next}, 'lost')",
            "ROLLBACK TO SAVEPOINT before_it",
        )
        self.source.run(["DELETE FROM accounts"], commits=False)

    def burst(self) -> None:
        """One transaction with thousands of rows."""
        first, self.next = self.next + 1, self.next + 3000
        self._sql(
            f"INSERT INTO clicks (n, version, page) SELECT i, {self.source.next}, 'b' FROM {self.source.series(first, self.next)}",
            f"UPDATE accounts SET balance = balance, version = {self.source.next} WHERE id % 2 = 0",
        )

    def truncate(self) -> None:
        """A table is emptied between two inserts of the same transaction."""
        self.next += 2
        self._sql(
            f"INSERT INTO ledger VALUES ('gone', {self.next - 1}, 1, {self.source.next})",
            "TRUNCATE ledger",
            f"INSERT INTO ledger VALUES ('kept', {self.next}, 1, {self.source.next})",
        )

    def add_column(self) -> None:
        """A new column, used at once in the same transaction."""
        if self.added >= 6:
            return self.burst()
        self.added += 1
        self.columns.append(f"c{self.added}")
        return self._sql(
            f"ALTER TABLE accounts ADD COLUMN c{self.added} text",
            f"UPDATE accounts SET c{self.added} = 'new', version = {self.source.next} WHERE id = {self._id()}",
        )

    # --- to the run ----------------------------------------------------------------------------------------------
    def pause(self) -> None:
        """Pause, write, resume."""
        assert self.world.stop() == 0
        self.transfer()
        self.world.start()

    def kill(self) -> None:
        """kill -9 wherever the run is."""
        self.transfer()
        self.world.kill()
        self.toast()
        self.world.start()

    def die_at_a_step(self) -> None:
        """kill -9 at one step of the order of writes."""
        name = self.random.choice(STEPS_OF_A_CHANGE)
        child = self.world.child
        assert child is not None
        self.world.arm(name)
        try:
            for _ in range(40):
                self.random.choice((self.transfer, self.toast, self.swap))()
                if child.is_dead():
                    break
                self._breathe(child)
        finally:
            self.world.disarm(name)
        if child.is_dead():
            assert child.wait() == -signal.SIGKILL, child.tail()
            self.counts[f"died at {name}"] += 1
            child.end()
            self.world.start()

    def _breathe(self, child: Any) -> None:
        before = self.world.last_segment()
        until(lambda: child.is_dead() or self.world.last_segment() > before, "a segment", 60)

    def restart_source(self) -> None:
        """The source server restarts, at once or in order."""
        self.source.restart(self.random.choice((False, True)))

    def cut(self) -> None:
        """Every connection of the replicator is cut by an administrator."""
        self.source.cut()

    def resync(self) -> None:
        """One table is copied again while the others go on."""
        self.world.settle()
        self.world.resync(self.random.choice(TABLES))

    def leave_and_come(self) -> None:
        """A table is followed no longer, and later again, while the others go on."""
        name = self.random.choice(("ledger", "clicks"))
        self.world.settle()
        self.world.remove(name)
        self.transfer()
        self.world.until(lambda: self.world.row(name).state == "removed", f"{name} is removed")
        self.burst()
        self.world.add(name)

    def drop_column(self) -> None:
        """A column goes, and with it its values; the row it was used in changes in the same transaction."""
        if not self.columns:
            return self.add_column()
        name = self.columns.pop(self.random.randrange(len(self.columns)))
        return self._sql(
            f"ALTER TABLE accounts DROP COLUMN {name}",
            f"UPDATE accounts SET memo = 'less', version = {self.source.next} WHERE id = {self._id()}",
        )

    def target_outage(self) -> None:
        """The lakehouse's catalog lets nobody write for some seconds."""
        if self.world.format != "iceberg":
            self.transfer()
            return
        catalog = sqlite3.connect(
            self.world.folder / "catalog.db", isolation_level=None, timeout=60
        )
        with closing(catalog):
            catalog.execute("BEGIN EXCLUSIVE")
            self.transfer()
            segments = self.world.last_segment()
            self.world.until(lambda: self.world.last_segment() > segments, "capture goes on", 60)
            self.toast()
            catalog.execute("COMMIT")

    def check(self) -> None:
        """Everything is equal now."""
        self.world.settle()
        self.verify()

    # --- the walk ------------------------------------------------------------------------------------------------
    @property
    def weights(self) -> dict[Callable[[], None], int]:
        """The steps and how often each is taken."""
        return {
            self.transfer: 40, self.swap: 12, self.chain: 12, self.toast: 20, self.rename: 8,
            self.come_and_go: 14, self.rollback: 6, self.burst: 4, self.truncate: 3,
            self.add_column: 3, self.pause: 2, self.kill: 3, self.die_at_a_step: 6,
            self.restart_source: 2, self.cut: 3, self.resync: 2, self.leave_and_come: 1,
            self.drop_column: 2, self.target_outage: 2, self.check: 4,
        }  # fmt: skip

    def walk(self, steps: int) -> None:
        """So many steps, then a last check."""
        weights = self.weights
        for number in range(steps):
            (act,) = self.random.choices(list(weights), list(weights.values()))
            self.told.append(f"{number} {act.__name__}")
            self.counts[act.__name__] += 1
            act()
            self._look()
        self.check()

    def _look(self) -> None:
        lags = [self.world.row(t).lag_seconds or 0.0 for t in TABLES]
        self.largest_lag = max(self.largest_lag, *lags)

    @property
    def figures(self) -> str:
        """What the walk was, for reports: steps, faults, duplicates among what was captured, largest lag."""
        faults = sum(n for name, n in self.counts.items() if name in FAULTS)
        doubled = 100.0 * self.doubled / max(1, self.captured)
        return (
            f"{len(self.told)} steps, {faults} faults survived, duplicates {doubled:.3f} % of"
            f" {self.captured} captured changes, largest lag {self.largest_lag:.1f} s"
        )

    def verify(self) -> None:
        """Fingerprints of every table equal; change files a gapless end of what happened."""
        for table in TABLES:
            found = table_differences(self.source.table(table), *self._target(table))
            ours, theirs, told = found
            assert not told, self._report(table, [f"{ours} / {theirs}", *map(str, told[:10])])
        self.captured = self.doubled = 0
        for table, key in (("accounts", "id"), ("notes", "id")) if self.source.has_history else ():
            wrong = self._stream_failures(table, key)
            assert not wrong, self._report(table, wrong)
        if self.source.has_history:
            self.verify_watermarks()

    def verify_watermarks(self) -> None:
        """The newest watermarks that were not looked at yet: the tables at their versions are one moment of the source."""
        listed = Watermark.objects.filter(replicator=self.world.replicator, pk__gt=self.looked_at)
        marks = list(listed[:WATERMARKS_A_CHECK])
        if not marks:
            return
        self.looked_at = marks[0].pk
        sql = "SELECT tab, op, old, new, version FROM history.events ORDER BY n"
        history = self.world.database.execute(sql)
        for mark in marks:
            versions = {t: v for _, t, v in mark.versions if t in KEYS}
            seen = {t: keys_and_versions(self._rows_at(t, v), KEYS[t]) for t, v in versions.items()}
            self.counts["watermarks"] += len(versions) > 1
            assert is_one_moment(history, seen), self._report("watermark", [str(mark.versions)])

    def _rows_at(self, table: str, version: str) -> Any:
        if self.world.format == "delta":
            return delta_at(self.world.warehouse / "shop" / table, int(version))
        return self.world.lake_table(table).scan(snapshot_id=int(version)).to_arrow()

    def _target(self, table: str) -> Any:
        if self.world.format == "delta":
            return delta_rows(self.world.warehouse / "shop" / table)
        uri = f"sqlite:///{self.world.folder}/catalog.db"
        return iceberg_rows(uri, str(self.world.warehouse), "lake", ("shop", table))

    def _stream_failures(self, table: str, key: str) -> list[str]:
        listed = ChangeFile.objects.filter(replicator=self.world.replicator, table_name=table)
        paths = [Path(f.path) for f in listed.order_by("first_sequence")]
        found = list(file_events(paths, key))
        self.captured += len(found)
        self.doubled += len(found) - len({sequence for sequence, _ in found})
        return failures(self.source.history(table), found)

    def _report(self, table: str, told: list[str]) -> str:
        steps = "\n".join(self.told[-40:])
        return f"seed {self.seed}, {table}:\n" + "\n".join(told) + f"\nlast steps:\n{steps}"
