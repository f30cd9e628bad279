"""REST on replicators: states, actions, logs, and the one form of errors."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.connectors.params import MASK
from replicators.models import Replicator
from runners.models import LogLine, Progress, Table
from runners.services import run_transition
from runners.states import RunState, TableState
from tests.app.factories import SECRET, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


def _url(replicator: Replicator, act: str = "") -> str:
    return f"/api/v1/replicators/{replicator.pk}/{act}"


def test_status_has_exactly_the_fields_that_are_promised(
    api: Client, replicator: Replicator
) -> None:
    Table.objects.filter(name="orders").update(
        state=TableState.FAILING, error_code="target:table-replaced", error_since=timezone.now()
    )
    body = api.get(_url(replicator, "status/")).json()
    assert set(body) == {
        "id", "name", "state", "desired_state", "lag_seconds", "consistent_at", "error", "copy",
        "next_delivery_at", "retention", "tables",
    }  # fmt: skip
    assert body["consistent_at"] is None
    assert body["state"] == "paused"
    table = next(t for t in body["tables"] if t["table"] == "orders")
    assert set(table) == {
        "schema", "table", "state", "rows_snapshotted", "snapshot_percent", "inserts", "updates",
        "deletes", "lag_seconds", "error",
    }  # fmt: skip
    assert set(table["error"]) == {"code", "message", "suggestion", "since"}
    assert table["state"] == "failing"


def test_status_says_what_keeps_a_replicator_from_running(
    api: Client, replicator: Replicator
) -> None:
    """Guards the reason of `failed`, which a program that polls would have to look for in the list
    of all."""
    assert api.get(_url(replicator, "status/")).json()["error"] is None
    Replicator.objects.update(desired_state="running")
    Progress.objects.update(
        error_code="source:unreachable",
        error_facts={"host": "db", "port": 5432, "reason": "refused"},
        failing_since=timezone.now(),
    )
    body = api.get(_url(replicator, "status/")).json()
    assert body["error"]["code"] == "source:unreachable"
    assert set(body["error"]) == {"code", "message", "suggestion", "since"}
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert line["error"] == body["error"]


def test_a_change_log_without_room_is_reported(
    api: Client, replicator: Replicator, browser: Client
) -> None:
    """Guards CORRECTNESS 28: reading that waits is a state that a program sees too."""
    run = make_run(replicator, state=RunState.RUNNING)
    Replicator.objects.update(desired_state="running")
    Progress.objects.update(facts={"is_backpressure": True})
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert (line["state"], line["state_label"]) == ("stalled", "Stalled: change log full")
    assert line["is_log_full"] and not line["is_source_closed"]
    Progress.objects.update(facts={"is_backpressure": True, "is_source_closed": True})
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert line["is_source_closed"]
    html = browser.get(replicator.get_absolute_url()).content.decode()
    assert "The connection to the source is closed until there is room." in html
    run_transition(run=run, event="run_stopped")
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert not line["is_log_full"]


def test_how_long_the_logs_last_is_reported_and_marked(
    api: Client, replicator: Replicator, browser: Client
) -> None:
    """Guards the warning before log is lost: fields of REST, the label, and the page name which log
    is short. Each replicator has its own limit."""
    run = make_run(replicator, state=RunState.RUNNING)
    Replicator.objects.update(
        desired_state="running", options={"warn_hours": 8.0, "retention_action": "drop"}
    )
    measured = {"hours_left": 7.5, "log_hours_left": 30.0, "log_bytes": 1, "log_limit_bytes": 9}
    Progress.objects.update(facts=measured)
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    expected = {
        "source_hours_left": 7.5, "log_hours_left": 30.0, "warn_hours": 8.0, "is_short": True,
        "action": "drop", "gives_up_hours": 2.0,
    }  # fmt: skip
    assert line["retention"] == expected
    assert (line["state"], line["state_label"]) == ("running", "Running, log running short")
    assert api.get(_url(replicator, "status/")).json()["retention"] == expected
    html = browser.get(replicator.get_absolute_url()).content.decode()
    assert 'data-testid="retention-source"' in html and 'data-testid="retention-log"' not in html
    assert "its position is given up." in html
    Replicator.objects.update(options={"warn_hours": 0.0})
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert not line["retention"]["is_short"] and line["state_label"] == "Running"
    run_transition(run=run, event="run_stopped")
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert line["retention"]["source_hours_left"] is None, "nobody measures now"


def test_what_the_source_is_waited_for_is_reported_while_it_is(
    api: Client, replicator: Replicator, browser: Client
) -> None:
    """Guards `waits_for`: who holds a lock or a transaction open has to be found by whoever only
    sees that tables wait."""
    make_run(replicator, state=RunState.RUNNING)
    Replicator.objects.update(desired_state="running")
    reported = "The stream waits for a lock of the source's tables: process 41 (psql)"
    now = timezone.now().timestamp()
    Progress.objects.update(facts={"waits": reported, "waits_at": now})
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert (line["waits_for"], line["state_label"]) == (reported, "Running, waiting at the source")
    page = browser.get(f"/replicators/{replicator.pk}/").content.decode()
    assert "process 41 (psql)" in page
    Progress.objects.update(facts={"waits": reported, "waits_at": now - 60})
    (line,) = api.get("/api/v1/replicators/").json()["results"]
    assert (line["waits_for"], line["state_label"]) == ("", "Running")


@pytest.mark.parametrize(
    ("act", "desired"), [("start", "running"), ("resume", "running"), ("pause", "paused")]
)
def test_an_act_is_accepted_at_once(
    act: str, desired: str, api: Client, replicator: Replicator
) -> None:
    response = api.post(_url(replicator, f"{act}/"))
    assert response.status_code == 202
    assert response.json()["desired_state"] == desired
    replicator.refresh_from_db()
    assert replicator.desired_state == desired


@pytest.mark.parametrize(("query", "kept"), [("", True), ("?keep_target=false", False)])
def test_delete_is_accepted_and_then_nothing_else_is(
    query: str, kept: bool, api: Client, replicator: Replicator
) -> None:
    response = api.delete(_url(replicator, query))
    assert response.status_code == 202
    assert response.json()["state"] == "deleting"
    replicator.refresh_from_db()
    assert replicator.keep_target is kept
    refused = api.post(_url(replicator, "start/"))
    assert refused.status_code == 409
    assert refused.json() == {
        "code": "illegal-transition",
        "message": "This replicator is being deleted.",
        "fields": {},
        "problems": [],
    }


def test_a_table_is_copied_afresh_and_a_healthy_one_is_not_retried(
    api: Client, replicator: Replicator
) -> None:
    body = {"schema": "shop", "table": "orders"}
    resync = api.post(_url(replicator, "tables/resync/"), body, "application/json")
    assert resync.status_code == 202
    assert Table.objects.get(name="orders").is_resync_asked
    retry = api.post(_url(replicator, "tables/retry/"), body, "application/json")
    assert retry.status_code == 409
    gone = {"schema": "shop", "table": "gone"}
    missing = api.post(_url(replicator, "tables/resync/"), gone, "application/json")
    assert missing.status_code == 404


def test_logs_go_on_from_the_cursor(api: Client, replicator: Replicator) -> None:
    for number, level in enumerate(["INFO", "ERROR", "INFO"]):
        LogLine.objects.create(
            replicator=replicator, at=timezone.now(), level=level, text=f"line {number}"
        )
    first = api.get(_url(replicator, "logs/?limit=2")).json()
    assert [line["text"] for line in first["lines"]] == ["line 1", "line 2"]
    assert api.get(_url(replicator, f"logs/?after={first['after']}")).json()["lines"] == []
    errors = api.get(_url(replicator, "logs/?level=WARNING")).json()["lines"]
    assert [line["text"] for line in errors] == ["line 1"]
    assert api.get(_url(replicator, "logs/?limit=many")).status_code == 400


def test_events_name_who_did_what(api: Client, replicator: Replicator) -> None:
    api.post(_url(replicator, "start/"))
    newest = api.get(_url(replicator, "events/")).json()["events"][0]
    assert (newest["kind"], newest["actor"]) == ("replicator_started", "editor")


def test_secrets_never_leave(api: Client, replicator: Replicator) -> None:
    shown = api.get(_url(replicator))
    assert shown.json()["source"]["params"]["password"] == MASK
    for path in ("", "export/", "status/", "events/"):
        assert SECRET not in api.get(_url(replicator, path)).content.decode()


def test_the_list_counts_tables_by_state(api: Client, replicator: Replicator) -> None:
    body = api.get("/api/v1/replicators/").json()
    assert body["count"] == 1
    assert body["results"][0]["tables"] == {"paused": 2}


def test_a_list_costs_the_same_for_many(
    api: Client, replicator: Replicator, django_assert_max_num_queries: Any
) -> None:
    from tests.app.factories import make_replicator

    for number in range(5):
        make_replicator(f"more {number}")
    with django_assert_max_num_queries(9):
        assert api.get("/api/v1/replicators/").json()["count"] == 6


def test_a_body_that_is_not_json_gets_one_clear_sentence(api: Client) -> None:
    response = api.post("/api/v1/assess/", "{'a': 1}", "application/json")
    assert response.status_code == 400
    body = response.json()
    assert body["code"] == "invalid-json"
    assert body["message"].startswith("The body is not valid JSON: ")
    assert "line 1" in body["message"]
    listed = api.post("/api/v1/assess/", "[1]", "application/json")
    assert listed.status_code == 400
    assert set(listed.json()) == {"code", "message", "fields", "problems"}


def test_what_is_not_there_is_reported_in_the_same_form(api: Client) -> None:
    body = api.get("/api/v1/replicators/00000000-0000-0000-0000-000000000000/").json()
    assert set(body) == {"code", "message", "fields", "problems"}
    assert api.get("/api/v1/plugins/source/nothing/").status_code == 404
