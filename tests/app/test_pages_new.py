"""The one-page form that makes a replicator, as it works without JavaScript."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from replicators.connectors.params import MASK
from replicators.models import DesiredState, Replicator
from replicators.services import params_of
from tests.app.factories import SECRET

pytestmark = pytest.mark.django_db
ORDERS = '["shop", "orders"]'


@pytest.fixture
def browser(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


def _form(act: str, **changes: Any) -> dict[str, Any]:
    return {
        "act": act,
        "version": "1",
        "name": "by hand",
        "source_kind": "memory",
        "source.host": "db.example",
        "source.password": SECRET,
        "source.port": "1",
        "source.fault": "none",
        "target_kind": "memory",
        "target.namespace": "shop",
        "tables": [ORDERS],
        **changes,
    }


def test_deploy_makes_the_replicator_and_starts_it(browser: Client) -> None:
    response = browser.post("/replicators/new/", _form("deploy"))
    made = Replicator.objects.get()
    assert response["Location"] == made.get_absolute_url()
    assert made.desired_state == DesiredState.RUNNING
    assert [t["name"] for t in made.tables] == ["orders"]
    assert params_of(made, "source")["password"] == SECRET
    draft = Draft.objects.get()
    assert browser.get(f"/drafts/{draft.pk}/")["Location"] == made.get_absolute_url()


def test_testing_and_listing_keep_what_was_typed_in_a_draft(browser: Client) -> None:
    tested = browser.post("/replicators/new/", _form("test-source", tables=[]))
    html = tested.content.decode()
    assert 'data-testid="test-ok"' in html
    assert SECRET not in html
    assert MASK in html
    draft = Draft.objects.get()
    url = f"/drafts/{draft.pk}/"
    assert url in html
    listed = browser.post(url, _form("tables", **{"source.password": MASK})).content.decode()
    assert "shop.customers" in listed
    assert "no key" in listed
    draft.refresh_from_db()
    assert (draft.version, params_of(draft, "source")["password"]) == (2, SECRET)
    searched = browser.post(url, _form("tables", version="2", search="custom")).content.decode()
    assert "shop.customers" in searched
    assert "shop.places" not in searched


@pytest.mark.parametrize("act", ["test-source", "tables"])
def test_a_dead_source_is_told_in_its_place(act: str, browser: Client) -> None:
    form = _form(act, **{"source.fault": "unreachable"})
    response = browser.post("/replicators/new/", form)
    assert response.status_code == 200
    assert 'data-code="source:unreachable"' in response.content.decode()


def test_faulty_entries_are_marked_and_nothing_is_lost(browser: Client) -> None:
    form = _form("deploy", name="", **{"source.host": "", "source.port": "x", "tables": []})
    response = browser.post("/replicators/new/", form)
    html = response.content.decode()
    assert response.status_code == 422
    for text in ("Give it a name.", "Host is required.", "Port must be a whole number.", "Choose at least one table."):  # fmt: skip
        assert text in html
    assert Draft.objects.count() == 1
    assert not Replicator.objects.exists()


def test_errors_of_the_assessment_forbid_the_deploy(browser: Client) -> None:
    form = _form("deploy", tables=['["shop", "gone"]'])
    response = browser.post("/replicators/new/", form)
    assert response.status_code == 409
    assert 'data-testid="deploy-problems"' in response.content.decode()
    assert not Replicator.objects.exists()


def test_a_name_in_use_is_told_at_the_field(browser: Client, replicator: Replicator) -> None:
    response = browser.post("/replicators/new/", _form("deploy", name=replicator.name))
    assert response.status_code == 422
    assert "already a replicator called" in response.content.decode()


def test_a_stale_tab_gets_a_409_and_keeps_its_entries(browser: Client) -> None:
    browser.post("/replicators/new/", _form("save"))
    url = f"/drafts/{Draft.objects.get().pk}/"
    browser.post(url, _form("save", name="first tab"))
    stale = browser.post(url, _form("save", name="second tab"))
    assert stale.status_code == 409
    assert 'value="second tab"' in stale.content.decode()
    assert browser.post(url, _form("save", name="second tab", version="2")).status_code == 200
    assert Draft.objects.get().name == "second tab"


def test_htmx_gets_the_form_alone_and_the_drafts_address(browser: Client) -> None:
    response = browser.post("/replicators/new/", _form("save"), headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert response["HX-Replace-Url"] == f"/drafts/{Draft.objects.get().pk}/"
    listed = browser.get("/drafts/").content.decode()
    assert "by hand" in listed
    assert browser.post(f"/drafts/{Draft.objects.get().pk}/delete/").status_code == 302
    assert not Draft.objects.exists()


def test_hostile_names_are_shown_as_text(browser: Client) -> None:
    name = '"><script>alert(1)</script>'
    html = browser.post("/replicators/new/", _form("save", name=name)).content.decode()
    assert "<script>alert" not in html
