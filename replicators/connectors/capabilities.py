"""What a plugin can do, as data, so that no other code asks for the plugin's name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replicators.connectors.model.modes import Mode


class ColumnKnowledge(StrEnum):
    """How a table's columns are known at each place of the stream.

    BY_LOG: the changes themselves carry the whole schema, with the columns' numbers where the
    source has any. The catalog is never asked what changed. BY_CATALOG: the changes carry names and
    types. The catalog has the rest: which column was renamed, defaults, rows that were written
    again. BY_STATEMENTS: columns have no numbers, and the log has the statements that changed them
    (`TableSchema.steps`, `upto`, `read_upto`, `known`).
    """

    BY_LOG = "by_log"
    BY_CATALOG = "by_catalog"
    BY_STATEMENTS = "by_statements"


@dataclass(frozen=True, slots=True)
class SourceCapabilities:
    """Abilities of a source.

    `columns`: how a table's columns are known while it changes. `has_exact_snapshot`: a first copy
    shows one moment. `can_quarantine`: a row with an unsupported value can be told from the other
    rows. `follows_keyless`: the log has the whole old rows of every table, so that updates and
    deletes are followed without a key too. `minimum_version`: the oldest server version.
    `log_label` and `reader_label` are the source's own words for its log and for what keeps our
    place in it. `has_deliveries`: changes come as whole data sets, by a schedule or when files
    arrive. Pages then list the deliveries, and show the time of the next one instead of a lag.
    `holds_log`: the source keeps its log until we have read it, whatever that costs it.
    """

    columns: ColumnKnowledge = ColumnKnowledge.BY_LOG
    has_exact_snapshot: bool = True
    has_row_filters: bool = False
    can_quarantine: bool = False
    follows_keyless: bool = False
    minimum_version: str = ""
    log_label: str = "log"
    reader_label: str = ""
    has_deliveries: bool = False
    holds_log: bool = False


class Delivery(StrEnum):
    """What a crash may do to a change at the target. EXACTLY_ONCE: readers never see a change
    twice. Either the target's own commit carries our token, or what an unrecorded try left is
    replaced before readers see it. AT_LEAST_ONCE: a change may be there twice."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"

    @property
    def label(self) -> str:
        """The name on pages."""
        return "Exactly once" if self is Delivery.EXACTLY_ONCE else "At least once"

    @property
    def about(self) -> str:
        """One sentence on its meaning."""
        if self is Delivery.EXACTLY_ONCE:
            return "Every change arrives exactly once, also after a crash."
        return "No change is lost; after a crash some changes may arrive twice."


@dataclass(frozen=True, slots=True)
class TargetCapabilities:
    """Abilities of a target. `modes`: how tables can be copied into it. `can_rewind` and
    `has_watermarks` say, without opening the target, that it is `Rewindable` and `Watermarked`;
    `can_read_rows` says that it is `ReadsRows`. The contract suites check this. `can_take_over`: it
    `TakesOver` tables, and its checks are `TakeOverChecks`. `merges_together`: all tables can merge
    in one commit; it `MergesTogether`.
    `is_replaced_at_once`: a fresh copy replaces the old rows in one step. `has_nul`: a text may
    have a NUL character; where it may not, such a value is unsupported.
    `keeps_rows`: a `ChangeSink` that keeps the last version of each row, so that a change which
    comes twice, or before a copy that has it, changes nothing in the end.
    `rejects_rows`: it may refuse single rows, and is `RejectsRows`.
    `has_subscribers`: programs ask it for changes (`TargetPlugin.feed`)."""

    delivery: Delivery
    can_rewind: bool = False
    has_watermarks: bool = False
    can_read_rows: bool = False
    is_replaced_at_once: bool = False
    has_nul: bool = True
    keeps_rows: bool = False
    rejects_rows: bool = False
    has_subscribers: bool = False
    can_take_over: bool = False
    merges_together: bool = False
    modes: tuple[Mode, ...] = (Mode.MIRROR,)

    @property
    def takes_changes(self) -> bool:
        """Whether it is a `ChangeSink`: its only mode is append."""
        return self.modes == (Mode.APPEND,)
