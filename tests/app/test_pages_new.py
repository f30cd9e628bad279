"""The wizard from the first page to the replicator, as it works without JavaScript, and what HTMX
is answered."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from assessments import services as assessments
from drafts.models import Draft
from replicators.connectors.params import MASK
from replicators.models import DesiredState, Replicator
from replicators.services import params_of
from tests.app.factories import SECRET
from tests.app.wizarding import HTMX, STEPS, address, connector, make_draft, press, ticked

pytestmark = pytest.mark.django_db


def test_seven_pages_lead_to_a_replicator_that_runs(browser: Client) -> None:
    made = browser.post(
        "/replicators/new/", {"act": "next", "name": " by hand ", "description": ""}
    )
    draft = Draft.objects.get()
    assert made["Location"] == address(draft, "source")
    source = connector("source", password=SECRET)
    assert press(browser, draft, "source", "next", **source)["Location"] == address(draft, "target")
    target = press(browser, draft, "target", "next", **connector("target"))
    assert target["Location"] == address(draft, "tables")
    press(browser, draft, "tables", "list")
    chosen = press(browser, draft, "tables", "next", **ticked("customers"))
    assert chosen["Location"] == address(draft, "advanced")
    options = press(browser, draft, "advanced", "next", **{"options.merge_seconds": "5"})
    assert options["Location"] == address(draft, "assessment")
    assert "Ready to deploy" in press(browser, draft, "assessment", "run").content.decode()
    assert press(browser, draft, "assessment", "next")["Location"] == address(draft, "summary")
    deployed = press(browser, draft, "summary", "deploy")
    replicator = Replicator.objects.get()
    assert deployed["Location"] == replicator.get_absolute_url()
    assert replicator.name == "by hand"
    assert replicator.desired_state == DesiredState.RUNNING
    assert [t["name"] for t in replicator.tables] == ["customers"]
    assert replicator.options["merge_seconds"] == 5
    assert params_of(replicator, "source")["password"] == SECRET
    assert press(browser, draft, "summary", "deploy")["Location"] == replicator.get_absolute_url()
    for step in STEPS:
        assert browser.get(address(draft, step))["Location"] == replicator.get_absolute_url()


def test_a_draft_is_taken_up_where_it_was_left(browser: Client, editor: Any) -> None:
    draft = make_draft(editor, tables=[])
    assert browser.get(f"/drafts/{draft.pk}/")["Location"] == address(draft, "tables")
    press(browser, draft, "tables", "close", **ticked("customers"))
    assert browser.get(f"/drafts/{draft.pk}/")["Location"] == address(draft, "assessment")
    press(browser, draft, "assessment", "run")
    assert browser.get(f"/drafts/{draft.pk}/")["Location"] == address(draft, "summary")
    assert str(draft) in browser.get("/drafts/").content.decode()


def test_what_was_typed_is_kept_whichever_way_a_page_is_left(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    for number, act in enumerate(("back", "goto:tables", "close", "autosave")):
        press(browser, draft, "source", act, **connector("source", host=f"h{number}", port="x"))
        draft.refresh_from_db()
        assert draft.source_params["host"] == f"h{number}"
    html = browser.get(address(draft, "source")).content.decode()
    assert 'value="x"' in html


def test_faulty_entries_are_marked_and_nothing_is_lost(browser: Client) -> None:
    nameless = browser.post("/replicators/new/", {"act": "next", "name": ""})
    assert (nameless.status_code, Draft.objects.count()) == (422, 0)
    assert "Give it a name." in nameless.content.decode()
    browser.post("/replicators/new/", {"act": "next", "name": "x"})
    draft = Draft.objects.get()
    form = connector("source", host="", port="x")
    response = press(browser, draft, "source", "next", htmx=True, **form)
    html = response.content.decode()
    assert response.status_code == 422
    assert "<html" not in html
    assert "Host is required." in html and "Port must be a whole number." in html
    draft.refresh_from_db()
    assert draft.source_params["port"] == "x"
    options = press(browser, draft, "advanced", "next", **{"options.keep_hours": "9000"})
    assert options.status_code == 422
    assert "must be a number from 0 to 720" in options.content.decode()
    none = press(browser, draft, "tables", "next")
    assert (none.status_code, "Choose at least one table." in none.content.decode()) == (422, True)


def test_a_name_in_use_is_reported_at_the_field(browser: Client, replicator: Replicator) -> None:
    response = browser.post("/replicators/new/", {"act": "next", "name": replicator.name})
    assert response.status_code == 422
    assert "already a replicator called" in response.content.decode()


def test_a_stale_tab_gets_a_409_keeps_what_was_typed_and_may_keep_it(
    browser: Client, editor: Any
) -> None:
    draft = make_draft(editor)
    press(browser, draft, "name", "autosave", name="first tab")
    stale = press(browser, draft, "name", "next", name="second tab", version=1)
    html = stale.content.decode()
    assert stale.status_code == 409
    assert 'data-testid="conflict"' in html and 'value="second tab"' in html
    assert 'name="keep" value="2"' in html
    again = press(browser, draft, "name", "next", name="second tab", version=1)
    assert again.status_code == 409
    kept = press(browser, draft, "name", "save", name="second tab", version=1, keep="2")
    assert kept.status_code == 200
    draft.refresh_from_db()
    assert (draft.name, draft.version) == ("second tab", 3)


def test_an_autosave_answers_with_the_version_and_nothing_typed(
    browser: Client, editor: Any
) -> None:
    draft = make_draft(editor)
    form = connector("source", host="other", password=SECRET)
    response = press(browser, draft, "source", "autosave", htmx=True, **form)
    html = response.content.decode()
    assert response.status_code == 200
    assert 'id="draft-version" value="2"' in html
    assert "LET IN other;" in html
    assert 'name="source.host"' not in html and SECRET not in html
    wrong = press(browser, draft, "source", "autosave", htmx=True, **{**form, "source.port": "x"})
    assert "Port must be a whole number." in wrong.content.decode()
    press(browser, draft, "source", "autosave", htmx=True, **form)
    same = press(browser, draft, "source", "autosave", htmx=True, **form).content.decode()
    assert 'id="draft-version" value="4"' in same
    stale = press(browser, draft, "source", "autosave", htmx=True, version=1, **form)
    assert stale.status_code == 409
    assert 'id="draft-conflict"' in stale.content.decode()


def test_a_test_answers_in_the_page_and_keeps_the_draft(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    works = press(browser, draft, "source", "test", **connector("source")).content.decode()
    assert 'data-testid="test-ok"' in works
    for fault, code in (("login", "source:login-refused"), ("unreachable", "source:unreachable")):
        form = connector("source", fault=fault, password=SECRET)
        html = press(browser, draft, "source", "test", htmx=True, **form).content.decode()
        assert f'data-code="{code}"' in html and "What to do" in html
        assert SECRET not in html and MASK in html
    missing = press(browser, draft, "source", "test", **connector("source", host=""))
    assert (missing.status_code, "Host is required." in missing.content.decode()) == (422, True)


def test_a_connection_that_never_answers_is_reported_in_time(
    browser: Client, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from replicators.targets.memory.checks import MemoryChecks

    release = threading.Event()
    monkeypatch.setattr(MemoryChecks, "connection", lambda self: release.wait(60) or [])
    monkeypatch.setattr(assessments, "TEST_SECONDS", 0.1)
    draft = make_draft(editor)
    html = press(browser, draft, "target", "test", **connector("target")).content.decode()
    release.set()
    assert 'data-code="target:timeout"' in html


def test_another_kind_changes_form_and_help(browser: Client, editor: Any) -> None:
    draft = make_draft(editor)
    html = press(browser, draft, "source", "kind", htmx=True, source_kind="postgresql")
    text = html.content.decode()
    assert 'name="source.sslmode"' in text
    assert "wal_level" in text and "GRANT SELECT" in text
    assert press(browser, draft, "source", "kind", source_kind="papyrus").status_code == 200


def test_the_fields_of_every_kind_are_on_the_page(browser: Client, editor: Any) -> None:
    """Guards the templates from which `changeKind` of wizard.js takes another kind's fields."""
    html = browser.get(address(make_draft(editor), "source")).content.decode()
    for kind, port in (("mysql", "3306"), ("postgresql", "5432")):
        form = html.partition(f'<template id="kind-{kind}">')[2].partition("</template>")[0]
        assert f'name="source.port" value="{port}"' in form
        assert "db.example" not in form


