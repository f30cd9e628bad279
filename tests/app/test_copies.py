"""A duplicate is ready to be deployed, and a draft is not deleted unasked."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts.copies import draft_from
from drafts.models import Draft
from replicators.models import Replicator
from replicators.sources.memory import catalog
from runners.models import Table
from tests.app.factories import make_replicator
from tests.app.pages import htmx, page
from tests.app.wizarding import make_draft, press

pytestmark = pytest.mark.django_db


def test_a_duplicate_keeps_what_was_decided_and_is_deployed_from_its_summary(
    browser: Client, editor: Any
) -> None:
    """Guards `copies._accepted` and the namespace: the duplicate opened with an error for each
    table, since the other replicator has them, and asked again about each column."""
    first = make_draft(editor, accepted=[["shop", "orders", "details"]])
    press(browser, first, "summary", "deploy")
    replicator = Replicator.objects.get()
    browser.post(f"{replicator.get_absolute_url()}duplicate/")
    draft = Draft.objects.get(replicator_id=None)
    assert draft.accepted == [["shop", "orders", "details"]]
    assert press(browser, draft, "summary", "deploy").status_code == 302
    assert Replicator.objects.count() == 2


def test_what_a_replicator_copies_was_decided_though_nobody_was_asked(
    replicator: Replicator,
) -> None:
    """Guards `copies._accepted` for replicators of REST and for tables that were added later:
    nobody was asked about their columns."""
    schema = {t.name: s for t, s in catalog.TABLES.items()}["orders"]
    Table.objects.filter(name="orders").update(schema=schema.to_json())
    draft = draft_from(replicator=replicator, actor=None)
    assert draft.accepted == [["shop", "orders", "details"]]


def test_tables_of_one_name_in_two_schemas_keep_a_namespace_for_each(db: None) -> None:
    """Guards `copies._free_namespace`: in one namespace the two would be one table."""
    tables = [{"schema": s, "name": "orders"} for s in ("shop", "old")]
    both = make_replicator("both", tables=tables)
    one = make_replicator("One & only", tables=tables[:1])
    Replicator.objects.update(target_params={"namespace": ""})
    for row, namespace in ((both, ""), (one, "one_only_copy")):
        row.refresh_from_db()
        draft = draft_from(replicator=row, actor=None)
        assert draft.target_params["namespace"] == namespace


def test_a_draft_is_deleted_once_somebody_has_seen_what_goes(browser: Client, editor: Any) -> None:
    """Guards `views.delete`: one click in a menu forgot the draft."""
    draft = make_draft(editor, accepted=[["shop", "orders", "details"]])
    press(browser, draft, "tables", "list")
    url = f"/drafts/{draft.pk}/delete/"
    assert f'hx-get="{url}"' in page(browser, "/drafts/")
    dialog = page(browser, url, headers=htmx("/drafts/"))
    assert "<html" not in dialog
    for text in ("2 tables", "1 decision", "passwords included", "Begun by editor"):
        assert text in dialog
    assert Draft.objects.exists(), "asking deletes nothing"
    assert browser.post(url)["Location"] == "/drafts/"
    assert not Draft.objects.exists()
