"""Names and texts of a source are anybody's: on every page of what runs they are text, and in
headers they stay in their place."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from runners.events.write import event_add
from runners.models import LogLine, NewTable, QuarantinedRow, Table
from tests.app.factories import make_replicator
from tests.app.pages import htmx, make_live

pytestmark = pytest.mark.django_db

HOSTILE = "\"><script>alert(1)</script>' onmouseover=alert(2) `<b>x</b>`"
TABLE = TableId(HOSTILE, HOSTILE)
FORM = {"schema": HOSTILE, "table": HOSTILE}
MARKUP = ("<script>alert", "<b>x</b>", "' onmouseover")
PAGES = (
    "", "head/", "charts/", "tables/", "logs/", "activity/", "configuration/", "edit/", "delete/",
    "tables/quarantined/",
    "tables/remove/", "tables/rewind/", "tables/columns/",
)  # fmt: skip


@pytest.fixture
def hostile(db: None) -> Replicator:
    """A replicator of which everything that a source, a driver or a person may name has such a
    name."""
    made = make_replicator(
        HOSTILE[:64], description=HOSTILE,
        tables=[{"schema": HOSTILE, "name": HOSTILE, "columns": [HOSTILE]}],
    )  # fmt: skip
    run = make_live(made)
    facts = {"reason": HOSTILE, "table": HOSTILE}
    Table.objects.update(
        state="failing", error_code="target:unreachable", error_facts=facts, rows_quarantined=1,
        merged_sequence=9, generation=1, lag_seconds=5, schema={"called": [HOSTILE, "x" + HOSTILE]},
    )  # fmt: skip
    key = json.dumps({HOSTILE: HOSTILE})
    QuarantinedRow.objects.create(
        table=Table.objects.get(), generation=1, sequence=1, key=key, reason=HOSTILE, image=b""
    )
    LogLine.objects.create(
        replicator=made, run=run, at=timezone.now(), level="ERROR", table=str(TABLE), text=HOSTILE
    )
    NewTable.objects.create(replicator=made, schema_name=HOSTILE, name=HOSTILE)
    reported = {
        "table_failed": facts,
        "tables_appeared": {"tables": [HOSTILE], "count": 1},
        "schema_followed": {"change": HOSTILE},
        "replicator_changed": {"fields": [HOSTILE]},
        "replicator_deleted": {"name": HOSTILE, "statements": [HOSTILE]},
    }
    for kind, said in reported.items():
        code = "target:unreachable" if kind == "table_failed" else ""
        event_add(kind, replicator=made, table=TABLE, actor=HOSTILE, code=code, facts=said)
    return made


@pytest.mark.parametrize("headers", [{}, htmx()], ids=["whole", "panel"])
def test_hostile_names_are_text_on_every_page(
    browser: Client, hostile: Replicator, keeps_versions: None, headers: dict[str, str]
) -> None:
    """Guards the escaping of templates and of the tags that make HTML; fails where one of them
    marks a text as safe."""
    asked = ("search", "level", "state", "range", "tab", "page", "sort")
    query = urlencode({**FORM, **dict.fromkeys(asked, HOSTILE)})
    for path in ("/", "/activity/", *(f"/replicators/{hostile.pk}/{p}" for p in PAGES)):
        answer = browser.get(f"{path}?{query}", headers=headers)
        found = answer.content.decode()
        assert answer.status_code in ({200, 502} if "columns" in path else {200}), path
        assert not [m for m in MARKUP if m in found], path
    shown = browser.get(f"/replicators/{hostile.pk}/tables/").content.decode()
    assert "&lt;script&gt;alert" in shown


@pytest.mark.parametrize("act", ["resync", "retry", "ignore", "add", "replay", "rewind"])
def test_hostile_names_stay_in_their_place_in_what_an_act_answers(
    browser: Client, hostile: Replicator, act: str
) -> None:
    """Guards `pages.toasted`: the toast is JSON in a header, with a name of the source in it."""
    url = f"/replicators/{hostile.pk}/tables/"
    answer = browser.post(f"{url}{act}/", FORM, headers=htmx(url))
    assert answer.status_code in {200, 409}
    assert not [m for m in MARKUP if m in answer.content.decode()]
    assert set(json.loads(answer["HX-Trigger"])["toast"]) == {"text", "level"}