def _fields(response: Any) -> str:
    """The fields that are shown, without those of the other kinds."""
    return str(response.content.decode().partition('class="field-grid"')[2])


def test_what_nobody_typed_is_not_carried_over_to_another_kind(
    browser: Client, editor: Any
) -> None:
    """Guards against the other kind's port, which stood in the form, in the new one's."""
    draft = make_draft(editor)
    form = {"source.host": "db.example", "source.port": "3306", "source.user": "me"}
    press(browser, draft, "source", "kind", source_kind="mysql", **form)
    html = _fields(press(browser, draft, "source", "kind", source_kind="postgresql", **form))
    assert 'value="5432"' in html and 'value="3306"' not in html
    assert 'value="db.example"' in html
    kept = _fields(press(browser, draft, "source", "save", source_kind="postgresql", **form))
    assert 'value="3306"' in kept


def test_the_options_say_default_limits_and_when_they_apply(browser: Client, editor: Any) -> None:
    html = browser.get(address(make_draft(editor), "advanced")).content.decode()
    for text in ("Merge every", "0.1 to 3600 · default 1", "applies at the next start", "Mirror"):
        assert text in html


def test_the_mode_is_chosen_on_the_advanced_page(browser: Client, editor: Any) -> None:
    """Guards the choice of a mode in the wizard: each with its sentence, kept, and shown in the
    summary."""
    draft = make_draft(editor)
    html = browser.get(address(draft, "advanced")).content.decode()
    assert "stays in the copy with its last values" in html
    press(browser, draft, "advanced", "save", **{"options.mode": "history"})
    draft.refresh_from_db()
    assert draft.options["mode"] == "history"
    assert "<dd>History</dd>" in browser.get(address(draft, "summary")).content.decode()
    answer = press(browser, draft, "advanced", "next", version=2, **{"options.mode": "sideways"})
    assert answer.status_code == 422 and "must be one of" in answer.content.decode()


