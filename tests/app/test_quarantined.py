"""Rows that wait beside a target: kept by the store, counted, listed and replayed by people."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest
from django.test import Client

from replicators.api.serializers import TableChoiceSerializer
from replicators.connectors import registry
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.schema import TableId
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.options import Options
from runners.engine.store.protocol import MemoryStore, Store
from runners.engine.store.quarantine import QuarantinedRow
from runners.models import Event, Table
from runners.models import QuarantinedRow as Row
from runners.services import IllegalTransition, table_replay
from runners.store.django import DjangoStore
from tests.app.factories import make_run
from tests.app.pages import make_live, page

pytestmark = pytest.mark.django_db

ORDERS = TableId("shop", "orders")
REASON = "at: infinity has no place in a date or timestamp"


def waiting(sequence: int) -> QuarantinedRow:
    return QuarantinedRow(sequence, f'{{"id": "{sequence}"}}', REASON, b"image")


@pytest.fixture(params=["memory", "django"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore([ORDERS])
    run = make_run(request.getfixturevalue("replicator"))
    return DjangoStore(run.pk, run.lease)


def sequences(store: Store, upto: int) -> list[int]:
    return [p.sequence for p in store.quarantined(ORDERS, 1, upto)]


def test_a_merge_parks_and_frees_only_once_it_is_done(store: Store) -> None:
    """Guards "idempotent by (generation, sequence)": a merge that was cut off is folded again from
    what it found."""
    store.record_quarantined(ORDERS, 1, [waiting(-5), waiting(7)], (), 9)
    store.record_quarantined(ORDERS, 1, [waiting(7)], (), 9)
    assert sequences(store, 6) == [-5]
    assert sequences(store, 9) == [-5, 7]
    store.record_merged(ORDERS, 9, 9, OpCounts())
    store.record_quarantined(ORDERS, 1, (), [-5], 20)
    assert sequences(store, 9) == [-5, 7]
    assert sequences(store, 20) == [7]
    store.record_merged(ORDERS, 20, 20, OpCounts())
    store.record_quarantined(ORDERS, 1, [waiting(25)], (), 30)
    assert sequences(store, 30) == [7, 25]
    assert store.quarantined(ORDERS, 1, 30)[0] == waiting(7)
    store.quarantined_forget(ORDERS, 1)
    assert not sequences(store, 30)


def test_a_merge_undoes_what_one_that_was_cut_off_quarantined_and_freed(store: Store) -> None:
    """Guards a merge that reaches less far, or further, than the one whose place it takes: see
    test_quarantine."""
    store.record_quarantined(ORDERS, 1, [waiting(-5)])
    store.record_quarantined(ORDERS, 1, [waiting(3)], (), 9, 0)
    store.record_merged(ORDERS, 9, 9, OpCounts())
    store.record_quarantined(ORDERS, 1, [waiting(12)], [3], 14, 9)
    store.record_quarantined(ORDERS, 1, [waiting(15)], [-5], 20, 9)
    assert sequences(store, 9) == [-5, 3]
    store.record_merged(ORDERS, 20, 20, OpCounts())
    assert sequences(store, 20) == [3, 15]


def quarantine(replicator: Replicator, *numbers: int) -> Table:
    run = make_live(replicator)
    Table.objects.update(generation=1)
    store = DjangoStore(run.pk, run.lease)
    store.record_quarantined(ORDERS, 1, [waiting(n) for n in numbers], (), 50)
    store.record_merged(ORDERS, 50, 50, OpCounts())
    return Table.objects.get(name="orders")


def test_quarantined_rows_are_counted_shown_with_their_reason_and_replayed_on_the_page(
    browser: Client, replicator: Replicator
) -> None:
    """Guards `quarantined.quarantined_rows` and `services.table_replay` (CORRECTNESS 30): rows that
    wait unseen are missing in the target and nobody knows; the action accepts exactly those
    shown."""
    table = quarantine(replicator, 11, 12)
    assert table.rows_quarantined == 2
    url = f"{replicator.get_absolute_url()}tables/"
    assert "2 rows quarantined" in page(browser, url)
    shown = page(browser, f"{url}quarantined/?schema=shop&table=orders")
    assert shown.count(REASON.split(": ")[1]) == 2
    assert "id = 11</td>" in shown, "a key is for people to read"
    assert 'data-act="replay"' in shown
    answer = browser.post(f"{url}replay/", {"schema": "shop", "table": "orders"})
    assert answer.status_code == 302
    table.refresh_from_db()
    assert table.is_replay_asked
    assert all(Row.objects.values_list("is_accepted", flat=True))
    assert Event.objects.get(kind="table_replay_asked").facts == {"rows": 2}
    assert 'data-act="replay"' not in page(browser, f"{url}quarantined/?schema=shop&table=orders")


def test_quarantined_rows_by_rest(browser: Client, replicator: Replicator) -> None:
    """Guards the same over REST, page by page: `after` must go on behind the last sequence, and a
    replay of nothing is refused."""
    quarantine(replicator, 11, 12)
    url = f"/api/v1/replicators/{replicator.pk}/"
    first = browser.get(f"{url}tables/quarantined/?schema=shop&table=orders&limit=1").json()
    assert (first["rows_quarantined"], first["after"]) == (2, 11)
    assert first["rows"][0]["reason"] == REASON
    rest = browser.get(f"{url}tables/quarantined/?schema=shop&table=orders&after=11").json()
    assert [(r["generation"], r["sequence"]) for r in rest["rows"]] == [(1, 12)]
    assert browser.get(f"{url}tables/quarantined/?schema=shop&table=nothing").status_code == 404
    body = {"schema": "shop", "table": "orders"}
    assert browser.post(f"{url}tables/replay/", body, "application/json").status_code == 202
    body["table"] = "customers"
    assert browser.post(f"{url}tables/replay/", body, "application/json").status_code == 409


def test_a_replay_needs_something_that_waits(replicator: Replicator) -> None:
    """Guards the refusal in `table_replay`: asked for nothing, the flag would stay, and the run
    would look for a merge that can't come."""
    with pytest.raises(IllegalTransition):
        table_replay(replicator=replicator, schema="shop", name="orders", actor=None)


