"""Words for what the upkeep of a target table did."""

from __future__ import annotations

from typing import Any


def figures_told(facts: dict[str, Any]) -> str:
    """What a maintenance did, in words for the log: `: rewritten data files 12`; what is zero is left out."""
    parts = [p if isinstance(p, dict) else {name: p} for name, p in facts.items()]
    found = [
        f"{name.removesuffix('_count').replace('_', ' ')} {value}"
        for part in parts
        for name, value in part.items()
        if value
    ]
    return ": " + ", ".join(found) if found else ""
