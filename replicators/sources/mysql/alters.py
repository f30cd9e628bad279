"""Parses an ALTER TABLE: what it does to columns, and whether it changes rows without logging
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from replicators.connectors.model.schema import TableId
from replicators.connectors.schema.steps import SchemaStep, StepKind
from replicators.sources.mysql.definitions import definition
from replicators.sources.mysql.foreign_keys import ForeignKey, foreign_keys, parts
from replicators.sources.mysql.words import Token, Words

NEW_VALUES = "a new column with values in old rows"
RETYPED = "a change of a column that may have changed values"
KEY = "a change of its primary key"
WIDE_CHARSETS = frozenset({"UTF8MB4", "UTF16", "UTF16LE", "UTF32"})
"""Character sets that have every character of every other one."""
ENGINES = frozenset({"INNODB", "MYISAM", "ARIA", "ROCKSDB", "TOKUDB", "ARCHIVE", "NDB",
    "NDBCLUSTER", "MEMORY"})  # fmt: skip
"""Storage engines that take rows as they are."""


@dataclass(slots=True)
class Alteration:
    """What an ALTER TABLE does. `unlogged`: why rows may have changed without being logged, in our
    words; "" where they did not. `steps`: the changes of columns, without a position. `renamed`:
    the table's new name. `keys`: foreign keys that change rows from then on. `indexes`: the dropped
    ones, in lower case."""

    unlogged: str = ""
    steps: list[SchemaStep] = field(default_factory=list)
    renamed: TableId | None = None
    keys: tuple[ForeignKey, ...] = ()
    indexes: list[str] = field(default_factory=list)

    def doubt(self, why: str) -> None:
        """Set `unlogged`; the first reason stays."""
        self.unlogged = self.unlogged or why

    def drop_index(self, name: str) -> None:
        """Note a dropped index. A primary key can be dropped by its name too."""
        self.indexes.append(name.lower())
        if name.upper() == "PRIMARY":
            self.doubt(KEY)

    def step(self, kind: StepKind, old: str = "", new: str = "", text: str = "") -> None:
        self.steps.append(SchemaStep(0, kind, old, new, text))


def alteration(words: Sequence[Token], database: str = "", mode: int = 0) -> Alteration:
    """Parse the words behind `ALTER TABLE name`, under that sql_mode."""
    found = Alteration(keys=tuple(foreign_keys(words)))
    for action in parts(words):
        if action:
            _take(found, action, database, mode)
    return found


NO_COLUMN = frozenset({
    "INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "VECTOR",
    "PRIMARY", "PARTITION",
    "SYSTEM", "PERIOD",
})  # fmt: skip
FOLLOWED = {"PERIOD": ("FOR",), "SYSTEM": ("VERSIONING",), "VECTOR": ("INDEX", "KEY")}
PLAIN_FIRSTS = frozenset({
    "AUTO_INCREMENT", "COMMENT", "ROW_FORMAT", "KEY_BLOCK_SIZE", "ALGORITHM", "LOCK", "ENABLE",
    "DISABLE", "FORCE", "ORDER", "MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "STATS_PERSISTENT",
    "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE",
    "ALTER",
    "ENCRYPTION", "ENCRYPTED", "COMPRESSION", "CHECKSUM", "DELAY_KEY_WRITE", "ANALYZE", "OPTIMIZE",
    "CHECK",
    "REBUILD", "REPAIR", "COALESCE", "REORGANIZE", "PARTITION", "REMOVE", "WITH", "WITHOUT",
    "VALIDATION",
    "TRANSACTIONAL", "PACK_KEYS", "PAGE_CHECKSUM", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL",
    "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "TABLESPACE", "NOWAIT", "WAIT",
})  # fmt: skip


def _take(found: Alteration, action: list[Token], database: str, mode: int) -> None:
    words = [w.upper for w in action]
    handler = HANDLERS.get(words[0])
    if handler is not None:
        handler(found, action, words, mode)
    elif words[0] == "RENAME":
        _rename(found, action, words, database)
    elif words[0] not in PLAIN_FIRSTS:
        found.doubt("an ALTER TABLE of an unknown kind")


def _is_column(action: Sequence[Token], words: Sequence[str]) -> bool:
    """Whether the action is about a column. Some of these words are names too, which what follows
    decides: MySQL reserves neither PERIOD and SYSTEM nor (before 9) VECTOR."""
    if len(words) < 2 or not action[1].is_word or words[1] not in NO_COLUMN:
        return len(words) > 1
    if words[1] in FOLLOWED:
        is_index = words[0] == "ADD" and words[1] == "VECTOR" and words[2:3] == ["("]
        return not is_index and words[2:3] not in [[w] for w in FOLLOWED[words[1]]]
    return False


def _behind(words: Sequence[str], at: int) -> int:
    """The place of a column's name."""
    at += list(words[at : at + 1]) == ["COLUMN"]
    for more in (["IF", "NOT", "EXISTS"], ["IF", "EXISTS"]):
        if list(words[at : at + len(more)]) == more:
            at += len(more)
    return at


