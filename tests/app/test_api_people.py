"""REST on tokens and users: one's own tokens, everybody's for administrators; users for
administrators alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from replicators.audit import AuditEntry
from replicators.models import ApiToken, IdempotencyKey, Scope
from replicators.tokens import token_create
from tests.app.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"
TOKENS, USERS = "/api/v1/tokens/", "/api/v1/users/"
NEW = "another-horse-staple"


@pytest.fixture
def boss(db: None) -> Client:
    """Signed in as an administrator."""
    client = Client()
    client.force_login(make_user("boss", is_superuser=True))
    return client


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


class TestTokens:
    def test_a_token_is_made_listed_without_its_text_and_revoked(self, api: Client) -> None:
        body = {"name": "nightly", "scope": "read", "days": 3}
        made = api.post(TOKENS, body, JSON, headers={"Idempotency-Key": "k"})
        assert made.status_code == 201
        text = made.json()["token"]
        bearer = {"Authorization": f"Bearer {text}"}
        assert Client().get("/api/v1/replicators/", headers=bearer).status_code == 200
        listed = api.get(TOKENS)
        assert text not in listed.content.decode()
        (reported,) = listed.json()["results"]
        assert (reported["name"], reported["scope"], reported["user"]) == (
            "nightly",
            "read",
            "editor",
        )
        assert reported["last_used_at"]
        assert not IdempotencyKey.objects.exists(), "its body would keep the text"
        assert api.delete(f"{TOKENS}{reported['id']}/").status_code == 204
        assert Client().get("/api/v1/replicators/", headers=bearer).status_code == 401
        assert AuditEntry.objects.filter(act="token_revoked", actor="editor").exists()

    def test_the_end_is_within_the_setting(self, api: Client) -> None:
        wrong = api.post(TOKENS, {"name": "a", "days": 400}, JSON)
        assert (wrong.status_code, list(wrong.json()["fields"])) == (400, ["days"])
        default = api.post(TOKENS, {"name": "a"}, JSON)
        assert default.status_code == 201
        assert ApiToken.objects.get().expires_at > timezone.now() + timedelta(days=89)  # type: ignore[operator]

    def test_a_token_that_may_read_makes_and_revokes_none(self, editor: Any) -> None:
        token, text = token_create(user=editor, name="reader", scope=Scope.READ)
        bearer = {"Authorization": f"Bearer {text}"}
        client = Client()
        assert client.get(TOKENS, headers=bearer).status_code == 200
        assert client.post(TOKENS, {"name": "a"}, JSON, headers=bearer).status_code == 403
        assert client.delete(f"{TOKENS}{token.pk}/", headers=bearer).status_code == 403

    def test_a_token_makes_none_that_lives_longer(self, editor: Any) -> None:
        maker, text = token_create(user=editor, name="maker", days=1)
        bearer = {"Authorization": f"Bearer {text}"}
        made = Client().post(TOKENS, {"name": "heir", "days": 300}, JSON, headers=bearer)
        assert made.status_code == 201
        assert ApiToken.objects.get(name="heir").expires_at == maker.expires_at

    def test_those_of_others_are_an_administrators(self, api: Client, boss: Client) -> None:
        theirs, _ = token_create(user=make_user("ann"), name="theirs")
        assert api.get(TOKENS).json()["count"] == 0
        assert api.delete(f"{TOKENS}{theirs.pk}/").status_code == 404
        token_create(user=User.objects.get(username="editor"), name="mine")
        assert boss.get(TOKENS).json()["count"] == 2
        assert [t["name"] for t in boss.get(f"{TOKENS}?user=ann").json()["results"]] == ["theirs"]
        assert boss.delete(f"{TOKENS}{theirs.pk}/").status_code == 204
        row = AuditEntry.objects.get(act="token_revoked")
        assert (row.actor, row.new_values["user"]) == ("boss", "ann")


class TestUsers:
    def test_only_administrators_see_and_make_them(self, api: Client, boss: Client) -> None:
        assert api.get(USERS).status_code == 403
        assert api.post(USERS, {"username": "x", "password": NEW}, JSON).status_code == 403
        body = {"username": "ann", "password": NEW, "groups": ["viewer"]}
        made = boss.post(USERS, body, JSON)
        assert made.status_code == 201
        assert NEW not in made.content.decode()
        assert boss.get(made["Location"]).json()["groups"] == ["viewer"]
        assert Client().login(username="ann", password=NEW)
        assert not Client().login(username="ann", password=PASSWORD)
        again = boss.post(USERS, body, JSON)
        assert (again.status_code, list(again.json()["fields"])) == (400, ["username"])
        row = AuditEntry.objects.get(act="user_made")
        assert (row.actor, row.new_values["groups"]) == ("boss", ["viewer"])
        assert NEW not in str(row.new_values)

    def test_what_can_not_be_is_refused_by_field(self, boss: Client, editor: Any) -> None:
        def fields(answer: Any) -> list[str]:
            assert answer.status_code == 400
            return list(answer.json()["fields"])

        one = f"{USERS}{editor.pk}/"
        assert fields(boss.post(USERS, {"username": "a b", "password": NEW}, JSON)) == ["username"]
        assert fields(boss.post(USERS, {"username": "ab", "password": "1"}, JSON)) == ["password"]
        assert fields(boss.patch(one, {"groups": ["nobody"]}, JSON)) == ["groups"]
        assert fields(boss.patch(one, {"is_superuser": True}, JSON)) == ["is_superuser"]
        own = User.objects.get(username="boss")
        assert fields(boss.patch(f"{USERS}{own.pk}/", {"is_active": False}, JSON)) == ["is_active"]

    def test_another_password_ends_tokens_and_sessions(
        self, boss: Client, api: Client, editor: Any
    ) -> None:
        token_create(user=editor, name="nightly")
        one = f"{USERS}{editor.pk}/"
        assert boss.patch(one, {"password": NEW}, JSON).status_code == 200
        assert not ApiToken.objects.exists()
        assert api.get("/api/v1/replicators/").status_code == 401

    def test_who_is_shut_out_is_out_at_once(self, boss: Client, api: Client, editor: Any) -> None:
        _, text = token_create(user=editor, name="nightly")
        changed = boss.patch(f"{USERS}{editor.pk}/", {"is_active": False, "groups": []}, JSON)
        assert changed.json()["is_active"] is False
        bearer = {"Authorization": f"Bearer {text}"}
        assert Client().get("/api/v1/replicators/", headers=bearer).status_code == 401
        assert api.get("/api/v1/replicators/").status_code == 401
        row = AuditEntry.objects.get(act="user_changed")
        assert row.old_values == {"is_active": True, "groups": ["editor"]}
