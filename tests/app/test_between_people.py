"""What two people, two tabs, or a program and a person do to each other, and how an address is
answered that is nearly right."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from drafts import services
from drafts.models import Draft
from replicators.models import Replicator
from replicators.templatetags.ui import duration
from runners.models import Event, Table
from tests.app.factories import PASSWORD, config_fields

pytestmark = pytest.mark.django_db
JSON = "application/json"
COLUMNS = "tables/columns/"


@pytest.fixture
def draft(editor: Any) -> Draft:
    return services.draft_create(actor=editor, **config_fields())


def schema_known() -> None:
    """The copy's schema is known, as once it was made."""
    schema = {
        "schema": "shop",
        "name": "orders",
        "columns": [],
        "key": ["id"],
        "primary_key": ["id"],
    }
    Table.objects.filter(name="orders").update(state="replicating", schema=schema)


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_without_the_last_slash_nothing_is_asked_else(
    browser: Client, replicator: Replicator, method: str, settings: Any
) -> None:
    """Guards `Slashes`: after a 301 a client goes on with GET, which answers 200 with what was to
    be deleted."""
    for settings.DEBUG in (False, True):
        moved = getattr(browser, method)(f"/api/v1/replicators/{replicator.pk}?keep_target=true")
        assert moved.status_code == 308
        assert moved["Location"] == f"/api/v1/replicators/{replicator.pk}/?keep_target=true"


def test_a_form_is_no_json(browser: Client) -> None:
    """Guards `NoNul`: once it had read the form, DRF took that for the body, and made an empty
    draft."""
    assert browser.post("/api/v1/drafts/", {"name": "a"}).status_code == 415
    assert not Draft.objects.exists()


def test_the_same_columns_are_no_change(browser: Client, replicator: Replicator) -> None:
    """Guards `services._same_columns`: columns named in another order, as by a program that keeps
    them in a set, or without the key's, had the table copied afresh, and its past with it."""
    schema_known()
    url, one = f"/api/v1/replicators/{replicator.pk}/tables/", {"schema": "shop", "table": "orders"}
    orders = Table.objects.filter(name="orders")
    for columns in (["id", "made_at"], ["made_at", "id"], ["made_at"]):
        assert browser.put(url, {**one, "columns": columns}, JSON).status_code == 202
        assert orders.get().is_resync_asked is (columns == ["id", "made_at"])
        orders.update(is_resync_asked=False)
    page = f"/replicators/{replicator.pk}/{COLUMNS}"
    form = {**one, "which": "some", "columns": ["id", "made_at"], "has_kinds": "yes"}
    form["kinds"] = ["inserts", "updates"]  # type: ignore[assignment]
    assert browser.post(page, form).status_code == 302
    assert not orders.get().is_resync_asked
    assert browser.put(url, {**one, "columns": ["id", "details"]}, JSON).status_code == 202
    assert orders.get().is_resync_asked


def test_a_refused_form_is_shown_as_it_was_sent(browser: Client, replicator: Replicator) -> None:
    """Guards `table_columns._typed`: with stored values in it, whoever mends the filter stores
    something else than was chosen."""
    schema_known()
    form = {
        "schema": "shop", "table": "orders", "mode": "history", "which": "some",
        "columns": ["id", "details"],
        "has_kinds": "yes", "kinds": ["inserts", "updates"], "filter": "id >>> 5",
    }  # fmt: skip
    refused = browser.post(f"/replicators/{replicator.pk}/{COLUMNS}", form)
    page = refused.content.decode()
    assert refused.status_code == 422
    assert "id &gt;&gt;&gt; 5" in page and '<option value="history" selected' in page
    ticked = [line for line in page.split("<input")[1:] if " checked" in line.split(">")[0]]
    said = {
        part
        for line in ticked
        for part in ("details", "made_at", "deletes", "updates")
        if f'value="{part}"' in line
    }
    assert said == {"details", "updates"}


