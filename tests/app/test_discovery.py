"""Tables that appear and vanish at the source: what each policy does, and what people are asked."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from replicators.config import parse_tables
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.models import Replicator
from runners.events.texts import SCHEMA_EVENTS, schema_text
from runners.models import Event, NewTable, Table
from runners.services import IllegalTransition
from runners.store.django import DjangoStore
from runners.tables.changes import table_add
from runners.tables.discovery import new_table_ignore, table_vanished, tables_appeared, tables_asked
from tests.app.factories import make_replicator, make_run

pytestmark = pytest.mark.django_db

OLD, NEW, OTHER = (TableId("shop", n) for n in ("left_out", "fresh", "other"))


def _replicator(**options: str) -> Replicator:
    made = make_replicator(options=options)
    tables_appeared(replicator=made, tables=[OLD])
    return made


def _asked(replicator: Replicator) -> list[str]:
    replicator.refresh_from_db()
    return [str(t) for t in tables_asked(replicator)]


def test_what_was_there_at_the_first_look_is_not_asked_about() -> None:
    """A person left it out; asking about it would ask about hundreds of tables at each deploy."""
    replicator = _replicator()
    assert _asked(replicator) == []
    assert tables_appeared(replicator=replicator, tables=[OLD, NEW]) == [NEW]
    assert _asked(replicator) == ["shop.fresh"]
    assert tables_appeared(replicator=replicator, tables=[OLD, NEW]) == []
    event = Event.objects.get(kind="tables_appeared")
    assert event.facts == {"tables": ["shop.fresh"], "count": 1, "policy": "ask"}


def test_a_question_goes_when_the_table_does_and_an_answer_stays() -> None:
    """An answer that went with the table would be asked for each night that a job makes its table
    again."""
    replicator = _replicator()
    tables_appeared(replicator=replicator, tables=[OLD, NEW, OTHER])
    new_table_ignore(replicator=replicator, schema="shop", name="other", actor=None)
    tables_appeared(replicator=replicator, tables=[])
    assert _asked(replicator) == []
    tables_appeared(replicator=replicator, tables=[OLD, NEW, OTHER])
    assert _asked(replicator) == ["shop.fresh"]
    assert NewTable.objects.get(name="other").is_ignored
    assert Event.objects.filter(kind="table_ignored").count() == 1


def test_add_takes_new_tables_and_ignore_leaves_them() -> None:
    added, ignored = _replicator(new_tables="add"), None
    tables_appeared(replicator=added, tables=[OLD, NEW])
    added.refresh_from_db()
    assert NEW in {t.id for t in parse_tables(added.tables)}
    assert OLD not in {t.id for t in parse_tables(added.tables)}
    ignored = make_replicator("second", options={"new_tables": "ignore"})
    tables_appeared(replicator=ignored, tables=[])
    assert tables_appeared(replicator=ignored, tables=[NEW]) == []
    assert _asked(ignored) == []


def test_a_schema_that_is_copied_from_later_is_looked_at_first_too() -> None:
    """Its tables are no news either."""
    replicator = _replicator()
    tables = [{"schema": "hr", "name": "staff"}, *replicator.tables]
    Replicator.objects.filter(pk=replicator.pk).update(tables=tables)
    replicator.refresh_from_db()
    assert tables_appeared(replicator=replicator, tables=[OLD, TableId("hr", "pay")]) == []


def test_a_vanished_table_is_removed_with_its_copy_but_never_the_last_one() -> None:
    replicator = _replicator(vanished_tables="drop")
    run = make_run(replicator)
    store = DjangoStore(run.pk, run.lease)
    assert store.table_vanished(TableId("shop", "orders"))
    row = Table.objects.get(replicator=replicator, name="orders")
    assert (row.is_chosen, row.is_drop_asked) == (False, True)
    replicator.refresh_from_db()
    assert not table_vanished(replicator=replicator, table=TableId("shop", "customers"))
    assert [t.id.name for t in parse_tables(replicator.tables)] == ["customers"]


def test_the_engines_events_are_rows() -> None:
    """What a policy did must be seen in Activity, also where no state changed."""
    replicator = _replicator()
    run = make_run(replicator)
    DjangoStore(run.pk, run.lease).event(
        "schema_followed", TableId("shop", "orders"), change="column a added", policy="evolve"
    )
    event = Event.objects.get(kind="schema_followed")
    assert (event.table_name, event.run) == ("orders", run)
    assert event.facts == {"change": "column a added", "policy": "evolve"}


@pytest.fixture
def browser(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


def test_new_tables_are_shown_added_and_ignored(browser: Client, replicator: Replicator) -> None:
    """A question that nobody sees is none: it stands on each page of the replicator until it is
    answered."""
    tables_appeared(replicator=replicator, tables=[])
    tables_appeared(
        replicator=replicator, tables=[TableId("shop", "page_views"), TableId("shop", "temp")]
    )
    page = browser.get(f"/replicators/{replicator.pk}/").content.decode()
    assert "2 new tables at the source" in page and 'data-new-table="shop.temp"' in page
    listed = browser.get(f"/api/v1/replicators/{replicator.pk}/tables/new/").json()
    assert [t["table"] for t in listed] == ["page_views", "temp"]
    url = f"/replicators/{replicator.pk}/tables/"
    added = browser.post(f"{url}add/", {"schema": "shop", "table": "page_views"})
    assert added.status_code == 302
    ignored = browser.post(f"{url}ignore/", {"schema": "shop", "table": "temp"})
    assert ignored.status_code == 302
    replicator.refresh_from_db()
    assert tables_asked(replicator) == []
    assert (
        "at the source</h3>" not in browser.get(f"/replicators/{replicator.pk}/").content.decode()
    )
    activity = browser.get(f"/replicators/{replicator.pk}/activity/").content.decode()
    assert "shop.page_views, shop.temp. Add or ignore them." in activity
    rest = f"/api/v1/replicators/{replicator.pk}/tables/ignore/"
    body = {"schema": "shop", "table": "temp"}
    assert browser.post(rest, body, content_type="application/json").status_code == 204
    body["table"] = "never"
    assert browser.post(rest, body, content_type="application/json").status_code == 404


def test_each_event_of_a_policy_is_a_sentence() -> None:
    facts = {"change": "column a added", "tables": ["s.t"], "count": 3}
    reported = {kind: schema_text(kind, facts) for kind in sorted(SCHEMA_EVENTS)}
    assert reported["schema_followed"] == "Column a added."
    assert reported["tables_appeared"] == "s.t and 2 more. Add or ignore them."


def test_a_table_that_is_followed_under_another_name_shows_it_and_is_not_added_twice(
    browser: Client, replicator: Replicator
) -> None:
    """The log gives a table's rows to one copy only: the second would silently get none."""
    row = Table.objects.get(replicator=replicator, name="orders")
    schema = TableSchema(TableId("shop", "orders"), (), native_id=7, called=TableId("old", "sales"))
    Table.objects.filter(pk=row.pk).update(schema=schema.to_json())
    page = browser.get(f"/replicators/{replicator.pk}/tables/").content.decode()
    assert "old.sales" in page
    selection = TableSelection(TableId("old", "sales"))
    with pytest.raises(IllegalTransition) as caught:
        table_add(is_assessed=False, replicator=replicator, selection=selection, actor=None)
    assert "shop.orders" in caught.value.message


