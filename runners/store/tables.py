"""The tables of one replicator as its run sees them: kept in memory, read again after a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import F, QuerySet

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.models import Replicator
from runners.engine.store.protocol import TableRow
from runners.models import Table
from runners.store.mapping import selections, table_row

PORTION = 500
"""Parameters in one query: SQLite allows only a limited number, and nobody else writes
meanwhile."""
WHOLE_SECONDS = 60.0
"""Interval after which all rows are read again, as somebody may have changed them by SQL."""


class KnownTables:
    """A cache of the rows of a run's tables. Thread safe. The run and people change these rows.

    The run names the rows that it changed by `changed`; only these are read again. Each action of a
    person increases `Replicator.tables_version`, which is checked every `seconds`; after an
    increase all rows are read again. A row that did not change stays the same object.
    """

    def __init__(self, replicator: Replicator, seconds: float) -> None:
        self._replicator = replicator
        self._seconds = seconds
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._rows: dict[TableId, TableRow] = {}
        self._keys: dict[TableId, int] = {}
        self._changed: set[TableId] = set()
        self._chosen: dict[TableId, TableSelection] = {}
        self._version = self._newest = -1  # no version is known
        self._asked_at = self._read_at = float("-inf")

    def changed(self, table: TableId) -> None:
        """The run wrote this table's row."""
        with self._lock:
            self._changed.add(table)

    def told(self, version: int) -> None:
        """The newest version, as somebody has just read it."""
        with self._reading:
            self._newest, self._asked_at = version, time.monotonic()

    def forget(self) -> None:
        """Read everything again the next time."""
        with self._lock:
            self._version = -1

    def all(self, *, is_exact: bool = False) -> list[TableRow]:
        """Every table, by its row's number. It is at most `seconds` behind people's actions; with
        `is_exact` it is not behind at all."""
        with self._reading:
            now = time.monotonic()
            if self._version < 0 or is_exact or now - self._asked_at >= self._seconds:
                self._newest, self._asked_at = self._newest_version(), now
            if self._newest != self._version or now - self._read_at >= WHOLE_SECONDS:
                self._read_all()
                self._newest, self._read_at = self._version, now
            self._read_changed()
            return list(self._rows.values())

    def one(self, table: TableId) -> TableRow:
        """One table as it is now, in one query unless the selection changed. Raises KeyError for an
        unknown table."""
        mine = self._mine().filter(schema_name=table.schema, name=table.name)
        with self._lock:
            chosen, known = self._chosen, self._version
        try:
            row = mine.annotate(version=F("replicator__tables_version")).get()
            if row.version == known:
                return table_row(row, chosen)
            fresh = mine.select_related("replicator").get()
        except Table.DoesNotExist as err:
            raise KeyError(table) from err
        return table_row(fresh, selections(fresh.replicator, table))

    def merged(self, tables: Iterable[TableId], sequence: int) -> None:
        """The run wrote that these tables are merged up to `sequence`; updates the cache without a
        query."""
        with self._reading:
            for table in tables:
                row = self._rows.get(table)
                if row is not None and row.merged_sequence < sequence:
                    self._rows[table] = replace(row, merged_sequence=sequence)

    def keys(self, tables: Iterable[TableId]) -> list[int]:
        """The primary keys of these tables' rows."""
        if not self._keys:
            self.all()
        with self._reading:
            return [self._keys[t] for t in tables if t in self._keys]

    def _mine(self) -> QuerySet[Table]:
        return Table.objects.filter(replicator=self._replicator)

    def _newest_version(self) -> int:
        mine = Replicator.objects.filter(pk=self._replicator.pk)
        return mine.values_list("tables_version", flat=True).get()

    def _choice(self) -> tuple[int, dict[TableId, TableSelection]]:
        found = Replicator.objects.only("tables", "options", "target_kind", "tables_version")
        asked = found.get(pk=self._replicator.pk)
        return asked.tables_version, selections(asked)

    def _read_all(self) -> None:
        """Read rows and selections. Repeat where the selection changed between the two queries: a
        table without its selection would be copied whole."""
        with self._lock:
            written = set(self._changed)
        for _ in range(3):
            version, chosen = self._choice()
            rows = list(self._mine())
            if all(_id(t) in chosen for t in rows if t.is_chosen):
                break
        self._rows = {_id(t): self._same(table_row(t, chosen)) for t in rows}
        self._keys = {_id(t): t.pk for t in rows}
        with self._lock:
            self._chosen, self._version = chosen, version
            self._changed -= written

    def _same(self, row: TableRow) -> TableRow:
        """The cached object of this row, where the two are equal."""
        known = self._rows.get(row.id)
        return known if known is not None and known == row else row

    def _read_changed(self) -> None:
        """Read the marked rows again. A row that the run writes meanwhile stays marked for the next
        reading."""
        with self._lock:
            written, self._changed = self._changed, set()
        try:
            for row in self._rows_of(sorted(written, key=str)):
                if row.version != self._version:  # the selection changed meanwhile and is not known
                    self._read_all()
                    return
                self._rows[_id(row)] = self._same(table_row(row, self._chosen))
        except BaseException:
            with self._lock:
                self._changed |= written
            raise

    def _rows_of(self, tables: Sequence[TableId]) -> Iterator[Any]:
        for first in range(0, len(tables), PORTION // 2):
            portion = tables[first : first + PORTION // 2]
            schemas = {t.schema for t in portion}
            named = self._mine().filter(schema_name__in=schemas, name__in=[t.name for t in portion])
            found = named.annotate(version=F("replicator__tables_version"))
            yield from (t for t in found if _id(t) in set(portion))


def _id(row: Table) -> TableId:
    return TableId(row.schema_name, row.name)
