"""Finds plugins by folder; listing them imports no driver."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin


def _discover(package: str, kind: type) -> dict[str, Any]:
    root = importlib.import_module(package)
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(root.__path__):
        if not info.ispkg:
            continue
        plugin = getattr(importlib.import_module(f"{package}.{info.name}"), "PLUGIN", None)
        if not isinstance(plugin, kind):
            raise LookupError(f"{package}.{info.name} has no PLUGIN of type {kind.__name__}")
        if plugin.name != info.name:  # type: ignore[attr-defined]
            raise LookupError(f"{package}.{info.name} calls itself {plugin.name!r}")  # type: ignore[attr-defined]
        found[info.name] = plugin
    return found


@cache
def sources() -> dict[str, SourcePlugin]:
    """Name -> source plugin."""
    return _discover("replicators.sources", SourcePlugin)


@cache
def targets() -> dict[str, TargetPlugin]:
    """Name -> target plugin."""
    return _discover("replicators.targets", TargetPlugin)