def test_kinds_that_a_page_does_not_show_stay(browser: Client, editor: Any) -> None:
    """Guards `kindless`: *Next* on the page of tables had what REST left out of a table without a
    key copied again."""
    tables = [{"schema": "shop", "name": "page_views", "excluded": ["deletes"]}]
    made = services.draft_create(actor=editor, **config_fields(tables=tables))
    page = browser.get(f"/drafts/{made.pk}/tables/")
    assert page.status_code == 200
    browser.post(f"/drafts/{made.pk}/tables/", {"act": "list", "version": made.version})
    html = browser.get(f"/drafts/{made.pk}/tables/").content.decode()
    views = '["shop", "page_views"]'
    assert "Without deletes" in html and 'name="kindless"' in html
    form = {
        "act": "next",
        "version": made.version,
        "shown": views,
        "tables": views,
        "kindless": views,
    }
    assert browser.post(f"/drafts/{made.pk}/tables/", form).status_code == 302
    made.refresh_from_db()
    assert made.tables[0]["excluded"] == ["deletes"]


def test_a_mode_that_is_none_is_no_fault_of_ours(browser: Client, editor: Any) -> None:
    for mode in ("bogus", ["append"], 5):
        made = services.draft_create(actor=editor, **config_fields(options={"mode": mode}))
        form = {
            "schema": "shop", "table": "orders", "which": "all", "has_kinds": "yes",
            "kinds": ["updates"],
            "version": made.version,
        }  # fmt: skip
        assert browser.post(f"/drafts/{made.pk}/tables/columns/", form).status_code < 500


@pytest.mark.parametrize("is_deployed", [True, False])
def test_a_draft_that_goes_while_its_source_is_asked(
    browser: Client, draft: Draft, monkeypatch: pytest.MonkeyPatch, is_deployed: bool
) -> None:
    """Guards `wizard.page` and the answers of REST: between the look at the row and the write there
    is a server that takes its time."""
    asked = services.assess

    def slow(config: Any) -> Any:
        found = asked(config)
        if Draft.objects.filter(pk=draft.pk, replicator_id=None).exists():
            Draft.objects.filter(pk=draft.pk).delete()
        return found

    monkeypatch.setattr(services, "assess", slow)
    if is_deployed:
        made = Replicator.objects.create(name="made elsewhere")
        Draft.objects.filter(pk=draft.pk).update(replicator_id=made.pk)
        wizard = browser.post(f"/drafts/{draft.pk}/name/", {"version": 1, "name": "x"})
        assert wizard.status_code == 302 and str(made.pk) in wizard["Location"]
        patched = browser.patch(f"/api/v1/drafts/{draft.pk}/", {"version": 1, "name": "x"}, JSON)
        assert (patched.status_code, patched.json()["code"]) == (409, "draft-deployed")
        return
    gone = browser.post(f"/api/v1/drafts/{draft.pk}/assess/")
    assert (gone.status_code, gone.json()["code"]) == (404, "not-found")
    again = services.draft_create(actor=None, **config_fields("again"))
    draft.pk = again.pk
    assert browser.post(f"/drafts/{again.pk}/assessment/", {"act": "run"}).status_code == 404


def test_a_parameter_that_is_none_is_refused_before_it_is_stored(browser: Client) -> None:
    """Guards `services._fill_params`: a misspelt password was stored in clear, and shown to
    everybody who may look."""
    body = {"source_kind": "memory", "source_params": {"host": "h", "passwd": "hunter2"}}
    refused = browser.post("/api/v1/drafts/", body, JSON)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["source_params.passwd"])
    kindless = browser.post("/api/v1/drafts/", {"source_params": {"host": "h"}}, JSON)
    assert (kindless.status_code, list(kindless.json()["fields"])) == (400, ["source_params"])
    assert "hunter2" not in refused.content.decode() and not Draft.objects.exists()


