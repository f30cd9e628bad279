"""The modes in which a table is copied: what each keeps of a deleted or changed row, and which
columns it adds to the copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, Boolean, Bytes, Int, Json, String, Timestamp
from replicators.connectors.problems.errors import ReplicationError

ROW_HASH = "_row_hash"
OCCURRENCE = "_occurrence"


class Mode(StrEnum):
    """How changes are applied to the copy. MULTISET is a mirror of a table without a key; people
    can't choose it."""

    MIRROR = "mirror"
    SOFT_DELETE = "soft_delete"
    HISTORY = "history"
    APPEND = "append"
    MESSAGES = "messages"
    MULTISET = "multiset"


CHOICES = (Mode.MIRROR, Mode.SOFT_DELETE, Mode.HISTORY, Mode.APPEND, Mode.MESSAGES)
"""The modes that people choose from, the default first."""
IN_COLUMNS = tuple(mode for mode in Mode if mode is not Mode.MESSAGES)
"""The modes whose copy has the table's own columns."""
LOGS = frozenset({Mode.APPEND, Mode.MESSAGES})
"""The modes in which every change becomes a row of its own."""
NEEDS_KEY = frozenset({Mode.SOFT_DELETE, Mode.HISTORY})
FILTERED = frozenset({Mode.MIRROR, Mode.MULTISET})
"""The modes in which a table may have a row filter."""
QUARANTINE = frozenset({Mode.MIRROR, Mode.SOFT_DELETE})
"""The modes that may quarantine a row that the target can't hold: those that keep only a row's last
image."""
NEEDS_EXACT = frozenset({Mode.HISTORY, *LOGS})
"""The modes that need a snapshot of one moment, since a change that is applied to it a second time
shows (CORRECTNESS 19)."""
RESUMABLE = frozenset({Mode.MIRROR, Mode.SOFT_DELETE})
"""The modes whose copy may go on in a later consistent snapshot (CORRECTNESS 17)."""
KEEPS_PAST = frozenset({Mode.SOFT_DELETE, Mode.HISTORY, *LOGS})
"""The modes whose copy holds rows that the source no longer has. A fresh copy loses them, so only a
person may ask for one."""
WITHOUT_INSERTS = frozenset({Mode.MIRROR, Mode.SOFT_DELETE, *LOGS})
"""The modes in which a table's inserts may be left out."""


@dataclass(frozen=True, slots=True)
class ModeText:
    """A mode in words: its name, and one sentence on what it does."""

    label: str
    about: str


_TEXTS = {
    Mode.MIRROR: ModeText(
        "Mirror", "The copy equals the source: a row deleted there is deleted in the copy."
    ),
    Mode.SOFT_DELETE: ModeText(
        "Soft delete",
        "A deleted row stays in the copy with its last values, marked by `_is_deleted` and "
        "`_deleted_at`.",
    ),
    Mode.HISTORY: ModeText(
        "History",
        "Every version of a row is kept, valid from `_valid_from` until `_valid_to`; "
        "`_is_current` marks the present one.",
    ),
    Mode.APPEND: ModeText(
        "Append",
        "Every change is added as a row of its own, in order, with its `_operation` and the time "
        "it was committed.",
    ),
    Mode.MESSAGES: ModeText(
        "Messages",
        "Every change is added as a message in JSON, with its key and its row. One table has the "
        "messages of all tables, and needs no change when a column is added.",
    ),
    Mode.MULTISET: ModeText(
        "Mirror without a key", "The copy holds each row as often as the source does."
    ),
}


def text_of(mode: Mode) -> ModeText:
    """The mode in words."""
    return _TEXTS[mode]


def _column(name: str, kind: Any) -> Column:
    return Column(name, kind, "", nullable=True)


_MOMENT = Timestamp(6, zone=True)
_EXTRA: dict[Mode, tuple[Column, ...]] = {
    Mode.SOFT_DELETE: (_column("_is_deleted", Boolean()), _column("_deleted_at", _MOMENT)),
    Mode.HISTORY: (
        _column("_valid_from", _MOMENT),
        _column("_valid_to", _MOMENT),
        _column("_is_current", Boolean()),
    ),
    Mode.APPEND: (
        _column("_operation", String()),
        _column("_committed_at", _MOMENT),
        _column("_sequence", Int(64)),
        _column("_unsent", Array(String())),
    ),
    Mode.MULTISET: (_column(ROW_HASH, Bytes(16)), _column(OCCURRENCE, Int(64))),
}


MESSAGE_COLUMNS = (
    Column("table", String(), "text", nullable=False),
    Column("message_id", Int(64), "bigint", nullable=False),
    Column("key", Json(), "jsonb"),
    Column("value", Json(), "json"),
)
"""The columns of a copy in the mode MESSAGES. A document's text is kept in `value`; keys can be
compared."""


def extra_columns(mode: Mode) -> tuple[Column, ...]:
    """The columns that a copy in this mode has after the table's own."""
    return _EXTRA.get(mode, ())


def stored(schema: TableSchema, mode: Mode) -> TableSchema:
    """The schema of the copy: the table's own columns, then the mode's. Rows of a copy without a
    key of its own are matched by digest. `target:mode-column` where the table has a column with the
    name of a mode's column."""
    if mode is Mode.MESSAGES:
        return replace(schema, columns=MESSAGE_COLUMNS, key=("table", "message_id"))
    added = {c.name.casefold() for c in extra_columns(mode)}
    taken = next((c.name for c in schema.columns if c.name.casefold() in added), None)
    if taken is not None:
        label = text_of(mode).label
        raise ReplicationError("target:mode-column", table=schema.id, column=taken, mode=label)
    key = (ROW_HASH,) if mode is Mode.MULTISET else schema.key
    return replace(schema, columns=(*schema.columns, *extra_columns(mode)), key=key)


def mode_for(asked: Mode, schema: TableSchema) -> Mode:
    """The mode in which a table with this schema is copied when `asked` is asked for. Without a key
    but with whole old rows in the log, a mirror keeps each row as often as the source. With
    neither, it only takes inserts."""
    if asked is Mode.MIRROR and not schema.key and schema.full_before:
        return Mode.MULTISET
    return asked


def why_inserts(schema: TableSchema, mode: Mode) -> str:
    """Why inserts into a table with this schema can't be left out in this mode, as the end of a
    sentence; empty where they can."""
    if mode in LOGS:
        return ""
    if not schema.key:
        return "the table has no key by which its rows could be told from those that were left out"
    if mode not in WITHOUT_INSERTS:
        return f"the mode {text_of(mode).label} keeps versions, of rows that are left out too"
    if schema.filter:
        return (
            "the table has a row filter, and a row that comes to fit it is added like an "
            "inserted one"
        )
    return ""


def snapshot_values(mode: Mode, at: datetime, sequence: int) -> Mapping[str, Any]:
    """What the mode's columns hold in the rows of a snapshot. The consistent snapshot was opened
    `at`, and changes follow from `sequence`."""
    match mode:
        case Mode.SOFT_DELETE:
            return {"_is_deleted": False, "_deleted_at": None}
        case Mode.HISTORY:
            return {"_valid_from": at, "_valid_to": None, "_is_current": True}
        case Mode.APPEND:
            return {
                "_operation": "snapshot",
                "_committed_at": at,
                "_sequence": sequence,
                "_unsent": None,
            }
    return {}
