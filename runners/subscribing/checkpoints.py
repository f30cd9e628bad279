"""Checkpoints as texts. A reader takes one from an answer and gives it back; it need not look into
it. It has, for each table, the number of the table's row, the generation and the sequence up to
which everything was read: `12.1.81604378624-13.1.4294967297`. A text may name a table twice: the
last one counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TABLE = r"[0-9]{1,18}\.[0-9]{1,9}\.[0-9]{1,19}"
_WHOLE = re.compile(rf"{_TABLE}(-{_TABLE})*")
_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a table's changes: everything of the generation up to `sequence` was read. The
    first value of a table that was never read is `Place(0, 0)`."""

    generation: int = 0
    sequence: int = 0


def checkpoint_text(places: Mapping[int, Place]) -> str:
    """The text of these tables' places."""
    return "-".join(f"{t}.{p.generation}.{p.sequence}" for t, p in sorted(places.items()))


def checkpoint_parse(text: str) -> dict[int, Place]:
    """The places in a text; ValueError where it is no checkpoint."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("must be a checkpoint that an answer gave")
    found = {}
    for one in text.split("-"):
        table, generation, sequence = map(int, one.split("."))
        if sequence > _HIGHEST:
            raise ValueError("must be a checkpoint that an answer gave")
        found[table] = Place(generation, sequence)
    return found
