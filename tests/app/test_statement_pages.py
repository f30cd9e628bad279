"""The page of statements, the examples that it offers, and the statement of what was clicked."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from drafts.statements.examples import GROUPS
from drafts.statements.shown import statement_of
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.models import DesiredState, Replicator
from replicators.services import params_of
from replicators.sources.memory import catalog
from replicators.targets.elasticsearch.checks import ElasticsearchChecks
from replicators.targets.kafka.checks import KafkaChecks
from replicators.targets.postgresql.checks import PostgresqlTargetChecks
from tests.app.factories import SECRET, make_replicator
from tests.app.pages import page, panel
from tests.app.wizarding import address, make_draft

pytestmark = pytest.mark.django_db
URL = "/statements/"
SEEN = [
    ("movr", "vehicles"), ("movr", "rides"), ("social", "tweets"), ("my_database", "my_table"),
]  # fmt: skip


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Replicator:
    """A replicator that reads the tables of the designs' examples. No check reaches a server."""
    for checks in (KafkaChecks, ElasticsearchChecks, PostgresqlTargetChecks):
        monkeypatch.setattr(checks, "connection", lambda _: [])
        monkeypatch.setattr(checks, "tables", lambda *_: [])
    key = Column("id", Int(64), "bigint", nullable=False, ordinal=1)
    for number, (schema, name) in enumerate(SEEN):
        found = TableId(schema, name)
        columns = (key, Column("text", String(), "text", ordinal=2))
        table = TableSchema(found, columns, ("id",), ("id",), 900 + number)
        monkeypatch.setitem(catalog.TABLES, found, table)
    return make_replicator("shop")


def press(browser: Client, statement: str, act: str = "run", **form: Any) -> tuple[int, str]:
    """Send the form; the status and the page without its HTML entities."""
    data = {"statement": statement, "source": "shop", "act": act, **form}
    response = browser.post(URL, data)
    return response.status_code, unescape(response.content.decode())


def field(html: str) -> str:
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", html, re.DOTALL)
    assert found
    return found[1]


def test_each_example_is_clicked_and_runs(source: Replicator, browser: Client) -> None:
    """Guards the page's promise: the button of an example fills the field, and the statement then
    does what its title says, in the order of the page."""
    html = page(browser, URL)
    assert "Statements" in html and 'aria-current="page"' in html
    for n, (_, examples) in enumerate(GROUPS):
        for i, example in enumerate(examples):
            assert f'value="example:{n}:{i}"' in html
            status, filled = press(browser, "", f"example:{n}:{i}")
            assert status == 200 and field(filled) == example.text
            assert 'value="shop"' in filled
            status, done = press(browser, field(filled))
            assert status == 200 and 'data-testid="statement-done"' in done, (example.text, done)
    made = {r.name: r for r in Replicator.objects.filter(deleting_since=None)}
    assert made["feed_first"].tables[0]["filter"] == '"id" >= 1 AND "id" < 2'
    assert [t["name"] for t in made["feed_analytics"].tables] == ["rides"]
    assert {t["name"] for t in made["feed_movr"].tables} == {"rides", "vehicles"}
    assert made["feed_new"].options["first_copy"] == "none"
    gone = Replicator.objects.exclude(deleting_since=None)
    assert {r.name for r in gone} == {
        "feed_tweets", "my_database.my_table into kafka", "my_database.my_table into elasticsearch",
    }  # fmt: skip
    altered = gone.get(name="feed_tweets")
    assert altered.target_params["servers"] == "other.example:9092"
    assert altered.target_params["resolved"] is False


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("FOR TABLE tweets PARTITION north_america INTO 'kafka://h:1'", "north", "Partitions"),
        ("FOR TABLE tweets INTO 'experimental-sql:///'", "experimental", "Known are"),
        ("FOR TABLE tweets INTO 'kafka://h:1?schema_name=s'", "schema_name", "no `schema_name`"),
        ("FOR TABLE tweets INTO 'kafka://h:1' WITH cursor='1536242855577149065.0000000000'",
         "1536", "starts now"),
        ("FOR TABLE tweets INTO 'kafka:/...'", "...", "kafka://"),
    ],
)  # fmt: skip
def test_what_of_the_designs_is_refused_points_at_the_place(
    source: Replicator, browser: Client, text: str, at: str, said: str
) -> None:
    """Guards the page's error: the caret stands under the wrong character, the field keeps the
    text and knows the place, and nothing is made."""
    text = f"CREATE CHANGEFEED f\n{text}"
    status, html = press(browser, text.replace("\n", "\r\n"))
    place = text.index(at)
    assert status == 400 and said in html, re.findall(r"<h3>Line.*?</pre>", html, re.DOTALL)
    line, caret = re.search(r'aria-label="The wrong place">(.*?)</pre>', html, re.DOTALL)[1].split(  # type: ignore[index]
        "\n"
    )
    assert line[caret.index("^") :].startswith(at)
    assert f'data-wrong-at="{place}"' in html and field(html) == text
    assert list(Replicator.objects.values_list("name", flat=True)) == ["shop"]


