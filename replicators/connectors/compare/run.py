"""One comparison, in stages: the incoming set is cast and hashed, its hashes are compared with the
current ones, the day's changes are written to the history, and the new current set is published.

The same date again changes nothing. A comparison that fails leaves the current set as it was.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from replicators.connectors.compare.collisions import require_no_collision, share_of
from replicators.connectors.compare.config import CompareConfig
from replicators.connectors.compare.diff import (
    Comparison,
    Kind,
    Operation,
    compared,
    tallied,
    verdicts,
)
from replicators.connectors.compare.hashing import KEY_HASH, VALUE_HASH, hashed, plan_of
from replicators.connectors.compare.incoming import Incoming, arrived, require_unique
from replicators.connectors.compare.lock import locked
from replicators.connectors.compare.state import State
from replicators.connectors.compare.stores import Store, open_store, remove_unpublished
from replicators.connectors.problems.errors import ReplicationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("replicator.compare")


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a comparison, and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a comparison found. `is_repeated`: this date was compared before; nothing was changed,
    and the counts are those of that time."""

    day: date
    counts: Mapping[str, int]
    is_repeated: bool = False
    rows: int = 0
    quarantined: int = 0
    stages: tuple[Stage, ...] = ()


@dataclass(slots=True)
class _Clock:
    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.stages.append(Stage(name, time.monotonic() - began))
        logger.info("%s: %.1f s", name, self.stages[-1].seconds)


def compare(
    spark: SparkSession,
    config: CompareConfig,
    path: str,
    day: date,
    *,
    allow_deletes: bool = False,
    check_all: bool = False,
) -> Outcome:
    """Compare the data set at `path` with the current one, as of `day`.

    `allow_deletes`: a full set may be empty, and may delete any share of the rows. `check_all`:
    every row whose hashes are equal is compared by value, not only a sample. Raises the `compare:`
    errors; nothing was changed then.
    """
    with locked(config):
        return _compare(spark, config, path, day, allow_deletes, check_all)


def _compare(
    spark: SparkSession,
    config: CompareConfig,
    path: str,
    day: date,
    allow_deletes: bool,
    check_all: bool,
) -> Outcome:
    store = open_store(spark, config)
    state = store.state()
    if state is not None and day == state.day:
        return Outcome(day, state.counts, is_repeated=True)
    if state is not None and day < state.day:
        raise ReplicationError("compare:date-back", day=day, last=state.day)
    remove_unpublished(store, config, state, day)
    run = _Run(spark, config, store, state, day, path, _Clock())
    try:
        return run.go(allow_deletes, check_all)
    except BaseException:
        with suppress(Exception):
            remove_unpublished(store, config, state, day)
        raise


