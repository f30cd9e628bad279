"""What must hold once everything is merged: every copy equals its source in the way of its mode,
the change files are a gapless end of what happened, and each watermark is one moment of the
source."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from runners.models import ChangeFile, Segment, Table, Watermark
from runners.models import Event as Happened
from tests.harness import World
from tests.model.actions import Actions
from tests.model.history import failures, file_events, numbered_events
from tests.model.past import (
    Past,
    append_failures,
    history_failures,
    multiset_failures,
    soft_failures,
)
from tests.model.reading import delta_at
from tests.model.sources import Source
from tests.model.tables import KEYS, MODES
from tests.model.verify import table_differences
from tests.model.watermarks import is_one_moment, keys_and_versions, spread

STREAMED = (("accounts", "id"), ("notes", "id"))
WATERMARKS_A_CHECK = 8
READING_SECONDS = 30.0
SETTLE_SECONDS = 420.0
PENDING_SECONDS = 180.0
CHANGING = ("altered", "extra_")
FOR_A_PERSON = frozenset(
    {
        "source:schema-ambiguous", "source:table-replaced", "source:key-changed", "target:evolve",
        "source:table-unpublished", "source:table-missing", "source:table-renamed",
        "source:change-unlogged",
        "log:rows-passed-over",
    }
)  # fmt: skip
"""Faults of a table whose schema changes all the time that are left to a person where they come
again and again."""


class Wrong(AssertionError):
    """Something differs; the text says what."""


class Checks:
    """`largest_settle`: the longest that a check had to wait until everything was merged, in
    seconds."""

    def __init__(
        self, world: World, source: Source, actions: Actions, counts: Counter[str]
    ) -> None:
        self.world = world
        self.source = source
        self.actions = actions
        self.counts = counts
        self.pasts: dict[str, Past] = {t: Past() for t in MODES if t in actions.tables}
        self.largest_settle = 0.0
        self.captured = self.doubled = 0
        self._looked_at = 0
        self._last_segment = -1
        self._events: list[Any] = []
        self._seen: dict[str, tuple[int, int]] = {}
        self._copies: Counter[str] = Counter()
        for name in self.pasts:
            self._learn(name)
            actions.bases[name].asked = self.pasts[name].number

    # --- until nothing can arrive any more -----------------------------------------------------------------------  # noqa: E501
    def settle(self) -> None:
        """Wait until every table replicates and all that was committed is merged."""
        begun, mark = time.monotonic(), self.world.mark()

        def is_done() -> bool:
            states = self.world.states()
            for name in [t for t in self.actions.tables if states[t] != "replicating"]:
                self._ask_again(name, states[name])
                return False
            return self.world.is_merged(mark, self.actions.tables)

        self.actions.keeper.until(is_done, f"settled past {mark}", SETTLE_SECONDS)
        self.largest_settle = max(self.largest_settle, time.monotonic() - begun)

    def _ask_again(self, name: str, state: str) -> None:
        """What a person does about a table whose schema changes so often that it is left failing,
        and about one that keeps the past and was emptied and given a column between two looks: that
        may have been a rewrite, and a copy made afresh would lose the past."""
        code = state.partition(" ")[2]
        if name in self.pasts and code == "source:schema-changed":
            if not Table.objects.get(replicator=self.world.replicator, name=name).is_resync_asked:
                self.actions.copy_again(name)
                self.counts[f"asked for again after {code}"] += 1
            return
        if not name.startswith(CHANGING) or code not in FOR_A_PERSON:
            return
        row = Table.objects.get(replicator=self.world.replicator, name=name)
        if not row.is_resync_asked and code != "source:table-renamed":
            self.world.resync(name)
            self.counts[f"asked for again after {code}"] += 1

    # --- equality ------------------------------------------------------------------------------------------------  # noqa: E501
    def verify(self) -> None:
        """Everything, once settled. `Wrong` where something differs."""
        for name in self.actions.tables:
            reported = self._table(name)
            if reported and name in self.actions.pending:
                reported = self._in_time(name)
            if reported:
                raise Wrong("\n".join([f"{name}:", *reported]))
        self.actions.pending.clear()
        for name, key in STREAMED:
            if wrong := self._stream_failures(name, key):
                raise Wrong("\n".join([f"change files of {name}:", *wrong]))
        self._last_segment = self.world.last_segment()
        self._verify_watermarks()

    def _in_time(self, name: str) -> list[str]:
        """A copy whose schema or rows were asked to be others may still be the old one."""
        reported: list[str] = []

        def is_same() -> bool:
            self.settle()
            reported[:] = self._table(name)
            return not reported

        try:
            self.actions.keeper.until(is_same, f"{name} is what was asked for", PENDING_SECONDS)
        except AssertionError as err:
            return [*reported, str(err)[:2000]] if reported else [str(err)]
        return []

    def _table(self, name: str) -> list[str]:
        columns, rows = self.world.copied(name)
        found = list(rows)
        mode = MODES.get(name, "")
        if name in self.pasts:
            return self._kept(name, mode, columns, found)
        source = self.source.table(name, self.actions.conditions.get(name, ""))
        ours, theirs, reported = table_differences(source, columns, found)
        wrong = multiset_failures(found) if "_row_hash" in columns else []
        if (
            not wrong
            and not reported
            and Table.objects.get(replicator=self.world.replicator, name=name).rows_quarantined
        ):
            wrong = ["rows are quarantined, though all fit"]
        return [f"{ours} / {theirs}", *map(str, reported[:10]), *wrong] if reported or wrong else []

    def _kept(
        self, name: str, mode: str, columns: tuple[str, ...], rows: list[dict[str, Any]]
    ) -> list[str]:
        self._learn(name)
        past, base = self.pasts[name], self.actions.bases[name]
        source = self.source.table(name)
        if mode == "append":
            now = {r["id"]: r for r in source.rows()}
            reported = append_failures(past, rows, base, source.columns, now)
        else:
            check = soft_failures if mode == "soft_delete" else history_failures
            reported = check(past, rows, base, source.columns)
            ours, theirs, more = table_differences(source, columns, rows)
            reported += [f"{ours} / {theirs}", *map(str, more[:10])] if more else []
        if not reported:
            base.done = past.number
        return reported

    def _learn(self, name: str) -> None:
        past = self.pasts[name]
        past.add(self.source.changes(name, past.number))

    # --- the stream ----------------------------------------------------------------------------------------------  # noqa: E501
    def _stream_failures(self, name: str, key: str) -> list[str]:
        """What was captured since the last check goes on where that ended. The first time it may
        begin anywhere; after a schema change for which the table was copied afresh, changes
        before that may have been unreadable, and nothing is said."""
        sequence, number = self._seen.get(name, (-1, -1))
        copies = Happened.objects.filter(
            replicator=self.world.replicator, table_name=name, kind="schema_resync"
        ).count()
        listed = ChangeFile.objects.filter(
            replicator=self.world.replicator, table_name=name, last_sequence__gt=sequence
        )
        paths = [Path(f.path) for f in listed.order_by("first_sequence")]
        found = [(s, e) for s, e in file_events(paths, key) if s > sequence]
        first = max(0, number)
        numbered = numbered_events(self.source.events(first), name, self.source.images(name, first))
        self.captured += len(found)
        self.doubled += len(found) - len({s for s, _ in found})
        history = [e for _, e in numbered]
        reported = failures(history, found)
        if not reported and number >= 0 and len(found) < len(history) and self._is_kept():
            reported = [f"{len(history)} events since the last check, {len(found)} were captured"]
        last = numbered[-1][0] if numbered else number
        if copies > self._copies[name]:
            self._copies[name], reported = copies, []
            self.counts["streams that could not be read whole"] += 1
        elif not found:
            last = number
        self._seen[name] = max([sequence, *(s for s, _ in found)]), last
        return reported

    def _is_kept(self) -> bool:
        """Whether the change log still holds what came since the last check; where checks are far
        apart, it is pruned."""
        segments = Segment.objects.filter(replicator=self.world.replicator)
        is_kept = segments.filter(number__lte=self._last_segment).exists()
        self.counts["streams that were pruned since the last check"] += not is_kept
        return is_kept

    # --- watermarks ----------------------------------------------------------------------------------------------  # noqa: E501
    def _verify_watermarks(self) -> None:
        listed = Watermark.objects.filter(
            replicator=self.world.replicator,
            pk__gt=self._looked_at,
            readable_until__gt=timezone.now() + timedelta(seconds=READING_SECONDS),
        )
        marks = spread(list(listed.order_by("pk")), WATERMARKS_A_CHECK)
        if not marks:
            return
        self._looked_at = marks[-1].pk
        self._events += self.source.events(self._events[-1][0] if self._events else 0)
        history = [e[1:] for e in self._events]
        read: dict[tuple[str, str], dict[str, int]] = {}
        for mark in marks:
            versions = {t: v for _, t, v in mark.versions if t in KEYS}
            for name, version in versions.items():
                if (name, version) not in read:
                    rows = self._rows_at(name, version, KEYS[name])
                    read[name, version] = keys_and_versions(rows, KEYS[name])
            self.counts["watermarks"] += len(versions) > 1
            if not is_one_moment(history, {t: read[t, v] for t, v in versions.items()}):
                raise Wrong(f"watermark of {mark.versions} is no moment of the source")

    def _rows_at(self, name: str, version: str, key: str) -> Any:
        if self.world.format == "delta":
            return delta_at(self.world.warehouse / "shop" / name, int(version))
        fields = (key, "version")
        scan = self.world.lake_table(name).scan(snapshot_id=int(version), selected_fields=fields)
        return scan.to_arrow()
