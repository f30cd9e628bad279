"""Finds the code of a driver's error by a table of rules over its SQLSTATE and its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Applies where the sqlstate begins with `state` (empty: any) and the text matches `pattern`
    (empty: any)."""

    code: str
    state: str = ""
    pattern: str = ""

    def fits(self, state: str, text: str) -> bool:
        return (
            state.startswith(self.state)
            and re.search(self.pattern, text, re.IGNORECASE) is not None
        )


def state_of(err: BaseException) -> str:
    """The error's SQLSTATE; empty where the server did not speak."""
    return str(getattr(err, "sqlstate", None) or "")


def name_of(err: BaseException) -> str:
    """The error's class and SQLSTATE, for an error that no rule knows. The driver's text is never
    shown."""
    return f"{type(err).__name__} {state_of(err)}".strip()


def code_by(rules: Sequence[Rule], err: BaseException) -> str:
    """The code of the first rule that fits; `internal:unexpected` where none does."""
    state, text = state_of(err), str(err)
    return next((r.code for r in rules if r.fits(state, text)), "internal:unexpected")
