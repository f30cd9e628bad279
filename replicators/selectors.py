"""Reads replicators and lists connectors; writes nothing."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from replicators.connectors import params, registry
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin


def plugins(role: str) -> list[SourcePlugin | TargetPlugin]:
    """The plugins of a role that may be chosen, by rank and label. Hidden ones are in it only where
    the settings show them. A new form chooses the first."""
    known = registry.sources() if role == "source" else registry.targets()
    shown: list[Any] = [
        p for p in known.values() if settings.SHOW_HIDDEN_PLUGINS or not p.is_hidden
    ]
    return sorted(shown, key=lambda p: (p.rank, p.label))


def plugin_params(plugin: SourcePlugin | TargetPlugin) -> tuple[params.Param, ...]:
    """A plugin's parameters, in order."""
    return params.describe(plugin.params)
