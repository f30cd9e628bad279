"""Which deliveries are there: the files of the path, put together by table and delivery."""

from __future__ import annotations

import hashlib
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from replicators.connectors.files import is_there
from replicators.sources.compared import database, pattern
from replicators.sources.compared.errors import reading
from replicators.sources.compared.params import ComparedParams
from replicators.sources.compared.pattern import Found
from replicators.sources.compared.schedule import last_before

Order = tuple[tuple[int, int | str], ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A delivery of one table. `mark` changes whenever a file of it changes."""

    table: str
    delivery: str
    mark: str
    at: float
    files: tuple[str, ...]
    size: int
    is_marked: bool = True

    @property
    def order(self) -> Order:
        """The place among the table's deliveries."""
        return order_of(self.delivery)


def order_of(delivery: str) -> Order:
    """Names in their order, numbers in them by value: day2 comes before day10."""
    parts = re.split(r"(\d+)", delivery)
    return tuple((1, int(p)) if p.isdigit() else (0, p) for p in parts if p)


def arrivals(params: ComparedParams) -> list[Arrival]:
    """All deliveries in their order. Each table of a database has one, that of the schedule's last
    time. `source:files-unreachable`, `source:database-unreadable`."""
    if params.database:
        at = last_before(params.schedule, time.time())
        name = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return [Arrival(table, name, name, at, (), 0) for table in database.tables(params)]
    groups: dict[tuple[str, str], list[Found]] = defaultdict(list)
    with reading("files"):
        for file in pattern.found(params.files):
            table = file.table or pattern.default_table(params.files)
            groups[table, file.delivery].append(file)
        whole = [_arrival(params, *names, files) for names, files in groups.items()]
    return sorted(whole, key=lambda a: (a.order, a.table))


def _arrival(params: ComparedParams, table: str, delivery: str, files: list[Found]) -> Arrival:
    at = max(f.changed_at for f in files)
    texts = "\n".join(f"{f.path} {f.size} {f.changed_at}" for f in files)
    return Arrival(
        table=table,
        delivery=delivery or datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
        mark=hashlib.sha256(texts.encode()).hexdigest()[:16],
        at=at,
        files=tuple(f.path for f in files),
        size=sum(f.size for f in files),
        is_marked=not params.marker or _has_marker(params.marker, files),
    )


def _has_marker(name: str, files: Iterable[Found]) -> bool:
    return all(is_there(f"{folder}/{name}") for folder in {f.folder for f in files})


class Settled:
    """Tells which deliveries have not changed for some seconds. What is seen for the first time
    goes by the time of its files, and later changes by our own clock. A file that grows while it is
    read is found by its mark afterwards."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[tuple[str, str], tuple[str, float]] = {}

    def are(self, found: Iterable[Arrival], now: float) -> list[Arrival]:
        """Those that are complete. Called again and again with all that is there."""
        known, self._since = self._since, {}
        done = []
        for arrival in found:
            name = (arrival.table, arrival.delivery)
            mark, since = known.get(name, (arrival.mark, min(arrival.at, now)))
            if mark != arrival.mark:
                since = now
            self._since[name] = (arrival.mark, since)
            if arrival.is_marked and now - since >= self._seconds:
                done.append(arrival)
        return done