def test_rows_that_the_target_refused_take_the_place_of_the_list_before(store: Store) -> None:
    """Guards `record_refused`: what the target takes meanwhile leaves the list, also where a newer
    generation has its own; a row that stays keeps its place."""
    store.record_refused(ORDERS, 1, [waiting(-5), waiting(-7)])
    assert sequences(store, 0) == [-7, -5]
    store.record_refused(ORDERS, 1, [waiting(-7), waiting(-9)])
    store.record_refused(ORDERS, 1, [waiting(-7), waiting(-9)])
    assert sequences(store, 0) == [-9, -7]
    store.record_refused(ORDERS, 1, [])
    assert sequences(store, 0) == []


def test_refused_rows_are_shown_and_sent_again_on_the_page_and_by_rest(
    browser: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the page of a target that refuses single rows: it says what a replay does there, and
    the count is right at once."""
    memory = registry.targets()["memory"]
    able = replace(memory, capabilities=replace(memory.capabilities, rejects_rows=True))
    monkeypatch.setitem(registry.targets(), "memory", able)
    run = make_live(replicator)
    Table.objects.update(generation=1)
    DjangoStore(run.pk, run.lease).record_refused(ORDERS, 1, [waiting(-11), waiting(-12)])
    assert Table.objects.get(name="orders").rows_quarantined == 2
    shown = page(
        browser, f"{replicator.get_absolute_url()}tables/quarantined/?schema=shop&table=orders"
    )
    assert "The target refused these rows" in shown and "Send again" in shown
    assert "with NULL" not in shown
    url = f"/api/v1/replicators/{replicator.pk}/tables/"
    found = browser.get(f"{url}quarantined/?schema=shop&table=orders").json()
    assert [r["sequence"] for r in found["rows"]] == [-12, -11]
    body = {"schema": "shop", "table": "orders"}
    assert browser.post(f"{url}replay/", body, "application/json").status_code == 202
    assert Table.objects.get(name="orders").is_replay_asked


@pytest.mark.parametrize(("option", "table", "quarantines"), [
    ("stop", "", False), ("quarantine", "", True), ("quarantine", "stop", False),
    ("stop", "quarantine", True),
])  # fmt: skip
def test_the_choice_is_the_tables_own_or_the_replicators(
    replicator: Replicator, option: str, table: str, quarantines: bool
) -> None:
    """Guards that a table may differ from its replicator, and that stopping is the default."""
    tables = [{**t, "unsupported": table} for t in replicator.tables]
    Replicator.objects.update(options={"unsupported_values": option}, tables=tables)
    run = make_run(replicator)
    rows = DjangoStore(run.pk, run.lease).tables()
    assert {r.quarantines for r in rows} == {quarantines}


def test_kept_options_tables_and_codes_get_their_new_names() -> None:
    """Guards migration 0015: an option under its old name would be no option, and its replicator
    would not start."""
    rename = import_module("runners.migrations.0015_quarantined_rows").renamed
    kept = {
        "options": {"unfit_values": "park", "mode": "mirror"},
        "tables": [{"name": "park", "unfit": "park"}, {"name": "b", "unfit": ""}],
        "report": [{"code": "source:no-parking", "facts": {"option": "park"}}],
    }
    assert rename(kept) == {
        "options": {"unsupported_values": "quarantine", "mode": "mirror"},
        "tables": [{"name": "park", "unsupported": "quarantine"}, {"name": "b", "unsupported": ""}],
        "report": [{"code": "source:no-quarantine", "facts": {"option": "park"}}],
    }


def test_the_old_names_are_refused_with_the_new_ones() -> None:
    """Guards `options.RENAMED`: a script that still sends the old name has to learn what to
    send."""
    with pytest.raises(InvalidConfig) as caught:
        Options.parse({"unfit_values": "park"})
    assert caught.value.errors == {"options.unfit_values": "is called `unsupported_values` now"}
    table = TableChoiceSerializer(data={"schema": "shop", "name": "orders", "unfit": "park"})
    assert not table.is_valid()
    assert "called `unsupported` now" in str(table.errors["unfit"][0])
