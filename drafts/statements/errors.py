"""What is wrong with a statement, and where: line, column, and a caret below the wrong
character."""

from __future__ import annotations

import re

from replicators.connectors.addresses import secret_spans

SHOWN = 100
"""The most characters of a line that an error shows."""
_SECRET_OPTION = re.compile(
    r"\w{0,40}(?:passw|secret|token|passphrase|api_?key|private_?key|credential)\w{0,40}\s{0,8}=\s{0,8}"
    r"(?P<value>'(?:[^']|'')*'?|[^\s,;]+)",
    re.IGNORECASE,
)


class StatementError(ValueError):
    """A statement can't be read, or what it says can't be. `at` is the place in `text`: the number
    of characters before the wrong one. `reason` is a sentence. The error's text shows the line with
    a caret. Secrets in that line are stars."""

    def __init__(self, reason: str, text: str, at: int) -> None:
        self.reason = reason
        self.at = min(max(at, 0), len(text))
        before = text[: self.at]
        self.line = before.count("\n") + 1
        self.column = self.at - (before.rfind("\n") + 1) + 1
        self.shown = _shown(text, self.at, self.column)
        super().__init__(f"Line {self.line}, column {self.column}: {reason}\n{self.shown}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (self.reason, self.at, self.line, self.column, self.shown))


def _again(reason: str, at: int, line: int, column: int, shown: str) -> StatementError:
    """The error as another process made it."""
    error = StatementError(reason, "", 0)
    error.at, error.line, error.column, error.shown = at, line, column, shown
    error.args = (f"Line {line}, column {column}: {reason}\n{shown}",)
    return error


def _shown(text: str, at: int, column: int) -> str:
    """The line and the caret below it. Of a long line, the part around the caret."""
    begin = at - column + 1
    end = text.find("\n", begin)
    line = starred(text)[begin : len(text) if end < 0 else end].replace("\t", " ").rstrip("\r")
    first = max(0, min(column - 1 - SHOWN // 2, len(line) - SHOWN))
    part = line[first : first + SHOWN]
    return f"{part}\n{' ' * (column - 1 - first)}^"


def starred(text: str) -> str:
    """The text with a star in place of every character of a secret, so that places stay."""
    found = [*secret_spans(text), *(m.span("value") for m in _SECRET_OPTION.finditer(text))]
    for first, last in found:
        stars = re.sub(r"[^\n]", "*", text[first:last])
        text = text[:first] + stars + text[last:]
    return text