def test_a_table_that_is_chosen_again_is_known_by_its_name_alone(replicator: Replicator) -> None:
    """By its number the one that was renamed would be copied in its place."""
    row = Table.objects.get(replicator=replicator, name="orders")
    Table.objects.filter(pk=row.pk).update(
        schema={"native_id": 7}, state="removed", is_chosen=False
    )
    kept = [t for t in replicator.tables if t["name"] != "orders"]
    Replicator.objects.filter(pk=replicator.pk).update(tables=kept)
    replicator.refresh_from_db()
    selection = TableSelection(TableId("shop", "orders"))
    assert (
        table_add(is_assessed=False, replicator=replicator, selection=selection, actor=None).schema
        is None
    )


def test_a_table_that_can_not_be_added_by_itself_is_asked_about(replicator: Replicator) -> None:
    """Guards `discovery._is_added`: a table that comes under the name that a followed one was
    given, or that somebody added meanwhile, ended the run, and each one after it."""
    Replicator.objects.filter(pk=replicator.pk).update(options={"new_tables": "add"})
    replicator.refresh_from_db()
    tables_appeared(replicator=replicator, tables=[])
    taken, fresh = TableId("shop", "orders_old"), TableId("shop", "fresh")
    Table.objects.filter(name="orders").update(schema={"called": ["shop", "orders_old"]})
    table_add(is_assessed=False, replicator=replicator, selection=TableSelection(fresh), actor=None)
    replicator.refresh_from_db()
    tables_appeared(replicator=replicator, tables=[taken, fresh])
    assert set(NewTable.objects.values_list("name", flat=True)) == {"orders_old", "fresh"}
    tables_appeared(replicator=replicator, tables=[taken, fresh])
    Table.objects.filter(name="customers").delete()
    assert not table_vanished(replicator=replicator, table=TableId("shop", "customers"))


def test_a_choice_that_is_made_between_two_readings_is_seen_whole(replicator: Replicator) -> None:
    """Guards `KnownTables._read_all`: a table that was added just then had no choice yet, and all
    of its columns were copied."""
    run = make_run(replicator)
    store = DjangoStore(run.pk, run.lease)
    fresh = TableSelection(TableId("shop", "fresh"), columns=("id",), filter="id > 5")
    first = store._tables._choice

    def chosen() -> Any:
        found = first()
        if not Table.objects.filter(name="fresh").exists():
            table_add(is_assessed=False, replicator=replicator, selection=fresh, actor=None)
        return found

    store._tables._choice = chosen  # type: ignore[method-assign]
    (row,) = [r for r in store.tables() if r.id == fresh.id]
    assert (row.columns, row.filter) == (("id",), "id > 5")
