"""What a verification found, as plain values. Opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from replicators.connectors.model.schema import TableId

JsonValue = str | int | float | bool | list["JsonValue"] | None
"""A value of a row. `values.to_json` makes it, and `values.keys_from_json` reads keys back without
a loss."""
Row = Mapping[str, JsonValue]


class Kind(StrEnum):
    """How a row differs. MISSING: only the source has it. EXTRA: only the target has it. DIFFERENT:
    both have a row of this key, with other values."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"


class Outcome(StrEnum):
    """How a table's verification ended. UNSETTLED: rows differ that changed at the source
    meanwhile, or whose changes are not delivered yet; none is known to be wrong. NOT_COMPARED: the
    table can't be compared, and `code` says why. FAILED: an error cut it off. STOPPED: somebody
    asked for a stop."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"
    NOT_COMPARED = "not_compared"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs, or that is unsettled. `key` has the key's columns in their order, so that
    it can be repaired (`values.keys_from_json`); a table without a key has the whole row there.
    `columns` names the columns with other values. `source` and `target` are the rows, with long
    values cut; None where there is none. `copies`: how often a table without a key has the row, at
    source and target."""

    kind: Kind
    key: Row
    columns: tuple[str, ...] = ()
    source: Row | None = None
    target: Row | None = None
    copies: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that was not compared, and the reason as a sentence."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table. `position` is the source's log position that was compared, and `sequence` how far
    the target was merged at that time. Rows are counted as each side was read.

    `missing`, `extra` and `different` count the rows that are wrong. `differences` lists them, at
    most `Options.listed` of each table. `is_more`: more rows differ than were checked one by one,
    so the counts are the least that is wrong. `unsettled` counts rows that could not be decided;
    `undecided` lists some of them. `quarantined` counts rows that wait in the quarantine, and so
    are not compared. `notes` are sentences for people. `code` and `facts` are of an error message
    (`Outcome.NOT_COMPARED`, `Outcome.FAILED`, or the reason of an unsettled table)."""

    table: TableId
    outcome: Outcome
    started_at: float
    ended_at: float
    generation: int = 0
    mode: str = ""
    position: int = 0
    sequence: int = 0
    rows_source: int = 0
    rows_target: int = 0
    bytes_source: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    unsettled: int = 0
    quarantined: int = 0
    is_more: bool = False
    differences: tuple[Difference, ...] = ()
    undecided: tuple[Difference, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    code: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        """How many rows are wrong."""
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class Report:
    """All tables of one verification, in the order in which they were compared. `is_running`:
    whether the replicator ran when the verification began."""

    started_at: float
    ended_at: float
    tables: tuple[TableReport, ...]
    is_running: bool = True

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of a table; EQUAL where nothing was compared."""
        found = {t.outcome for t in self.tables}
        return next((o for o in _WORST_FIRST if o in found), Outcome.EQUAL)


_WORST_FIRST = (
    Outcome.DIFFERENT,
    Outcome.FAILED,
    Outcome.STOPPED,
    Outcome.UNSETTLED,
    Outcome.NOT_COMPARED,
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a person chose. `tables`: only these (none: all). `rows_a_second` and
    `mebibytes_a_second` limit how fast the source is read; 0: no limit. `listed`: how many rows of
    a table are listed. `checked`: how many candidates of a table are read again, one by one.
    `rounds`: how often at most. `wait_seconds`: how long the target may need to reach the source's
    position."""

    tables: tuple[TableId, ...] = ()
    rows_a_second: int = 0
    mebibytes_a_second: float = 0.0
    listed: int = 1000
    checked: int = 20_000
    rounds: int = 6
    wait_seconds: float = 300.0


class Step(StrEnum):
    """What a table's verification does now."""

    WAIT = "wait"
    READ = "read"
    COMPARE = "compare"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class TableProgress:
    """How far a table is. `rows` of `rows_estimated` rows of the source are read (None: not
    known)."""

    table: TableId
    step: Step
    rows: int = 0
    rows_estimated: int | None = None


class Listener(Protocol):
    """Hears how the verification goes on. Both methods are called from one thread."""

    def progress(self, now: TableProgress) -> None:
        """A table has moved on; about once for each chunk, and once a second while it waits."""
        ...

    def table_done(self, report: TableReport) -> None:
        """A table is done. The report has it again at the end."""
        ...

    def should_stop(self) -> bool:
        """Whether somebody asked for a stop; asked between chunks."""
        ...
