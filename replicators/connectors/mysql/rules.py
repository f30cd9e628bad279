"""Finds the code of an error of PyMySQL by a table of rules over its number and its text."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Applies where the server's number is one of `numbers` (empty: any) and the text matches
    `pattern` (empty: any)."""

    code: str
    numbers: tuple[int, ...] = ()
    pattern: str = ""

    def fits(self, number: int, text: str) -> bool:
        return (not self.numbers or number in self.numbers) and (
            re.search(self.pattern, text, re.IGNORECASE) is not None
        )


def number_of(err: BaseException) -> int:
    """The server's or the driver's number of an error; -1 where it has none."""
    arguments: tuple[object, ...] = getattr(err, "args", ())
    return arguments[0] if arguments and isinstance(arguments[0], int) else -1


def text_of(err: BaseException) -> str:
    """An error's text. It may have values of rows in it: it is only compared, never shown."""
    arguments: tuple[object, ...] = getattr(err, "args", ())
    return str(arguments[1]) if len(arguments) > 1 else str(err)


@dataclass(frozen=True, slots=True)
class Codes:
    """The rules of one side, source or target, and its codes for errors that have no number."""

    rules: Sequence[Rule]
    tls: str
    timeout: str
    lost: str

    def code_of(self, err: BaseException) -> str:
        """The error code for a driver's error; `internal:unexpected` where no rule fits."""
        if isinstance(err, ssl.SSLError):
            return self.tls
        if isinstance(err, TimeoutError):
            return self.timeout
        if isinstance(err, (OSError, EOFError)):
            return self.lost
        number, text = number_of(err), text_of(err)
        for rule in self.rules:
            if rule.fits(number, text):
                return rule.code
        is_lost = type(err).__name__ in {"InterfaceError", "InternalError"}
        return self.lost if is_lost else "internal:unexpected"
