"""What a plugin can do, as data, so that nothing outside it asks for its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceCapabilities:
    """Abilities of a source."""

    has_log: bool = True
    has_exact_snapshot: bool = True
    has_truncate: bool = True
    minimum_version: str = ""


@dataclass(frozen=True, slots=True)
class TargetCapabilities:
    """Abilities of a target."""

    has_atomic_token: bool = True
    has_staging: bool = True
    can_add_column: bool = True
    can_drop_column: bool = True
    can_rename_column: bool = False
    formats: tuple[str, ...] = ()
