"""Line `tables-page`: a click on the wizard's page of tables, for a source with 2,000 tables, all
of them chosen."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.report import Result
from benchmarks.resources import turn
from demo.postgres import EmbeddedPostgres

TABLES = place.scaled(2000, 100)
CLICKS = 40
TARGET_MILLISECONDS = 300
PAGE_ROWS = 50
HTMX = {"HX-Request": "true"}
FILL = f"""
DO $$ BEGIN
  FOR n IN 1..{TABLES} LOOP
    EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, a text, b text)', lpad(n::text, 5, '0'));
  END LOOP;
END $$
"""


def _application(folder: Path) -> Any:
    """A signed-in client of the application, which runs in this process with an SQLite file of its
    own."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
        "DATABASE_URL": f"sqlite:///{folder}/app.sqlite3",
        "REPLICATOR_VAR_DIR": str(folder),
        "ALLOWED_HOSTS": "testserver",
        "DEBUG": "true",
        "REDIS_URL": "",
    }
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    client = Client()
    client.force_login(User.objects.create_superuser("bench"))
    return client


class Page:
    """The page as a browser with HTMX uses it."""

    def __init__(self, client: Any, draft: Any) -> None:
        self._client = client
        self._draft = draft
        self._url = f"/drafts/{draft.pk}/tables/"

    def chosen(self) -> list[str]:
        """The names of the chosen tables."""
        self._draft.refresh_from_db()
        return [t["name"] for t in self._draft.tables]

    def press(self, act: str, ticked: range = range(0), shown: range = range(0)) -> None:
        """Click an action that stores the choice."""
        form = {
            "act": act,
            "version": self._version(),
            "shown": [_packed(n) for n in shown],
            **{name: [_packed(n) for n in ticked] for name in ("tables", "updates", "deletes")},
        }
        self._right(self._client.post(self._url, form, headers=HTMX))

    def search(self, text: str) -> None:
        """Type into the search field."""
        self._right(self._client.get(self._url, {"search": text}, headers=HTMX))

    def _version(self) -> int:
        self._draft.refresh_from_db(fields=["version"])
        return int(self._draft.version)

    @staticmethod
    def _right(response: Any) -> None:
        if response.status_code != 200:
            raise RuntimeError(f"The page answered {response.status_code}.")


def _packed(number: int) -> str:
    return json.dumps(["public", f"t{number:05}"])


def _times(click: Callable[[int], None]) -> list[float]:
    times = []
    for number in range(CLICKS):
        began = time.monotonic()
        click(number)
        times.append((time.monotonic() - began) * 1000)
    return times


def measure(line: str) -> list[Result]:
    """The 95th percentile of the slowest kind of click. It is right where the stored choice equals
    the ticked tables."""
    with place.folder(line) as folder, EmbeddedPostgres(fsync=False) as server:
        server.execute(FILL)
        page = _page(folder, server.params("postgres"))
        page.press("list")
        page.press("choose-all")
        is_right = len(page.chosen()) == TABLES
        shown = range(1, PAGE_ROWS + 1)
        with turn():
            kinds = {
                "tick": _times(lambda n: page.press("autosave", shown[n % 2 :], shown)),
                "page": _times(lambda n: page.press(f"page:{n % 40 + 1}")),
                "search": _times(lambda n: page.search(f"t0{n:02}")),
            }
        is_right = is_right and page.chosen() == [f"t{n:05}" for n in range(2, TABLES + 1)]
    worst = {kind: statistics.quantiles(times, n=20)[-1] for kind, times in kinds.items()}
    note = ", ".join(f"{kind} {statistics.median(times):.0f}" for kind, times in kinds.items())
    return [
        Result(
            line=line,
            unit="ms p95",
            ours=max(worst.values()),
            target=TARGET_MILLISECONDS,
            at_most=True,
            is_absolute=True,
            checked=is_right,
            note=f"{TABLES} tables, all chosen; medians in ms: {note}. Answered in one process "
            "on SQLite.",
        )
    ]


def _page(folder: Path, params: dict[str, Any]) -> Page:
    client = _application(folder)
    from drafts.services import draft_create

    draft = draft_create(
        actor=None, name="bench", source_kind="postgresql", source_params=dict(params)
    )
    return Page(client, draft)
