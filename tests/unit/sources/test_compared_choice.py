"""Which delivery comes next, and which is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.poll import DeliveryReport
from replicators.sources.compared.choice import Choice
from replicators.sources.compared.journal import Journal
from replicators.sources.compared.params import DELTA
from tests.compared_world import SCHEMA_NAME, Inbox, line

PEOPLE = TableSchema(TableId(SCHEMA_NAME, "people"), (Column("id", Int(64), "bigint"),), ("id",))


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    made = Inbox(tmp_path)
    for day in ("1", "2", "3"):
        made.deliver(day, [line(int(day))])
    return made


def opened(inbox: Inbox, now: float = 1e10, **values: object) -> Choice:
    params = inbox.params(**values)
    return Choice(params, Journal(params.folder_of("one")), clock=lambda: now)


def refused(choice: Choice) -> list[str]:
    """Refuse everything that comes; the names, in their order."""
    names = []
    while (found := choice.next([PEOPLE])) is not None:
        assert len(names) < 9, "the same delivery comes again and again"
        names.append(found.delivery)
        report = DeliveryReport(
            PEOPLE.id, found.delivery, found.mark, found.at, code="source:delivery-shrank"
        )
        choice.refuse(report)
    return names


def test_each_refused_delivery_is_passed_over_also_after_a_new_start(inbox: Inbox) -> None:
    """Guards the memory of refusals: with only the last one, two bad files would be read for
    ever."""
    choice = opened(inbox)
    assert refused(choice) == ["1", "2", "3"]
    assert refused(opened(inbox)) == []
    assert [r.name for r in choice.reports([PEOPLE])] == ["1", "2", "3"]
    assert refused(opened(inbox, largest_loss=60)) == ["1", "2", "3"]
    inbox.deliver("2", [line(2, "corrected")])
    inbox.age(inbox.folder / "2" / "people.csv", 60)
    assert refused(opened(inbox, largest_loss=60)) == ["2"]
    choice.accepted(PEOPLE.id)
    assert opened(inbox).reports([PEOPLE]) == []


def test_a_refused_set_of_changed_rows_holds_the_later_ones(inbox: Inbox) -> None:
    assert refused(opened(inbox, rows=DELTA)) == ["1"]


def test_a_schedule_looks_once_at_each_of_its_times(inbox: Inbox) -> None:
    """Guards the schedule: nothing is looked for between its times, but by a new copy."""
    now = 1e10
    params = inbox.params(schedule="0 * * * *")
    choice = Choice(params, Journal(params.folder_of("one")), clock=lambda: now)
    assert refused(choice) == ["1", "2", "3"]
    inbox.deliver("4", [line(4)])
    assert choice.next([PEOPLE]) is None
    asked = choice.next([PEOPLE], is_now=True)
    assert asked is not None and asked.delivery == "4"
    assert choice.next_at is not None and 0 < choice.next_at - now <= 3600
    now += 3600
    found = choice.next([PEOPLE])
    assert found is not None and found.delivery == "4"
