"""Finds the code of an error of PyMySQL by a table of rules over its number and its text."""

from __future__ import annotations

import re
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


def code_by(rules: Sequence[Rule], err: BaseException) -> str:
    """The code of the first rule that fits; empty where none does."""
    number, text = number_of(err), text_of(err)
    return next((r.code for r in rules if r.fits(number, text)), "")
