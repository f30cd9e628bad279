"""Verifications and repairs over REST, and whose rows have values."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from replicators.models import Replicator, Scope
from replicators.tokens import token_create
from runners.verifications import DifferingRow, Repair, Verification, VerifySchedule
from tests.app.verified import CUSTOMERS, ORDERS, replicating, table_report, verified

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("readable")]


@pytest.fixture
def api(replicator: Replicator) -> str:
    return f"/api/v1/replicators/{replicator.pk}/"


def test_one_is_started_listed_read_and_cancelled(browser: Client, api: str) -> None:
    body = {"tables": [{"schema": "shop", "table": "orders"}], "rows_per_second": 100}
    started = browser.post(f"{api}verifications/", body, "application/json")
    assert started.status_code == 202
    found = browser.get(started["Location"]).json()
    assert (found["state"], found["tables"], found["asked_by"]) == ("waiting", 1, "editor")
    assert [t["table"] for t in found["verified"]] == ["orders"]
    again = browser.post(f"{api}verifications/", {}, "application/json")
    assert (again.status_code, again.json()["code"]) == (409, "illegal-transition")
    assert browser.post(f"{started['Location']}cancel/").status_code == 202
    listed = browser.get(f"{api}verifications/").json()
    assert [(v["id"], v["state"]) for v in listed] == [(found["id"], "cancelled")]
    assert browser.post(f"{started['Location']}cancel/").status_code == 409


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"tables": []}, 400),
        ({"rows_per_second": 0}, 400),
        ({"table": "orders"}, 400),
        ({"tables": [{"schema": "shop", "table": "nothing"}]}, 404),
    ],
)
def test_a_request_that_makes_no_sense_starts_nothing(
    browser: Client, api: str, body: dict[str, Any], answer: int
) -> None:
    found = browser.post(f"{api}verifications/", body, "application/json")
    assert found.status_code == answer
    assert not Verification.objects.exists()


def test_the_result_has_counts_and_the_rows_by_cursor(
    browser: Client, api: str, replicator: Replicator
) -> None:
    row = verified(replicator)
    found = browser.get(f"{api}verifications/{row.pk}/").json()
    assert (found["outcome"], found["wrong"], found["tables_done"]) == ("different", 3, 2)
    orders = next(t for t in found["verified"] if t["table"] == "orders")
    assert (orders["missing"], orders["extra"], orders["different"], orders["listed"]) == (
        1, 1, 1, 3,
    )  # fmt: skip
    rows = f"{api}verifications/{row.pk}/rows/?schema=shop&table=orders"
    first = browser.get(f"{rows}&limit=1").json()
    assert first["rows"][0]["source"] == {"id": 7, "note": "paid", "total": "12.50"}
    assert first["rows"][0]["columns"] == ["note"]
    rest = browser.get(f"{rows}&after={first['after']}").json()
    assert [r["key"] for r in rest["rows"]] == [{"id": 8}, {"id": 9}]
    assert rest["rows"][0]["target"] is None
    only = browser.get(f"{rows}&kind=extra").json()["rows"]
    assert [r["kind"] for r in only] == ["extra"]
    assert browser.get(f"{rows}&kind=odd").status_code == 400
    assert browser.get(rows.replace("orders", "nothing")).status_code == 404


def test_the_lists_go_back_by_cursor(browser: Client, api: str, replicator: Replicator) -> None:
    """Guards old ones: each request begins where the last one ended, and none comes twice."""
    rows = [verified(replicator) for _ in range(3)]
    wanted = [str(r.pk) for r in reversed(rows)]
    first = browser.get(f"{api}verifications/?limit=2").json()
    rest = browser.get(f"{api}verifications/?limit=2&before={first[-1]['id']}").json()
    assert ([v["id"] for v in first], [v["id"] for v in rest]) == (wanted[:2], wanted[2:])
    assert browser.get(f"{api}verifications/?before={wanted[-1]}").json() == []
    assert browser.get(f"{api}verifications/?before=1").status_code == 400
    replicating(replicator)
    for found in DifferingRow.objects.filter(table__verification=rows[-1]):
        body = {"schema": "shop", "table": "orders", "rows": [found.pk]}
        assert browser.post(f"{api}repairs/", body, "application/json").status_code == 202
    (newest,) = browser.get(f"{api}repairs/?limit=1").json()
    older = browser.get(f"{api}repairs/?before={newest['id']}").json()
    assert len(older) == 2
    assert max(r["id"] for r in older) < newest["id"]


def test_values_are_masked_for_those_who_may_not_edit(
    client: Client, viewer: Any, editor: Any, api: str, replicator: Replicator
) -> None:
    """Guards the rights: the report holds personal data of the source."""
    row = verified(replicator)
    rows = f"{api}verifications/{row.pk}/rows/?schema=shop&table=orders"
    client.force_login(viewer)
    answer = client.get(rows)
    one = answer.json()["rows"][0]
    assert one["key"] == {"id": "********"} and one["source"]["note"] == "********"
    assert one["key_hash"] and one["columns"] == ["note"]
    assert "paid" not in answer.content.decode()
    _, text = token_create(user=editor, name="reader", scope=Scope.READ)
    seen = Client().get(rows, headers={"Authorization": f"Bearer {text}"}).json()["rows"][0]
    assert seen["source"]["note"] == "paid"


def test_another_replicators_verification_is_not_found(
    browser: Client, api: str, replicator: Replicator
) -> None:
    from tests.app.factories import make_replicator

    other = verified(make_replicator("another"))
    assert browser.get(f"{api}verifications/{other.pk}/").status_code == 404
    assert browser.post(f"{api}verifications/{other.pk}/cancel/").status_code == 404
    body = {"schema": "shop", "table": "orders", "verification": str(other.pk)}
    assert browser.post(f"{api}repairs/", body, "application/json").status_code == 404


def test_rows_are_repaired_of_the_newest_verification(
    browser: Client, api: str, replicator: Replicator
) -> None:
    body: dict[str, Any] = {"schema": "shop", "table": "orders"}
    assert browser.post(f"{api}repairs/", body, "application/json").status_code == 404
    replicating(replicator)
    verified(replicator)
    one = DifferingRow.objects.get(kind="extra")
    asked = browser.post(f"{api}repairs/", {**body, "rows": [one.pk]}, "application/json")
    assert asked.status_code == 202
    assert (asked.json()["keys"], asked.json()["state"]) == (1, "asked")
    assert browser.post(f"{api}repairs/", body, "application/json").json()["keys"] == 2
    assert browser.post(f"{api}repairs/", body, "application/json").status_code == 409
    listed = browser.get(f"{api}repairs/").json()
    assert [r["keys"] for r in listed] == [2, 1]
    assert Repair.objects.count() == 2
    verified(replicator, table_report(CUSTOMERS), table_report(ORDERS))
    assert browser.post(f"{api}repairs/", body, "application/json").status_code == 409


def test_the_schedule_is_read_and_set(browser: Client, api: str) -> None:
    where = f"{api}verifications/schedule/"
    assert browser.get(where).json() == {"cron": "", "rows_per_second": None, "next_at": None}
    body = {"cron": "0 3 * * *", "rows_per_second": 500}
    found = browser.put(where, body, "application/json")
    assert (found.status_code, found.json()["cron"]) == (200, "0 3 * * *")
    assert found.json()["next_at"].endswith("T03:00:00Z")
    bad = browser.put(where, {"cron": "tomorrow"}, "application/json")
    assert (bad.status_code, list(bad.json()["fields"])) == (400, ["cron"])
    assert browser.put(where, {"cron": ""}, "application/json").status_code == 200
    assert VerifySchedule.objects.get().next_at is None


def test_a_viewer_may_not_set_the_schedule(client: Client, viewer: Any, api: str) -> None:
    client.force_login(viewer)
    where = f"{api}verifications/schedule/"
    assert client.put(where, {"cron": ""}, "application/json").status_code == 403
