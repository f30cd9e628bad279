"""Drives the wizard as a person would; each function ends when its page shows that it is done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import Page, expect

PAGES = ("name", "source", "target", "tables", "advanced", "assessment", "summary")


def go_on(page: Page, to: str) -> None:
    """Press Next; the page `to` must open."""
    page.get_by_role("button", name="Next", exact=True).click()
    arrived(page, to)


def arrived(page: Page, step: str) -> None:
    """Wait for a page of the wizard."""
    expect(page).to_have_url(re.compile(rf"/drafts/[0-9a-f-]+/{step}/"))
    expect(page.get_by_test_id(f"step-{step}")).to_be_visible()


def begin(page: Page, name: str) -> None:
    """The first page, from its address."""
    page.get_by_label("Name", exact=True).fill(name)
    go_on(page, "source")


class Source(Protocol):
    """A database that tables are copied from."""

    name: str

    @property
    def params(self) -> dict[str, Any]: ...


def choose_kind(page: Page, kind: str) -> None:
    """Another kind of source than the one that is chosen, with or without scripts."""
    box = page.locator(f'input[name="source_kind"][value="{kind}"]')
    if box.is_checked():
        return
    box.check()
    change = page.locator("button:visible").filter(has_text="Change kind")
    if change.count():
        change.first.click()
    expect(page.locator(f'[data-kind="{kind}"]')).to_be_visible()


def fill_source(page: Page, source: Source, kind: str = "postgresql", /, **changes: Any) -> None:
    """Everything that the source asks for."""
    choose_kind(page, kind)
    for name, value in {**source.params, **changes}.items():
        page.locator(f'[name="source.{name}"]').fill(str(value))


def test_connection(page: Page) -> None:
    """Press the button; the answer is there when this returns."""
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_test_id("test-result").locator(".notice").first).to_be_visible()


test_connection.__test__ = False  # type: ignore[attr-defined]  # a verb of the page, no test


def fill_target(page: Page, folder: Path) -> None:
    """A lakehouse in a folder."""
    page.locator('[name="target.warehouse"]').fill(str(folder / "warehouse"))
    page.locator('[name="target.catalog_uri"]').fill(f"sqlite:///{folder}/catalog.db")


def fill_lakehouse(page: Page, given: dict[str, str], **flags: bool) -> None:
    """A lakehouse with these fields, by typing or by choosing, and with these boxes."""
    for name, value in given.items():
        field = page.locator(f'[name="target.{name}"]')
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    for name, is_set in flags.items():
        page.locator(f'input[type="checkbox"][name="target.{name}"]').set_checked(is_set)


def fill_files(page: Page, folder: Path) -> None:
    """Files in a folder, with the shortest buckets."""
    page.locator('input[name="target_kind"][value="files"]').check()
    page.locator('[name="target.location"]').fill(str(folder / "changes"))
    page.locator('[name="target.bucket"]').select_option("10 seconds")


def fill_subscribers(page: Page, folder: Path) -> None:
    """Changes for subscribers, in a folder."""
    page.locator('input[name="target_kind"][value="subscribers"]').check()
    expect(page.locator('[name="target.keep_hours"]')).to_be_visible()
    page.locator('[name="target.location"]').fill(str(folder / "feeds"))


def fill_kafka(page: Page, servers: str, prefix: str, registry: str) -> None:
    """Topics in Avro, with a schema registry."""
    page.locator('input[name="target_kind"][value="kafka"]').check()
    expect(page.locator('[name="target.servers"]')).to_be_visible()
    page.locator('[name="target.servers"]').fill(servers)
    page.locator('[name="target.topic_prefix"]').fill(prefix)
    page.locator('[name="target.partitions"]').fill("2")
    page.locator('[name="target.format"]').select_option("avro")
    page.locator('[name="target.registry"]').fill(registry)


def fill_elasticsearch(page: Page, address: str, index: str) -> None:
    """Search indexes of a cluster of one node."""
    page.locator('input[name="target_kind"][value="elasticsearch"]').check()
    expect(page.locator('[name="target.address"]')).to_be_visible()
    page.locator('[name="target.address"]').fill(address)
    page.locator('[name="target.index"]').fill(index)
    page.locator('[name="target.replicas"]').fill("0")


def fill_postgresql(page: Page, database: Source, **changes: Any) -> None:
    """Another database, which the copies go to."""
    page.locator('input[name="target_kind"][value="postgresql"]').check()
    expect(page.locator('[name="target.host"]')).to_be_visible()
    for name, value in {**database.params, **changes}.items():
        page.locator(f'[name="target.{name}"]').fill(str(value))


def fill_mysql(page: Page, given: dict[str, Any], **changes: Any) -> None:
    """A MySQL or MariaDB server, which the copies go to."""
    fill_kind(page, "mysql", {**given, **changes})


def fill_kind(page: Page, kind: str, given: dict[str, Any]) -> None:
    """A target of a kind, with these texts."""
    page.locator(f'input[name="target_kind"][value="{kind}"]').check()
    expect(page.locator(f'[name="target.{next(iter(given))}"]')).to_be_visible()
    for name, value in given.items():
        page.locator(f'[name="target.{name}"]').fill(str(value))


def fill_bigquery(page: Page, project: str, endpoint: str) -> None:
    """A project of an emulator, in Europe."""
    page.locator('input[name="target_kind"][value="bigquery"]').check()
    expect(page.locator('[name="target.project"]')).to_be_visible()
    page.locator('[name="target.project"]').fill(project)
    page.locator('[name="target.location"]').fill("EU")
    page.locator('[name="target.endpoint"]').fill(endpoint)


def saved(page: Page) -> None:
    """Wait until the page says that all of it is kept."""
    expect(page.get_by_test_id("draft-status")).to_have_text("Saved")


def choose(page: Page, *tables: str) -> None:
    """Tick tables of the list."""
    for table in tables:
        page.get_by_label(f"Copy {table}").check()
    saved(page)


def deploy(page: Page) -> None:
    """Press the last button; the replicator is there when this returns. The summary has its name as
    a heading too."""
    page.get_by_role("button", name="Deploy").click()
    deployed(page)


def deployed(page: Page) -> None:
    """The page of a replicator that was just deployed."""
    expect(page).to_have_url(re.compile(r"/replicators/[0-9a-f-]+/$"), timeout=60_000)


def build(
    page: Page, database: Source, folder: Path, name: str, *tables: str, **source: Any
) -> None:
    """All pages up to the summary, without looking around; `source`: other values of its form."""
    begin(page, name)
    fill_source(page, database, **source)
    go_on(page, "target")
    fill_target(page, folder)
    go_on(page, "tables")
    choose(page, *tables)
    go_on(page, "advanced")
    go_on(page, "assessment")
    expect(page.get_by_text("Ready to deploy")).to_be_visible()
    go_on(page, "summary")
