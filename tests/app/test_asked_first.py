"""Actions that can't be taken back are asked about first, with numbers; a table that fails is
offered what helps."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from replicators.models import Replicator
from runners.models import Event, Table
from runners.services import progress_of
from tests.app.pages import htmx, page

pytestmark = pytest.mark.django_db


@pytest.fixture
def copied(replicator: Replicator) -> Replicator:
    """A replicator with metrics."""
    Table.objects.update(state="replicating", is_snapshot_done=True)
    Table.objects.filter(name="orders").update(
        rows_snapshotted=1500, inserts=20, updates=3, deletes=1, rows_quarantined=2
    )
    names = {"replicator": replicator, "schema_name": "shop", "table_name": "orders"}
    begun = Event.objects.create(kind="table_snapshot_started", **names)
    Event.objects.filter(pk=begun.pk).update(at=timezone.now() - timedelta(seconds=40))
    Event.objects.create(kind="table_snapshot_done", **names)
    progress = progress_of(replicator)
    progress.facts = {"log_bytes": 12_000_000}
    progress.save()
    return replicator


@pytest.mark.parametrize("headers", [{}, htmx()])
def test_a_resync_is_asked_about_with_numbers(
    headers: dict[str, str], browser: Client, copied: Replicator
) -> None:
    """Guards the question: one click threw away what an hour had copied."""
    url = f"{copied.get_absolute_url()}tables/resync/"
    html = page(browser, f"{url}?schema=shop&table=orders", headers=headers)
    assert ("<html" in html) == (not headers)
    for reported in (
        "1.5&nbsp;k</span> rows copied",
        "24 changes merged",
        "took 40 s",
        "2 quarantined rows",
    ):
        assert reported in html
    assert "kept of the past" not in html
    assert not Table.objects.filter(is_resync_asked=True).exists()
    done = browser.post(url, {"schema": "shop", "table": "orders"}, follow=True)
    assert done.redirect_chain == [(f"{copied.get_absolute_url()}tables/", 302)]
    assert Table.objects.get(is_resync_asked=True).name == "orders"
    assert browser.get(f"{url}?schema=shop&table=nope").status_code == 404


def test_a_removal_and_a_delete_are_asked_about_with_numbers(
    browser: Client, copied: Replicator
) -> None:
    url = copied.get_absolute_url()
    asked = page(browser, f"{url}tables/remove/?schema=shop&table=orders")
    assert "rows copied and 24 changes merged" in asked
    asked = page(browser, f"{url}delete/")
    assert "change log (12.0 MB)" in asked
    assert "rows and merged 24 changes" in asked


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("source:table-missing", ["Remove table…", "It is there again: re-sync…"]),
        ("source:table-renamed", ["Remove table…", "It is there again: re-sync…"]),
        ("source:filter-invalid", ["Change what is copied…", "Re-sync…"]),
        ("target:table-missing", ["Re-sync…"]),
    ],
)
def test_a_failing_table_is_offered_what_helps(
    code: str, offered: list[str], browser: Client, copied: Replicator
) -> None:
    """Guards `table_help`: of a table that was dropped at the source the only button was a re-sync,
    which fails again."""
    Table.objects.filter(name="orders").update(state="failing", error_code=code)
    html = page(browser, copied.get_absolute_url())
    buttons = ["Remove table…", "Change what is copied…", "It is there again: re-sync…", "Re-sync…"]
    assert [b for b in buttons if f">{b}</a>" in html.replace("</svg>", ">")] == offered


def test_the_last_table_that_is_gone_leads_to_the_delete(
    browser: Client, copied: Replicator
) -> None:
    """Guards the way out: the last table can't be removed."""
    Table.objects.filter(name="customers").delete()
    Table.objects.update(state="failing", error_code="source:table-missing")
    html = page(browser, copied.get_absolute_url())
    assert "Remove table…" not in html
    assert html.count("Delete replicator…") == 1


def test_a_refusal_says_what_was_not_done(browser: Client, copied: Replicator) -> None:
    """Guards `actions._refused`: "That did not work" left open what."""
    url = copied.get_absolute_url()
    refused = browser.post(f"{url}retry/", headers=htmx(url))
    assert refused.status_code == 409
    assert f"<h3>{copied.name} was not retried</h3>" in refused.content.decode()
    form = {"schema": "shop", "table": "orders"}
    refused = browser.post(f"{url}tables/retry/", form, headers=htmx(f"{url}tables/"))
    assert "<h3>shop.orders was not retried</h3>" in refused.content.decode()
