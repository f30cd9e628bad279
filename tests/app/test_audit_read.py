"""The audit trail is read on its page, by REST and by `manage.py audit`, by administrators alone,
without a gap and without a row twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from replicators.audit import AuditEntry, Thing, record
from replicators.audit_reading import ACTIONS, Asked, entries, entries_after
from tests.app.factories import make_user

pytestmark = pytest.mark.django_db
URL = "/api/v1/audit/"


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: Any) -> None:
    """Rows of a moment ago are read, with PostgreSQL too: no other transaction is open."""
    monkeypatch.setattr("replicators.audit_reading.SETTLED", timedelta(0))


@pytest.fixture
def boss(db: None) -> Client:
    """Signed in as an administrator."""
    client = Client()
    client.force_login(make_user("boss", is_superuser=True))
    return client


def some(count: int, act: str = "draft_changed") -> list[AuditEntry]:
    return [record(act, Thing("draft", f"id-{n}", f"draft {n}")) for n in range(count)]


def aged(**fields: Any) -> AuditEntry:
    return AuditEntry.objects.create(**{"how": "page", "act": "draft_changed", **fields})


def test_only_administrators_read_it(boss: Client, browser: Client) -> None:
    for path in (URL, "/audit/"):
        assert browser.get(path).status_code == 403
        assert boss.get(path).status_code == 200
    assert "/audit/" not in browser.get("/account/").content.decode()
    assert 'href="/audit/"' in boss.get("/account/").content.decode()


def test_the_right_to_view_can_be_given(viewer: Any) -> None:
    from django.contrib.auth.models import Permission

    viewer.user_permissions.add(Permission.objects.get(codename="view_auditentry"))
    client = Client()
    client.force_login(viewer)
    assert client.get(URL).status_code == 200


def test_by_cursor_every_row_is_reported_once(boss: Client) -> None:
    rows = some(5)
    seen: list[int] = []
    after = 0
    while found := boss.get(f"{URL}?after={after}&limit=2").json()["entries"]:
        seen += [e["id"] for e in found]
        after = found[-1]["id"]
    assert seen == [r.pk for r in rows]
    assert boss.get(f"{URL}?after={after}").json() == {"after": after, "entries": []}


def test_rows_are_found_by_what_is_asked(boss: Client) -> None:
    aged(actor="ann", act="draft_deleted", object_kind="draft", object_id="1", object_name="shop")
    day = datetime(2026, 1, 2, 12, tzinfo=UTC)
    aged(actor="bob", act="token_made", object_kind="token", object_id="2", at=day)

    def found(query: str) -> list[str]:
        return [e["actor"] for e in boss.get(f"{URL}?{query}").json()["entries"]]

    assert found("actor=ann") == found("act=draft_deleted") == found("kind=draft") == ["ann"]
    assert found("object=SHO") == found("object=1") == ["ann"]
    assert found("until=2026-01-03T00:00:00Z") == ["bob"]
    assert found("since=2026-01-03T00:00:00Z") == ["ann"]
    assert boss.get(f"{URL}?who=ann").json()["fields"] == {
        "who": ["This query parameter is not known."]
    }
    page = boss.get("/audit/?since=2026-01-02&until=2026-01-02").content.decode()
    assert "bob" in page
    assert ">ann<" not in page


def test_the_page_shows_values_and_goes_back_row_by_row(boss: Client) -> None:
    some(150)
    old, new = {"source.port": 1, "x": "<b>"}, {"source.port": 5433, "options.a": False}
    record("draft_changed", Thing("draft", "9", "last"), old=old, new=new)
    page = boss.get("/audit/").content.decode()
    assert "<del>1</del>" in page
    assert "<ins>5433</ins>" in page
    assert "<del>&lt;b&gt;</del>" in page
    assert "<ins>no</ins>" in page
    before = entries(Asked())[99].pk
    assert f"before={before}" in page
    more = boss.get(f"/audit/?before={before}", headers={"HX-Request": "true"}).content.decode()
    assert more.count("<tr") == 51
    assert "<form" not in more
    assert "No row matches" in boss.get("/audit/?actor=nobody&before=x&since=9").content.decode()


def test_postgresql_is_read_only_as_far_as_no_older_row_can_come(monkeypatch: Any) -> None:
    """Guards the gap that a transaction leaves whose key is smaller and whose end is later."""
    monkeypatch.setattr("replicators.audit_reading.connection.vendor", "postgresql")
    monkeypatch.setattr("replicators.audit_reading.SETTLED", timedelta(seconds=30))
    old = aged(at=datetime(2026, 1, 1, tzinfo=UTC))
    some(1)
    assert [e.pk for e in entries_after(Asked(), 0, 10)] == [old.pk]


def test_every_act_can_be_chosen() -> None:
    """Guards `ACTIONS`: an action that the page's list does not have can't be looked for there."""
    import re

    root = Path(__file__).resolve().parents[2]
    found: set[str] = set()
    for app in ("replicators", "assessments", "runners", "drafts"):
        for path in (root / app).rglob("*.py"):
            text = path.read_text()
            found |= set(
                re.findall(r"""\b(?:_?record|changes_record|act_add)\(\s*"(\w+)\"""", text)
            )
    assert found
    assert found - set(ACTIONS) == set()


class TestFile:
    def lines(self, path: Path) -> list[int]:
        return [json.loads(line)["id"] for line in path.read_text().splitlines()]

    def write(self, path: Path, **options: Any) -> None:
        call_command("audit", to=path, stderr=StringIO(), **options)

    def test_it_goes_on_from_the_last_row(self, tmp_path: Path) -> None:
        path = tmp_path / "audit.jsonl"
        some(3)
        self.write(path)
        self.write(path)
        rows = some(2)
        self.write(path)
        assert self.lines(path) == [r.pk for r in AuditEntry.objects.order_by("id")]
        assert path.stat().st_mode & 0o777 == 0o600
        reported = json.loads(path.read_text().splitlines()[-1])
        assert (reported["id"], reported["object_name"], reported["new_values"]) == (
            rows[-1].pk,
            "draft 1",
            {},
        )

    def test_a_line_that_was_cut_off_is_written_again(self, tmp_path: Path) -> None:
        path = tmp_path / "audit.jsonl"
        rows = some(3)
        self.write(path)
        text = path.read_text()
        path.write_text(text[: text.rindex('"actor"')])
        (tmp_path / "audit.jsonl.last").unlink()
        self.write(path)
        assert self.lines(path) == [r.pk for r in rows]

    def test_a_file_that_was_moved_away_is_not_written_again(self, tmp_path: Path) -> None:
        path = tmp_path / "audit.jsonl"
        some(3)
        self.write(path)
        path.rename(tmp_path / "audit.jsonl.1")
        row = some(1)[0]
        self.write(path)
        assert self.lines(path) == [row.pk]

    def test_a_database_that_was_restored_is_reported(self, tmp_path: Path) -> None:
        path = tmp_path / "audit.jsonl"
        path.write_text('{"id": 999999}\n')
        some(1)
        with pytest.raises(CommandError, match="restored"):
            self.write(path)
        self.write(path, after=0)
        assert len(self.lines(path)) == 2

    def test_another_file_is_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("hello\n")
        with pytest.raises(CommandError, match="something else"):
            self.write(path)
        assert path.read_text() == "hello\n"

    def test_without_a_file_rows_are_written_out(self) -> None:
        rows = some(2)
        out = StringIO()
        call_command("audit", after=rows[0].pk, stdout=out)
        assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == [rows[1].pk]
