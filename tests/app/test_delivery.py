"""What a target does with a change, as pages and REST tell it; and the mode where the target has
one only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from assessments.modes import modes_of
from replicators.config import ReplicatorConfig
from replicators.connectors import registry
from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from runners.store.mapping import selections
from tests.app.factories import config_fields

pytestmark = pytest.mark.django_db


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory target says that it takes every change, perhaps twice."""
    able = TargetCapabilities(delivery=Delivery.AT_LEAST_ONCE, modes=(Mode.APPEND,))
    memory = replace(registry.targets()["memory"], capabilities=able)
    monkeypatch.setitem(registry.targets(), "memory", memory)


def test_pages_and_rest_tell_the_delivery(browser: Client, replicator: Replicator) -> None:
    """Guards that what a reader of the target has to reckon with is not hidden in the docs."""
    page = browser.get(f"/replicators/{replicator.pk}/").content.decode()
    assert "Delivery to the target" in page and "exactly once" in page
    (line,) = browser.get("/api/v1/replicators/").json()["results"]
    assert line["delivery"] == "exactly_once"


@pytest.mark.usefixtures("sink")
def test_a_target_that_may_write_twice_says_so(browser: Client, replicator: Replicator) -> None:
    """The same for the other kind, and where the plugin is gone."""
    page = browser.get(f"/replicators/{replicator.pk}/").content.decode()
    assert "at least once" in page and "may arrive twice" in page
    Replicator.objects.update(target_kind="away")
    (line,) = browser.get("/api/v1/replicators/").json()["results"]
    assert line["delivery"] is None


@pytest.mark.usefixtures("sink")
def test_a_target_with_one_mode_leaves_nothing_to_choose(replicator: Replicator) -> None:
    """Guards `mode_of`: with the general mode, which is mirror, a table of a sink would park rows
    and be refused by the assessment. A table that asks for another mode by itself is refused."""
    assert {s.mode for s in selections(replicator).values()} == {"append"}
    fields: dict[str, Any] = config_fields()
    fields["tables"][0]["mode"] = "history"
    config = ReplicatorConfig.parse(fields)
    assert modes_of(config) == {
        TableId("shop", "orders"): Mode.HISTORY,
        TableId("shop", "customers"): Mode.APPEND,
    }
