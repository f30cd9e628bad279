"""What statements at a source did to a table's columns, in the log's order; for sources whose
columns have no numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class StepKind(StrEnum):
    """ADDED, DROPPED, RENAMED, MODIFIED: of a column. UNFILLED: what old rows have in a column that
    was added can't be told. REWRITTEN: rows may be different, in a way that can't be followed."""

    ADDED = "added"
    DROPPED = "dropped"
    RENAMED = "renamed"
    MODIFIED = "modified"
    UNFILLED = "unfilled"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One column's part of a statement that ends at the log's `position`; steps of one position
    happen at once. `old` and `new` are its name before and after (ADDED: `old` is the type's text);
    `text` is the source's own word about it (MODIFIED: the type's text), or (REWRITTEN) why."""

    position: int
    kind: StepKind
    old: str = ""
    new: str = ""
    text: str = ""

    def to_json(self) -> list[Any]:
        return [self.position, str(self.kind), self.old, self.new, self.text]

    @classmethod
    def from_json(cls, data: list[Any]) -> Self:
        position, kind, old, new, text = data
        return cls(int(position), StepKind(kind), str(old), str(new), str(text))