@dataclass(slots=True)
class _Run:
    """The stages of one comparison."""

    spark: SparkSession
    config: CompareConfig
    store: Store
    state: State | None
    day: date
    path: str
    clock: _Clock

    def go(self, allow_deletes: bool, check_all: bool) -> Outcome:
        with self.clock.stage("cast and hash"):
            incoming = arrived(self.spark, self.config, self.path)
        try:
            return self._compare(incoming, allow_deletes, check_all)
        finally:
            incoming.kept.unpersist()

    def _compare(self, incoming: Incoming, allow_deletes: bool, check_all: bool) -> Outcome:
        config = self.config
        is_small = config.kind == Kind.DELTA and incoming.number <= config.broadcast_rows
        how = Comparison(self.day, config.kind, config.names, is_small)
        if not incoming.number and config.kind == "full" and not allow_deletes:
            raise ReplicationError("compare:empty", path=self.path)
        require_unique(incoming, config)
        new = self._new_state(incoming)
        current = self._current(new)
        with self.clock.stage("compare hashes"):
            found = verdicts(incoming.rows, current, how, incoming.held).persist()
            by_operation, missing = tallied(found, how)
            how = replace(how, few_missing=missing <= config.broadcast_rows)
        try:
            if not allow_deletes:
                self._require_few_deleted(by_operation)
            if current is not None:
                with self.clock.stage("compare values of equal hashes"):
                    self._require_no_collision(incoming, current, found, by_operation, check_all)
            self._write_day(incoming, current, how, found)
            new = replace(new, counts={o.value: n for o, n in by_operation.items()})
            with self.clock.stage("publish the current set"):
                self._publish(incoming, current, how, found, new)
        finally:
            found.unpersist()
        return Outcome(
            self.day,
            new.counts,
            rows=incoming.number,
            quarantined=incoming.unusable_number,
            stages=tuple(self.clock.stages),
        )

    def _new_state(self, incoming: Incoming) -> State:
        schema, config = incoming.rows.schema, self.config
        run = uuid.uuid4().hex
        return State(
            day=self.day,
            run=run,
            key_plan=plan_of([schema[n] for n in config.keys], config.hash),
            value_plan=plan_of([schema[n] for n in config.compared], config.hash),
            sensitive=tuple(sorted(config.sensitive_columns)),
            counts={},
            path=self.path,
            place=f"{self.day}-{run[:8]}",
        )

    def _current(self, new: State) -> DataFrame | None:
        """The current set, with hashes that are comparable with the new ones. They are made again
        where the configuration has other compared columns, types or hashes than when they were
        made."""
        state, current, config = self.state, self.store.current(), self.config
        if state is None or current is None:
            return None
        is_same_key = state.key_plan == new.key_plan
        if new.sensitive != state.sensitive or (new.sensitive and not is_same_key):
            raise ReplicationError("compare:sensitive-changed")
        if is_same_key and state.value_plan == new.value_plan:
            return current
        logger.info("The hashes of the current set are made again for another configuration.")
        whole = self._whole(current)
        kept = [KEY_HASH, config.names.operation, config.names.start]
        again = hashed(
            self._as_configured(whole, kept[1:]), config.keys, config.compared, config.hash
        )
        return again.drop(*config.sensitive_columns)

    def _as_configured(self, rows: DataFrame, kept: list[str]) -> DataFrame:
        """The configured columns with the configured types; NULL for those that are new."""
        from pyspark.sql import functions as F

        there = set(rows.columns)
        columns = [
            (F.col(f"`{c.name}`") if c.name in there else F.lit(None))
            .try_cast(c.type)
            .alias(c.name)
            for c in self.config.columns
        ]
        return rows.select(*columns, *kept)

    def _whole(self, current: DataFrame) -> DataFrame:
        """The current set with its sensitive columns."""
        place = self.config.sensitive
        if place is None or not self.store.days(place):
            return current
        return current.join(self.store.rows(place), [KEY_HASH, self.config.names.start], "left")

    def _require_few_deleted(self, by_operation: Mapping[Operation, int]) -> None:
        deleted = by_operation[Operation.DELETE]
        total = sum(by_operation.values()) - by_operation[Operation.INSERT]
        if deleted and deleted > total * self.config.max_deleted:
            raise ReplicationError(
                "compare:too-many-deleted",
                deleted=deleted,
                total=total,
                limit=f"{self.config.max_deleted:g}",
            )

    def _require_no_collision(
        self,
        incoming: Incoming,
        current: DataFrame,
        found: DataFrame,
        by_operation: Mapping[Operation, int],
        check_all: bool,
    ) -> None:
        matched = by_operation[Operation.UPDATE] + by_operation[Operation.NONE]
        share = 1.0 if check_all else min(1.0, self.config.checked_rows / max(1, matched))
        if matched and share:
            sampled = partial(share_of, share=share, turn=self.day.toordinal())
            require_no_collision(
                sampled(incoming.rows), self._whole(sampled(current)), sampled(found), self.config
            )

    def _write_day(
        self, incoming: Incoming, current: DataFrame | None, how: Comparison, found: DataFrame
    ) -> None:
        """What changed on this day, and what could not be used."""
        from pyspark.sql import functions as F

        config = self.config
        start = F.col(config.names.start)
        if incoming.unusable_number:
            with self.clock.stage("write unusable rows"):
                rows = incoming.unusable.withColumn(config.names.start, F.lit(self.day))
                self.store.write_day(config.quarantine, rows, self.day)
        with self.clock.stage("write the history"):
            todays = found if how.is_small else found.where(start == F.lit(self.day))
            rows = compared(incoming.rows, current, how, incoming.held, todays)
            rows = rows.where(start == F.lit(self.day))
            self.store.write_day(config.history, self._stored(rows), self.day)
        if config.sensitive is not None:
            with self.clock.stage("write the sensitive columns"):
                rows = self._sensitive(incoming, current, found)
                self.store.write_day(config.sensitive, rows, self.day)

    def _sensitive(
        self, incoming: Incoming, current: DataFrame | None, found: DataFrame
    ) -> DataFrame:
        """The sensitive columns of each row that changed on this day; of a deleted row, the ones
        that it had last."""
        from pyspark.sql import functions as F

        place, names = self.config.sensitive, self.config.names
        operation, start = F.col(names.operation), F.col(names.start)
        columns = (KEY_HASH, names.start, *(f"`{n}`" for n in self.config.sensitive_columns))
        todays = found.where(start == F.lit(self.day))
        came = todays.where(operation != Operation.DELETE.value).select(KEY_HASH, names.start)
        rows = incoming.rows.join(came, KEY_HASH).select(*columns)
        if current is None or place is None or not self.store.days(place):
            return rows
        gone = todays.where(operation == Operation.DELETE.value).select(KEY_HASH)
        before = current.select(KEY_HASH, names.start).join(gone, KEY_HASH)
        last = before.join(self.store.rows(place), [KEY_HASH, names.start], "left")
        return rows.unionByName(
            last.withColumn(names.start, F.lit(self.day)).select(*columns), allowMissingColumns=True
        )

    def _publish(
        self,
        incoming: Incoming,
        current: DataFrame | None,
        how: Comparison,
        found: DataFrame,
        new: State,
    ) -> None:
        rows = self._stored(compared(incoming.rows, current, how, incoming.held, found))
        if not self.config.keep_deleted:
            rows = rows.where(f"`{self.config.names.operation}` <> 'D'")
        before = self.store.state()
        if (before and before.run) != (self.state and self.state.run):
            raise ReplicationError("compare:overtaken", place=self.config.current)
        self.store.publish(rows, new)

    def _stored(self, rows: DataFrame) -> DataFrame:
        """The columns of the current set and of its history, in order."""
        names = self.config.names
        columns = [f"`{n}`" for n in self.config.open_columns]
        return rows.select(
            *columns, KEY_HASH, VALUE_HASH, f"`{names.operation}`", f"`{names.start}`"
        )
