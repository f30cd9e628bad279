"""The assessment's page: what it shows, what is decided there, and that an edit makes it stale."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.test import Client

from assessments.report import report_of as made_of
from drafts.models import Draft
from drafts.reports import report_of, report_store
from drafts.steps import steps_of
from replicators.config import plugin_of
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.problem import Problem, Severity
from replicators.models import Replicator
from replicators.sources.memory import catalog, checks
from tests.app.wizarding import address, connector, make_draft, press

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(browser: Client, editor: Any) -> Draft:
    """An assessed draft: orders has a partial column, places an unsupported one, page_views no
    key."""
    tables = [
        {"schema": "shop", "name": n} for n in ("orders", "places", "page_views", "customers")
    ]
    made = make_draft(editor, tables=tables)
    press(browser, made, "assessment", "run")
    return made


def view(draft: Draft) -> Any:
    draft.refresh_from_db()
    return report_of(draft)


def columns(draft: Draft, name: str) -> list[str]:
    return next(t["columns"] for t in draft.tables if t["name"] == name)


def about(*names: str) -> str:
    return json.dumps(["shop", *names])


def test_a_report_counts_and_shows_the_worst_first(browser: Client, draft: Draft) -> None:
    report = view(draft)
    assert [t.name for t in report.tables] == ["orders", "places", "page_views", "customers"]
    orders, places = report.tables[:2]
    assert (orders.partial, places.unsupported, report.undecided) == (1, 1, 2)
    assert [c.name for c in orders.columns] == ["details", "id", "made_at"]
    html = browser.get(address(draft, "assessment")).content.decode()
    for text in ("1 partial", "1 unsupported", "it becomes text", "no key", "as it is", "Assessed"):
        assert text in html
    assert html.count('aria-label="Accept ') == 2


def test_before_the_first_run_the_page_offers_it(browser: Client, editor: Any) -> None:
    html = browser.get(address(make_draft(editor), "assessment")).content.decode()
    assert "Looking into source and target" in html and 'value="run"' in html


def test_an_unfinished_draft_is_sent_to_what_is_missing(browser: Client, editor: Any) -> None:
    draft = make_draft(editor, source_params={}, tables=[])
    html = browser.get(address(draft, "assessment")).content.decode()
    assert "Not ready to be assessed" in html
    assert 'value="goto:source"' in html and 'value="goto:tables"' in html
    assert press(browser, draft, "assessment", "run").status_code == 422


def test_an_edit_makes_it_stale_and_a_run_fresh_again(browser: Client, draft: Draft) -> None:
    assert not view(draft).is_stale
    press(browser, draft, "name", "autosave", name="renamed")
    press(browser, draft, "advanced", "autosave", **{"options.merge_seconds": "9"})
    assert not view(draft).is_stale
    press(browser, draft, "target", "autosave", **connector("target", namespace="other"))
    assert view(draft).is_stale
    assert 'data-testid="stale"' in browser.get(address(draft, "assessment")).content.decode()
    press(browser, draft, "assessment", "run")
    assert not view(draft).is_stale


def test_columns_are_accepted_and_excluded_and_taken_back(browser: Client, draft: Draft) -> None:
    press(browser, draft, "assessment", f"accept:{about('orders', 'details')}")
    assert view(draft).undecided == 1
    assert not view(draft).is_stale
    press(browser, draft, "assessment", f"exclude:{about('places', 'shape')}")
    report = view(draft)
    assert (report.undecided, report.is_stale) == (0, True)
    assert columns(draft, "places") == ["id"]
    press(browser, draft, "assessment", f"again:{about('places', 'shape')}")
    assert (view(draft).undecided, view(draft).is_stale) == (1, False)
    assert columns(draft, "places") == []


def test_an_excluded_column_is_gone_from_the_next_report(browser: Client, draft: Draft) -> None:
    press(browser, draft, "assessment", f"exclude:{about('orders', 'details')}")
    press(browser, draft, "assessment", "run")
    orders = view(draft).table(("shop", "orders"))
    assert [c.name for c in orders.columns] == ["id", "made_at"]


def test_a_stale_tab_decides_nothing(browser: Client, draft: Draft) -> None:
    press(browser, draft, "name", "autosave", name="renamed")
    act = f"accept:{about('orders', 'details')}"
    assert press(browser, draft, "assessment", act, version=1).status_code == 409
    assert view(draft).undecided == 2


@pytest.mark.parametrize("act", ["accept:{", "accept:[1]", "exclude:[]", 'drop:["a"]', "nothing"])
def test_odd_actions_change_nothing(act: str, browser: Client, draft: Draft) -> None:
    assert press(browser, draft, "assessment", act).status_code == 200
    draft.refresh_from_db()
    assert (draft.accepted, len(draft.tables)) == ([], 4)


def test_a_deploy_waits_for_decisions(browser: Client, draft: Draft) -> None:
    refused = press(browser, draft, "summary", "deploy")
    assert refused["Location"] == address(draft, "assessment")
    assert "accept or exclude 2 columns first" in browser.get(refused["Location"]).content.decode()
    assert not Replicator.objects.exists()
    press(browser, draft, "assessment", "accept-all")
    made = press(browser, draft, "summary", "deploy")
    assert made["Location"] == Replicator.objects.get().get_absolute_url()


def test_open_decisions_leave_the_step_undone_and_close_the_deploy(
    browser: Client, draft: Draft
) -> None:
    """Guards `is_passed` and `_open_points`: the step had a tick and *Deploy* was offered, which
    threw back."""

    def shown() -> tuple[bool, str]:
        html = browser.get(address(draft, "summary")).content.decode()
        deploy = html.partition('id="deploy"')[2].partition(">")[0]
        reported = html.partition('id="open-points"')[2].partition("</ul>")[0]
        done = next(
            s.is_done for s in steps_of(Draft.objects.get(), "summary") if s.name == "assessment"
        )
        assert ("disabled" in deploy) == bool(reported)
        return done, reported

    done, reported = shown()
    assert not done
    assert "Accept or exclude 2 columns." in reported and 'value="goto:assessment"' in reported
    press(browser, draft, "assessment", "accept-all")
    assert shown() == (True, "")
    press(browser, draft, "name", "save", name="")
    assert 'value="goto:name"' in shown()[1]


def test_a_draft_that_was_never_assessed_can_be_deployed(browser: Client, editor: Any) -> None:
    """Guards `_open_points`: *Deploy* assesses first, so nothing is known to be open."""
    html = browser.get(address(make_draft(editor), "summary")).content.decode()
    assert 'id="open-points"' not in html


def test_a_table_that_is_gone_is_left_out_from_the_report(browser: Client, editor: Any) -> None:
    tables = [{"schema": "shop", "name": n} for n in ("customers", "gone")]
    draft = make_draft(editor, tables=tables)
    html = press(browser, draft, "assessment", "run").content.decode()
    assert "Fix 1 error before deploying" in html and "Leave gone out" in html
    press(browser, draft, "assessment", f"drop:{about('gone')}")
    html = press(browser, draft, "assessment", "run").content.decode()
    assert "Ready to deploy" in html


def test_the_report_shows_the_columns_that_a_mode_adds_and_a_change_of_mode_makes_it_stale(
    browser: Client, editor: Any
) -> None:
    """Guards the report's view of modes: the added columns with their types, and errors where a
    table can't have the mode."""
    tables = [{"schema": "shop", "name": n} for n in ("customers", "page_views")]
    made = make_draft(editor, tables=tables)
    made.options = {"mode": "soft_delete"}
    made.save()
    press(browser, made, "assessment", "run")
    html = browser.get(address(made, "assessment")).content.decode()
    assert "added by the mode Soft delete" in html and "_deleted_at" in html
    report = view(made)
    assert [p["code"] for p in report.table(("shop", "page_views")).problems][:1] == [
        "target:mode-needs-key"
    ]
    assert not report.is_stale
    made.tables = [{**tables[0], "mode": "mirror"}, tables[1]]
    made.save()
    assert view(made).is_stale


