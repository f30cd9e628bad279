"""Fixtures of the tests of Django's parts: users, and settings that start nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from replicators.audit_triggers import triggers_drop, triggers_make
from replicators.connectors import registry
from replicators.models import Replicator
from tests.app.factories import make_replicator, make_user

_without_triggers: set[str] = set()
"""The databases of this process whose triggers were dropped for a test that commits."""


@pytest.fixture(autouse=True)
def _may_empty_tables(request: pytest.FixtureRequest) -> None:
    """A test that commits empties all tables afterwards; rows of the audit trail let nobody. Such a
    test drops the triggers, and a later one of another file makes them anew."""
    marker = request.node.get_closest_marker("django_db")
    if marker is None or connection.vendor != "sqlite":  # PostgreSQL truncates
        return
    request.getfixturevalue("django_db_setup")
    name = str(connection.settings_dict["NAME"])
    with request.getfixturevalue("django_db_blocker").unblock():
        if marker.kwargs.get("transaction"):
            triggers_drop(connection)
            _without_triggers.add(name)
        elif name in _without_triggers:
            triggers_make(connection)
            if not connection.in_atomic_block:
                _without_triggers.discard(name)


@pytest.fixture(autouse=True)
def _quiet_settings(settings: Any, tmp_path: Path) -> None:
    """No broker, files in a folder of the test's own, the in-memory pair shown, passwords that cost
    nothing."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.REDIS_URL = ""
    settings.RUN_LOG_DIR = tmp_path / "run-logs"
    settings.SHOW_HIDDEN_PLUGINS = True
    settings.MAX_RUNS = 4


@pytest.fixture
def converging(monkeypatch: pytest.MonkeyPatch) -> None:
    """The in-memory source's first copy converges, so that modes which keep the past are
    refused."""
    memory = registry.sources()["memory"]
    can = replace(memory.capabilities, has_exact_snapshot=False)
    monkeypatch.setitem(registry.sources(), "memory", replace(memory, capabilities=can))


@pytest.fixture
def editor(db: None) -> User:
    """May act."""
    return make_user("editor", "editor")


@pytest.fixture
def browser(client: Client, editor: User) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


@pytest.fixture
def viewer(db: None) -> User:
    """May look."""
    return make_user("viewer", "viewer")


@pytest.fixture
def stranger(db: None) -> User:
    """May sign in, and nothing else."""
    return make_user("stranger")


@pytest.fixture
def replicator(db: None) -> Replicator:
    """A paused replicator with two tables."""
    return make_replicator()


@pytest.fixture
def keeps_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory target says that it keeps older versions."""
    memory = registry.targets()["memory"]
    able = replace(memory, capabilities=replace(memory.capabilities, can_rewind=True))
    monkeypatch.setitem(registry.targets(), "memory", able)


def _rows_readable(monkeypatch: pytest.MonkeyPatch, *, can: bool) -> None:
    memory = registry.targets()["memory"]
    able = replace(memory, capabilities=replace(memory.capabilities, can_read_rows=can))
    monkeypatch.setitem(registry.targets(), "memory", able)


@pytest.fixture
def readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory target's rows can be read back."""
    _rows_readable(monkeypatch, can=True)


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory target's rows can't be read back."""
    _rows_readable(monkeypatch, can=False)
