"""The parts of an ALTER TABLE: which columns come and go, and what changes rows without the log showing it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from replicators.sources.mysql.words import Token


@dataclass(frozen=True, slots=True)
class Alteration:
    """`unlogged`: why rows changed without being logged, in our words; "" where they did not."""

    unlogged: str = ""
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def alteration(words: Sequence[Token]) -> Alteration:
    """What stands behind `ALTER TABLE name`."""
    actions = [a for a in _actions(words) if a]
    dropped = tuple(name for a in actions for name in _dropped_column(a))
    added = tuple(name for a in actions for name in _added_columns(a))
    why = next(filter(None, map(_unlogged, actions)), "")
    again = {n.lower() for n in dropped} & {n.lower() for n in added}
    return Alteration(why or (MADE_AGAIN if again else ""), added, dropped)


MADE_AGAIN = "a column that was dropped and made again"


def _name_at(action: Sequence[Token], at: int) -> Iterator[str]:
    words = [w.upper for w in action]
    at += words[at : at + 1] == ["COLUMN"]
    for more in (["IF", "NOT", "EXISTS"], ["IF", "EXISTS"]):
        if words[at : at + len(more)] == more:
            at += len(more)
    if at < len(action):
        yield action[at].name


def _dropped_column(action: Sequence[Token]) -> Iterator[str]:
    words = [w.upper for w in action]
    if words[0] == "DROP" and not (words[1:2] and action[1].is_word and words[1] in NO_COLUMN):
        yield from _name_at(action, 1)


def _added_columns(action: Sequence[Token]) -> Iterator[str]:
    words = [w.upper for w in action]
    if words[0] != "ADD" or (words[1:2] and action[1].is_word and words[1] in NO_COLUMN):
        return
    at = 1 + (words[1:2] == ["COLUMN"])
    if words[at : at + 1] != ["("]:
        yield from _name_at(action, 1)
        return
    for part in _actions(action[at + 1 : -1]):
        if part:
            yield part[0].name


def _actions(words: Iterable[Token]) -> Iterator[list[Token]]:
    """The parts of an ALTER TABLE between its outer commas."""
    part: list[Token] = []
    depth = 0
    for word in words:
        depth += {"(": 1, ")": -1}.get(word.text, 0)
        if word.text == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(word)
    if part:
        yield part


NO_COLUMN = frozenset(
    {
        "INDEX",
        "KEY",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "CONSTRAINT",
        "FOREIGN",
        "CHECK",
        "VECTOR",
        "PRIMARY",
        "PARTITION",
        "SYSTEM",
        "PERIOD",
    }
)
PLAIN_ADDS = frozenset(
    {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "VECTOR"}
)
PLAIN_FIRSTS = frozenset({
    "ENGINE", "AUTO_INCREMENT", "COMMENT", "ROW_FORMAT", "KEY_BLOCK_SIZE", "ALGORITHM", "LOCK", "ENABLE",
    "DISABLE", "FORCE", "ORDER", "MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "STATS_PERSISTENT",
    "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ALTER",
    "ENCRYPTION", "ENCRYPTED", "COMPRESSION", "CHECKSUM", "DELAY_KEY_WRITE", "ANALYZE", "OPTIMIZE", "CHECK",
    "REBUILD", "REPAIR", "COALESCE", "REORGANIZE", "PARTITION", "WITH", "WITHOUT", "VALIDATION", "TRANSACTIONAL",
    "CONVERT",
})  # fmt: skip


def _unlogged(action: list[Token]) -> str:
    """Why an ALTER's part changes rows without logging them, or "" where it does not."""
    words = [w.upper for w in action]
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first == "ADD":
        return _added(words[1:])
    if first == "DROP":
        if second == "PARTITION":
            return "a drop of partitions"
        return "a change of its primary key" if second == "PRIMARY" else ""
    if first == "RENAME":
        return (
            ""
            if second in ("INDEX", "KEY")
            else f"a rename of {'a column' if second == 'COLUMN' else 'the table'}"
        )
    if first in ("TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"):
        return "a change of its partitions or its tablespace"
    if first in ("CHANGE", "MODIFY"):
        return "a change of a column's type or name"
    return "" if first in PLAIN_FIRSTS else "an ALTER TABLE of an unknown kind"


def _added(words: list[str]) -> str:
    if words[:1] == ["PRIMARY"]:
        return "a change of its primary key"
    if words and (words[0] in PLAIN_ADDS or words[0] == "PARTITION"):
        return "a change of its primary key" if "PRIMARY" in words[:3] else ""
    if words[:1] in (["SYSTEM"], ["PERIOD"]):
        return "versioning by the system"
    outer = " ".join(words)
    if "PRIMARY KEY" in outer or "AUTO_INCREMENT" in words:
        return "a new column with values in old rows"
    if re.search(r"\b(AS|GENERATED)\b", outer):
        return "a new column with values in old rows"
    has_default = "DEFAULT" in words and not re.search(r"\bDEFAULT NULL\b", outer)
    is_required = "NOT NULL" in outer
    return "a new column with values in old rows" if has_default or is_required else ""
