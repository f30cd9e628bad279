"""The deliveries that were compared, as small files in the replicator's folder of the state, and
the positions in them.

| file | what |
|---|---|
| `journal.json` | names this journal; another one has other positions |
| `deliveries/<number>.json` | a delivery: its table, its counts, its files of rows and changes |
| `refused/<table>.json` | deliveries that were refused, so that they are not read again |
| `rows/`, `changes/` | Parquet files |

A delivery is one number in the order of all tables, from 1. Its changes are *portions*, each a
transaction of its own. A position's ordinal is the number << 20 | the portion that comes next.
What a delivery's file names was durable before. So the same position always gives the same changes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from replicators.connectors import failpoints, files
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.poll import DeliveryReport
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.compared.errors import reading, writing

PORTION_BITS = 20
PORTIONS = 1 << PORTION_BITS
STATES_KEPT = 2
"""So many states of a table stay: the newest, and the one before it for a copy that is being
read."""


@dataclass(frozen=True, slots=True)
class Portion:
    """A file of rows or of changes."""

    path: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A delivery that was compared. `rows` are the files of all rows after it, `changes` those of
    what changed. `schema_version` is the number of the last delivery that brought another
    schema."""

    number: int
    try_: str
    schema: TableSchema
    schema_version: int
    report: DeliveryReport
    rows: tuple[Portion, ...]
    changes: tuple[Portion, ...]

    @property
    def table(self) -> TableId:
        """The table's name."""
        return self.schema.id

    @property
    def rows_total(self) -> int:
        """The number of all rows after it."""
        return sum(p.rows for p in self.rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "try": self.try_,
            "schema": self.schema.to_json(),
            "schema_version": self.schema_version,
            "report": _report_json(self.report),
            "rows": [asdict(p) for p in self.rows],
            "changes": [asdict(p) for p in self.changes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            number=data["number"],
            try_=data["try"],
            schema=TableSchema.from_json(data["schema"]),
            schema_version=data["schema_version"],
            report=_report(data["report"]),
            rows=tuple(Portion(**p) for p in data["rows"]),
            changes=tuple(Portion(**p) for p in data["changes"]),
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """A delivery that was refused, and the rules at that time."""

    report: DeliveryReport
    rule: str


def _report_json(report: DeliveryReport) -> dict[str, Any]:
    table = [report.table.schema, report.table.name]
    return asdict(report) | {"facts": [list(f) for f in report.facts], "table": table}


def _report(data: Mapping[str, Any]) -> DeliveryReport:
    facts = tuple((name, value) for name, value in data["facts"])
    return DeliveryReport(**{**data, "table": TableId(*data["table"]), "facts": facts})


def number_of(position: int) -> int:
    """The delivery that comes next at a position's ordinal."""
    return position >> PORTION_BITS


def portion_of(position: int) -> int:
    """The portion of that delivery that comes next."""
    return position & (PORTIONS - 1)


def ordinal(number: int, portion: int = 0) -> int:
    """The place before a portion of a delivery."""
    return (number << PORTION_BITS) | portion


class Journal:
    """One replicator's journal. One process writes it; others may read it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._name = ""
        self._known: dict[int, Compared] = {}
        self._is_read = False

    @property
    def name(self) -> str:
        """The journal's name; empty where there is none. `source:files-unreachable`."""
        if not self._name:
            with reading("state"):
                found = files.read_if_there(f"{self.folder}/journal.json")
            self._name = json.loads(found)["name"] if found else ""
        return self._name

    def begin(self) -> None:
        """Make the journal where there is none."""
        if self.name:
            return
        name = uuid.uuid4().hex
        with writing():
            files.make_folder(self.folder)
            files.publish(f"{self.folder}/journal.json", json.dumps({"name": name}).encode())
        self._name = name

    def forget(self) -> None:
        """Know nothing: the journal may be another one now."""
        self._name, self._known, self._is_read = "", {}, False

    def read(self) -> Self:
        """Read what is there. Called once by the writer, and by others at each question."""
        found: dict[int, Compared] = {}
        with reading("state"):
            for path, _ in files.listed(f"{self.folder}/deliveries"):
                number = path.rpartition("/")[2].partition(".")[0]
                data = files.read_if_there(path) if number.isdigit() else None
                if data:
                    known = self._known.get(int(number))
                    found[int(number)] = known or Compared.from_json(json.loads(data))
        self._known, self._is_read = found, True
        return self

    @property
    def deliveries(self) -> list[Compared]:
        """Those that are kept, in their order."""
        if not self._is_read:
            self.read()
        known = dict(self._known)  # another thread may add one
        return [known[n] for n in sorted(known)]

    @property
    def version(self) -> int:
        """The number of the last delivery that brought another schema."""
        return self.deliveries[-1].schema_version if self.deliveries else 0

    @property
    def end(self) -> Position:
        """The place behind the last delivery."""
        found = self.deliveries
        last = found[-1].number if found else 0
        return self.at(ordinal(last + 1))

    def at(self, place: int) -> Position:
        """A position of this journal."""
        detail: dict[str, Any] = {"journal": self.name}
        found = self._known.get(number_of(place))
        if portion_of(place) and found is not None:
            detail |= {"try": found.try_}
        return Position(place, detail)

    def delivery(self, number: int) -> Compared | None:
        """The delivery of that number, if it was compared."""
        if not self._is_read:
            self.read()
        return self._known.get(number)

    def last_of(self, table: TableId, before: int | None = None) -> Compared | None:
        """The table's last delivery (before that number)."""
        of_table = (d for d in reversed(self.deliveries) if d.table == table)
        return next((d for d in of_table if before is None or d.number < before), None)

    def require(self, position: Position) -> None:
        """`source:position-lost` where a change after `position` may be missing."""
        if not self.name or position.detail.get("journal") != self.name:
            reason = "the state of the rows was removed, or is another replicator's"
            raise ReplicationError("source:position-lost", reason=reason)
        number = number_of(position.ordinal)
        is_within = portion_of(position.ordinal) > 0
        found = self.delivery(number)
        if is_within and (found is None or found.try_ != position.detail.get("try")):
            raise ReplicationError(
                "source:position-lost", reason="the delivery that it stopped in is no longer there"
            )
        later = [d.number for d in self.deliveries if d.number >= number]
        if later and later != list(range(number, later[-1] + 1)):
            raise ReplicationError(
                "source:position-lost", reason="a delivery is missing in the state"
            )

    def add(self, delivery: Compared) -> None:
        """Record a delivery. Its files are durable."""
        with writing():
            files.make_folder(f"{self.folder}/deliveries")
            failpoints.hit("delivery_compared")
            path = f"{self.folder}/deliveries/{delivery.number:012d}.json"
            files.publish(path, json.dumps(delivery.to_json()).encode())
        failpoints.hit("delivery_recorded")
        self._known[delivery.number] = delivery

    # --- refused ------------------------------------------------------------------------------
    def refuse(self, table: TableId, refused: Mapping[str, Refused]) -> None:
        """Remember the table's refused deliveries, by their marks."""
        data = {
            mark: {"rule": one.rule, "report": _report_json(one.report)}
            for mark, one in refused.items()
        }
        with writing():
            files.make_folder(f"{self.folder}/refused")
            files.publish(self._refused_path(table), json.dumps(data).encode())

    def refused(self, table: TableId) -> dict[str, Refused]:
        """The table's refused deliveries since its last good one, by their marks."""
        with reading("state"):
            data = files.read_if_there(self._refused_path(table))
        found = json.loads(data) if data else {}
        return {mark: Refused(_report(f["report"]), f["rule"]) for mark, f in found.items()}

    def accepted(self, table: TableId) -> None:
        """Nothing of the table is refused now."""
        files.remove(self._refused_path(table))

    def _refused_path(self, table: TableId) -> str:
        return f"{self.folder}/refused/{word_of(table)}.json"

    # --- what is no longer needed -------------------------------------------------------------
    def prune(self, position: Position) -> None:
        """Remove what no position from `position` on needs: changes that are durable elsewhere, and
        older states."""
        number = number_of(position.ordinal)
        done = [d for d in self.deliveries if d.number < number]
        kept: dict[TableId, int] = {}
        unneeded: list[str] = []
        for delivery in reversed(done):
            kept[delivery.table] = kept.get(delivery.table, 0) + 1
            unneeded += [p.path for p in delivery.changes]
            if kept[delivery.table] > STATES_KEPT:
                path = f"{self.folder}/deliveries/{delivery.number:012d}.json"
                files.remove(path)  # first: what it names must be there as long as it is
                unneeded += [p.path for p in delivery.rows]
                del self._known[delivery.number]
            elif delivery.changes:
                self._known[delivery.number] = replace(delivery, changes=())
        needed = self._needed()
        files.remove_all(p for p in unneeded if p not in needed)

    def sweep(self) -> None:
        """Remove files that a crashed comparison left."""
        needed = self._needed()
        for kind in ("rows", "changes"):
            with reading("state"):
                found = files.listed_below(f"{self.folder}/{kind}")
            files.remove_all(p for p in found if p not in needed)

    def _needed(self) -> frozenset[str]:
        return frozenset(p.path for d in self._known.values() for p in (*d.rows, *d.changes))

    def drop(self) -> None:
        """Remove the journal with everything in it."""
        with writing():
            if files.has_folder(self.folder):
                files.remove_folder(self.folder)
        self.forget()


def word_of(table: TableId) -> str:
    """A name of files for a table."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in table.name)[:40]
    return f"{plain}-{hashlib.sha256(str(table).encode()).hexdigest()[:8]}"
