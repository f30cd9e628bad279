"""Finds plugins by folder, and joins the texts of their errors; listing them imports no driver."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from replicators.connectors.problems.message import Message
from replicators.connectors.problems.messages import MESSAGES
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin

CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def _discover(role: str, kind: type) -> dict[str, Any]:
    package = f"replicators.{role}s"
    root = importlib.import_module(package)
    found: dict[str, Any] = {}
    taken = dict.fromkeys(MESSAGES, "the program itself")
    for info in pkgutil.iter_modules(root.__path__):
        if not info.ispkg:
            continue
        plugin = getattr(importlib.import_module(f"{package}.{info.name}"), "PLUGIN", None)
        if not isinstance(plugin, kind):
            raise LookupError(f"{package}.{info.name} has no PLUGIN of type {kind.__name__}")
        if plugin.name != info.name:  # type: ignore[attr-defined]
            raise LookupError(f"{package}.{info.name} calls itself {plugin.name!r}")  # type: ignore[attr-defined]
        check_messages(role, info.name, plugin.messages, taken)  # type: ignore[attr-defined]
        found[info.name] = plugin
    return found


def check_messages(role: str, name: str, own: Mapping[str, Message], taken: dict[str, str]) -> None:
    """LookupError where a plugin's code is of another form, already `taken` (code: by whom), or lacks a text. The
    plugin's codes are taken then."""
    for code, message in own.items():
        area, _, words = code.partition(":")
        if area != role or not CODE.fullmatch(words):
            raise LookupError(
                f"{name}: the error code {code!r} does not look like `{role}:some-words`"
            )
        if code in taken:
            raise LookupError(f"{name}: the error code {code!r} is taken by {taken[code]}")
        empty = [f for f in ("title", "text", "suggestion") if not getattr(message, f)]
        if empty:
            raise LookupError(f"{name}: the error code {code!r} has no {' and no '.join(empty)}")
    taken.update(dict.fromkeys(own, name))


@cache
def sources() -> dict[str, SourcePlugin]:
    """Name -> source plugin."""
    return _discover("source", SourcePlugin)


@cache
def targets() -> dict[str, TargetPlugin]:
    """Name -> target plugin."""
    return _discover("target", TargetPlugin)


@cache
def messages() -> dict[str, Message]:
    """The messages that plugins bring, by code."""
    plugins: list[SourcePlugin | TargetPlugin] = [*sources().values(), *targets().values()]
    return {code: message for plugin in plugins for code, message in plugin.messages.items()}
