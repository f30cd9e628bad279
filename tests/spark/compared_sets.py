"""A data set that tests deliver day by day, with its configuration and results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from replicators.connectors.compare.config import CompareConfig, parse
from replicators.connectors.compare.run import Outcome, compare
from replicators.connectors.compare.stores import open_store

FIRST = date(2019, 6, 18)
PLACES = """\
current: {{path: {root}/current}}
history: {{path: {root}/history}}
"""


def day(number: int) -> date:
    """The nth day, from 0."""
    return FIRST + timedelta(days=number)


@dataclass
class ComparedSet:
    """Sets that are delivered as CSV, from texts or from rows."""

    spark: Any
    root: Path
    settings: str

    @property
    def config(self) -> CompareConfig:
        has_place = "current:" in self.settings
        return parse(self.settings + ("" if has_place else PLACES.format(root=self.root)))

    def deliver(self, text: str, on: date, **how: bool) -> Outcome:
        """Compare a CSV text as of a date."""
        folder = self.root / "data" / f"{on}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part.csv").write_text(text)
        return compare(self.spark, self.config, str(folder), on, **how)

    def deliver_rows(
        self, names: Sequence[str], rows: Iterable[Sequence[object]], on: date, **how: bool
    ) -> Outcome:
        """Compare rows as of a date; None is NULL."""
        lines = [",".join(names)]
        lines += [",".join("" if v is None else f'"{v}"' for v in row) for row in rows]
        return self.deliver("\n".join(lines) + "\n", on, **how)

    def current(self) -> list[dict[str, Any]]:
        """The current rows without hashes, in order."""
        frame = open_store(self.spark, self.config).current()
        assert frame is not None
        return _plain(frame.collect())

    def rows(self, place: str) -> list[dict[str, Any]]:
        """The rows of a table that is divided by date, without hashes; none where it does not
        exist."""
        store, where = open_store(self.spark, self.config), getattr(self.config, place)
        return _plain(store.rows(where).collect()) if store.days(where) else []

    def operations(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """How many rows have each operation."""
        return dict(Counter(r["OPERATION"] for r in rows))


def _plain(rows: Iterable[Any]) -> list[dict[str, Any]]:
    found = [
        {n: v for n, v in row.asDict().items() if n not in ("_key_hash", "_value_hash")}
        for row in rows
    ]
    return sorted(found, key=lambda r: json.dumps(r, default=str, sort_keys=True))
