"""Which delivery is compared next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.poll import DeliveryReport
from replicators.sources.compared.arrivals import Arrival, Settled, arrivals, order_of
from replicators.sources.compared.journal import Journal, Refused
from replicators.sources.compared.params import ComparedParams
from replicators.sources.compared.schedule import last_before, next_after


class Choice:
    """Looks for deliveries: at the times of the schedule, or at each question where there is
    none."""

    def __init__(
        self, params: ComparedParams, journal: Journal, clock: Callable[[], float] = time.time
    ) -> None:
        self._params = params
        self._journal = journal
        self._clock = clock
        self._settled = Settled(0 if params.marker else params.settle_seconds)
        self._done_at = 0.0
        self._refused: dict[TableId, dict[str, Refused]] = {}
        self._rule = repr(astuple(params))

    @property
    def next_at(self) -> float | None:
        """When the schedule comes next; None without one."""
        return next_after(self._params.schedule, self._clock()) if self._params.schedule else None

    def next(self, tables: Sequence[TableSchema], *, is_now: bool = False) -> Arrival | None:
        """The first delivery that is complete and was not compared yet. `is_now`: at any time, also
        where the schedule does not look."""
        now = self._clock()
        due = last_before(self._params.schedule, now) if self._params.schedule else now
        if due <= self._done_at and not is_now:
            return None
        found = arrivals(self._params)
        whole = self._settled.are(found, now)
        chosen = self._first(whole, {t.id.name: t.id for t in tables})
        if chosen is None and len(whole) == len(found) and not is_now:
            self._done_at = due
        return chosen

    def _first(self, whole: Sequence[Arrival], tables: Mapping[str, TableId]) -> Arrival | None:
        held: set[str] = set()
        for arrival in whole:
            table = tables.get(arrival.table)
            if table is None or arrival.table in held or not self._is_new(arrival, table):
                continue
            if not self._is_refused(arrival, table):
                return arrival
            if not self._params.is_full:
                held.add(arrival.table)  # what comes after it would build on it
        return None

    def _is_new(self, arrival: Arrival, table: TableId) -> bool:
        last = self._journal.last_of(table)
        if last is None:
            return True
        if arrival.mark == last.report.mark:
            return False
        is_named = "{delivery}" in self._params.files
        return not is_named or arrival.order >= order_of(last.report.name)

    def is_still(self, arrival: Arrival) -> bool:
        """Whether its files are as they were."""
        return not arrival.files or any(a.mark == arrival.mark for a in arrivals(self._params))

    # --- refused ------------------------------------------------------------------------------
    def _is_refused(self, arrival: Arrival, table: TableId) -> bool:
        known = self._known(table).get(arrival.mark)
        return known is not None and known.rule == self._rule

    def _known(self, table: TableId) -> dict[str, Refused]:
        if table not in self._refused:
            self._refused[table] = self._journal.refused(table)
        return self._refused[table]

    def refuse(self, report: DeliveryReport) -> None:
        """Pass the delivery over until it, or what the source asks for, changes."""
        known = self._known(report.table) | {report.mark: Refused(report, self._rule)}
        self._journal.refuse(report.table, known)
        self._refused[report.table] = known

    def accepted(self, table: TableId) -> None:
        """A delivery of the table was compared."""
        if self._known(table):
            self._journal.accepted(table)
        self._refused[table] = {}

    def reports(self, tables: Sequence[TableSchema]) -> list[DeliveryReport]:
        """What is refused now."""
        return [known.report for t in tables for known in self._known(t.id).values()]