def test_a_decision_stays_on_its_page_of_tables(
    browser: Client, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the page's number in the form: after a decision on the second page the first one came
    instead."""
    ids = [TableId("shop", f"t{n:02}") for n in range(60)]
    schema = catalog.TABLES[TableId("shop", "orders")]
    tables = {i: replace(schema, id=i) for i in ids}
    monkeypatch.setattr(catalog, "TABLES", tables)
    monkeypatch.setattr(checks, "TABLES", tables)
    chosen = [{"schema": i.schema, "name": i.name} for i in ids]
    draft = make_draft(editor, tables=chosen)
    press(browser, draft, "assessment", "run")
    html = browser.get(address(draft, "assessment") + "?page=2").content.decode()
    assert "Tables 26–50 of 60" in html
    sent = re.search(r'name="page" value="(\d+)"', html)
    act = re.search(r'value="(accept:[^"]*)"', html)
    assert sent and act
    html = press(browser, draft, "assessment", unescape(act[1]), page=sent[1]).content.decode()
    assert "Tables 26–50 of 60" in html and view(draft).undecided == 59


@pytest.mark.parametrize(
    ("kind", "reported"),
    [("postgresql", "makes 1 replication slot and 2 publications"), ("mysql", "makes nothing")],
)
def test_the_summary_says_what_is_made_at_this_source(
    kind: str, reported: str, browser: Client, editor: Any
) -> None:
    """Guards the source's own list of what a replicator makes: a slot was promised to MySQL too."""
    draft = make_draft(editor, source_kind=kind, source_params={"host": "h"})
    assert f"At the source it {reported}" in browser.get(address(draft, "summary")).content.decode()


def test_one_column_is_one_column(browser: Client, editor: Any) -> None:
    tables = [{"schema": "shop", "name": "customers", "columns": ["id"]}]
    draft = make_draft(editor, tables=tables)
    assert ">1 column<" in browser.get(address(draft, "summary")).content.decode()


def test_what_a_columns_line_has_no_room_for_is_reported_above_it(
    browser: Client, editor: Any
) -> None:
    """Guards the problems of columns that lose something anyway: the one that forbids the deploy,
    and the statement that mends a column, were nowhere on the page."""
    orders, places = TableId("shop", "orders"), TableId("shop", "places")
    loses = {"table": orders, "column": "details", "severity": Severity.WARNING}
    statement = "ALTER TABLE `shop`.`places` MODIFY `shape` text;"
    problems = [
        Problem.of("target:column-lossy", native="jsonb", reason="r", target_type="text", **loses),
        Problem.of("target:column-case", table=orders, column="details"),
        Problem.of(
            "source:column-compressed",
            table=places,
            column="shape",
            native="c",
            statement=statement,
        ),
    ]
    draft = make_draft(editor, tables=[{"schema": "shop", "name": n} for n in ("orders", "places")])
    schemas = [catalog.TABLES[orders], catalog.TABLES[places]]
    report_store(draft, made_of(schemas, plugin_of("target", "memory").fits, problems))
    html = browser.get(address(draft, "assessment")).content.decode()
    reported = re.findall(r'data-testid="problem" data-code="([^"]*)"', html)
    assert sorted(reported) == ["source:column-compressed", "target:column-case"]
    assert "Exclude one of the two columns." in html
    assert "ALTER TABLE" in html
    exclude = f"exclude:{about('orders', 'details')}"
    html = press(browser, draft, "assessment", exclude).content.decode()
    assert "target:column-case" not in html


@pytest.mark.parametrize(
    ("kind", "params", "note"),
    [
        ("files", {"location": "/lake/files", "format": "Parquet"}, "/lake/files"),
        ("lakehouse", {"format": "delta", "warehouse": "s3://b/w"}, "s3://b/w"),
        ("gone", {"location": "/lake"}, ""),
    ],
)
def test_the_stepper_says_where_the_target_is(
    editor: Any, kind: str, params: dict[str, str], note: str
) -> None:
    """Guards `steps._place`: the step "Target" named nothing for files."""
    draft = make_draft(editor)
    draft.target_kind, draft.target_params = kind, params
    (found,) = (s.note for s in steps_of(draft, "name") if s.name == "target")
    assert found == note
