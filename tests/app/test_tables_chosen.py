"""A replicator's tables are changed after its deploy: what is asked for, what is refused, and what
the engine sees of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from replicators.config import parse_tables
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.target import Watermarked
from replicators.models import Replicator
from runners.engine.store.protocol import chosen, is_live
from runners.models import Event, Table
from runners.selectors import replicator_status
from runners.services import IllegalTransition, table_remove, table_resync
from runners.states import TableState
from runners.store.django import DjangoStore
from runners.store.mapping import selections, table_row
from runners.tables.changes import TableRefused, table_add
from tests.app.factories import make_replicator, make_run

pytestmark = pytest.mark.django_db

VIEWS = TableSelection(TableId("shop", "page_views"))


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


def _url(replicator: Replicator) -> str:
    return f"/api/v1/replicators/{replicator.pk}/tables/"


def _names(replicator: Replicator) -> list[str]:
    replicator.refresh_from_db()
    return [t.id.name for t in parse_tables(replicator.tables)]


def _row(name: str) -> Table:
    return Table.objects.get(name=name)


def test_a_table_is_added_with_its_row_and_an_event(replicator: Replicator, editor: Any) -> None:
    """Guards `services.table_add`: choice, row and event come together, with the columns and kinds
    that were chosen; a table is added once."""
    selection = TableSelection(VIEWS.id, ("path",), ("deletes",))
    row = table_add(is_assessed=False, replicator=replicator, selection=selection, actor=editor)
    assert row.state == TableState.WAITING
    assert _names(replicator) == ["orders", "customers", "page_views"]
    assert parse_tables(replicator.tables)[-1] == selection
    event = Event.objects.get(kind="table_add_asked")
    assert (event.table_name, event.actor) == ("page_views", "editor")
    with pytest.raises(IllegalTransition, match="table_add_asked"):
        table_add(is_assessed=False, replicator=replicator, selection=VIEWS, actor=editor)


def test_a_removed_table_is_hidden_at_once_and_the_last_one_stays(replicator: Replicator) -> None:
    """Guards `services.table_remove`: a removed table takes no more actions though its row is still
    there; without any table a run has nothing to follow."""
    table_remove(replicator=replicator, schema="shop", name="orders", actor=None)
    assert _names(replicator) == ["customers"]
    assert [t["table"] for t in replicator_status(replicator)["tables"]] == ["customers"]
    with pytest.raises(Table.DoesNotExist):
        table_remove(replicator=replicator, schema="shop", name="orders", actor=None)
    with pytest.raises(IllegalTransition):
        table_resync(replicator=replicator, schema="shop", name="orders", actor=None)
    with pytest.raises(IllegalTransition) as refused:
        table_remove(replicator=replicator, schema="shop", name="customers", actor=None)
    assert "last table" in refused.value.message


def test_an_add_takes_back_a_removal_and_asks_for_a_fresh_copy(replicator: Replicator) -> None:
    """Guards `table_add` for a removal that no run has taken up: with `is_drop_asked` left the
    target would be dropped after all, and without a copy changes would be missing (CORRECTNESS
    18)."""
    Table.objects.filter(name="orders").update(state=TableState.REPLICATING)
    table_remove(replicator=replicator, schema="shop", name="orders", actor=None, keep_target=False)
    assert _row("orders").is_drop_asked
    table_add(
        is_assessed=False,
        replicator=replicator,
        selection=TableSelection(TableId("shop", "orders")),
        actor=None,
    )
    assert (_row("orders").is_drop_asked, _row("orders").is_resync_asked) == (False, True)


def test_a_run_that_runs_sees_what_is_chosen(replicator: Replicator) -> None:
    """Guards `DjangoStore.tables` and `chosen`: read once at the start, they would follow a removed
    table and never the added one."""
    run = make_run(replicator)
    store = DjangoStore(run.pk, run.lease, tables_seconds=0)
    table_add(
        is_assessed=False,
        replicator=replicator,
        selection=TableSelection(VIEWS.id, ("path",)),
        actor=None,
    )
    table_remove(replicator=replicator, schema="shop", name="orders", actor=None)
    live = {r.id.name for r in store.tables() if is_live(r)}
    assert live == {"customers", "page_views"}
    assert TableSelection(VIEWS.id, ("path",)) in chosen(store)
    row = store.table_event(TableId("shop", "orders"), "table_removed", is_drop_asked=False)
    assert (row.is_chosen, row.state) == (False, TableState.REMOVED)
    table_add(
        is_assessed=False,
        replicator=replicator,
        selection=TableSelection(TableId("shop", "orders")),
        actor=None,
    )
    row = next(r for r in store.tables() if r.id.name == "orders")
    assert (is_live(row), row.state, row.is_resync_asked) == (True, TableState.WAITING, False)


def test_the_source_is_asked_before_a_table_is_added(replicator: Replicator) -> None:
    """Guards the assessment in `table_add`: a table that can't be copied would fail in the run, and
    problems of other tables are not its own."""
    missing = TableSelection(TableId("shop", "is_not_there"))
    with pytest.raises(TableRefused) as refused:
        table_add(replicator=replicator, selection=missing, actor=None)
    assert "source:table-missing" in {p.code for p in refused.value.problems}
    assert {p.table for p in refused.value.problems} <= {None, missing.id}
    assert _names(replicator) == ["orders", "customers"]


def test_an_old_tables_error_does_not_refuse_a_new_one(db: None) -> None:
    """Guards the choice of problems in `table_add`: one table that is gone would keep every other
    from being added."""
    tables = [{"schema": "shop", "name": "gone"}, {"schema": "shop", "name": "orders"}]
    replicator = make_replicator(tables=tables)
    table_add(replicator=replicator, selection=VIEWS, actor=None)
    assert _names(replicator) == ["gone", "orders", "page_views"]


def test_rest_adds_and_removes(api: Client, replicator: Replicator) -> None:
    """Guards the answers of REST: codes and bodies by which a program can tell asked for, there
    already, refused and not known."""
    body = {"schema": "shop", "table": "page_views"}
    added = api.post(_url(replicator), body, "application/json")
    assert (added.status_code, added.json()) == (202, {**body, "state": "paused"})
    again = api.post(_url(replicator), body, "application/json")
    assert (again.status_code, again.json()["code"]) == (409, "illegal-transition")
    missing = api.post(_url(replicator), {**body, "table": "nope"}, "application/json")
    assert (missing.status_code, missing.json()["code"]) == (409, "table-refused")
    assert missing.json()["problems"]
    assert api.post(_url(replicator), {"schema": "shop"}, "application/json").status_code == 400

    query = "?schema=shop&table=page_views&keep_target=false"
    assert api.delete(_url(replicator) + query).status_code == 202
    assert _row("page_views").is_drop_asked
    assert api.delete(_url(replicator) + query).status_code == 404
    assert api.delete(_url(replicator)).status_code == 400
    assert _names(replicator) == ["orders", "customers"]


def test_the_pages_actions_answer_with_the_reason(api: Client, replicator: Replicator) -> None:
    """Guards the page's actions: a refusal says why, and the box for dropping the target reaches
    `table_remove`."""
    page = f"/replicators/{replicator.pk}/tables/"
    refused = api.post(f"{page}add/", {"schema": "shop", "table": "nope"})
    assert refused.status_code == 409
    assert "shop.nope" in refused.content.decode()
    assert api.post(f"{page}add/", {"schema": "shop", "table": "page_views"}).status_code == 302
    gone = {"schema": "shop", "table": "page_views", "drop_target": "true"}
    assert api.post(f"{page}remove/", gone).status_code == 302
    assert _row("page_views").is_drop_asked


def test_a_deleted_replicators_removed_tables_stay_where_that_was_asked(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `wanted` in the command `drop_target`: a table that was removed with its rows to stay
    would be dropped with the others."""
    from django.core.management import call_command
    from django.utils import timezone

    from runners.management.commands import drop_target

    dropped: list[str] = []

    class Target(Watermarked):
        def drop(self, table: Any) -> None:
            dropped.append(table.source.name)

        def forget_watermarks(self, name: str) -> None:
            dropped.append(f"watermarks of {name}")

    class Job:
        target = type("T", (), {"jars": lambda *_: (), "spark_conf": lambda *_: {},
                                "driver_properties": lambda *_: {},
                                "driver_environment": lambda *_: {},
                                "writer": lambda *_: Target()})()  # fmt: skip
        target_params = None

    class Session:
        def stop(self) -> None:
            dropped.append("stopped")

    table_remove(replicator=replicator, schema="shop", name="orders", actor=None)
    Replicator.objects.update(deleting_since=timezone.now())
    monkeypatch.setattr(drop_target, "job_of", lambda _: Job())
    monkeypatch.setattr("runners.engine.tasks.spark.open_session", lambda *_: Session())
    call_command("drop_target", str(replicator.pk))
    assert dropped == ["customers", f"watermarks of {replicator.pk}", "stopped"]


