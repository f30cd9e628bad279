"""A secret that is pasted into an address is refused, is reported nowhere, and is masked where an
earlier version stored it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from replicators.models import Replicator
from replicators.services import config_of, replicator_export, target_of
from tests.app.factories import config_fields
from tests.app.pages import htmx, page
from tests.app.test_pages_edit import form, url
from tests.app.wizarding import make_draft, press

pytestmark = pytest.mark.django_db
SECRET = "hunter2"
URL = f"postgres://me:{SECRET}@db.example/shop"
WAREHOUSE = f"s3://KEY:{SECRET}@bucket/w"


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


@pytest.mark.parametrize("place",
    ["drafts", "replicators", "connections/test", "sources/tables", "assess"])  # fmt: skip
def test_rest_refuses_a_pasted_url_and_does_not_repeat_it(api: Client, place: str) -> None:
    """Guards every door by which parameters come in."""
    source = {"host": URL, "database": "shop", "user": "me"}
    body: dict[str, Any] = config_fields(source_kind="postgresql", source_params=source)
    if place == "connections/test":
        body = {"role": "source", "kind": "postgresql", "params": source}
    elif place == "sources/tables":
        body = {"kind": "postgresql", "params": source}
    refused = api.post(f"/api/v1/{place}/", body, "application/json")
    assert refused.status_code == 400
    text = refused.content.decode()
    assert "must not contain a password or key; enter it in Password" in text
    assert SECRET not in text
    assert not Draft.objects.exists() and not Replicator.objects.exists()


def test_rest_refuses_to_change_to_one(api: Client, replicator: Replicator) -> None:
    body = {"source_params": {"host": URL, "password": "x"}}
    refused = api.patch(f"/api/v1/replicators/{replicator.pk}/", body, "application/json")
    assert refused.status_code == 400 and set(refused.json()["fields"]) == {"source.host"}
    assert SECRET not in refused.content.decode()


@pytest.mark.parametrize("act", ["test", "next", "autosave"])
def test_the_wizard_refuses_it_at_the_field_and_masks_it(
    browser: Client, editor: Any, act: str
) -> None:
    """Guards the page that comes back, which shows what was typed."""
    draft = make_draft(editor)
    typed = {"source_kind": "postgresql", "source.host": URL, "source.database": "d",
        "source.user": "u"}  # fmt: skip
    response = press(browser, draft, "source", act, htmx=True, **typed)
    html = response.content.decode()
    assert response.status_code == 422 and SECRET not in html
    assert "Host must not contain a password or key; enter it in Password." in html
    assert SECRET not in str(Draft.objects.values())


def test_the_edit_page_refuses_it_and_masks_it(browser: Client, replicator: Replicator) -> None:
    for act in ("save", "test:source"):
        typed = form(browser, replicator, source__host=URL, source__password="x", act=act)
        response = browser.post(url(replicator), typed, headers=htmx())
        assert response.status_code == 422 and SECRET not in response.content.decode()


def test_what_an_earlier_version_stored_runs_on_and_is_masked(
    browser: Client, replicator: Replicator
) -> None:
    """Guards rows from before: a place can't be changed, so that refusing it would end a
    replicator; every answer masks it."""
    values = {"target_kind": "lakehouse",
        "target_params": {"warehouse": WAREHOUSE, "format": "delta"}}  # fmt: skip
    Replicator.objects.filter(pk=replicator.pk).update(**values)
    replicator.refresh_from_db()
    assert target_of(replicator).warehouse == WAREHOUSE
    assert config_of(replicator).target_params.warehouse == WAREHOUSE
    seen = [str(replicator_export(replicator))]
    address = f"/replicators/{replicator.pk}"
    seen += [page(browser, f"{address}/{part}/") for part in ("edit", "configuration")]
    seen += [page(browser, f"/api/v1{address}/"), page(browser, f"/api/v1{address}/export/")]
    assert all("s3://KEY:********@bucket/w" in text and SECRET not in text for text in seen)
    saved = browser.post(url(replicator), form(browser, replicator, name="renamed"))
    assert saved.status_code == 302
    shown = browser.get(f"/api/v1{address}/").json()["target"]["params"]
    same = browser.patch(f"/api/v1{address}/", {"target_params": shown}, "application/json")
    assert same.status_code == 200
    replicator.refresh_from_db()
    assert replicator.target_params["warehouse"] == WAREHOUSE