def _add(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    if not _is_column(action, words):
        if "PRIMARY" in words[1:4]:
            found.doubt(KEY)
        elif words[1:2] in (["SYSTEM"], ["PERIOD"]):
            found.doubt("versioning by the system")
        return
    at = _behind(words, 1)
    columns = [action[at:]] if words[at : at + 1] != ["("] else parts(action[at + 1 : -1])
    for part in columns:
        if not part:
            continue
        if words[at : at + 1] == ["("] and part[0].is_word and part[0].upper in NO_COLUMN:
            if part[0].upper == "PRIMARY":
                found.doubt(KEY)
            continue
        said = definition(part[1:], mode)
        if said.default is None or {"PRIMARY", "SERIAL"} & {w.upper for w in part[1:]}:
            found.doubt(NEW_VALUES)
        found.step(StepKind.ADDED, said.type, part[0].name, said.default or "")


def _drop(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    if _is_column(action, words):
        at = _behind(words, 1)
        if at < len(action):
            found.step(StepKind.DROPPED, old=action[at].name)
    elif words[1:2] == ["PARTITION"]:
        found.doubt("a drop of partitions")
    elif words[1:2] == ["PRIMARY"]:
        found.doubt(KEY)
    elif words[1:2] == ["SYSTEM"]:
        found.doubt("versioning by the system")
    elif words[1:2] in (["INDEX"], ["KEY"], ["CONSTRAINT"]):
        at = _behind(words, 2)
        if at < len(action):
            found.drop_index(action[at].name)


def _modify(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    at = _behind(words, 1)
    if at + 1 >= len(action) or words[at] == "(":
        found.doubt(RETYPED)
        return
    old = new = action[at].name
    if words[0] == "CHANGE":
        at += 1
        new = action[at].name
    said = definition(action[at + 1 :], mode)
    if said.is_unsafe or not said.type:
        found.doubt(RETYPED)
    found.step(StepKind.MODIFIED, old, new, said.type)
    if old != new:
        found.step(StepKind.RENAMED, old, new)


def _rename(found: Alteration, action: list[Token], words: list[str], database: str) -> None:
    if words[1:2] in (["INDEX"], ["KEY"]) and len(words) > 3:
        return
    if words[1:2] == ["COLUMN"] and len(words) > 3:
        at = _behind(words, 1)
        if words[at + 1 : at + 2] == ["TO"] and at + 2 < len(action):
            found.step(StepKind.RENAMED, action[at].name, action[at + 2].name)
            return
        found.doubt("a rename of a column")
        return
    rest = Words(action, 1)
    _ = rest.skip("TO") or rest.skip("AS") or rest.skip("=")
    found.renamed = rest.table(database)
    found.doubt("a rename of the table")


def _convert(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    """CONVERT TO another character set. A character that the new set lacks becomes `?`, or the
    statement fails; a session setting decides which."""
    if words[1:2] != ["TO"]:
        found.doubt("a change of its partitions or its tablespace")
        return
    named = words[4:5] if words[2:4] == ["CHARACTER", "SET"] else words[3:4]
    if not set(named) & WIDE_CHARSETS:
        found.doubt("a change of its character set that may lose characters")


def _engine(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    named = words[2:3] if words[1:2] == ["="] else words[1:2]
    if not {n.strip("'\"").upper() for n in named} & ENGINES:
        found.doubt("a change of its storage engine")


def _exchange(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    found.doubt("an exchange of a partition with another table")


def _moved(found: Alteration, action: list[Token], words: list[str], mode: int) -> None:
    found.doubt("a change of its partitions or its tablespace")


HANDLERS = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _modify,
    "CONVERT": _convert,
    "ENGINE": _engine,
    "TRUNCATE": _moved,
    "EXCHANGE": _exchange,
    "DISCARD": _moved,
    "IMPORT": _moved,
}
