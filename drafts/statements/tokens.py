"""Cuts a statement into its words, texts, numbers and signs, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from drafts.statements.errors import StatementError

LONGEST = 200_000
"""The most characters of a statement."""


class Kind(StrEnum):
    """What a token is. NAME: a word in double quotes or backticks, which is never a keyword."""

    WORD = "word"
    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """`value`: without quotes. `at`: how many characters of the statement lie before it. `raw`: as
    it was written."""

    kind: Kind
    value: str
    at: int
    raw: str

    @property
    def shown(self) -> str:
        """The token in an error's sentence."""
        if self.kind is Kind.END:
            return "the end"
        return "a text in quotes" if self.kind is Kind.TEXT else f"`{self.raw[:40]}`"

    def inside(self, offset: int) -> int:
        """The place of the character of `value` with this number. A quote that is written twice
        counts as one character of the value."""
        quote, at = self.raw[:1], 0
        if quote not in _QUOTES:
            return self.at + offset
        body = self.raw[1:]
        for _ in range(offset):
            at += 2 if body[at : at + 2] == quote * 2 else 1
        return self.at + 1 + at


_QUOTES = {"'": Kind.TEXT, '"': Kind.NAME, "`": Kind.NAME}
_BLANK = re.compile(r"(?:\s+|--[^\n]*)+")
_WORD = re.compile(r"[^\W\d][\w$-]*")
_NUMBER = re.compile(r"[-+]?\d[\d_]*(?:\.\d+)?(?![\w.])")
_PLACEHOLDER = re.compile(r"<[^<>\n]{0,60}>")
_CURLY = "‘’“”´"
_SIGNS = ",.=();"


def tokens(text: str) -> list[Token]:
    """The tokens of a statement, and an END behind them. `StatementError` where a character belongs
    to none."""
    if len(text) > LONGEST:
        raise StatementError(
            f"A statement has at most {LONGEST} characters; this one has {len(text)}.", text, 0
        )
    return [*_tokens(text), Token(Kind.END, "", len(text.rstrip()), "")]


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
            continue
        token = _quoted(text, at) if text[at] in _QUOTES else _plain(text, at)
        yield token
        at += len(token.raw)


def _quoted(text: str, at: int) -> Token:
    quote = text[at]
    found = re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}").match(text, at)
    if found is None:
        raise StatementError(f"This {quote} has no {quote} that ends it.", text, at)
    value = found[1].replace(quote * 2, quote)
    if quote != "'" and not value:
        raise StatementError("A name must not be empty.", text, at)
    if "\x00" in value:
        raise StatementError("A text must not have a NUL character.", text, at)
    return Token(_QUOTES[quote], value, at, found[0])


def _plain(text: str, at: int) -> Token:
    for kind, pattern in ((Kind.NUMBER, _NUMBER), (Kind.WORD, _WORD)):
        if found := pattern.match(text, at):
            return Token(kind, found[0], at, found[0])
    if text[at] in _SIGNS:
        return Token(Kind.SIGN, text[at], at, text[at])
    if found := _PLACEHOLDER.match(text, at):
        raise StatementError(
            f"{found[0]} stands for something of yours: write that, without < and >.", text, at
        )
    if text[at] in _CURLY:
        raise StatementError("Write straight quotes: ' around a text, \" around a name.", text, at)
    raise StatementError(f"A statement has no {text[at]!r} outside quotes.", text, at)
