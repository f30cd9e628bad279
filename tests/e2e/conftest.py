"""A web process with a database of its own, and Chromium on it; each page is watched for what must
not happen."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.harness import command
from tests.web_process import web_process

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
NO_BROKER = "redis://127.0.0.1:9/0"  # the discard port: nobody answers there
PASSWORD = "correct-horse-battery"
expect.set_options(timeout=20_000)
LOOKS = [
    pytest.param(((1280, "light"), (400, "dark")), id="wide-light,narrow-dark"),
    pytest.param(
        ((1280, "dark"), (400, "light")), id="wide-dark,narrow-light", marks=pytest.mark.long
    ),
]
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_USERS = f"""
from django.contrib.auth.models import Group, User
for name in ("editor", "viewer"):
    User.objects.create_user(name, password="{PASSWORD}").groups.add(Group.objects.get(name=name))
"""


@dataclass(frozen=True, slots=True)
class Web:
    """A running web process."""

    url: str
    database: Path
    environment: dict[str, str]

    def execute(self, sql: str, *values: Any) -> list[Any]:
        """Do to the application's database what a run would do."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection, connection:
            return connection.execute(sql, values).fetchall()

    def shell(self, code: str) -> None:
        """Run Python with the application's models in reach, as a worker would."""
        command("shell", "-v0", "-c", code, environment=self.environment)


@dataclass
class Watched:
    """A page, and everything bad it did."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._on_console)
        self.page.on("request", self._on_request)

    def _on_console(self, message: Any) -> None:
        is_expected = "status of 4" in message.text
        if message.type in {"error", "warning"} and not is_expected:
            self.faults.append(message.text)

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:")):
            self.faults.append(f"request to {request.url}")

    def sign_in(self, user: str = "editor") -> None:
        self.page.goto(f"{self.base}/sign-in/")
        self.page.get_by_label("User").fill(user)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()

    def assert_good(self, looks: tuple[tuple[int, str], ...]) -> None:
        """The page is accessible and fits in each look: the window's width in pixels, and the
        colour scheme. Nothing moves: colours on their way from one scheme to the other lack
        contrast."""
        for width, scheme in looks:
            self.page.set_viewport_size({"width": width, "height": 860})
            self.page.emulate_media(
                color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
            )
            self.assert_accessible()
            self.assert_fits()

    def assert_accessible(self) -> None:
        """axe-core finds nothing serious."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run().then(r => r.violations)")
        serious = [
            f"{v['id']}: {v['nodes'][0]['html'][:160]} {v['nodes'][0]['failureSummary'][:200]}"
            for v in found
            if v["impact"] in {"serious", "critical"}
        ]
        assert not serious, f"{self.page.url}: {serious}"

    def assert_fits(self) -> None:
        """Nothing is wider than the window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(script) <= 0, f"{self.page.url} is too wide"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, app_template: Path) -> Iterator[Web]:
    """gunicorn on a fresh SQLite database with an editor and a viewer."""
    place = tmp_path_factory.mktemp("web")
    environment = {
        **os.environ,
        "REPLICATOR_VAR_DIR": str(place),
        "DATABASE_URL": f"sqlite:///{place}/app.sqlite3",
        "DEBUG": "true",
        "REDIS_URL": NO_BROKER,
    }
    shutil.copy(app_template, place / "app.sqlite3")
    command("shell", "-v0", "-c", _USERS, environment=environment)
    with web_process(environment, "/sign-in/") as url:
        yield Web(url, place / "app.sqlite3", environment)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("Chromium is missing. As root: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(web: Web, chromium: Browser) -> Iterator[Any]:
    """Opens watched pages; at the end none may have had an error, a CSP violation or a request
    elsewhere."""
    opened: list[Watched] = []

    def open_one(width: int = 1280, **options: Any) -> Watched:
        context = chromium.new_context(viewport={"width": width, "height": 860}, **options)
        context.set_default_timeout(20_000)
        watched = Watched(context.new_page(), web.url)
        watched.watch()
        opened.append(watched)
        return watched

    yield open_one
    for watched in opened:
        watched.page.context.close()
        assert not watched.faults
