"""Asking for a rewind: by the service, by REST and on the page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.models import Replicator
from runners.models import Event, Segment, Table
from runners.services import IllegalTransition, table_rewind
from runners.states import TableState
from runners.store.django import DjangoStore
from runners.tables.changes import table_change
from runners.tables.rewinding import parse_moment, rewind_window
from tests.app.factories import make_run

pytestmark = pytest.mark.django_db

ORDERS = {"schema": "shop", "name": "orders"}


@pytest.fixture
def live(
    replicator: Replicator, keeps_versions: None, monkeypatch: pytest.MonkeyPatch
) -> Replicator:
    """Its tables replicate, and its target keeps versions for half an hour."""
    Table.objects.update(state=TableState.REPLICATING, is_snapshot_done=True)
    monkeypatch.setattr("runners.tables.rewinding._reach_seconds", lambda *_: 1800.0)
    return replicator


def test_a_time_within_the_window_is_asked_for_once_and_reported(live: Replicator) -> None:
    """Guards the whole way of what is asked to the engine's row, and its end: what was refused or
    done is asked no longer."""
    at = timezone.now() - timedelta(minutes=5)
    table_rewind(replicator=live, **ORDERS, at=at, actor=None)
    run = make_run(live)
    store = DjangoStore(run.pk, run.lease)
    row = next(r for r in store.tables() if r.id.name == "orders")
    assert row.rewind_to == pytest.approx(at.timestamp(), abs=0.001)
    store.table_event(TableId("shop", "orders"), "table_rewind_started")
    refused = store.table_event(
        TableId("shop", "orders"), "table_rewind_refused", rewind_to=None,
        error_code="target:rewind-schema", error_facts={},
    )  # fmt: skip
    assert refused.rewind_to is None and refused.state is TableState.REPLICATING
    kinds = list(Event.objects.order_by("pk").values_list("kind", "code"))
    assert kinds[-3:] == [
        ("table_rewind_asked", ""),
        ("table_rewind_started", ""),
        ("table_rewind_refused", "target:rewind-schema"),
    ]


def test_the_window_is_the_narrowest_of_keep_time_history_and_log(live: Replicator) -> None:
    """Guards each bound: a time that is offered and can't be reached would be refused only by the
    run."""
    now = timezone.now()
    assert (now - rewind_window(live, now).earliest).total_seconds() == pytest.approx(1800, abs=2)
    Segment.objects.create(
        replicator=live, number=1, path="1", size_bytes=1, crc32=0, position={}, is_closed=True,
        sealed_at=now - timedelta(minutes=3),
    )  # fmt: skip
    window = rewind_window(live, now)
    assert (now - window.earliest).total_seconds() == pytest.approx(180, abs=2)
    assert "the change log begins there" in str(window)


def test_where_the_target_keeps_single_versions_the_window_is_as_long_as_changes_are_kept(
    replicator: Replicator,
) -> None:
    """Guards the offer: the history alone would end it after half an hour."""
    replicator.target_kind = "lakehouse"
    replicator.target_params = {"warehouse": "/w", "catalog_uri": "sqlite:////w/c.db"}
    replicator.save()
    now = timezone.now()
    for versions, seconds, reason in ((3, 86400, "24 hours"), (0, 1800, "30 minutes")):
        replicator.target_params["rewind_versions"] = versions
        window = rewind_window(replicator, now)
        assert (now - window.earliest).total_seconds() == pytest.approx(seconds, abs=2)
        assert reason in window.reason


@pytest.mark.parametrize("minutes", [-1, 60])
def test_a_time_outside_is_refused_with_what_is_possible(live: Replicator, minutes: int) -> None:
    """Guards `rewind_window` in `table_rewind`: a time without a version or changes would be found
    out by the run only, after the asker has gone."""
    at = timezone.now() - timedelta(minutes=minutes)
    with pytest.raises(IllegalTransition) as caught:
        table_rewind(replicator=live, **ORDERS, at=at, actor=None)
    assert "can go back to between" in caught.value.message
    assert "30 minutes" in caught.value.message


def test_only_a_table_that_replicates_is_rewound(live: Replicator) -> None:
    """Guards the check of the state: a failing table's target is not what it should be."""
    Table.objects.filter(name="orders").update(state=TableState.FAILING)
    with pytest.raises(IllegalTransition) as caught:
        table_rewind(replicator=live, **ORDERS, at=timezone.now(), actor=None)
    assert "only while it replicates" in caught.value.message


