"""Pictures of the main pages for docs/screenshots, of a demo that really runs: `make screenshots`.

The demo is made in a folder of its own and runs for some minutes, so that the charts have something
to show; then a table of the target is dropped behind its back, to show what a failing table looks
like.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from demo.place import ROOT
from tests.demos import closed_demo, until

FOLDER = ROOT / "docs" / "screenshots"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
SIZES = {"1280": (1280, 800, "light"), "dark": (1280, 800, "dark"), "400": (400, 800, "light")}


@dataclass(frozen=True)
class Shown:
    """A demo to be photographed."""

    reported: dict[str, Any]

    @property
    def pages(self) -> dict[str, str]:
        """Names of the pictures and what they show."""
        one = f"/replicators/{self.reported['replicator_id']}"
        return {
            "replicators": "/",
            "overview": f"{one}/",
            "tables": f"{one}/tables/",
            "activity": f"{one}/activity/",
            "logs": f"{one}/logs/",
            "configuration": f"{one}/configuration/",
        }

    def states(self) -> set[str]:
        """The states that the replicator's tables are in."""
        url = f"{self.reported['url']}/api/v1/replicators/{self.reported['replicator_id']}/status/"
        asked = urllib.request.Request(
            url, headers={"Authorization": f"Bearer {self.reported['token']}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return {t["state"] for t in json.load(answer)["tables"]}


def sign_in(page: Page, shown: Shown) -> None:
    """As the demo's user."""
    page.goto(f"{shown.reported['url']}/sign-in/")
    page.get_by_label("User").fill(shown.reported["user"])
    page.get_by_label("Password").fill(shown.reported["password"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{shown.reported['url']}/")


def draft(browser: Browser, shown: Shown) -> dict[str, str]:
    """A draft beside the replicator, made and assessed as a person does it: pages of the wizard
    with something on them."""
    page = browser.new_page()
    sign_in(page, shown)
    page.locator("summary[aria-label^='Actions on']").first.click()
    page.get_by_role("button", name="Duplicate").click()
    page.wait_for_url("**/drafts/**")
    one = "/".join(urlsplit(page.url).path.split("/")[:3])
    page.goto(f"{shown.reported['url']}{one}/assessment/")
    page.locator("#run-assessment").click()
    page.locator("#run-assessment", has_text="again").wait_for(timeout=120_000)
    page.close()
    return {
        "wizard-source": f"{one}/source/",
        "wizard-tables": f"{one}/tables/",
        "wizard-assessment": f"{one}/assessment/",
    }


def drop_target(shown: Shown, table: str) -> None:
    """What makes a table fail."""
    from pyiceberg.catalog.sql import SqlCatalog

    target = shown.reported["target"]
    catalog = SqlCatalog(
        target["catalog_name"], uri=target["catalog_uri"], warehouse=target["warehouse"]
    )
    catalog.drop_table((target["namespace"], table))


def shoot(browser: Browser, shown: Shown, names: dict[str, str]) -> None:
    """Each page in each size, as much as fits the window."""
    for size, (width, height, scheme) in SIZES.items():
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        page = context.new_page()
        sign_in(page, shown)
        for name, path in names.items():
            page.goto(shown.reported["url"] + path, wait_until="networkidle")
            page.screenshot(path=FOLDER / f"{name}-{size}.png")
        context.close()


def main() -> None:
    """Take every picture anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0, help="how long the demo runs before")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        demo = stack.enter_context(closed_demo(folder / "run", orders=50_000))
        shown = Shown(demo.start())
        until(lambda: shown.states() == {"replicating"}, "all tables replicate", 240)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        wizard = draft(browser, shown)
        time.sleep(arguments.minutes * 60)
        shoot(browser, shown, shown.pages | wizard)
        drop_target(shown, "page_views")
        until(lambda: "failing" in shown.states(), "a table fails", 120)
        shoot(browser, shown, {"failing": shown.pages["tables"]})
        browser.close()


if __name__ == "__main__":
    main()