def test_a_made_replicator_is_the_answer(source: Replicator, browser: Client) -> None:
    """Guards the answer: a link to the replicator, and its statement without the secret."""
    status, html = press(browser, "CREATE CHANGEFEED f FOR TABLE tweets INTO 'kafka://h:1'")
    made = Replicator.objects.get(name="f")
    assert status == 200 and f'href="/replicators/{made.pk}/"' in html
    assert statement_of(made) in html and SECRET not in html and not field(html)
    assert made.desired_state == DesiredState.RUNNING
    status, html = press(browser, "SHOW CHANGEFEEDS")
    assert 'data-testid="statement-feeds"' in html and ">shop</a>" in html
    assert press(browser, "DROP CHANGEFEED f")[0] == 200
    status, html = press(browser, "PAUSE CHANGEFEED f")
    assert status == 409 and 'data-testid="statement-refused"' in html


def test_a_refused_assessment_says_the_problems(source: Replicator, browser: Client) -> None:
    """Guards the answer of a statement that is right but can't work: the problems, and nothing is
    made."""
    text = "CREATE CHANGEFEED f FOR TABLE tweets VALUES FROM (1) TO (2) INTO 'kafka://h:1'"
    status, html = press(browser, text)
    assert status == 409 and 'data-code="target:mode-filter"' in html
    assert field(html) == text and Replicator.objects.count() == 1


def test_rights_of_the_page(source: Replicator, viewer: Client | Any, stranger: Any) -> None:
    """Guards the rights: who may look may show, and may not make."""
    looking = Client()
    looking.force_login(viewer)
    assert press(looking, "SHOW CHANGEFEEDS")[0] == 200
    status, html = press(looking, "PAUSE CHANGEFEED shop")
    assert status == 403 and "Ask for the group editor" in html
    outside = Client()
    outside.force_login(stranger)
    assert outside.get(URL).status_code == 403 and press(outside, "SHOW CHANGEFEEDS")[0] == 403
    assert outside.get(f"/replicators/{source.pk}/statement/").status_code == 403


def test_what_was_clicked_is_shown_as_a_statement(
    source: Replicator, browser: Client, editor: Any
) -> None:
    """Guards the wizard's last page and the page of configuration: the statement makes the same
    replicator, and has a button that copies it."""
    draft = make_draft(editor, name="by clicks", tables=[{"schema": "movr", "name": "rides"}])
    html = unescape(page(browser, address(draft, "summary")))
    shown = statement_of(draft)
    assert shown.startswith('CREATE CHANGEFEED "by clicks"') and shown in html
    assert 'data-copies="statement-text"' in html and SECRET not in html
    status, html = press(browser, shown.replace("********", SECRET))
    made = Replicator.objects.get(name="by clicks")
    assert status == 200 and [(t["schema"], t["name"]) for t in made.tables] == [("movr", "rides")]
    assert params_of(made, "source").items() >= params_of(draft, "source").items()
    at = f"/replicators/{made.pk}/statement/"
    assert at in page(browser, f"/replicators/{made.pk}/configuration/")
    card = unescape(panel(browser, at))
    assert shown in card and "<html" not in card and "<html" in page(browser, at)


def test_what_can_not_be_said_says_so(source: Replicator, browser: Client) -> None:
    """Guards the card of a replicator whose connector is gone."""
    Replicator.objects.filter(pk=source.pk).update(target_kind="gone")
    assert "can't be said as a statement" in unescape(
        panel(browser, f"/replicators/{source.pk}/statement/")
    )
