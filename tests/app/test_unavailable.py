"""What is answered while the application's own database is locked or away: not now, and when to try
again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.django_db


@contextmanager
def failing(text: str) -> Iterator[None]:
    """The database fails at every statement about drafts."""

    def fail(execute: Any, sql: str, *more: Any) -> Any:
        if "drafts_draft" in sql:
            raise OperationalError(text)
        return execute(sql, *more)

    with connection.execute_wrapper(fail):
        yield


@pytest.fixture
def away(browser: Client) -> Iterator[Client]:
    """A signed-in browser whose database is locked."""
    browser.raise_request_exception = False
    with failing("database is locked"):
        yield browser


@pytest.mark.parametrize("is_debug", [True, False])
def test_a_page_says_that_it_can_not_be_had_now(
    away: Client, settings: Any, is_debug: bool
) -> None:
    """Guards `project.unavailable`: it was a fault of ours (500)."""
    settings.DEBUG = is_debug
    found = away.get("/drafts/")
    assert (found.status_code, found["Retry-After"]) == (503, "5")
    assert "own database does not answer, or is busy" in found.content.decode()
    assert "locked" not in found.content.decode()


def test_rest_says_the_same_in_the_form_of_every_error(away: Client) -> None:
    found = away.get("/api/v1/drafts/")
    assert (found.status_code, found["Retry-After"]) == (503, "5")
    assert set(found.json()) == {"code", "message", "fields", "problems"}
    assert found.json()["code"] == "database-busy"


@pytest.mark.parametrize("url", ["/", "/api/v1/drafts/"])
def test_a_session_that_can_not_be_read_is_reported_alike(
    browser: Client, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Guards `errors.server_error`: what a middleware raises reaches no hook of views."""
    browser.raise_request_exception = False

    def fail(_: Any) -> None:
        raise InterfaceError("connection already closed")

    monkeypatch.setattr(SessionStore, "load", fail)
    found = browser.get(url)
    assert (found.status_code, found["Retry-After"]) == (503, "5")


def test_a_table_that_no_migration_made_is_a_fault_of_ours(browser: Client) -> None:
    """To come again does not help then."""
    browser.raise_request_exception = False
    with failing("no such table: drafts_draft"):
        assert browser.get("/drafts/").status_code == 500
        assert browser.get("/api/v1/drafts/").status_code == 500


def test_pages_wait_a_shorter_time_for_a_locked_database_than_runs(tmp_path: Path) -> None:
    """Guards `wsgi`: pages waited for 30 s, so that eight clicks held up all threads."""
    code = (
        "import replicators.project.wsgi, time\n"
        "from django.db import OperationalError, connection\n"
        "began = time.monotonic()\n"
        "try:\n"
        "    connection.cursor().execute('CREATE TABLE t (a int)')\n"
        "except OperationalError as err:\n"
        "    print(err, time.monotonic() - began < 5)\n"
    )
    file = tmp_path / "app.sqlite3"
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "replicators.project.settings", "DEBUG": "true",
        "REPLICATOR_VAR_DIR": str(tmp_path), "DATABASE_URL": f"sqlite:///{file}",
        "REPLICATOR_WEB_WAIT_SECONDS": "0.2",
    }  # fmt: skip
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode=WAL")
        holder.execute("BEGIN IMMEDIATE")
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    assert done.stdout == "database is locked True\n"
