"""What programs may send to REST, and what every answer looks like."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from drafts.models import Draft
from drafts.services import draft_create
from replicators.models import Replicator
from runners import selectors
from runners.events.write import event_add
from runners.models import Table, TableMetric
from tests.app.factories import config_fields

pytestmark = pytest.mark.django_db

SCHEMA = {"code", "message", "fields", "problems"}
DEEP = 100_000


@pytest.fixture
def api(browser: Client) -> Client:
    """A fault of ours is an answer, as it is to a program."""
    browser.raise_request_exception = False
    return browser


def send(api: Client, method: str, url: str, body: Any) -> Any:
    raw = body if isinstance(body, str) else json.dumps(body)
    return getattr(api, method)(url, raw, content_type="application/json")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[" * DEEP, "nested too deeply"),
        ('{"\\ud800": 1}', "surrogate pair"),
        ('{"source_params": {"host": "\\ud800"}}', "surrogate pair"),
        ('{"source_params": {"host": "a\\u0000"}}', "NUL"),
        ('{"options": {"a": [{"b\\u0000": 1}]}}', "NUL"),
    ],
    ids=["deep", "name", "half", "nul", "nul in a name"],
)
def test_a_body_that_could_be_stored_but_never_shown_is_refused(
    api: Client, body: str, said: str
) -> None:
    """Guards `StrictJsonParser`: half a surrogate pair in a draft makes every page that shows it
    fail from then on, and PostgreSQL keeps no NUL."""
    refused = send(api, "post", "/api/v1/drafts/", body)
    assert (refused.status_code, set(refused.json())) == (400, SCHEMA)
    assert refused.json()["code"] == "invalid-json" and said in refused.json()["message"]
    assert not Draft.objects.exists()


def test_a_body_without_measure_is_refused_before_it_is_read(api: Client, settings: Any) -> None:
    """Guards `project.bodies`: without it, one request takes all the memory that there is. The
    limit is named, and one for forms, for REST, and for REST with a key (whose fingerprint reads
    the body: 2.5 MB were the limit there, and the answer a vague 400)."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    body = json.dumps({"name": "a" * 1000})
    url, key = "/api/v1/drafts/", {"Idempotency-Key": "one"}
    for headers in ({}, key):
        refused = api.post(url, body, content_type="application/json", headers=headers)
        assert (refused.status_code, set(refused.json())) == (413, SCHEMA)
        assert refused.json()["code"] == "body-too-large"
        assert "at most 0.001 MB" in refused.json()["message"]
    page = api.post("/drafts/new/", {"name": "a" * 1000})
    assert page.status_code == 413 and "at most 0.001 MB" in page.content.decode()
    assert send(api, "post", url, {"name": "a"}).status_code == 201


def test_a_body_of_three_megabytes_is_taken_with_a_key_too(api: Client) -> None:
    """Guards `DATA_UPLOAD_MAX_MEMORY_SIZE`: what is documented is what holds."""
    body = json.dumps(
        {"description": "a" * 100, "name": "b", "options": {"no_such": "c" * 3_000_000}}
    )
    found = api.post(
        "/api/v1/drafts/", body, content_type="application/json", headers={"Idempotency-Key": "a"}
    )
    assert found.status_code in (201, 400), found.status_code
    assert found.json().get("code") != "bad-request"


def test_a_form_of_too_many_fields_names_the_limit(api: Client, settings: Any) -> None:
    """Guards `bodies.too_many_fields`: the answer was a 400 that spoke of odd characters."""
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3
    page = api.post("/drafts/new/", {f"f{n}": "" for n in range(5)})
    assert page.status_code == 413 and "at most 3 fields" in page.content.decode()


def test_a_nul_in_a_form_or_a_query_is_refused(api: Client, replicator: Replicator) -> None:
    """Guards `project.nul`: PostgreSQL keeps none, and its answer would be a fault of ours (SQLite
    takes it)."""
    draft = Draft.objects.create(name="before")
    page = api.post(f"/drafts/{draft.pk}/name/", {"version": 1, "name": "a\x00b"})
    assert page.status_code == 400 and "Nothing was changed" in page.content.decode()
    draft.refresh_from_db()
    assert draft.name == "before"
    assert api.get("/?search=a%00b").status_code == 400
    asked = api.get(f"/api/v1/replicators/{replicator.pk}/logs/?search=%00")
    assert (asked.status_code, set(asked.json())) == (400, SCHEMA)
    assert "NUL" in asked.json()["message"]


