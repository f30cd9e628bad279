"""The pages of verifications: start, progress, results, rows with their values, repairs, the
schedule; and who sees what."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from runners.engine.verify.report import LeftOut, Outcome, Step, TableProgress
from runners.models import Table
from runners.transitions import repair_transition
from runners.verifications import DifferingRow, Repair, Verification, VerifySchedule
from tests.app.factories import make_user
from tests.app.pages import htmx, make_tables, page, panel
from tests.app.verified import (
    CUSTOMERS,
    DIFFERENT,
    ORDERS,
    begun,
    replicating,
    table_report,
    verified,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("readable")]


@pytest.fixture
def url(replicator: Replicator) -> str:
    return f"{replicator.get_absolute_url()}verify/"


def rows_url(row: Verification, act: str = "rows") -> str:
    one = row.replicator.get_absolute_url()
    return f"{one}verify/{row.pk}/{act}/?schema=shop&table=orders"


def test_it_is_started_from_a_form_for_chosen_tables(
    browser: Client, replicator: Replicator, url: str
) -> None:
    assert "Not verified yet" in page(browser, url)
    orders = Table.objects.get(name="orders")
    form = page(browser, f"{url}start/?schema=shop&table=orders")
    assert f'value="{orders.pk}" checked' in form
    answer = browser.post(
        f"{url}start/", {"which": "some", "table": [orders.pk], "rows_per_second": "2000"}
    )
    assert (answer.status_code, answer["Location"]) == (302, url)
    row = Verification.objects.get()
    assert ([str(t) for t in row.tables.all()], row.rows_per_second) == (["shop.orders"], 2000)
    again = browser.post(f"{url}start/", {"which": "all"}, headers=htmx(url))
    assert again.status_code == 409
    assert "A verification is under way" in again.content.decode()


@pytest.mark.parametrize(
    "form", [{"which": "some"}, {"which": "all", "rows_per_second": "many"}, {"rows_per_second": 0}]
)
def test_a_form_that_makes_no_sense_starts_nothing(
    browser: Client, url: str, form: dict[str, Any]
) -> None:
    answer = browser.post(f"{url}start/", form, headers=htmx(url))
    assert answer.status_code == 409
    assert not Verification.objects.exists()


def test_progress_is_shown_and_it_can_be_cancelled(
    browser: Client, replicator: Replicator, url: str
) -> None:
    row, record = begun(replicator)
    record.progress(TableProgress(ORDERS, Step.READ, 30, 120))
    shown = panel(browser, url, url)
    assert 'value="25"' in shown and "30 rows of about 120" in shown
    assert "waits for its turn" in shown
    assert 'id="verify-start"' not in shown
    answer = browser.post(f"{url}{row.pk}/cancel/", headers=htmx(url))
    assert answer.status_code == 200
    assert "stops within some seconds" in answer.content.decode()


def test_a_panel_that_did_not_change_is_not_sent_again(
    browser: Client, replicator: Replicator, url: str
) -> None:
    verified(replicator)
    version = browser.get(url).context["version"]
    assert f"verify/?version={version}" in page(browser, url), "it goes on with the newest result"
    assert browser.get(f"{url}?version={version}", headers=htmx(url)).status_code == 204
    verified(replicator)
    assert browser.get(f"{url}?version={version}", headers=htmx(url)).status_code == 200


def test_the_result_names_counts_notes_and_what_was_left_out(
    browser: Client, replicator: Replicator, url: str
) -> None:
    orders = table_report(ORDERS, DIFFERENT, left_out=(LeftOut("photo", "It is too long."),))
    failed = table_report(
        CUSTOMERS, outcome=Outcome.FAILED, code="source:unreachable",
        facts={"host": "h", "port": "1"},
    )  # fmt: skip
    first = verified(replicator)
    verified(replicator, orders, failed)
    shown = page(browser, url)
    assert "1 row differs" in shown and "It is too long." in shown
    assert 'data-code="source:unreachable"' in shown
    assert f"?of={first.pk}" in shown
    assert "3 rows differ" in page(browser, f"{url}?of={first.pk}")


def test_many_tables_cost_as_few_queries_as_two(
    browser: Client, replicator: Replicator, url: str, django_assert_max_num_queries: Any
) -> None:
    make_tables(replicator, 300)
    found = [table_report(TableId("many", f"t{n:04}")) for n in range(299)]
    verified(replicator, *found, table_report(TableId("many", "t0299"), DIFFERENT))
    with django_assert_max_num_queries(30):
        shown = page(browser, url)
    assert "200 of 302 tables are shown" in shown
    assert shown.index("many.t0299") < shown.index("many.t0000"), "those that differ come first"


def test_a_failed_verification_says_why(browser: Client, replicator: Replicator, url: str) -> None:
    _, record = begun(replicator)
    record.failed("verify:stuck", {})
    assert "compared nothing for longer than a step may take" in page(browser, url)
    activity = page(browser, f"{replicator.get_absolute_url()}activity/")
    assert "Verification failed" in activity
    assert "Verification stuck" in page(browser, replicator.get_absolute_url())


def test_differing_rows_stand_side_by_side_for_editors(
    browser: Client, replicator: Replicator
) -> None:
    row = verified(replicator)
    shown = page(browser, rows_url(row))
    assert "id = 7" in shown and "paid" in shown and "open" in shown
    assert "1 equal column" in shown
    assert "&lt;b&gt;old&lt;/b&gt;" in shown and "<b>old" not in shown
    only = page(browser, f"{rows_url(row)}&kind=missing")
    assert "id = 8" in only and "id = 7" not in only


def test_viewers_see_neither_keys_nor_values(
    client: Client, viewer: Any, replicator: Replicator
) -> None:
    """Guards the rights: the report holds personal data of the source."""
    row = verified(replicator)
    client.force_login(viewer)
    shown = page(client, rows_url(row))
    assert "note" in shown and "values are masked" in shown
    for value in ("id = ", "paid", "open", "12.50", "1.00", "old"):
        assert value not in shown
    assert f"#{DifferingRow.objects.all()[0].key_hash}" in shown
    assert 'id="repair-all"' not in shown
    assert client.get(rows_url(row, "repair")).status_code == 403
    client.force_login(make_user("another"))
    assert client.get(rows_url(row)).status_code == 403


def test_rows_go_on_page_by_page(browser: Client, replicator: Replicator) -> None:
    row = verified(replicator, table_report(ORDERS, *[DIFFERENT] * 120))
    first = browser.get(rows_url(row)).context
    assert len(first["rows"]) == 50
    second = browser.get(f"{rows_url(row)}&after={first['more']}").context
    third = browser.get(f"{rows_url(row)}&after={second['more']}").context
    seen = [r.row.pk for c in (first, second, third) for r in c["rows"]]
    assert (len(seen), len(set(seen)), third["more"]) == (120, 120, None)


def test_a_repair_is_confirmed_with_its_number_of_rows(
    browser: Client, replicator: Replicator, url: str
) -> None:
    replicating(replicator)
    row = verified(replicator)
    dialog = page(browser, rows_url(row, "repair"))
    assert "Repair 3 rows of" in dialog
    assert "1 row is deleted from the target" in dialog
    one = DifferingRow.objects.get(kind="missing")
    form = {"schema": "shop", "table": "orders", "row": [one.pk]}
    assert "Repair 1 row of" in page(browser, f"{rows_url(row, 'repair')}&row={one.pk}")
    answer = browser.post(rows_url(row, "repair").partition("?")[0], form)
    assert answer.status_code == 302
    repair = Repair.objects.get()
    assert (repair.keys, repair.asked_by) == ([[["id", 8]]], "editor")
    assert "Repair requested" in page(browser, rows_url(row))
    repair_transition(repair=repair, event="repair_done", rows_written=1)
    assert "Repaired" in page(browser, rows_url(row))
    assert "1 written, 0 deleted" in page(browser, url)


def test_a_repair_that_is_refused_says_why(browser: Client, replicator: Replicator) -> None:
    row = verified(replicator)
    form = {"schema": "shop", "table": "orders"}
    answer = browser.post(
        rows_url(row, "repair").partition("?")[0], form, headers=htmx(rows_url(row))
    )
    assert answer.status_code == 409
    assert "only while it replicates" in answer.content.decode()


def test_the_schedule_is_set_on_the_page(browser: Client, replicator: Replicator, url: str) -> None:
    assert "no schedule is set" in page(browser, url)
    browser.post(f"{url}schedule/", {"every": "0 3 * * 0", "rows_per_second": "50"})
    assert "Every Sunday at 03:00 UTC, at most 50 rows" in page(browser, url)
    assert 'value="0 3 * * 0" checked' in page(browser, f"{url}schedule/")
    for cron in ("", "tomorrow"):
        bad = browser.post(f"{url}schedule/", {"every": "own", "cron": cron}, headers=htmx(url))
        assert bad.status_code == 409
    browser.post(f"{url}schedule/", {"every": "own", "cron": "5 4 * * *"})
    assert VerifySchedule.objects.get().cron == "5 4 * * *"
    browser.post(f"{url}schedule/", {"every": ""})
    assert VerifySchedule.objects.get().next_at is None


def test_the_overview_and_the_tables_say_when_it_was_verified_last(
    browser: Client, replicator: Replicator
) -> None:
    one = replicator.get_absolute_url()
    assert "Verified" not in page(browser, one)
    verified(replicator)
    assert "3 rows differ" in page(browser, one)
    tables = page(browser, f"{one}tables/")
    assert tables.count('data-testid="verified"') == 2
    assert ": equal" in tables and ": 3 rows differ" in tables
    Table.objects.filter(name="orders").update(generation=3)
    assert page(browser, f"{one}tables/").count('data-testid="verified"') == 1


def test_a_target_that_cant_be_read_back_says_so(
    browser: Client, url: str, unreadable: None
) -> None:
    shown = page(browser, url)
    assert "can&#x27;t be read back" in shown
    assert 'id="verify-start"' not in shown
