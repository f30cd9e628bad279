"""Finds plugins, in our folders and in installed packages, and joins the texts of their errors.
Listing them imports no driver.

A fault in a folder of ours is raised: the program is broken. A fault in another package leaves out
that package's plugin. It is logged and shown by the system checks, and the rest of the program goes
on.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from replicators.connectors.params import describe
from replicators.connectors.problems.message import Message
from replicators.connectors.problems.messages import MESSAGES
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin

logger = logging.getLogger("replicators.connectors")

KINDS: Mapping[str, type] = {"source": SourcePlugin, "target": TargetPlugin}
WORDS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Found:
    """The plugins of a role by name, and the faults of plugins from other packages, as
    sentences."""

    plugins: dict[str, Any]
    faults: tuple[str, ...]


@cache
def _found(role: str) -> Found:
    taken = dict.fromkeys(MESSAGES, "the program itself")
    plugins = {plugin.name: plugin for plugin in _of_folders(role, taken)}
    faults = []
    brought = sorted(
        entry_points(group=f"replicators.{role}s"), key=lambda e: (e.name, _package(e))
    )
    names = Counter(entry.name for entry in brought)
    for entry in brought:
        try:
            if entry.name in plugins:
                raise LookupError("the program has one of that name itself")
            if names[entry.name] > 1:
                others = [_package(e) for e in brought if e.name == entry.name and e is not entry]
                raise LookupError(f"{' and '.join(others)} brings one of that name too")
            plugin = checked(role, entry.name, entry.load(), taken)
        except (Exception, SystemExit) as err:  # noqa: BLE001 - of another package: anything
            text = f"The {role} {entry.name!r} of the package {_package(entry)!r} can't be used: "
            faults.append(
                text + (str(err) if type(err) is LookupError else f"{type(err).__name__}: {err}")
            )
            logger.error("%s", faults[-1], exc_info=type(err) is not LookupError)
        else:
            plugins[entry.name] = plugin
    return Found(plugins, tuple(faults))


def _of_folders(role: str, taken: dict[str, str]) -> Iterator[Any]:
    package = importlib.import_module(f"replicators.{role}s")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.ispkg:
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        try:
            yield checked(role, info.name, getattr(module, "PLUGIN", None), taken)
        except LookupError as err:
            raise LookupError(f"{module.__name__}: {err}") from err


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def checked(role: str, name: str, plugin: Any, taken: dict[str, str]) -> Any:
    """The plugin, if it has this role and name; otherwise LookupError. Its error codes are then
    `taken` (code: by whom)."""
    kind = KINDS[role]
    if not isinstance(plugin, kind):
        raise LookupError(f"it has no PLUGIN of type {kind.__name__}")
    if plugin.name != name:  # type: ignore[attr-defined]
        raise LookupError(f"it calls itself {plugin.name!r}")  # type: ignore[attr-defined]
    if not NAME.fullmatch(name):
        raise LookupError(
            "its name must be lower-case letters, digits and _, and begin with a letter"
        )
    describe(plugin.params)  # type: ignore[attr-defined]
    check_messages(role, name, plugin.messages, taken)  # type: ignore[attr-defined]
    return plugin


def check_messages(role: str, name: str, own: Mapping[str, Message], taken: dict[str, str]) -> None:
    """LookupError where a plugin's code has a wrong form, is already `taken` (code: by whom), or
    lacks a text. Otherwise the plugin's codes are then taken."""
    for code, message in own.items():
        area, _, words = code.partition(":")
        if area != role or not WORDS.fullmatch(words):
            raise LookupError(f"the error code {code!r} does not look like `{role}:some-words`")
        if code in taken:
            raise LookupError(f"the error code {code!r} is taken by {taken[code]}")
        if not isinstance(message, Message):
            raise LookupError(f"the error code {code!r} has no Message")
        empty = [f for f in ("title", "text", "suggestion") if not getattr(message, f)]
        if empty:
            raise LookupError(f"the error code {code!r} has no {' and no '.join(empty)}")
    taken.update(dict.fromkeys(own, name))


def sources() -> dict[str, SourcePlugin]:
    """Name -> source plugin."""
    return _found("source").plugins


def targets() -> dict[str, TargetPlugin]:
    """Name -> target plugin."""
    return _found("target").plugins


def faults() -> tuple[str, ...]:
    """What is wrong with plugins of other packages, as sentences. These plugins are left out."""
    return (*_found("source").faults, *_found("target").faults)


@cache
def messages() -> dict[str, Message]:
    """The messages that plugins bring, by code."""
    plugins: list[SourcePlugin | TargetPlugin] = [*sources().values(), *targets().values()]
    return {code: message for plugin in plugins for code, message in plugin.messages.items()}


def forget() -> None:
    """Look for plugins anew at the next question; for tests."""
    _found.cache_clear()
    messages.cache_clear()