def test_the_summary_shows_everything_but_secrets(browser: Client, editor: Any) -> None:
    tables = [{"schema": "shop", "name": "orders", "columns": ["id"], "excluded": ["deletes"]}]
    draft = make_draft(editor, tables=tables)
    html = browser.get(address(draft, "summary")).content.decode()
    for text in ("shop.orders", "1 column · without deletes", "db.example", "Not assessed yet"):
        assert text in html
    assert SECRET not in html
    assert html.count("Edit</button>") == 5


def test_a_deploy_with_errors_leads_to_the_report(browser: Client, editor: Any) -> None:
    draft = make_draft(editor, tables=[{"schema": "shop", "name": "gone"}])
    response = press(browser, draft, "summary", "deploy")
    assert response["Location"] == address(draft, "assessment")
    html = browser.get(response["Location"]).content.decode()
    assert "Not deployed: fix 1 error first." in html and 'data-code="source:table-missing"' in html
    assert not Replicator.objects.exists()


def test_a_deploy_of_half_a_draft_says_where_something_is_missing(
    browser: Client, editor: Any
) -> None:
    draft = make_draft(editor, source_params={"host": ""}, name="")
    response = press(browser, draft, "summary", "deploy", htmx=True)
    assert response.status_code == 422
    assert 'data-testid="deploy-error"' in response.content.decode()


def test_hostile_texts_are_shown_as_text(browser: Client) -> None:
    name = '"><script>alert(1)</script>'
    browser.post("/replicators/new/", {"act": "next", "name": name})
    draft = Draft.objects.get()
    press(browser, draft, "source", "autosave", **connector("source", host=name))
    for step in STEPS:
        assert "<script>alert" not in browser.get(address(draft, step)).content.decode()


