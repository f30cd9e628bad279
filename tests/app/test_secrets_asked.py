"""A stored secret goes nowhere but to the address that it was entered for: where that changes, the
secret is asked for again."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from assessments import services as assessments
from drafts import definition_pages, views
from drafts.copies import draft_from
from drafts.models import Draft
from drafts.services import draft_create, draft_update
from replicators.audit import AuditEntry
from replicators.config import SecretAsked, plugins_of
from replicators.connectors.params import MASK, describe, moved, secret_names
from replicators.models import Replicator
from replicators.services import params_of, replicator_update
from runners.models import Event
from tests.app.factories import SECRET
from tests.app.pages import page
from tests.app.test_pages_edit import form, url
from tests.app.wizarding import connector, make_draft, press

pytestmark = pytest.mark.django_db
MYSQL = {"host": "db.example", "user": "reader", "password": SECRET, "tls": "verify-full"}
PLUGINS = [(role, kind) for role in ("source", "target") for kind in sorted(plugins_of(role))]


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The params of every source that was asked."""
    seen: list[Any] = []

    def asked(*, params: Any, **_: Any) -> list[Any]:
        seen.append(params)
        return []

    for module in (assessments, views, definition_pages):
        monkeypatch.setattr(module, "connection_test", asked)
    monkeypatch.setattr(assessments, "list_tables", asked)
    return seen


def sent(api: Client, verb: str, address: str, **body: Any) -> Any:
    return getattr(api, verb)(f"/api/v1/{address}/", body, "application/json")


def stored(draft: Draft) -> dict[str, Any]:
    return params_of(Draft.objects.get(pk=draft.pk), "source")


@pytest.mark.parametrize(("role", "kind"), PLUGINS)
def test_every_connector_with_a_secret_says_what_the_secret_is_bound_to(
    role: str, kind: str
) -> None:
    """Guards new connectors: without `addresses` an editor could have a stored secret sent to a
    server of his own."""
    params = plugins_of(role)[kind].params
    bound = {p.name for p in describe(params) if p.addresses}
    assert not bound & secret_names(params)
    assert bound or not secret_names(params)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("mysql", {"host", "user", "port", "tls", "tls_ca"}),
        ("postgresql", {"host", "user", "port", "sslmode"}),
    ],
)
def test_secrets_of_servers_are_bound_to_server_user_and_encryption(
    kind: str, names: set[str]
) -> None:
    bound = {p.name for p in describe(plugins_of("source")[kind].params) if p.addresses}
    assert bound == names


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "evil.example"},
        {"host": "DB.example"},
        {"host": "db.example:3307"},
        {"port": 3307},
        {"port": "3307"},
        {"user": "root"},
        {"tls": "disable"},
        {"tls": None},
        {"tls_ca": "/tmp/mine.pem"},
    ],
)
def test_a_changed_address_asks_for_the_secret_again(changed: dict[str, Any]) -> None:
    """Guards each field: in a draft, in a copy of a replicator, and in a replicator."""
    draft = draft_create(actor=None, source_kind="mysql", source_params=MYSQL)
    params = {**MYSQL, "password": MASK, **changed}
    with pytest.raises(SecretAsked) as caught:
        draft_update(draft=draft, version=1, source_params=params)
    (text,) = caught.value.errors.values()
    assert set(caught.value.errors) == {"source.password"}
    assert text.startswith("has to be entered again: ") and SECRET not in text
    assert stored(draft) == MYSQL
    given = {**params, "password": "typed anew"}
    assert draft_update(draft=draft, version=1, source_params=given).version == 2


@pytest.mark.parametrize("same",
    [{"host": " db.example "}, {"port": "3306"}, {"port": None}, {"tls_ca": ""},
    {"database": "shop"}])  # fmt: skip
def test_the_same_address_written_otherwise_keeps_the_secret(same: dict[str, Any]) -> None:
    """Guards against asking for nothing: values are compared as they would be used."""
    draft = draft_create(actor=None, source_kind="mysql", source_params=MYSQL)
    params = {**MYSQL, "password": MASK, **same}
    draft_update(draft=draft, version=1, source_params=params)
    assert stored(draft)["password"] == SECRET