@pytest.mark.usefixtures("converging")
def test_rest_asks_for_another_mode_which_the_run_takes_up_as_a_fresh_copy(
    api: Client, replicator: Replicator
) -> None:
    """Guards the change of a mode after the start: assessed first, then seen by the run as a copy
    of another mode."""
    body = {"schema": "shop", "table": "orders", "mode": "soft_delete"}
    assert api.patch(_url(replicator), body, "application/json").status_code == 202
    replicator.refresh_from_db()
    assert [(t.id.name, t.mode) for t in parse_tables(replicator.tables)] == [
        ("orders", "soft_delete"),
        ("customers", ""),
    ]
    assert Event.objects.get(kind="table_mode_asked").facts == {"mode": "soft_delete"}
    refused = api.patch(_url(replicator), {**body, "mode": "history"}, "application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "table-refused")
    assert "nothing was changed" in refused.json()["message"]
    assert [p["code"] for p in refused.json()["problems"]] == ["source:mode-inexact"]
    assert api.patch(_url(replicator), {**body, "mode": "x"}, "application/json").status_code == 400
    row = _row("orders")
    row.schema = {"schema": "shop", "name": "orders", "columns": [], "key": []}
    row.is_snapshot_done = True
    row.save()
    chosen = selections(replicator)
    assert table_row(row, chosen).is_outdated
    row.mode = "soft_delete"
    assert not table_row(row, chosen).is_outdated
