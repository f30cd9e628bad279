"""What people and programs do leaves rows in the audit trail, with who, by which door, and what was
before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from drafts.models import Draft
from replicators.audit import AuditEntry
from replicators.models import Replicator
from replicators.tokens import token_create
from runners.models import Event
from runners.supervision.removal import drop_replicator
from tests.app.factories import SECRET, config_fields

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


def last(act: str) -> AuditEntry:
    found = AuditEntry.objects.filter(act=act).first()
    assert found is not None, list(AuditEntry.objects.values_list("act", flat=True))
    return found


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("id").values_list("act", flat=True))


def test_a_draft_leaves_its_way_to_a_replicator(api: Client, editor: Any) -> None:
    made = api.post("/api/v1/drafts/", config_fields(), JSON)
    url = made["Location"]
    changed = {
        "version": 1,
        "source_params": {"host": "db2.example", "password": "another-secret"},
        "tables": [
            {"schema": "shop", "name": "orders", "filter": "id > 3"},
            {"schema": "shop", "name": "customers"},
        ],
        "options": {"seal_seconds": 2},
    }
    headers = {"X-Request-ID": "req-1"}
    assert api.patch(url, changed, JSON, headers=headers).status_code == 200
    row = last("draft_changed")
    assert (row.actor, row.actor_id) == ("editor", str(editor.pk))
    assert (row.how, row.address, row.request_id) == ("rest", "127.0.0.1", "req-1")
    assert (row.object_kind, row.object_id) == ("draft", made.json()["id"])
    assert row.old_values == {
        "source.host": "db.example",
        "source.password": "********",
        "table shop.orders": {},
    }
    assert row.new_values == {
        "source.host": "db2.example",
        "source.password": "******** (changed)",
        "options.seal_seconds": 2,
        "table shop.orders": {"filter": "id > 3"},
    }
    assert api.patch(url, {"version": 2, "name": "shop to lakehouse"}, JSON).status_code == 200
    assert api.post(f"{url}deploy/").status_code == 201
    assert actions() == [
        "draft_made", "draft_changed", "replicator_made", "draft_deployed", "replicator_started",
    ]  # fmt: skip
    assert SECRET not in str(list(AuditEntry.objects.values_list("old_values", "new_values")))
    assert last("replicator_made").actor == "editor"


def test_a_deleted_draft_is_still_reported(api: Client) -> None:
    url = api.post("/api/v1/drafts/", config_fields(), JSON)["Location"]
    assert api.delete(url).status_code == 204
    assert not Draft.objects.exists()
    assert last("draft_deleted").object_name == "shop to lakehouse"


def test_a_test_of_a_connection_says_whom_it_asked(api: Client, replicator: Replicator) -> None:
    body = {"kind": "memory", "params": {"host": "db9.example", "password": SECRET}}
    assert api.post("/api/v1/connections/test/", body, JSON).status_code == 200
    row = last("connection_tested")
    assert (row.actor, row.object_name) == ("editor", "memory (source)")
    assert (row.new_values["host"], row.new_values["password"]) == ("db9.example", "********")
    assert row.new_values["ok"] is True


def test_a_replicator_outlives_itself_in_the_trail(api: Client, replicator: Replicator) -> None:
    url = f"/api/v1/replicators/{replicator.pk}/"
    orders = {"schema": "shop", "table": "orders"}
    assert api.patch(url, {"options": {"seal_seconds": 3}}, JSON).status_code == 200
    assert last("replicator_changed").old_values == {"options.seal_seconds": 1.0}
    assert api.post(f"{url}start/").status_code == 202
    assert last("replicator_started").new_values == {"desired_state": "running"}
    assert api.post(f"{url}tables/resync/", orders, JSON).status_code == 202
    assert last("table_resync_asked").new_values == {"table": "shop.orders"}
    assert api.put(f"{url}tables/", {**orders, "filter": "id > 1"}, JSON).status_code == 202
    assert last("table_change_asked").new_values == {"table": "shop.orders", "filter": "id > 1"}
    assert api.delete(f"{url}tables/?schema=shop&table=customers").status_code == 202
    assert last("table_remove_asked").new_values["keep_target"] is True
    assert api.post(f"{url}pause/").status_code == 202
    assert api.delete(url).status_code == 202
    assert drop_replicator(replicator.pk, timezone.now() + timedelta(hours=1))
    gone = last("replicator_deleted")
    assert (gone.actor, gone.how) == ("editor", "program")
    assert (gone.object_id, gone.object_name) == (str(replicator.pk), "shop to lakehouse")
    assert Event.objects.get(kind="replicator_deleted").actor == "editor"
    assert {r.actor for r in AuditEntry.objects.filter(object_id=gone.object_id)} == {"", "editor"}


def test_what_a_token_did_names_the_token(editor: Any, replicator: Replicator) -> None:
    _, text = token_create(user=editor, name="nightly")
    url = f"/api/v1/replicators/{replicator.pk}/start/"
    assert Client().post(url, headers={"Authorization": f"Bearer {text}"}).status_code == 202
    row = last("replicator_started")
    assert (row.actor, row.how, row.through) == ("editor", "token", "nightly")


def test_pages_are_another_door(api: Client, replicator: Replicator) -> None:
    assert api.post(f"/replicators/{replicator.pk}/start/").status_code == 302
    assert last("replicator_started").how == "page"
