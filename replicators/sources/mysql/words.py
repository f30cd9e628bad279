"""Splits an SQL statement of the log into words. Knows no meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.model.schema import TableId

ANSI_QUOTES, NO_BACKSLASH_ESCAPES = 1 << 2, 1 << 20
STRICT_MODES = 1 << 21 | 1 << 22
PAD_CHAR_TO_FULL_LENGTH = 1 << 31
NO_AUTO_VALUE_ON_ZERO = 1 << 19
"""Bits of sql_mode, as a QUERY event carries it; the same in both flavours."""


def _pattern(strings: str) -> re.Pattern[str]:
    return re.compile(
        r"""(?P<comment>/\*(?!!|M!).*?\*/|--(?=\s|$)[^\n]*|\#[^\n]*)
          | (?P<open>/\*M?!\d*) | (?P<close>\*/)
          | (?P<quoted>`(?:[^`]|``)*`)
          | (?P<string>"""
        + strings
        + r""")
          | (?P<word>[\w$\u0080-\U0010ffff]+)
          | (?P<mark>\S)""",
        re.VERBOSE | re.DOTALL,
    )


TOKEN = _pattern(r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*\"""")
TOKEN_WITHOUT_ESCAPES = _pattern(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a statement. `text`: as written. `name`: without quotes. `is_word`: may be a
    keyword. `is_string`: can't be a name."""

    text: str
    name: str
    is_word: bool
    is_string: bool = False

    @property
    def upper(self) -> str:
        return self.text.upper() if self.is_word else self.text


def tokens(text: str, mode: int = 0) -> list[Token]:
    """The words of a statement under that sql_mode, without comments. The contents of executable
    comments are included."""
    found = []
    pattern = TOKEN_WITHOUT_ESCAPES if mode & NO_BACKSLASH_ESCAPES else TOKEN
    for match in pattern.finditer(text):
        kind, part = match.lastgroup, match.group()
        if kind in ("comment", "open", "close"):
            continue
        name = part[1:-1].replace("``", "`") if kind == "quoted" else part
        is_string = kind == "string"
        if mode & ANSI_QUOTES and part[0] == '"':
            name, is_string = part[1:-1].replace('""', '"'), False
        found.append(Token(part, name, kind == "word", is_string))
    return found


class Words:
    """Reads tokens one by one."""

    def __init__(self, words: list[Token], at: int = 0) -> None:
        self.words = words
        self.at = at

    @property
    def next(self) -> str:
        return self.words[self.at].upper if self.at < len(self.words) else ""

    def skip(self, *texts: str) -> bool:
        """Skip these words in this order, or none of them."""
        found = [w.upper for w in self.words[self.at : self.at + len(texts)]]
        if found == list(texts):
            self.at += len(texts)
            return True
        return False

    def table(self, database: str) -> TableId | None:
        """Read `name` or `database.name`."""
        if self.at >= len(self.words):
            return None
        first = self.words[self.at].name
        self.at += 1
        if self.next == "." and self.at + 1 < len(self.words):
            self.at += 2
            return TableId(first, self.words[self.at - 1].name)
        return TableId(database, first)
