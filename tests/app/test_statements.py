"""Statements make, pause, change, show and drop replicators, by the services of pages and REST."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from drafts.models import Draft
from drafts.services import DeployRefused
from drafts.statements.errors import StatementError
from drafts.statements.services import Outcome, statement_run
from drafts.statements.shown import statement_of
from replicators.models import AuditEntry, DesiredState, Replicator
from replicators.permissions import NoRight
from replicators.services import params_of
from runners.transitions import IllegalTransition
from tests.app.factories import SECRET, make_replicator

pytestmark = pytest.mark.django_db
URL = "/api/v1/changefeeds/"
JSON = "application/json"


@pytest.fixture
def source() -> Replicator:
    """A replicator that reads the source which the statements name."""
    return make_replicator("shop")


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> str:
    settings.ALLOWED_FOLDERS = (str(tmp_path),)
    return str(tmp_path / "changes")


def run(text: str, actor: Any = None, source: str = "shop") -> Outcome:
    return statement_run(text=text, actor=actor, source=source)


def refused(text: str, **more: Any) -> StatementError:
    with pytest.raises(StatementError) as found:
        run(text, **more)
    return found.value


def create(folder: str, name: str = "feed", more: str = "") -> str:
    return (
        f"CREATE CHANGEFEED {name} FOR TABLE orders, shop.customers "
        f"INTO 'files:{folder}?format=json' {more}"
    )


def test_create_makes_an_ordinary_replicator(source: Replicator, editor: Any, folder: str) -> None:
    """Guards `_create`: the statement's words become the definition, and it is started."""
    done = run(create(folder, more="WITH bucket='5 minutes', merge_seconds=7"), editor)
    made = Replicator.objects.get(name="feed")
    assert done.act == "created" and done.replicator == made
    assert (made.source_kind, made.target_kind) == ("memory", "files")
    assert params_of(made, "source") == params_of(source, "source")
    assert made.target_params["format"] == "JSON lines"
    assert made.target_params["bucket"] == "5 minutes"
    assert made.options["merge_seconds"] == 7.0
    assert [(t["schema"], t["name"]) for t in made.tables] == [
        ("shop", "orders"),
        ("shop", "customers"),
    ]
    assert made.desired_state == DesiredState.RUNNING and made.created_by == editor
    assert AuditEntry.objects.filter(act="draft_deployed").exists()


def test_the_shown_statement_makes_the_same_replicator(
    source: Replicator, editor: Any, folder: str
) -> None:
    """Guards `statement_of`: whatever pages let people choose is in it, and is read again. The
    secret is not in it."""
    run(
        f'CREATE CHANGEFEED "a feed" FOR TABLE shop.orders (id, details) WITHOUT (updates), '
        f"TABLE customers INTO 'files:{folder}' "
        "WITH description='It''s mine', merge_seconds=9, before_images=false",
        editor,
    )
    made = Replicator.objects.get(name="a feed")
    shown = run('SHOW CREATE CHANGEFEED "a feed"', editor).statement
    assert SECRET not in shown and "********" in shown
    error = refused(shown.replace('"a feed"', "again"))
    assert shown.replace('"a feed"', "again")[error.at :].startswith("********")
    run(shown.replace('"a feed"', "again").replace("********", SECRET), editor)
    again = Replicator.objects.get(name="again")
    for field in ("source_params", "target_params", "tables", "options", "description"):
        assert getattr(again, field) == getattr(made, field), field
    assert params_of(again, "source") == params_of(made, "source")


def test_pause_resume_drop_and_show(source: Replicator, editor: Any, folder: str) -> None:
    """Guards `_named`: each word is its service."""
    run(create(folder), editor)
    assert run("PAUSE CHANGEFEED feed", editor).act == "paused"
    assert Replicator.objects.get(name="feed").desired_state == DesiredState.PAUSED
    assert run("resume changefeed feed;", editor).act == "resumed"
    assert Replicator.objects.get(name="feed").desired_state == DesiredState.RUNNING
    assert [v.replicator.name for v in run("SHOW CHANGEFEEDS", editor).feeds] == ["feed", "shop"]
    assert run("DROP CHANGEFEED 'feed'", editor).act == "dropped"
    gone = Replicator.objects.get(name="feed")
    assert gone.deleting_since is not None and gone.keep_target
    with pytest.raises(IllegalTransition):
        run("PAUSE CHANGEFEED feed", editor)
    assert "no changefeed `fed`" in refused("PAUSE CHANGEFEED fed").reason