@pytest.mark.parametrize(
    "steps",
    [
        [{"source_params": {"host": "", "password": MASK}},
        {"source_params": {"host": "evil.example", "password": MASK}}],
        [{"source_params": {"password": MASK}},
        {"source_params": {"host": "evil.example", "password": MASK}}],
        [{"source_params": {"host": "db.example", "port": "x", "password": MASK}},
        {"source_params": {"host": "db.example", "port": 2, "password": MASK}}],
        [{"source_kind": "mysql", "source_params": {"host": "evil.example", "password": MASK}},
        {"source_kind": "memory", "source_params": {"host": "evil.example", "password": MASK}}],
        [{"source_kind": ""},
        {"source_kind": "memory", "source_params": {"host": "evil.example", "password": MASK}}],
        [{"source_params": {"host": "evil.example"}},
        {"source_params": {"host": "evil.example", "password": MASK}}],
    ],
)  # fmt: skip
def test_no_way_round_takes_a_secret_elsewhere(editor: Any, steps: list[dict[str, Any]]) -> None:
    """Guards steps that each look harmless: an address that is emptied first, a faulty one, another
    kind and back."""
    draft = make_draft(editor)
    for step in steps:
        try:
            draft = draft_update(draft=draft, version=draft.version, **step)
        except SecretAsked:
            break
    found = stored(draft)
    is_elsewhere = found.get("host") == "evil.example" or found.get("port") == 2
    assert not (is_elsewhere and found.get("password") == SECRET)


def test_nothing_stored_is_reached_elsewhere_over_rest(
    api: Client, replicator: Replicator, reached: list[Any]
) -> None:
    """Guards the whole attack: change, then test and list; the change is refused, told, and nothing
    is sent."""
    draft = draft_from(replicator=replicator, actor=None)
    evil = {"host": "evil.example", "password": MASK}
    for address, version in ((f"replicators/{replicator.pk}", {}),
        (f"drafts/{draft.pk}", {"version": 1})):  # fmt: skip
        refused = sent(api, "patch", address, source_params=evil, **version)
        assert (refused.status_code, set(refused.json()["fields"])) == (400, {"source.password"})
        assert "Host was changed" in refused.json()["message"]
        sent(api, "post", f"{address}/connections/test", role="source")
        sent(api, "post", f"{address}/source/tables")
    assert [p["host"] for p in reached] == ["db.example"] * 4
    reported = Event.objects.get(kind="secret_asked")
    assert (reported.replicator, reported.actor, reported.facts) == (replicator, "editor",
        {"fields": ["source.host"]})  # fmt: skip
    entries = AuditEntry.objects.filter(act="secret_asked").order_by("pk")
    kept = [(e.object_kind, e.object_id, e.new_values) for e in entries]
    changed = {"changed": ["source.host"]}
    assert kept == [("replicator", str(replicator.pk), changed), ("draft", str(draft.pk), changed)]


def test_a_replicator_that_leaves_the_secret_out_keeps_it_only_where_it_is(
    replicator: Replicator,
) -> None:
    """Guards the merge, where what is left out stays."""
    with pytest.raises(SecretAsked):
        replicator_update(replicator=replicator, actor=None, source_params={"port": 2})
    changed = replicator_update(replicator=replicator, actor=None,
        source_params={"port": 2, "password": None})  # fmt: skip
    assert not params_of(changed, "source").get("password")


def test_the_edit_page_asks_at_the_secrets_field(
    browser: Client, replicator: Replicator, reached: list[Any]
) -> None:
    """Guards save and test on the page: the field is empty, so that the mask is not sent back by
    itself."""
    for act in ("save", "test:source"):
        typed = form(browser, replicator, source__host="evil.example", act=act)
        response = browser.post(url(replicator), typed)
        html = response.content.decode()
        assert response.status_code == 422
        assert "Password has to be entered again: Host was changed." in html
        assert MASK not in html and "evil.example" in html
    assert not reached
    reported = page(browser, f"/replicators/{replicator.pk}/activity/")
    assert reported.count("password not entered again") == Event.objects.filter(kind="secret_asked").count() == 2  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("act", ["test", "next", "autosave", "save"])
def test_the_wizard_asks_at_the_secrets_field(
    browser: Client, editor: Any, reached: list[Any], act: str
) -> None:
    draft = make_draft(editor)
    typed = connector("source", host="evil.example", password=MASK)
    response = press(browser, draft, "source", act, htmx=True, **typed)
    html = response.content.decode()
    assert response.status_code == 422
    assert "Password has to be entered again: Host was changed." in html
    assert "Not saved" in html and MASK not in html
    assert stored(draft) == {"host": "db.example", "password": SECRET} and not reached


def test_values_are_compared_as_they_are_used() -> None:
    params = plugins_of("source")["mysql"].params
    assert moved(params, {"host": "a"}, {"host": " a ", "port": "3306", "tls": ""}) == ()
    assert [p.name for p in moved(params, {"port": 1}, {"port": 3306})] == ["port"]
    assert moved(params, {"host": "a"}, {"host": ""}) == (), "nothing can be reached there"