def test_rest_and_page_ask_and_say_which_times(
    client: Client, editor: Any, live: Replicator
) -> None:
    """Guards that REST and page go through `table_rewind` alike, refuse alike, and say the
    window."""
    client.force_login(editor)
    url = f"/api/v1/replicators/{live.pk}/tables/rewind/"
    body = {"schema": "shop", "table": "orders"}
    at = timezone.now() - timedelta(minutes=2)
    assert client.post(url, body, "application/json").status_code == 400
    early = {**body, "at": (at - timedelta(days=2)).isoformat()}
    refused = client.post(url, early, "application/json")
    assert refused.status_code == 409 and "between" in refused.json()["message"]
    done = client.post(url, {**body, "at": at.isoformat()}, "application/json")
    assert done.status_code == 202 and Table.objects.get(name="orders").rewind_to == at

    page = f"/replicators/{live.pk}/tables/rewind/"
    form = client.get(page, {"schema": "shop", "table": "customers"}).content.decode()
    assert 'name="at"' in form and "keeps old versions for 30 minutes" in form
    wrong = client.post(page, {"schema": "shop", "table": "customers", "at": "soon"})
    assert wrong.status_code == 409
    moment = f"{at:%Y-%m-%dT%H:%M:%S}"
    asked = client.post(page, {"schema": "shop", "table": "customers", "at": moment})
    assert asked.status_code == 302
    assert Table.objects.get(name="customers").rewind_to == at.replace(microsecond=0)
    assert "Rewind table" in client.get(f"/replicators/{live.pk}/tables/").content.decode()


def test_a_moment_of_a_form_is_utc() -> None:
    """Guards `parse_moment`: taken for local time, a table would be rewound by hours more or less
    than was asked."""
    found = parse_moment("2026-01-02T03:04")
    assert found is not None and found.isoformat() == "2026-01-02T03:04:00+00:00"
    assert parse_moment("2026-13-40T00:00") is None and parse_moment("") is None


def test_a_table_without_any_older_version_offers_no_rewind(
    browser: Client, live: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the dialog: a time between now and now would only be refused."""
    monkeypatch.setattr("runners.tables.rewinding._reach_seconds", lambda *_: 0.0)
    url = f"{live.get_absolute_url()}tables/rewind/?schema=shop&table=orders"
    page = browser.get(url).content.decode()
    assert "Nothing to go back to" in page and 'type="datetime-local"' not in page


def test_no_rewind_goes_back_over_a_choice_of_other_kinds(replicator: Replicator) -> None:
    """Guards `table_change`: changes of before would be applied again as is chosen now, so that
    rows which were deleted then come back."""
    row = Table.objects.get(replicator=replicator, name="orders")
    Table.objects.filter(pk=row.pk).update(state="replicating", token_sequence=77)
    for excluded, found in ((("deletes",), 77), (("deletes",), 77), ((), 99)):
        selection = TableSelection(TableId("shop", "orders"), excluded=excluded)
        table_change(is_assessed=False, replicator=replicator, selection=selection, actor=None)
        row.refresh_from_db()
        assert (row.schema_sequence, row.is_resync_asked) == (found, False)
        Table.objects.filter(pk=row.pk).update(token_sequence=99)


def test_a_target_without_versions_offers_no_rewind_and_says_so(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `can_rewind` on page, REST and in the service: asked for in vain, the table would wait
    for the run to refuse it."""
    Table.objects.update(state=TableState.REPLICATING, is_snapshot_done=True)
    tables = browser.get(f"/replicators/{replicator.pk}/tables/").content.decode()
    assert "Re-sync table" in tables and "Rewind table" not in tables
    one = {"schema": "shop", "table": "orders"}
    page = browser.get(f"/replicators/{replicator.pk}/tables/rewind/", one)
    assert page.status_code == 409 and "keeps no older versions" in page.content.decode()
    body = {**one, "at": (timezone.now() - timedelta(minutes=2)).isoformat()}
    url = f"/api/v1/replicators/{replicator.pk}/tables/rewind/"
    refused = browser.post(url, body, "application/json")
    assert refused.status_code == 409 and "keeps no older versions" in refused.json()["message"]
