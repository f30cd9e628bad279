"""What statements at a source did to a table's columns, in the log's order. For sources whose
columns have no numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class StepKind(StrEnum):
    """ADDED, DROPPED, RENAMED, MODIFIED: what happened to a column. UNFILLED: the value that old
    rows have in an added column is not known. REWRITTEN: rows may be different, in a way that can't
    be followed."""

    ADDED = "added"
    DROPPED = "dropped"
    RENAMED = "renamed"
    MODIFIED = "modified"
    UNFILLED = "unfilled"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """The part of a statement that is about one column. The statement ends at the log's `position`;
    steps of one position happen at once. `old` and `new` are the column's name before and after
    (ADDED: `old` is the type's text). `text` is the source's own word about it (MODIFIED: the
    type's text), or the reason (REWRITTEN)."""

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