def test_alter_changes_a_paused_one_only(source: Replicator, editor: Any, folder: str) -> None:
    """Guards `_alter`: what runs must be paused first; the place of the files stays."""
    run(create(folder), editor)
    assert "PAUSE CHANGEFEED feed" in refused("ALTER CHANGEFEED feed SET merge_seconds=3").reason
    run("PAUSE CHANGEFEED feed", editor)
    done = run("ALTER CHANGEFEED feed SET merge_seconds = 3, before_images = false", editor)
    made = Replicator.objects.get(name="feed")
    assert (made.options["merge_seconds"], made.target_params["before_images"]) == (3.0, False)
    assert "merge_seconds" in done.text and "merge_seconds = 3" in done.statement
    text = f"ALTER CHANGEFEED feed INTO 'files:{folder}2'"
    error = refused(text)
    assert text[error.at :].startswith(folder) and "can't be changed" in error.reason
    text = "ALTER CHANGEFEED feed SET merge_seconds = 'soon'"
    assert text[refused(text).at :] == "soon'"


def test_cdc_streams_are_found_by_their_table(source: Replicator, editor: Any, folder: str) -> None:
    """Guards `_drop_cdc`: it drops what CREATE CDC made and nothing else."""
    run(f"CREATE CDC FOR shop.orders INTO FILES WITH location = '{folder}'", editor)
    made = Replicator.objects.get(name="shop.orders into files")
    assert [t["name"] for t in made.tables] == ["orders"]
    assert "No CDC stream of shop.customers" in refused("DROP CDC FOR shop.customers").reason
    run("CREATE CDC FOR shop.orders INTO MEMORY WITH namespace = 'other'", editor)
    assert "add INTO FILES or MEMORY" in refused("DROP CDC FOR shop.orders").reason
    assert run("DROP CDC FOR shop.orders INTO files", editor).replicator == made
    assert run("DROP CDC FOR shop.orders", editor).act == "dropped"


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("TABLE oders INTO 'files:/tmp'", "oders", "shop.orders?"),
        ("TABLE shop.orders, orders INTO 'files:/x'", "orders INTO", "twice"),
        ("DATABASE shp INTO 'files:/tmp'", "shp", "It has: shop"),
        ("TABLE orders INTO 'fils:/tmp'", "fils", "files?"),
        ("TABLE orders INTO 'files'", "files'", "an address"),
        ("TABLE orders INTO 'files:/x?formt=json'", "formt", "no `formt`"),
        ("TABLE orders INTO 'files:/x?format=csv'", "csv'", "one of"),
        ("TABLE orders INTO 'files:ftp://h/x'", "ftp", "`location`"),
        ("TABLE orders INTO 'files:/x' WITH frmat=1", "frmat", "format?"),
        ("TABLE orders INTO 'files:/x' WITH merge_seconds=0", "0", "0.1"),
        ("TABLE orders FROM SOURCE nobody INTO 'files:/x'", "nobody", "shop"),
        ("CREATE CHANGEFEED shop FOR TABLE orders INTO 'files:/tmp/x'", "shop FOR", "already"),
        ("TABLE orders PARTITION p INTO 'files:/x'", "p INTO", "Partition"),
        ("TABLE orders (ids) INTO 'files:/x'", "ids", "`id`|column `ids`"),
        ("TABLE page_views VALUES FROM (1) TO (2) INTO 'files:/x'", "1)", "none"),
        (
            "TABLE orders FROM SOURCE 'memory://db.example:99999999' "
            "INTO 'files:/x'",
            "99999999",
            "at most 65535",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_shown_where_it_is_written(
    source: Replicator, folder: str, text: str, at: str, said: str
) -> None:
    """Guards the places that the definition remembers: the caret is below the wrong word."""
    text = text if text.startswith("CREATE") else f"CREATE CHANGEFEED f FOR {text}"
    error = refused(text)
    assert text[error.at :].startswith(at), str(error)
    assert any(part in error.reason for part in said.split("|")), error.reason
    assert not Draft.objects.exists()


def test_a_key_range_becomes_a_row_filter(source: Replicator, editor: Any) -> None:
    """Guards `_bound`: FROM belongs to the range, TO does not."""
    rows = "shop.orders VALUES FROM (1) TO (2)"
    run(f"CREATE CHANGEFEED f FOR TABLE {rows} INTO 'memory:?namespace=n'", editor)
    assert Replicator.objects.get(name="f").tables[0]["filter"] == '"id" >= 1 AND "id" < 2'


def test_a_cursor_starts_without_a_copy(source: Replicator, editor: Any, folder: str) -> None:
    """Guards `cursor`: now, and no other place, for targets that take every change."""
    run(create(folder, more="WITH cursor='now'"), editor)
    assert Replicator.objects.get(name="feed").options["first_copy"] == "none"
    assert "first_copy = 'none'" in run("SHOW CREATE CHANGEFEED feed", editor).statement
    text = create(folder, "late", "WITH cursor='2018-05-06 07:06:00'")
    error = refused(text)
    assert text[error.at :].startswith("2018") and "cursor = 'now'" in error.reason
    with pytest.raises(DeployRefused) as refusal:
        run("CREATE CHANGEFEED f FOR TABLE orders INTO 'memory:?namespace=n' WITH cursor='now'")
    assert "target:needs-copy" in {p.code for p in refusal.value.problems}
    run("PAUSE CHANGEFEED feed", editor)
    text = "ALTER CHANGEFEED feed SET cursor='now'"
    assert text[refused(text).at :].startswith("cursor")


def test_rights(source: Replicator, viewer: Any, stranger: Any, editor: Any, folder: str) -> None:
    """Guards `statement_run`: SHOW needs the right to view, everything else the right to edit."""
    run("SHOW CHANGEFEEDS", viewer)
    run("SHOW CREATE CHANGEFEED shop", viewer)
    for text in (create(folder), "PAUSE CHANGEFEED shop", "DROP CHANGEFEED shop", "nonsense"):
        with pytest.raises((NoRight, StatementError)):
            run(text, viewer)
    for text in ("SHOW CHANGEFEEDS", "PAUSE CHANGEFEED shop"):
        with pytest.raises(NoRight):
            run(text, stranger)
    assert Replicator.objects.get().desired_state == DesiredState.PAUSED
    assert not AuditEntry.objects.filter(act="replicator_delete_asked").exists()


def test_rest(source: Replicator, browser: Client, folder: str) -> None:
    """Guards the door: statement in, outcome out, errors with line and column."""
    body = {"statement": create(folder), "source": "shop"}
    made = browser.post(URL, body, content_type=JSON)
    assert made.status_code == 201 and made.json()["name"] == "feed"
    assert made["Location"] == f"/api/v1/replicators/{made.json()['id']}/"
    listed = browser.get(URL).json()["results"]
    assert [f["name"] for f in listed] == ["feed", "shop"]
    assert listed[0]["statement"] == made.json()["statement"] and SECRET not in str(listed)
    shown = browser.post(URL, {"statement": "SHOW CHANGEFEEDS"}, content_type=JSON)
    assert shown.status_code == 200 and len(shown.json()["changefeeds"]) == 2
    assert (
        browser.post(URL, {"statement": "PAUSE CHANGEFEED feed"}, content_type=JSON).status_code
        == 202
    )
    wrong = browser.post(URL, {"statement": "SHOW\nCHANGEFED"}, content_type=JSON)
    assert wrong.status_code == 400
    assert wrong.json()["fields"]["line"] == ["2"] and wrong.json()["fields"]["column"] == ["1"]
    assert wrong.json()["message"].endswith("CHANGEFED\n^")
    assert browser.post(URL, {"statement": 5}, content_type=JSON).status_code == 400


def test_rest_asks_for_rights(source: Replicator, viewer: Any, stranger: Any) -> None:
    """Guards the view's permissions."""
    for user, text, status in (
        (viewer, "SHOW CHANGEFEEDS", 200),
        (viewer, "PAUSE CHANGEFEED shop", 403),
        (stranger, "SHOW CHANGEFEEDS", 403),
    ):
        client = Client()
        client.force_login(user)
        assert client.post(URL, {"statement": text}, content_type=JSON).status_code == status
    assert Client().post(URL, {"statement": "SHOW CHANGEFEEDS"}, content_type=JSON).status_code in (
        401,
        403,
    )


def test_a_refused_statement_leaves_nothing_and_says_no_secret(
    source: Replicator, browser: Client
) -> None:
    """Guards `starred`: the shown line has stars in place of a password."""
    for text in (
        f"CREATE CHANGEFEED f FOR TABLE x FROM SOURCE 'memory://u:{SECRET}@h' INTO files",
        f"CREATE CHANGEFEED f FOR TABLE x FROM SOURCE 'memory:?password={SECRET}' INTO files",
        f"CREATE CHANGEFEED f FOR TABLE orders INTO 'memory:' WITH token='{SECRET}', nothing=1",
    ):
        wrong = browser.post(URL, {"statement": text, "source": "shop"}, content_type=JSON)
        assert wrong.status_code == 400, wrong.content
        assert SECRET not in wrong.content.decode()
    assert Replicator.objects.count() == 1 and not Draft.objects.exists()


def test_the_command(source: Replicator, viewer: Any, folder: str) -> None:
    """Guards `manage.py changefeed`."""
    out = StringIO()
    call_command("changefeed", create(folder), source="shop", stdout=out)
    assert out.getvalue() == "feed is made with 2 tables, and starts.\n"
    out = StringIO()
    call_command("changefeed", "SHOW CHANGEFEEDS", stdout=out)
    assert [line.split("\t")[0] for line in out.getvalue().splitlines()] == ["name", "feed", "shop"]
    out = StringIO()
    call_command("changefeed", "SHOW CREATE CHANGEFEED feed", stdout=out)
    assert out.getvalue() == f"{statement_of(Replicator.objects.get(name='feed'))}\n"
    with pytest.raises(CommandError, match="may look"):
        call_command("changefeed", "PAUSE CHANGEFEED feed", user="viewer")
    with pytest.raises(CommandError, match=r"(?s)Line 1, column 6.*\^"):
        call_command("changefeed", "SHOW NOTHING")
    with pytest.raises(CommandError, match="no active user"):
        call_command("changefeed", "SHOW CHANGEFEEDS", user="nobody")
