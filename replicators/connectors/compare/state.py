"""What the current data set says about itself: which comparison made it, and how. It is published
in one step with the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date

PROPERTY = "compare.state"


@dataclass(frozen=True, slots=True)
class State:
    """`day`: the effective date. `run`: a name of that comparison alone. `key_plan`, `value_plan`:
    what the hashes are made of. `sensitive`: the columns that lie apart. `counts`: rows by
    operation. `place`: the folder of the version, for Parquet."""

    day: date
    run: str
    key_plan: str
    value_plan: str
    sensitive: tuple[str, ...]
    counts: Mapping[str, int]
    path: str
    place: str = ""

    def as_text(self) -> str:
        """The state as JSON."""
        return json.dumps({**asdict(self), "day": self.day.isoformat()}, sort_keys=True)

    @classmethod
    def of_text(cls, text: str) -> State:
        """The state of `as_text`."""
        values = json.loads(text)
        day, sensitive = date.fromisoformat(values.pop("day")), tuple(values.pop("sensitive"))
        return cls(day=day, sensitive=sensitive, **values)
