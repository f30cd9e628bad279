"""Fields of the wizard: nothing typed is cut, and numbers are said as people say them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from replicators.forms import option_fields, span
from replicators.models import Replicator
from replicators.selectors import plugins
from tests.app.pages import page
from tests.app.wizarding import HTMX, address, make_draft, press

pytestmark = pytest.mark.django_db
LONG = "n" * 65


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        ("1440", "minutes", "24 hours"),
        ("43200", "minutes", "30 days"),
        ("90", "minutes", "90 minutes"),
        ("60", "minutes", "60 minutes"),
        ("1", "seconds", "1 second"),
        ("0.1", "seconds", "0.1 seconds"),
        ("48", "hours", "48 hours"),
        ("0", "hours", "0 hours"),
        ("soon", "hours", "soon hours"),
    ],
)
def test_a_number_is_said_in_the_unit_that_people_use(value: str, unit: str, said: str) -> None:
    assert span(value, unit) == said


def test_the_default_says_what_it_is_in_hours(browser: Client, editor: Any) -> None:
    html = page(browser, address(make_draft(editor), "advanced"))
    assert "default 1440 (24 hours)" in html and "default 1<br>" in html
    retry = next(f for f in option_fields({}, {}) if f.id == "options.retry_minutes")
    assert retry.amount == "24 hours"


def test_a_name_that_is_too_long_is_reported_and_not_cut(browser: Client, editor: Any) -> None:
    """Guards `_name_fields` and the form, which took the first 64 characters and said "Saved"."""
    draft = make_draft(editor)
    form = {"name": LONG, "description": "d" * 401}
    assert "maxlength" not in page(browser, address(draft, "name"))
    saved = press(browser, draft, "name", "autosave", htmx=True, **form)
    html = saved.content.decode()
    assert saved.status_code == 422 and "Not saved" in html
    assert "The name must be at most 64 characters; it has 65." in html
    assert "The description must be at most 400 characters; it has 401." in html
    left = press(browser, draft, "name", "next", **form)
    assert left.status_code == 422 and f'value="{LONG}"' in left.content.decode()
    draft.refresh_from_db()
    assert draft.name == "shop to lakehouse"


def test_a_first_name_that_is_too_long_makes_no_draft(browser: Client) -> None:
    form = {"act": "autosave", "name": LONG, "version": "1", "draft": ""}
    answer = browser.post("/replicators/new/", form, headers=HTMX)
    html = answer.content.decode()
    assert answer.status_code == 422 and "it has 65" in html
    assert 'id="draft-id" value=""' in html
    for act in ("save", "next"):
        assert browser.post("/replicators/new/", {**form, "act": act}).status_code == 422
    assert not Draft.objects.exists()


def test_a_description_of_a_replicator_is_not_cut_either(
    browser: Client, replicator: Replicator
) -> None:
    url = f"/replicators/{replicator.pk}/edit/"
    opened = browser.get(url)
    form = {"name": replicator.name, "description": "d" * 401, "act": "save"}
    answer = browser.post(url, {**form, "version": opened.context["version"]})
    assert answer.status_code == 422
    assert "The description must be at most 400 characters" in answer.content.decode()


def test_columns_can_be_searched_and_ticked_all_at_once(
    browser: Client, editor: Any, replicator: Replicator
) -> None:
    """Guards what wizard.js needs on both pages of columns."""
    query = "tables/columns/?schema=shop&table=orders"
    draft = make_draft(editor)
    for url in (address(draft, query).rstrip("/"), f"/replicators/{replicator.pk}/{query}"):
        html = page(browser, url)
        for part in ("data-searches-columns", 'data-ticks="true"', 'data-counts="columns"'):
            assert part in html


def test_no_breadcrumb_ends_in_a_slash(
    browser: Client, editor: Any, replicator: Replicator
) -> None:
    one = f"/replicators/{replicator.pk}/"
    for url in (address(make_draft(editor), "name"), one, f"{one}edit/", f"{one}tables/pick/"):
        crumbs = page(browser, url).partition('<div class="crumbs">')[2].partition("</div>")[0]
        assert crumbs and not crumbs.rstrip().endswith("/"), url


def test_only_a_target_with_object_stores_says_what_a_test_can_not_see(
    browser: Client, editor: Any
) -> None:
    """Guards a sentence that stood on the page of every kind of target, also of a database."""
    draft = make_draft(editor)
    for kind, wanted in (("memory", []), ("files", ["files"])):
        form = press(browser, draft, "target", "kind", target_kind=kind).content.decode()
        notes = re.findall(r'data-of-kind="(\w+)"( hidden)?>([^<]+)<', form)
        stores = {name for name, _, text in notes if "object store" in text}
        assert stores == {"lakehouse", "files", "subscribers"}
        assert {name for name, _, _ in notes} - stores == {
            "kafka",
            "redshift",
            "snowflake",
            "spanner",
        }
        assert [name for name, hidden, _ in notes if not hidden] == wanted


def test_the_lakehouse_comes_before_the_other_targets() -> None:
    """Guards `rank`: a new form chooses the first target, and sorted by label that was the
    files."""
    first, *others = plugins("target")
    assert first.name == "lakehouse"
    assert others and [p.label for p in others] == sorted(p.label for p in others)
