"""The words of an SQL statement as the log has it. Knows no meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.schema import TableId

TOKEN = re.compile(
    r"""(?P<comment>/\*(?!!|M!).*?\*/|--(?=\s|$)[^\n]*|\#[^\n]*)
      | (?P<open>/\*M?!\d*) | (?P<close>\*/)
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<string>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")
      | (?P<word>[\w$\u0080-\U0010ffff]+)
      | (?P<mark>\S)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`text` as it stands; `name` without quotes; `is_word`: could be a keyword."""

    text: str
    name: str
    is_word: bool

    @property
    def upper(self) -> str:
        return self.text.upper() if self.is_word else self.text


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


class Words:
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