@pytest.mark.parametrize("step", [*STEPS, "tables/columns"])
def test_only_editors_see_the_wizard(
    step: str, client: Client, editor: Any, viewer: Any, stranger: Any
) -> None:
    url = address(make_draft(editor), step)
    for user in (viewer, stranger):
        client.force_login(user)
        assert client.get(url).status_code == 403
        assert client.post(url).status_code == 403
    client.logout()
    assert client.get(url)["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("step", STEPS)
def test_a_page_asks_the_database_little(
    step: str, browser: Client, editor: Any, django_assert_max_num_queries: Any
) -> None:
    draft = make_draft(editor)
    press(browser, draft, "tables", "list")
    press(browser, draft, "assessment", "run")
    with django_assert_max_num_queries(12):
        assert browser.get(address(draft, step)).status_code == 200


def test_a_lost_key_is_reported_on_the_draft_instead_of_an_error(
    browser: Client, editor: Any, settings: Any
) -> None:
    draft = make_draft(editor)
    settings.REPLICATOR_SECRET_KEY = "another"
    response = browser.get(address(draft, "source"))
    assert response.status_code == 409
    assert 'data-code="config:secrets-unreadable"' in response.content.decode()


def test_the_first_page_saves_itself_into_one_draft(browser: Client) -> None:
    form = {"act": "autosave", "name": "typed", "description": "", "version": "1", "draft": ""}
    begun = browser.post("/replicators/new/", form, headers=HTMX)
    draft = Draft.objects.get()
    assert begun["HX-Replace-Url"] == address(draft, "name")
    assert f'id="draft-id" value="{draft.pk}"' in begun.content.decode()
    more = {**form, "draft": str(draft.pk), "name": "typed on"}
    assert browser.post("/replicators/new/", more, headers=HTMX).status_code == 200
    stale = browser.post("/replicators/new/", {**more, "name": "late"}, headers=HTMX)
    assert stale.status_code == 409
    left = browser.post("/replicators/new/", {**more, "act": "next", "version": "2"}, headers=HTMX)
    assert left["HX-Redirect"] == address(draft, "source")
    assert [d.name for d in Draft.objects.all()] == ["typed on"]
    assert browser.post("/replicators/new/", {**more, "draft": "x"}).status_code == 404


def test_a_known_connection_is_filled_in_with_its_password_which_no_page_shows(
    browser: Client, editor: Any, replicator: Replicator
) -> None:
    """The taking over of a replicator's connection, and that its secrets stay out of the answer."""
    draft = make_draft(editor, name="another", source_params={}, tables=[])
    pages = [browser.get(address(draft, role)).content.decode() for role in ("source", "target")]
    assert all(replicator.name in html for html in pages)
    none = press(browser, draft, "source", "take", htmx=True, **connector("source", host="typed"))
    assert none.status_code == 422 and 'value="typed"' in none.content.decode()
    old = {"version": 1, "from": str(replicator.pk)}
    press(browser, draft, "name", "save", name="renamed")
    stale = press(browser, draft, "source", "take", htmx=True, **old)
    assert stale.status_code == 409
    done = press(browser, draft, "source", "take", htmx=True, **{"from": str(replicator.pk)})
    draft.refresh_from_db()
    assert done.status_code == 200 and "Filled in from" in done.headers["HX-Trigger"]
    assert params_of(draft, "source") == params_of(replicator, "source")
    assert all(SECRET not in r.content.decode() for r in (none, stale, done))
    plain = press(browser, draft, "target", "take", **{"from": str(replicator.pk)})
    assert plain["Location"] == address(draft, "target")
    Replicator.objects.filter(pk=replicator.pk).update(source_secrets="of another key")
    browser.get(address(draft, "source"))  # shows what was said before
    assert replicator.name not in browser.get(address(draft, "source")).content.decode()
