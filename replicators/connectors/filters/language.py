"""Row filters: which rows of a table are copied. A small language of our own, read into a tree; no
text of it reaches a server.

    status = 'paid' AND (amount >= 10 OR country IN ('CH', 'AT')) AND "deleted at" IS NULL AND NOT name LIKE 'test%'

Columns by their names, in double quotes where they are not plain words; numbers, 'texts', TRUE and
FALSE; `=` `<>` `<` `<=` `>` `>=`, IN, LIKE, BETWEEN, IS NULL, each but the signs also with NOT;
AND, OR, NOT and brackets. Dates and times are texts. As in SQL a comparison with NULL is unknown,
and only rows for which the whole is true are kept. Texts are compared byte by byte.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

MAX_LENGTH = 4000
MAX_DEPTH = 40
_SIGNS = ("<>", "<=", ">=", "!=", "=", "<", ">")
_TOKENS = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")+")|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?![\w.]))"""
    r"""|(?P<word>[^\W\d][\w$]*)|(?P<sign><>|<=|>=|!=|[=<>(),]))"""
)
_WORDS = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE"})


class FilterError(ValueError):
    """The filter can't be read, or does not fit its table. The text is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A column beside a value: `sign` is one of `=` `<>` `<` `<=` `>` `>=`."""

    column: str
    sign: str
    value: Any


@dataclass(frozen=True, slots=True)
class In:
    """A column's value is one of these values."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """A text matches a pattern: `%` any characters, `_` one, `\\` takes the next as it is."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column has no value."""

    column: str


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    part: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All of these."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of these."""

    parts: tuple[Expression, ...]


Expression = Compare | In | Like | IsNull | Not | And | Or


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns that the filter uses."""
    match expression:
        case Not(part=part):
            return columns_of(part)
        case And(parts=parts) | Or(parts=parts):
            return {name for part in parts for name in columns_of(part)}
    return {expression.column}


@lru_cache(256)
def parse(text: str) -> Expression:
    """The tree of a filter's text. FilterError says what is wrong, and where."""
    if len(text) > MAX_LENGTH:
        raise FilterError(f"The filter is longer than {MAX_LENGTH} characters.")
    return _Parser(text).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        found = _TOKENS.match(text, at)
        if found is None:
            rest = len(text[at:]) - len(text[at:].lstrip())
            raise FilterError(
                f"`{text[at + rest :][:20]}` (character {at + rest + 1}) is not understood."
            )
        kind = found.lastgroup or ""
        word = found.group(kind)
        if kind == "word" and word.upper() in _WORDS:
            kind, word = "keyword", word.upper()
        yield _Token(kind, word, found.start(found.lastgroup or 0))
        at = found.end()


class _Parser:
    """By descent: OR, AND, NOT, then one condition."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        if not self._tokens:
            raise FilterError("The filter is empty.")
        found = self._any()
        if self._at < len(self._tokens):
            raise self._fault("AND, OR or the end")
        return found

    def _fault(self, wanted: str) -> FilterError:
        if self._at >= len(self._tokens):
            return FilterError(f"The filter ends where {wanted} should follow.")
        token = self._tokens[self._at]
        return FilterError(
            f"`{token.text}` (character {token.at + 1}) stands where {wanted} should be."
        )

    def _take(self, *wanted: str) -> str:
        """The next token's text if it is one of these words or signs, otherwise ''."""
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind in ("keyword", "sign") and token.text in wanted:
                self._at += 1
                return token.text
        return ""

    def _need(self, *wanted: str) -> str:
        found = self._take(*wanted)
        if not found:
            raise self._fault(" or ".join(f"`{w}`" for w in wanted))
        return found

    def _parts(self, part: Callable[[], Expression], word: str) -> list[Expression]:
        found = [part()]
        while self._take(word):
            found.append(part())
        return found

    def _any(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FilterError(
                f"The filter has more than {MAX_DEPTH} brackets or NOTs within each other."
            )
        parts = self._parts(self._all, "OR")
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self) -> Expression:
        parts = self._parts(self._one, "AND")
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Expression:
        negations = 0
        while self._take("NOT"):
            negations += 1
        if self._take("("):
            found = self._any()
            self._need(")")
        else:
            found = self._condition()
        return Not(found) if negations % 2 else found

    def _condition(self) -> Expression:
        column = self._column()
        if self._take("IS"):
            is_not = self._take("NOT")
            self._need("NULL")
            return Not(IsNull(column)) if is_not else IsNull(column)
        if sign := self._take(*_SIGNS):
            return Compare(column, "<>" if sign == "!=" else sign, self._value())
        is_not = self._take("NOT")
        found = self._worded(column)
        return Not(found) if is_not else found

    def _worded(self, column: str) -> Expression:
        match self._need("IN", "LIKE", "BETWEEN"):
            case "IN":
                self._need("(")
                values = [self._value()]
                while self._take(","):
                    values.append(self._value())
                self._need(")")
                return In(column, tuple(values))
            case "LIKE":
                value = self._value()
                if not isinstance(value, str):
                    raise FilterError(f"LIKE wants a text in quotes for `{column}`.")
                return Like(column, value)
        low = self._value()
        self._need("AND")
        return And((Compare(column, ">=", low), Compare(column, "<=", self._value())))

    def _column(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.kind not in ("word", "name"):
            raise self._fault("the name of a column")
        self._at += 1
        return token.text[1:-1].replace('""', '"') if token.kind == "name" else token.text

    def _value(self) -> Any:
        if word := self._take("TRUE", "FALSE"):
            return word == "TRUE"
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is not None and token.text == "NULL" and token.kind == "keyword":
            raise FilterError("Nothing equals NULL: write IS NULL or IS NOT NULL.")
        if token is None or token.kind not in ("text", "number"):
            raise self._fault("a number or a text in single quotes")
        self._at += 1
        return token.text[1:-1].replace("''", "'") if token.kind == "text" else Decimal(token.text)
