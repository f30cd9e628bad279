"""Targets that are replicated back: what the assessment refuses, and how what lost is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from assessments import services
from replicators.config import ReplicatorConfig
from replicators.connectors import registry
from replicators.connectors.conflicts import Conflict
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from tests.app.factories import config_fields
from tests.app.pages import page

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 26, tzinfo=UTC)
LOST = Conflict(TableId("shop", "orders"), "(1)", {"id": 1, "note": "ours"}, AT, None, AT, AT)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The in-memory target is replicated back; what its conflicts were asked for."""
    found: list[Any] = []

    def conflicts(params: Any, tables: Any, limit: int) -> list[Conflict]:
        found.append((tuple(t.name for t in tables), limit))
        return [LOST]

    plugin = replace(registry.targets()["memory"], settles=lambda _: True, conflicts=conflicts)
    monkeypatch.setitem(registry.targets(), "memory", plugin)
    return found


def codes(**changes: Any) -> set[str]:
    report = services.assess(ReplicatorConfig.parse(config_fields(**changes)))
    return {p.code for p in report.problems if "two-way" in p.code}


@pytest.mark.usefixtures("asked")
def test_the_assessment_says_what_can_not_go_both_ways() -> None:
    """Only mirrors with a key and with all changes; a source that sends back is a warning."""
    assert codes() == {"target:two-way-echo"}
    refused = {"target:two-way-echo", "target:two-way-mode"}
    assert codes(options={"mode": "append"}) == refused
    some = [{"schema": "shop", "name": "orders", "excluded": ["deletes"]}]
    assert codes(tables=some) == refused


def test_without_the_option_nothing_is_said() -> None:
    assert codes(options={"mode": "append"}) == set()


def test_what_lost_is_listed(
    asked: list[Any], browser: Client, replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a page of its own and over REST, with both versions; a target that does not answer is
    said."""
    shown = page(browser, f"/replicators/{replicator.pk}/conflicts/")
    assert "ours" in shown
    assert "a delete" in shown
    assert asked == [(("customers", "orders"), 100)]
    assert "conflicts/" in page(browser, f"/replicators/{replicator.pk}/")
    address = f"/api/v1/replicators/{replicator.pk}/conflicts/"
    (line,) = browser.get(f"{address}?limit=5").json()
    assert (line["table"], line["kept"], line["lost"]) == ("orders", LOST.kept, None)
    assert asked[-1][1] == 5

    def away(*_: Any) -> list[Conflict]:
        raise ReplicationError("target:timeout", seconds="1")

    plugin = replace(registry.targets()["memory"], conflicts=away)
    monkeypatch.setitem(registry.targets(), "memory", plugin)
    assert "target:timeout" in page(browser, f"/replicators/{replicator.pk}/conflicts/")
    assert browser.get(address).status_code == 504


def test_a_target_that_nobody_else_writes_has_no_conflicts(
    browser: Client, replicator: Replicator
) -> None:
    assert browser.get(f"/api/v1/replicators/{replicator.pk}/conflicts/").json() == []
    assert "conflicts/" not in page(browser, f"/replicators/{replicator.pk}/")