def test_an_option_of_four_hundred_digits_is_named(api: Client, replicator: Replicator) -> None:
    """Guards `options._as_number`: such a number is no float, and an overflow is no ValueError."""
    body = {"options": {"seal_seconds": 10**400}}
    refused = send(api, "patch", f"/api/v1/replicators/{replicator.pk}/", body)
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == ["options.seal_seconds"]
    refused = send(api, "post", "/api/v1/drafts/", {**config_fields("big"), **body})
    assert list(refused.json()["fields"]) == ["options.seal_seconds"]
    draft = draft_create(actor=None, **{**config_fields("big"), **body})
    for step in ("advanced", "summary"):
        assert api.get(f"/drafts/{draft.pk}/{step}/").status_code == 200


@pytest.mark.parametrize("path", ["nothing/", "replicators/not-a-uuid/", "replicators/7/start/"])
def test_an_address_that_is_none_is_reported_in_the_form_of_every_error(
    client: Client, path: str
) -> None:
    """Guards `project.errors.not_found`: a program that reads JSON would get a page."""
    found = client.get(f"/api/v1/{path}")
    assert (found.status_code, set(found.json()), found.json()["code"]) == (
        404,
        SCHEMA,
        "not-found",
    )
    assert "Not found" in client.get("/nothing/").content.decode()


def test_a_fault_of_ours_is_reported_in_the_form_of_every_error(
    api: Client, replicator: Replicator
) -> None:
    """Guards `project.errors.server_error`, and that it says nothing of the fault itself."""
    Replicator.objects.update(source_params=[1])
    broken = api.get(f"/api/v1/replicators/{replicator.pk}/export/")
    assert (broken.status_code, set(broken.json())) == (500, SCHEMA)
    assert broken.json()["code"] == "internal"
    assert (
        "Something went wrong"
        in api.get(f"/replicators/{replicator.pk}/configuration/").content.decode()
    )


def test_metrics_of_thousands_of_tables_do_not_come_in_one_answer(
    api: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `selectors.METRICS_MOST`: two thousand tables have 720,000 metrics in an hour, and who
    may look asks for them all."""
    now = timezone.now()
    TableMetric.objects.bulk_create(
        TableMetric(table=table, at=now - timedelta(seconds=10 * n), resolution_seconds=10)
        for table in Table.objects.all()
        for n in range(3)
    )
    monkeypatch.setattr(selectors, "METRICS_MOST", 5)
    url = f"/api/v1/replicators/{replicator.pk}/metrics/"
    refused = api.get(url)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["seconds"])
    assert len(api.get(f"{url}?schema=shop&table=orders").json()) == 3


def test_whoever_goes_on_from_the_newest_event_misses_none(
    api: Client, replicator: Replicator
) -> None:
    """Guards `selectors.events`: the newest of what came since the last request would leave out
    those before, for ever."""
    first = event_add("replicator_started", replicator=replicator).pk
    kinds = ["run_created", "run_started", "run_stop_asked", "run_stopped", "run_lost"]
    for kind in kinds:
        event_add(kind, replicator=replicator)
    url, after, seen = f"/api/v1/replicators/{replicator.pk}/events/", first, []
    for _ in range(3):
        found = api.get(f"{url}?after={after}&limit=2").json()
        after = found["after"]
        seen += [e["kind"] for e in reversed(found["events"])]
    assert seen == kinds
    assert [e["kind"] for e in api.get(f"{url}?limit=1").json()["events"]] == ["run_lost"]


def test_the_schema_tells_every_error_that_any_request_may_get(api: Client) -> None:
    """Guards `schema.postprocess_errors`: a client made from the schema knows the answer to a token
    that was revoked."""
    paths = api.get("/api/schema/?format=json").json()["paths"]
    reported = {
        (path, verb): set(operation["responses"])
        for path, operations in paths.items()
        for verb, operation in operations.items()
    }
    assert all({"401", "403"} <= codes for codes in reported.values())
    assert all("404" in codes for (path, _), codes in reported.items() if "{id}" in path)
