"""What a person does at a server beforehand. A plugin gives this as data, and pages show it beside
the plugin's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One thing to do: its purpose, and the statements to copy, in order (none where there is only
    something to know)."""

    title: str
    text: str
    statements: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """The statements as text to copy."""
        return "\n".join(self.statements)


def no_setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """Nothing has to be done."""
    return ()