def test_what_was_asked_of_a_table_is_reported_until_it_is_done(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `GET tables/`: directly after a re-sync was asked for, the status looks as if it were
    done."""
    schema_known()
    url = f"/api/v1/replicators/{replicator.pk}/tables/"
    one = {"schema": "shop", "table": "orders"}
    assert browser.post(f"{url}resync/", one, JSON).status_code == 202
    reported = {t["table"]: t for t in browser.get(url).json()}
    assert [reported[name]["is_resync_asked"] for name in ("orders", "customers")] == [True, False]
    status = browser.get(f"/api/v1/replicators/{replicator.pk}/status/").json()["tables"][0]
    assert set(status) < set(reported["orders"])


def test_a_program_learns_what_a_deletion_left(browser: Client, replicator: Replicator) -> None:
    """Guards `deletion/`: a slot that nobody drops fills the source's disk, and only a page told of
    it."""
    url, pk = f"/api/v1/replicators/{replicator.pk}/deletion/", str(replicator.pk)
    assert browser.get(url).status_code == 404
    facts = {"name": replicator.name, "id": pk, "statements": ["SELECT 1"]}
    replicator.delete()
    Event.objects.create(kind="replicator_deleted", facts=facts)
    reported = browser.get(url).json()
    assert (reported["statements"], reported["is_target_left"], reported["id"]) == (
        ["SELECT 1"],
        False,
        pk,
    )
    Event.objects.create(kind="target_left", facts={"id": pk})
    assert browser.get(url).json()["is_target_left"]


def test_whoever_signs_in_comes_back_to_a_page(client: Client, editor: Any) -> None:
    """Guards `SignInFirst`: what was pressed when the session was over has no page, and answered
    405 with nothing."""
    headers = {"Referer": "http://testserver/account/?a=1"}
    assert client.post("/account/theme/", headers=headers)["Location"] == (
        "/sign-in/?next=/account/%3Fa%3D1"
    )
    elsewhere = {"Referer": "http://evil.example/account/"}
    assert client.post("/sign-out/", headers=elsewhere)["Location"].endswith("/sign-in/?next=/")
    assert client.get("/account/")["Location"] == "/sign-in/?next=/account/"


def test_a_sign_in_page_of_an_older_session_leads_on(editor: Any) -> None:
    """Guards `csrf_failure`: the second tab said that CSRF verification failed, and where DEBUG
    would say more."""
    strict = Client(enforce_csrf_checks=True)
    form = {"username": "editor", "password": PASSWORD}
    said = strict.post("/sign-in/", form)
    assert said.status_code == 403 and "Load the page again" in said.content.decode()
    strict.force_login(editor)
    assert strict.post("/sign-in/", form)["Location"] == "/"
    assert strict.post("/account/theme/", {}).status_code == 403


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0.4 s"), (59, "59 s"), (200, "3 min"), (3600, "1 h"), (5400, "1 h 30 min"),
        (5 * 3600 + 1800, "5 h"),
        (36 * 3600, "1 d 12 h"), (84 * 3600, "3 d 12 h"), (4.9 * 86400, "4 d"),
    ],
)  # fmt: skip
def test_a_time_that_is_left_is_never_more_than_it_is(seconds: float, said: str) -> None:
    """Guards `ui.duration`: 36 hours until the source gives up were said to be 2 days."""
    assert duration(seconds) == said


def test_a_name_that_begins_with_a_blank_is_that_name(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `trim_whitespace`: a table of that name could not be named over REST."""
    made = browser.post(
        "/api/v1/drafts/",
        {"tables": [{"schema": "shop", "name": " orders", "columns": [" id"]}]},
        JSON,
    )
    table = made.json()["tables"][0]
    assert (table["name"], table["columns"]) == (" orders", [" id"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"schema": "shop", "name": "orders", "filter": "status =="}, "shop.orders: "),
        ({"schema": "shop", "name": "customers"}, "shop.customers is named twice"),
    ],
)
def test_a_choice_of_tables_that_can_not_be_read_says_where(
    browser: Client, editor: Any, table: dict[str, str], said: str
) -> None:
    """Guards `config._named` and `steps.faults`: among two thousand tables nobody finds what is
    wrong, and the wizard said nothing at all."""
    tables = [{"schema": "shop", "name": "customers"}, table]
    made = services.draft_create(actor=editor, **config_fields(tables=tables))
    refused = browser.post(f"/api/v1/drafts/{made.pk}/deploy/").json()
    assert said in refused["fields"]["tables"][0]
    browser.post(f"/drafts/{made.pk}/tables/", {"act": "list", "version": made.version})
    form = {"act": "next", "version": made.version, "shown": [], "tables": []}
    moves = browser.post(f"/drafts/{made.pk}/tables/", form)
    is_mended = "twice" in said  # by the page, which knows each table once
    assert moves.status_code == (302 if is_mended else 422)
    assert is_mended or said in moves.content.decode()
