"""People who may make feeds, and nothing else: by REST, statements and the wizard, on sources whose
login they have. Who may call which address is in test_api_permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from drafts.services import draft_create
from drafts.statements.services import statement_run
from replicators.models import AuditEntry, Replicator
from replicators.permissions import NoRight
from runners.models import Run
from runners.services import replicator_resume
from runners.states import RunState
from runners.supervision.owners import guard_owners
from tests.app.factories import SECRET, config_fields, make_replicator, make_run, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> str:
    settings.ALLOWED_FOLDERS = (str(tmp_path),)
    return str(tmp_path / "changes")


@pytest.fixture
def maker(db: None) -> Any:
    return make_user("maker", "feed-maker")


@pytest.fixture
def client_of_maker(maker: Any) -> Client:
    client = Client()
    client.force_login(maker)
    return client


def create(folder: str, source: str, name: str = "feed") -> str:
    return (
        f"CREATE CHANGEFEED {name} FOR TABLE orders FROM SOURCE {source} "
        f"INTO 'files:{folder}?format=json'"
    )


ADDRESS = f"'memory://db.example?password={SECRET}'"


def feed_of(maker: Any, folder: str, name: str = "feed") -> Replicator:
    done = statement_run(text=create(folder, ADDRESS, name), actor=maker)
    assert done.replicator is not None
    return done.replicator


def test_statements_make_and_change_feeds_of_ones_own(maker: Any, folder: str) -> None:
    """Guards CHANGEFEED statements: the source's login is given anew, or taken from a replicator of
    one's own; another's source and another's feed are refused, and nothing is left behind."""
    make_replicator("shop")
    mine = feed_of(maker, folder)
    assert (mine.created_by, mine.target_kind) == (maker, "files")
    entry = AuditEntry.objects.get(act="replicator_made", object_id=str(mine.pk))
    assert entry.actor == "maker"
    again = statement_run(text=create(f"{folder}2", "feed", "again"), actor=maker)
    assert again.act == "created"
    other = feed_of(make_user("other", "editor"), f"{folder}3", "theirs")
    refused = [
        create(f"{folder}4", "shop", "stolen"),
        create(f"{folder}4", "theirs", "stolen"),
        create(f"{folder}4", ADDRESS, "stolen").replace(
            f"files:{folder}4?format=json", "memory:?namespace=x"
        ),
        "PAUSE CHANGEFEED theirs",
        "DROP CHANGEFEED theirs",
        "ALTER CHANGEFEED theirs SET merge_seconds=9",
    ]
    for text in refused:
        with pytest.raises(NoRight):
            statement_run(text=text, actor=maker)
    assert set(Replicator.objects.values_list("name", flat=True)) == {
        "shop", "feed", "again", "theirs",
    }  # fmt: skip
    other.refresh_from_db()
    assert (other.desired_state, other.deleting_since) == ("running", None)
    for word in ("PAUSE", "RESUME", "DROP"):
        statement_run(text=f"{word} CHANGEFEED feed", actor=maker)


def test_rest_makes_feeds_and_refuses_other_targets(client_of_maker: Client, folder: str) -> None:
    """Guards REST: a definition, a draft and a change of a draft into a target that holds rows are
    403, and the same into a feed are not."""
    kind = {"target_kind": "files", "target_params": {"location": folder}}
    fields = config_fields("by rest")
    for url in ("/api/v1/replicators/", "/api/v1/drafts/"):
        refused = client_of_maker.post(url, fields, JSON)
        assert (refused.status_code, refused.json()["code"]) == (403, "permission-denied")
        assert "feeds only" in refused.json()["message"]
        assert client_of_maker.post(url, {**fields, **kind}, JSON).status_code == 201
    draft = Draft.objects.get(replicator_id=None)
    url = f"/api/v1/drafts/{draft.pk}/"
    change = {"version": draft.version, "target_kind": "memory", "target_params": {}}
    assert client_of_maker.patch(url, change, JSON).status_code == 403
    change = {"version": draft.version, "name": "by draft"}
    assert client_of_maker.patch(url, change, JSON).status_code == 200
    others = draft_create(actor=make_user("other", "editor"), **{**fields, **kind, "name": "x"})
    theirs = f"/api/v1/drafts/{others.pk}/"
    assert client_of_maker.get(theirs).status_code == 200
    for call in (client_of_maker.patch, client_of_maker.delete):
        assert call(theirs, {"version": 1, "name": "y"}, JSON).status_code == 403
    for act in ("assess", "deploy", "connections/test"):
        assert client_of_maker.post(f"{theirs}{act}/", {}, JSON).status_code == 403


def test_the_wizard_offers_feeds_and_connections_of_ones_own(
    client_of_maker: Client, maker: Any, folder: str
) -> None:
    """Guards the wizard: no target that holds rows is offered or stored, no other person's login
    can be taken, and lists have actions on one's own things alone."""
    foreign, mine = make_replicator("shop"), feed_of(maker, folder)
    draft = draft_create(actor=maker, name="begun")
    target, source = (f"/drafts/{draft.pk}/{role}/" for role in ("target", "source"))
    page = client_of_maker.get(target).content.decode()
    assert 'value="files"' in page and 'value="kafka"' in page
    assert 'value="lakehouse"' not in page and 'value="postgresql"' not in page
    sent = {"act": "save", "version": draft.version, "target_kind": "lakehouse"}
    client_of_maker.post(target, sent)
    draft.refresh_from_db()
    assert draft.target_kind != "lakehouse"
    page = client_of_maker.get(source).content.decode()
    assert str(mine.pk) in page and str(foreign.pk) not in page
    taken = {"act": "take", "version": draft.version, "from": str(foreign.pk)}
    assert client_of_maker.post(source, taken).status_code == 422
    draft.refresh_from_db()
    assert not draft.source_secrets
    page = client_of_maker.get("/").content.decode()
    assert f"actions-{mine.pk}" in page and f"actions-{foreign.pk}" not in page
    assert "New replicator" in page
    assert "Pause" in client_of_maker.get(f"/replicators/{mine.pk}/").content.decode()
    head = client_of_maker.get(f"/replicators/{foreign.pk}/head/").content.decode()
    assert f"/replicators/{foreign.pk}/start/" not in head


@pytest.mark.parametrize("kept", ["viewer", ""])
def test_a_revoked_right_stops_or_hands_over(
    maker: Any, editor: Any, folder: str, kept: str
) -> None:
    """Guards the right to make feeds: who loses it owns feeds that stop, if they say so; an editor
    who resumes one owns it. Feeds that say nothing go on."""
    stops, goes_on = (feed_of(maker, f"{folder}{n}", n) for n in ("stops", "on"))
    Replicator.objects.filter(pk=stops.pk).update(options={**stops.options, "owner_gone": "stop"})
    make_run(stops, state=RunState.RUNNING)
    guard_owners()
    assert not Replicator.objects.filter(desired_state="paused").exists()
    maker.groups.clear()
    if kept:
        maker.groups.add(*make_user("another", kept).groups.all())
    guard_owners()
    assert list(Replicator.objects.filter(desired_state="paused")) == [stops]
    assert Run.objects.get(replicator=stops).stop_origin == "owner"
    replicator_resume(replicator=stops, actor=editor)
    guard_owners()
    stops.refresh_from_db()
    goes_on.refresh_from_db()
    assert (stops.desired_state, stops.created_by) == ("running", editor)
    assert (goes_on.desired_state, goes_on.created_by) == ("running", maker)
    assert AuditEntry.objects.filter(act="replicator_handed_over").count() == 1
