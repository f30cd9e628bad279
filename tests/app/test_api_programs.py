"""REST as programs lean on it: filters, tags, keys against doing a thing twice, one call that makes
a replicator."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from drafts.models import Draft
from replicators.api.idempotency import KEPT, STUCK
from replicators.connectors.params import MASK
from replicators.models import IdempotencyKey, Replicator
from runners.models import Event, Table
from runners.states import TableState
from runners.supervision.retention import prune_activity
from tests.app.factories import SECRET, config_fields, make_replicator, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"
ALL = "/api/v1/replicators/"


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


def _url(replicator: Replicator, act: str = "") -> str:
    return f"{ALL}{replicator.pk}/{act}"


# --- lists -------------------------------------------------------------------------------------------------------  # noqa: E501
def test_replicators_are_listed_by_what_is_asked(api: Client) -> None:
    make_replicator("shop to lake")
    make_replicator("billing to lake")
    Replicator.objects.filter(name__startswith="billing").update(desired_state="running")

    def names(query: str) -> list[str]:
        return [r["name"] for r in api.get(f"{ALL}?{query}").json()["results"]]

    assert names("state=paused") == ["shop to lake"]
    assert names("name=BILLING") == ["billing to lake"]
    assert names("source_kind=memory&target_kind=memory&page_size=1") == ["billing to lake"]
    assert names("source_kind=postgresql") == []
    wrong = api.get(f"{ALL}?state=well")
    assert (wrong.status_code, list(wrong.json()["fields"])) == (400, ["state"])


def test_drafts_and_tables_are_listed_by_what_is_asked(api: Client, replicator: Replicator) -> None:
    Draft.objects.create(name="shop", source_kind="memory")
    Draft.objects.create(name="other")
    found = api.get("/api/v1/drafts/?name=sho&source_kind=memory").json()["results"]
    assert [d["name"] for d in found] == ["shop"]

    Table.objects.filter(name="orders").update(state=TableState.FAILING)
    tables = _url(replicator, "tables/")
    assert [t["table"] for t in api.get(f"{tables}?state=failing").json()] == ["orders"]
    assert [t["table"] for t in api.get(f"{tables}?schema=shop&table=CUST").json()] == ["customers"]


def test_the_index_leads_to_addresses_that_answer(api: Client) -> None:
    index = api.get("/api/v1/").json()
    assert api.get(index["schema"]).status_code == 200
    for name in ("replicators", "drafts", "plugins"):
        assert api.get(index["links"][name]).status_code == 200
    for name in ("audit", "users"):
        assert api.get(index["links"][name]).status_code == 403
    for name in set(index["links"]) - {"replicators", "drafts", "plugins", "audit", "users"}:
        assert api.post(index["links"][name], {}, JSON).status_code == 400


# --- changes that were meant for what was read -----------------------------------------------------------------------  # noqa: E501
def test_a_change_of_what_somebody_else_changed_is_refused(
    api: Client, replicator: Replicator
) -> None:
    """Guards `If-Match`, which was taken and ignored."""
    seen = api.get(_url(replicator))["ETag"]
    assert api.get(_url(replicator), headers={"If-None-Match": seen}).status_code == 304
    mine = {"If-Match": seen}
    changed = api.patch(_url(replicator), {"description": "a"}, JSON, headers=mine)
    assert changed.status_code == 200
    assert changed["ETag"] not in {"", seen}
    late = api.patch(_url(replicator), {"description": "b"}, JSON, headers=mine)
    assert (late.status_code, late.json()["code"]) == (412, "precondition-failed")
    assert api.delete(_url(replicator), headers=mine).status_code == 412
    assert api.get(_url(replicator)).json()["description"] == "a"
    again = {"If-Match": changed["ETag"]}
    assert api.delete(_url(replicator), headers=again).status_code == 202


def test_a_change_that_comes_while_another_is_checked_is_refused(
    api: Client, replicator: Replicator, monkeypatch: Any
) -> None:
    """Guards the comparison inside the transaction: source and target are asked before it, which
    takes its time."""

    def meanwhile(asked: Any, found: Any) -> None:
        Replicator.objects.update(description="b", updated_at=timezone.now())

    monkeypatch.setattr("runners.definition._require_log", meanwhile)
    mine = {"If-Match": api.get(_url(replicator))["ETag"]}
    late = api.patch(_url(replicator), {"description": "a"}, JSON, headers=mine)
    assert (late.status_code, late.json()["code"]) == (412, "precondition-failed")
    assert Replicator.objects.get().description == "b"


def test_drafts_have_tags_too(api: Client) -> None:
    made = api.post("/api/v1/drafts/", config_fields(), JSON)
    url = made["Location"]
    seen = {"If-Match": api.get(url)["ETag"]}
    assert api.patch(url, {"version": 1, "name": "b"}, JSON, headers=seen).status_code == 200
    assert api.delete(url, headers=seen).status_code == 412
    assert api.delete(url, headers={"If-Match": "*"}).status_code == 204


# --- once --------------------------------------------------------------------------------------------------------  # noqa: E501
def _make(api: Client, key: str, **changes: Any) -> Any:
    return api.post(ALL, config_fields(**changes), JSON, headers={"Idempotency-Key": key})


def test_a_request_with_a_key_is_carried_out_once(api: Client) -> None:
    first, second = _make(api, "k1"), _make(api, "k1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert first["Location"] == second["Location"] == f"{ALL}{first.json()['id']}/"
    assert Replicator.objects.count() == 1
    other = _make(api, "k1", name="another")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")
    assert SECRET not in str(IdempotencyKey.objects.values_list("body", "fingerprint"))


def test_a_refused_request_leaves_its_key_free(api: Client) -> None:
    refused = _make(api, "k1", tables=[{"schema": "shop", "name": "gone"}])
    assert (refused.status_code, refused.json()["code"]) == (409, "deploy-refused")
    assert not Draft.objects.exists()
    assert _make(api, "k1").status_code == 201


def test_a_key_waits_for_the_first_request_until_that_is_surely_dead(
    api: Client, editor: Any, replicator: Replicator
) -> None:
    IdempotencyKey.objects.create(user=editor, key="k1", fingerprint="")
    url, key = _url(replicator, "resume/"), {"Idempotency-Key": "k1"}
    IdempotencyKey.objects.create(user=make_user("somebody"), key="k2", fingerprint="")
    assert api.post(url, {}, JSON, headers={"Idempotency-Key": "k2"}).status_code == 202
    waits = api.post(url, {}, JSON, headers=key)
    assert waits.status_code in {409, 422}
    IdempotencyKey.objects.update(created_at=timezone.now() - STUCK - timedelta(seconds=1))
    assert api.post(url, {}, JSON, headers=key).status_code == 202
    prune_activity(timezone.now() + KEPT + timedelta(seconds=1))
    assert not IdempotencyKey.objects.exists()


def test_the_same_request_that_is_not_answered_yet_is_told_to_wait(
    api: Client, replicator: Replicator
) -> None:
    url, key = _url(replicator, "resume/"), {"Idempotency-Key": "k1"}
    assert api.post(url, {}, JSON, headers=key).status_code == 202
    IdempotencyKey.objects.update(status=None)
    waits = api.post(url, {}, JSON, headers=key)
    assert (waits.status_code, waits.json()["code"]) == (409, "idempotency-key-in-use")
    assert int(waits["Retry-After"]) > 0


@pytest.mark.parametrize("key", ["", "a" * 256, "b\u00e4r"])
def test_a_key_that_is_none_is_refused(api: Client, replicator: Replicator, key: str) -> None:
    answer = api.post(_url(replicator, "resume/"), {}, JSON, headers={"Idempotency-Key": key})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["Idempotency-Key"])


def test_a_fault_of_ours_leaves_the_key_free(
    api: Client, replicator: Replicator, monkeypatch: Any
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("runners.services.replicator_resume", broken)
    api.raise_request_exception = False
    url, key = _url(replicator, "resume/"), {"Idempotency-Key": "k1"}
    assert api.post(url, {}, JSON, headers=key).status_code == 500
    assert not IdempotencyKey.objects.exists()


# --- making, and many at once --------------------------------------------------------------------------------------  # noqa: E501
def test_an_export_with_its_secrets_makes_a_replicator_in_one_call(api: Client) -> None:
    made = api.post(ALL, config_fields(), JSON)
    assert made.status_code == 201
    assert made.json()["source"]["params"]["password"] == MASK
    export = api.get(f"{made['Location']}export/").json() | {"name": "its twin"}
    export["source_params"]["password"] = SECRET
    twin = api.post(ALL, export, JSON)
    assert (twin.status_code, twin.json()["desired_state"]) == (201, "running")


def test_a_draft_with_options_that_can_not_be_is_not_stored(api: Client) -> None:
    wrong = {"seal_seconds": -1, "mode": "mirrored", "speed": 3}
    refused = api.post("/api/v1/drafts/", config_fields(options=wrong), JSON)
    assert refused.status_code == 400
    assert set(refused.json()["fields"]) == {f"options.{name}" for name in wrong}
    assert not Draft.objects.exists()


def test_many_tables_are_copied_afresh_in_one_call(api: Client, replicator: Replicator) -> None:
    url = _url(replicator, "resync/")
    both = [{"schema": "shop", "table": "orders"}, {"schema": "shop", "table": "customers"}]
    gone = [*both, {"schema": "shop", "table": "gone"}]
    assert api.post(url, {"tables": gone}, JSON).status_code == 404
    assert not Table.objects.filter(is_resync_asked=True).exists()

    Table.objects.filter(name="orders").update(state=TableState.FAILING)
    failing = api.post(url, {"state": "failing"}, JSON)
    assert [t["table"] for t in failing.json()["tables"]] == ["orders"]
    assert failing["Location"] == _url(replicator, "status/")
    assert {t["table"] for t in api.post(url, {"all": True}, JSON).json()["tables"]} == {
        "orders",
        "customers",
    }
    assert Table.objects.filter(is_resync_asked=True).count() == 2
    assert Event.objects.filter(kind="table_resync_asked").count() == 2
    for wrong in ({}, {"all": False}, {"tables": []}, {"all": True, "state": "failing"}):
        assert api.post(url, wrong, JSON).status_code == 400


# --- what was taken and ignored ------------------------------------------------------------------------------------  # noqa: E501
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=", "state"),
        ("source_kind=", "source_kind"),
        ("name=a&name=b", "name"),
        ("page=0", "page"),
        ("page=x", "page"),
        ("page_size=0", "page_size"),
        ("page_size=501", "page_size"),
        ("page_size=all", "page_size"),
    ],
)
def test_a_query_parameter_that_can_not_be_is_refused_by_name(
    api: Client, query: str, field: str
) -> None:
    """Guards filters that were left empty and page sizes that can't be: both were taken for
    none."""
    refused = api.get(f"{ALL}?{query}")
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_a_method_that_is_not_there_is_reported_before_its_parameters(api: Client) -> None:
    assert api.trace(f"{ALL}?nonsense=1").status_code == 405
    assert api.put(f"{ALL}?nonsense=1").status_code == 405


def test_options_are_stored_as_they_are_and_null_is_their_default(api: Client) -> None:
    """Guards drafts that stored and answered options that the description has not."""
    options = {"seal_seconds": 2, "mode": None}
    made = api.post("/api/v1/drafts/", config_fields(options=options), JSON)
    assert made.json()["options"] == {"seal_seconds": 2.0}
    for wrong in ({"seal_seconds": "2"}, {"seal_seconds": ""}, {"mode": ""}):
        refused = api.patch(made["Location"], {"version": 1, "options": wrong}, JSON)
        assert (refused.status_code, len(refused.json()["fields"])) == (400, 1)


def test_null_takes_an_option_of_a_replicator_back(api: Client, replicator: Replicator) -> None:
    changed = api.patch(_url(replicator), {"options": {"seal_seconds": 2}}, JSON)
    assert changed.json()["options"]["seal_seconds"] == 2.0
    changed = api.patch(_url(replicator), {"options": {"seal_seconds": None}}, JSON)
    assert changed.json()["options"]["seal_seconds"] == 1.0


# --- one word for a table ------------------------------------------------------------------------------------------  # noqa: E501
def test_a_table_is_table_everywhere_and_name_is_still_taken(
    api: Client, replicator: Replicator
) -> None:
    """Guards the two words that a row of a list had to be rewritten between before it could be
    acted on."""
    by_word = config_fields(tables=[{"schema": "shop", "table": "orders"}])
    by_name = config_fields(tables=[{"schema": "shop", "name": "orders"}])
    for body in (by_word, by_name):
        made = api.post("/api/v1/drafts/", body, JSON).json()
        (table,) = made["tables"]
        assert (table["table"], table["name"]) == ("orders", "orders")
        again = api.patch(
            f"/api/v1/drafts/{made['id']}/", {"version": 1, "tables": made["tables"]}, JSON
        )
        assert again.json()["tables"] == made["tables"]
    two = config_fields(tables=[{"schema": "shop", "table": "orders", "name": "customers"}])
    refused = api.post("/api/v1/drafts/", two, JSON)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["tables.0.name"])

    source = {"kind": "memory", "params": {"host": "db.example", "password": SECRET}}
    for listed in (
        api.post("/api/v1/sources/tables/", source, JSON).json(),
        api.get(_url(replicator)).json()["tables"],
        api.get(_url(replicator, "export/")).json()["tables"],
        api.post("/api/v1/assess/", by_word, JSON).json()["tables"],
    ):
        assert listed
        assert all(t["table"] == t["name"] for t in listed)
    named = {"schema": "shop", "name": "orders"}
    assert api.post(_url(replicator, "tables/resync/"), named, JSON).status_code == 202
    described = {**source, "schema": "shop", "table": "orders"}
    assert api.post("/api/v1/sources/tables/describe/", described, JSON).json()["table"] == "orders"


def test_a_number_is_no_text(api: Client) -> None:
    table = {"schema": "shop", "table": "orders", "filter": 0}
    refused = api.post("/api/v1/drafts/", config_fields(tables=[table]), JSON)
    assert refused.json()["fields"] == {"tables.0.filter": ["Must be a text."]}
    table = {"schema": "shop", "table": "orders", "columns": ["id", 3]}
    refused = api.post("/api/v1/drafts/", config_fields(tables=[table]), JSON)
    assert refused.json()["fields"] == {"tables.0.columns": ["Must be a text."]}
