"""Numbers the columns of two descriptions of a table by the steps between them, so that `compare`
sees renames and columns that were made again. Names are compared without their case. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.schema.diff import ChangeKind, SchemaChange, compare
from replicators.connectors.schema.steps import SchemaStep, StepKind

KeepsValues = Callable[[Column, Column, str], bool]
"""Whether a conversion from one column to the other, by a statement that says this type, leaves
every value as it is."""
MOVING = (StepKind.RENAMED, StepKind.MODIFIED, StepKind.REWRITTEN)


@dataclass(slots=True)
class ColumnNumbering:
    """Which column each name means. `numbers` is by name in lower case. `modified` and `added` have
    the steps of a number. A name has no number where it is in no statement, or came from an unknown
    column."""

    numbers: dict[str, int]
    next: int
    modified: dict[int, list[SchemaStep]] = field(default_factory=dict)
    added: dict[int, SchemaStep] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> ColumnNumbering:
        """The numbering before any step."""
        found = {name.lower(): number for name, number in numbers.items()}
        return cls(found, max(found.values(), default=0) + 1)

    def go(self, steps: Iterable[SchemaStep]) -> None:
        """Apply steps, in order. Steps of one position apply at once, with the names before it."""
        for _, group in groupby(steps, key=lambda s: s.position):
            self._take(list(group))

    def _take(self, steps: Sequence[SchemaStep]) -> None:
        before = dict(self.numbers)
        of = {k: [s for s in steps if s.kind is k] for k in StepKind}
        for step in of[StepKind.MODIFIED]:
            if step.old.lower() in before:
                self.modified.setdefault(before[step.old.lower()], []).append(step)
        for step in (*of[StepKind.DROPPED], *of[StepKind.RENAMED]):
            self.numbers.pop(step.old.lower(), None)
        for step in of[StepKind.RENAMED]:
            if step.old.lower() in before:
                self.numbers[step.new.lower()] = before[step.old.lower()]
        for step in of[StepKind.ADDED]:
            if step.new.lower() not in self.numbers:
                self.numbers[step.new.lower()] = self.next
                self.added[self.next] = step
                self.next += 1


def changes_by_steps(
    old: TableSchema, new: TableSchema, keeps: KeepsValues | None
) -> tuple[TableSchema, TableSchema, tuple[SchemaChange, ...]]:
    """Both descriptions with numbers, and the changes from `old` to `new`. The steps of `new` after
    `old.upto` count."""
    had_numbers = all(c.ordinal for c in old.columns)
    old = with_numbers(old)
    fresh = [s for s in new.steps if s.position > old.upto]
    numbering = ColumnNumbering.of({c.name: c.ordinal for c in old.columns})
    numbering.go(fresh)
    reported = [_rewritten(s.text) for s in fresh if s.kind is StepKind.REWRITTEN]
    if any(s.kind in MOVING and s.position <= old.read_upto for s in fresh):
        reported.append(_rewritten("columns were changed while the table was copied"))
    columns = []
    for column in new.columns:
        number = numbering.numbers.get(column.name.lower(), 0)
        if not number:
            reported.append(_rewritten(f"no statement tells where column {column.name} comes from"))
            number, numbering.next = numbering.next, numbering.next + 1
        columns.append(replace(column, ordinal=number))
    new = replace(new, columns=tuple(columns))
    reported += _unfilled(old, new, fresh)
    changes = list(compare(old, new))
    if not had_numbers and any(c.kind is ChangeKind.RENAMED for c in changes):
        reported.append(_rewritten("the copy was made before its columns had numbers"))
    _judge_modified(changes, old, new, numbering, keeps)
    return old, new, (*changes, *reported)


def with_numbers(schema: TableSchema) -> TableSchema:
    """The description with a number for each column that has none."""
    taken = max((c.ordinal for c in schema.columns), default=0)
    numbers = iter(range(taken + 1, taken + 1 + len(schema.columns)))
    columns = tuple(c if c.ordinal else replace(c, ordinal=next(numbers)) for c in schema.columns)
    return replace(schema, columns=columns)


def _rewritten(text: str) -> SchemaChange:
    return SchemaChange(ChangeKind.REWRITTEN, text)


def _unfilled(
    old: TableSchema, new: TableSchema, steps: Iterable[SchemaStep]
) -> list[SchemaChange]:
    """Columns that are new to the copy, and whose values in old rows are not known."""
    known = {c.ordinal for c in old.columns}
    names = {s.new.lower() for s in steps if s.kind is StepKind.UNFILLED}
    return [
        _rewritten(f"old rows have values in the new column {c.name} that the log did not carry")
        for c in new.columns
        if c.ordinal not in known and c.name.lower() in names
    ]


def _judge_modified(
    changes: list[SchemaChange],
    old: TableSchema,
    new: TableSchema,
    numbering: ColumnNumbering,
    keeps: KeepsValues | None,
) -> None:
    """Counts a conversion that may have changed values as a change of type, also where both types
    look the same here."""
    before = {c.ordinal: c for c in old.columns}
    for column in new.columns:
        steps = numbering.modified.get(column.ordinal, [])
        known = before.get(column.ordinal)
        if not steps or known is None:
            continue
        if len(steps) == 1 and keeps is not None and keeps(known, column, steps[0].text):
            continue
        changes[:] = [c for c in changes if not (c.new == column and c.kind is ChangeKind.WIDENED)]
        if not any(c.new == column and c.kind is ChangeKind.RETYPED for c in changes):
            text = f"column {column.name} changed to {steps[-1].text}"
            changes.append(SchemaChange(ChangeKind.RETYPED, text, known, column))
