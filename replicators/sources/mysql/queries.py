"""What QUERY events say: transaction control, DDL, and row changes written as statements. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from replicators.connectors.schema import TableId
from replicators.sources.mysql.tablemaps import HEADER, Reader

TOKEN = re.compile(
    r"""(?P<comment>/\*(?!!|M!).*?\*/|--(?=\s|$)[^\n]*|\#[^\n]*)
      | (?P<open>/\*M?!\d*) | (?P<close>\*/)
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<string>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")
      | (?P<word>[\w$\u0080-\U0010ffff]+)
      | (?P<mark>\S)""",
    re.VERBOSE | re.DOTALL,
)
SWAPS = (("_gho", "_del", "gh-ost"), ("_new", "_old", "pt-online-schema-change"))


class Kind(StrEnum):
    """What a statement does."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO = "rollback to"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    TRUNCATE = "truncate"
    CHANGE = "change"  # DDL that touches tables
    ROWS = "rows"  # a row change as a statement
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Statement:
    """`tables`: those it touches. `unlogged`: why their rows changed without being logged, in our words; "" where they
    did not. `opens`: rows follow in the same transaction, as after CREATE TABLE ... SELECT."""

    kind: Kind
    tables: tuple[TableId, ...] = ()
    unlogged: str = ""
    xid: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """`text` as it stands; `name` without quotes; `is_word`: could be a keyword."""

    text: str
    name: str
    is_word: bool

    @property
    def upper(self) -> str:
        return self.text.upper() if self.is_word else self.text


def query_of(event: bytes) -> tuple[str, str]:
    """Database and text of a QUERY event (with header, without checksum); ValueError where it is damaged."""
    reader = Reader(event, HEADER)
    reader.take(8)
    database_size = reader.number(1)
    reader.take(2)
    reader.take(reader.number(2))
    database = reader.take(database_size).decode(errors="replace")
    reader.take(1)
    return database, reader.take(reader.left).decode(errors="replace")


def tokens(text: str) -> list[Token]:
    """The words of a statement, without comments; what stands in executable comments counts."""
    found = []
    for match in TOKEN.finditer(text):
        kind, part = match.lastgroup, match.group()
        if kind in ("comment", "open", "close"):
            continue
        name = part[1:-1].replace("``", "`") if kind == "quoted" else part
        found.append(Token(part, name, kind == "word"))
    return found


def statement(database: str, text: str) -> Statement:
    """What a statement does, with `database` as its default one."""
    words = tokens(text)
    first = words[0].upper if words else ""
    second = words[1].upper if len(words) > 1 else ""
    if first in ("BEGIN", "COMMIT", "SAVEPOINT", "ROLLBACK", "START"):
        return Statement(_control(first, {w.upper for w in words}))
    if first == "XA":
        return _xa(second, text)
    if first in ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH"):
        return Statement(Kind.ROWS, tuple(_named(words, database)))
    handlers = {
        "TRUNCATE": _truncate,
        "RENAME": _rename,
        "DROP": _drop,
        "ALTER": _alter,
        "CREATE": _create,
    }
    if first in handlers:
        return handlers[first](words, database)
    return Statement(Kind.OTHER)


def _control(first: str, words: set[str]) -> Kind:
    if first == "ROLLBACK":
        return Kind.ROLLBACK_TO if "TO" in words else Kind.ROLLBACK
    kinds = {"SAVEPOINT": Kind.OTHER, "COMMIT": Kind.COMMIT}
    return kinds.get(first, Kind.BEGIN)


def _xa(second: str, text: str) -> Statement:
    kinds = {
        "START": Kind.XA_START,
        "BEGIN": Kind.XA_START,
        "END": Kind.XA_END,
        "COMMIT": Kind.XA_COMMIT,
        "ROLLBACK": Kind.XA_ROLLBACK,
    }
    parts = text.split(None, 2)
    return Statement(kinds.get(second, Kind.OTHER), xid=parts[2].strip() if len(parts) > 2 else "")


class _Words:
    """Takes tokens one by one."""

    def __init__(self, words: list[Token], at: int = 0) -> None:
        self.words = words
        self.at = at

    @property
    def next(self) -> str:
        return self.words[self.at].upper if self.at < len(self.words) else ""

    def skip(self, *texts: str) -> bool:
        """Take these words in this order, or nothing."""
        found = [w.upper for w in self.words[self.at : self.at + len(texts)]]
        if found == list(texts):
            self.at += len(texts)
            return True
        return False

    def table(self, database: str) -> TableId | None:
        """`name` or `database.name`."""
        if self.at >= len(self.words):
            return None
        first = self.words[self.at].name
        self.at += 1
        if self.next == "." and self.at + 1 < len(self.words):
            self.at += 2
            return TableId(first, self.words[self.at - 1].name)
        return TableId(database, first)


def _named(words: list[Token], database: str) -> Iterator[TableId]:
    """Every name that could be a table's."""
    for i, word in enumerate(words):
        if word.text[:1] in "'\"" or not word.name:
            continue
        if i + 2 < len(words) and words[i + 1].text == ".":
            yield TableId(word.name, words[i + 2].name)
        if i == 0 or words[i - 1].text != ".":
            yield TableId(database, word.name)


def _truncate(words: list[Token], database: str) -> Statement:
    rest = _Words(words, 1)
    rest.skip("TABLE")
    table = rest.table(database)
    return Statement(Kind.TRUNCATE, (table,) if table else ())


def _rename(words: list[Token], database: str) -> Statement:
    rest = _Words(words, 1)
    if not (rest.skip("TABLE") or rest.skip("TABLES")):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    pairs: list[tuple[TableId, TableId]] = []
    while True:
        old = rest.table(database)
        while rest.next in ("WAIT", "NOWAIT") or rest.next.isdigit():
            rest.at += 1
        if old is None or not rest.skip("TO"):
            break
        new = rest.table(database)
        if new is None:
            break
        pairs.append((old, new))
        if not rest.skip(","):
            break
    tables = tuple(dict.fromkeys(t for pair in pairs for t in pair))
    return Statement(Kind.CHANGE, tables, _swap(pairs) or "a rename of the table")


def _swap(pairs: list[tuple[TableId, TableId]]) -> str:
    """Whether this is how an online schema change ends: the table goes to one shadow's name, and comes from another's."""
    moved = {(old.name, new.name) for old, new in pairs}
    for old, new in moved:
        for fresh, gone, program in SWAPS:
            if new == f"_{old}{gone}" and (f"_{old}{fresh}", old) in moved:
                return f"an online schema change ({program})"
    return ""


def _drop(words: list[Token], database: str) -> Statement:
    rest = _Words(words, 1)
    if rest.skip("DATABASE") or rest.skip("SCHEMA"):
        rest.skip("IF", "EXISTS")
        name = rest.table("")
        return Statement(
            Kind.CHANGE, (TableId(name.name, "*"),) if name else (), "a drop of its database"
        )
    if not (rest.skip("TABLE") or rest.skip("TABLES")):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    tables = []
    while (table := rest.table(database)) is not None:
        tables.append(table)
        if not rest.skip(","):
            break
    return Statement(Kind.CHANGE, tuple(tables), "a drop of the table")


def _create(words: list[Token], database: str) -> Statement:
    rest = _Words(words, 1)
    is_replacing = rest.skip("OR", "REPLACE")
    if not rest.skip("TABLE"):
        return Statement(Kind.OTHER)
    rest.skip("IF", "NOT", "EXISTS")
    table = rest.table(database)
    why = "a replacement of the table" if is_replacing else ""
    opens = [w.upper for w in words[-2:]] == ["START", "TRANSACTION"]
    return Statement(Kind.CHANGE, (table,) if table else (), why, opens=opens)


def _alter(words: list[Token], database: str) -> Statement:
    rest = _Words(words, 1)
    rest.skip("ONLINE")
    rest.skip("IGNORE")
    if not rest.skip("TABLE"):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    table = rest.table(database)
    if table is None:
        return Statement(Kind.OTHER)
    while rest.next in ("WAIT", "NOWAIT") or rest.next.isdigit():
        rest.at += 1
    why = next(filter(None, (_unlogged(a) for a in _actions(rest.words[rest.at :]))), "")
    return Statement(Kind.CHANGE, (table,), why)


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
