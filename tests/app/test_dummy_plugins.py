"""One folder is enough: a source and a target that no other file knows are found, shown, assessed
and deployed.

Their folders lie in `tests/dummies`, and are put beside those of the program's own plugins while a
test runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from drafts.services import draft_create
from replicators.connectors import registry
from replicators.connectors.capabilities import Delivery
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.services import replicator_create
from runners.management import connectors
from runners.management.commands.configuration_docs import setup_markdown
from runners.models import Progress, Table
from runners.services import progress_of, tables_sync
from tests.app.pages import page
from tests.app.test_pages_errors import error_by_rest, make_failing
from tests.app.wizarding import address, press
from tests.dummies.found import dummies

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
JSON = "application/json"
KEY = "the-key-of-the-clock"


@pytest.fixture(autouse=True)
def _dummies() -> Iterator[None]:
    with dummies():
        yield


@pytest.fixture
def fields(tmp_path: Path) -> dict[str, Any]:
    """What a person enters."""
    return {
        "name": "hours on paper",
        "source_kind": "clock",
        "source_params": {"place": "hall", "key": KEY},
        "target_kind": "paper",
        "target_params": {"drawer": str(tmp_path / "drawer")},
        "tables": [{"schema": "hall", "name": "strikes"}, {"schema": "hall", "name": "bells"}],
        "options": {"mode": "append"},
    }


@pytest.fixture
def draft(editor: Any, fields: dict[str, Any]) -> Draft:
    return draft_create(actor=editor, **fields)


@pytest.fixture
def hours(fields: dict[str, Any]) -> Replicator:
    """A replicator of the two, with its tables."""
    made = replicator_create(actor=None, **fields)
    tables_sync(made)
    progress_of(made)
    return made


def text_of(html: str) -> str:
    return " ".join(unescape(html).split())


def test_the_registry_has_them() -> None:
    assert registry.sources()["clock"].label == "Clock"
    assert registry.targets()["paper"].label == "Paper"
    assert registry.faults() == ()
    assert {"source:clock-stopped", "target:paper-used-up"} <= set(registry.messages())


def test_rest_lists_them_and_tells_their_parameters(browser: Client) -> None:
    listed = browser.get("/api/v1/plugins/").json()
    assert {("source", "clock"), ("target", "paper")} <= {(p["role"], p["name"]) for p in listed}
    clock = browser.get("/api/v1/plugins/source/clock/").json()
    assert [p["name"] for p in clock["params"]] == ["place", "winding", "key"]
    assert clock["schema"]["required"] == ["place"]
    paper = browser.get("/api/v1/plugins/target/paper/").json()
    assert {p["name"]: p["choices"] for p in paper["params"]}["ink"] == ["blue", "black"]


def test_the_wizard_offers_them_with_their_form_and_setup(browser: Client, draft: Draft) -> None:
    source = page(browser, address(draft, "source"))
    assert 'value="clock" checked' in source and 'id="kind-clock"' in source
    for reported in ("Where it hangs", "Hours it still goes", "Wind it up", "WIND hall;"):
        assert reported in source
    assert KEY not in source
    target = page(browser, address(draft, "target"))
    assert 'value="paper" checked' in target
    assert Delivery.AT_LEAST_ONCE.about in target
    assert "Every change, written down by hand." in target and 'name="target.ink"' in target
    form = {"source_kind": "clock", "source.place": "attic", "source.winding": "200"}
    refused = press(browser, draft, "source", "next", **form)
    assert refused.status_code == 422 and "at most 168" in refused.content.decode()


def test_an_icon_that_nobody_vendored_is_no_hole(
    browser: Client, draft: Draft, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = {"paper": registry.targets()["paper"]}
    monkeypatch.setattr(registry, "targets", lambda: only)
    assert "icon-tabler-database" in page(browser, address(draft, "target"))


def test_their_connections_are_tested_in_their_own_words(browser: Client, draft: Draft) -> None:
    form = {"source_kind": "clock", "source.place": "attic", "source.winding": "0"}
    tested = text_of(press(browser, draft, "source", "test", **form).content.decode())
    assert "The clock in the attic has stopped." in tested
    assert "Wind it up, then try again." in tested
    asked = {"role": "target", "kind": "paper", "params": {"drawer": "/tmp/x", "sheets": 0}}
    answer = browser.post("/api/v1/connections/test/", asked, JSON).json()
    assert not answer["ok"]
    (problem,) = answer["problems"]
    assert problem["code"] == "target:paper-used-up"
    assert problem["message"] == "The drawer has 0 sheets."
    assert problem["suggestion"] == "Put paper into the drawer."


def test_what_they_lead_to_is_judged(browser: Client) -> None:
    asked = {"role": "target", "kind": "paper", "params": {"drawer": str(ROOT / "replicators")}}
    answer = browser.post("/api/v1/connections/test/", asked, JSON).json()
    assert [p["code"] for p in answer["problems"]] == ["config:place-refused"]


def test_they_are_assessed_and_deployed(browser: Client, draft: Draft) -> None:
    report = browser.post(f"/api/v1/drafts/{draft.pk}/assess/").json()
    found = {(p["code"], p["table"]) for p in report["problems"]}
    assert ("target:paper-too-narrow", "bells") in found
    refused = browser.post(f"/api/v1/drafts/{draft.pk}/deploy/")
    assert refused.status_code == 409
    assert "target:paper-too-narrow" in {p["code"] for p in refused.json()["problems"]}
    html = text_of(press(browser, draft, "assessment", "run").content.decode())
    html += text_of(page(browser, address(draft, "assessment")))
    for reported in (
        "Table `hall.bells` has 3 columns", "the seconds are smudged", "handwriting", "clang",
    ):  # fmt: skip
        assert reported.replace("`", "") in html.replace("`", "").replace("<code>", "").replace(
            "</code>", ""
        ), reported
    draft.refresh_from_db()
    change = {
        "version": draft.version,
        "tables": [{"schema": "hall", "name": "strikes", "columns": ["minute"]}],
    }
    assert browser.patch(f"/api/v1/drafts/{draft.pk}/", change, JSON).status_code == 200
    deployed = browser.post(f"/api/v1/drafts/{draft.pk}/deploy/")
    assert deployed.status_code == 201, deployed.json()
    assert KEY not in deployed.content.decode()
    made = Replicator.objects.get(pk=deployed.json()["id"])
    assert (made.source_kind, made.target_kind) == ("clock", "paper")
    assert "Clock" in page(browser, made.get_absolute_url() + "configuration/")


def test_their_errors_are_reported_with_what_helps(browser: Client, hours: Replicator) -> None:
    make_failing(hours, "source:clock-stopped", error_facts={"place": "hall"})
    html = text_of(page(browser, hours.get_absolute_url()))
    assert "The clock in the hall has stopped." in html and "Wind it up" in html
    assert "Change the settings" in html
    reported = error_by_rest(browser)
    assert reported["code"] == "source:clock-stopped"
    assert reported["message"] == "The clock in the hall has stopped."
    assert reported["suggestion"] == "Wind it up, then try again."


def test_the_errors_of_their_tables_are_reported_with_what_helps(
    browser: Client, hours: Replicator
) -> None:
    err = ReplicationError("target:paper-too-narrow", table=TableId("hall", "bells"), count=3)
    Table.objects.filter(replicator=hours, name="bells").update(
        state="failing", error_code=err.code, error_facts=err.facts
    )
    html = text_of(page(browser, hours.get_absolute_url()))
    assert "has 3 columns; a sheet has room for 2." in html
    assert "Change what is copied…" in html
    rows = browser.get(f"/api/v1/replicators/{hours.pk}/status/").json()["tables"]
    (reported,) = [r["error"] for r in rows if r["error"]]
    assert reported["code"] == err.code and reported["message"] == err.message.text
    Progress.objects.filter(replicator=hours).update(error_code="")


def test_the_docs_have_them() -> None:
    text = connectors.markdown()
    assert "### Clock" in text and "| Its log is called | escapement |" in text
    assert "### Paper" in text and "| `ink` | Ink | `blue`, `black` | `blue` |  |" in text
    assert f"| Delivery | At least once. {Delivery.AT_LEAST_ONCE.about} |" in text
    assert "| moment | `handwriting` (loses something: the seconds are smudged) |" in text
    assert "### Wind it up" in setup_markdown()
