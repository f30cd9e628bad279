"""Tokens end: by their time, with a password, by an administrator; one that may read does not
write. People's accounts in the audit trail."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from replicators.audit import AuditEntry
from replicators.invalid import InvalidConfig
from replicators.models import ApiToken, Replicator, Scope
from replicators.tokens import KEPT_DAYS, token_create, tokens_expire
from tests.app.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db
NEW = "another-horse-staple"
LIST = "/api/v1/replicators/"


@pytest.fixture(autouse=True)
def _no_counts() -> None:
    cache.clear()


@pytest.fixture
def boss(db: None) -> Client:
    """Signed in as an administrator."""
    client = Client()
    client.force_login(make_user("boss", is_superuser=True, is_staff=True))
    return client


def reported(act: str) -> AuditEntry:
    return AuditEntry.objects.filter(act=act)[0]


def asks(text: str, method: str = "get", url: str = LIST) -> int:
    answer = getattr(Client(), method)(url, headers={"Authorization": f"Bearer {text}"})
    return int(answer.status_code)


class TestEnd:
    def test_a_token_is_refused_from_its_end_on(self, editor: Any) -> None:
        token, text = token_create(user=editor, name="nightly", days=1)
        assert asks(text) == 200
        ApiToken.objects.update(expires_at=timezone.now())
        answer = Client().get(LIST, headers={"Authorization": f"Bearer {text}"})
        assert answer.status_code == 401
        assert "has ended" in answer.json()["message"]
        assert tokens_expire() == 1
        assert tokens_expire() == 0
        assert reported("token_expired").object_name == "nightly"
        assert ApiToken.objects.exists()
        tokens_expire(timezone.now() + timedelta(days=KEPT_DAYS + 1))
        assert not ApiToken.objects.exists()

    @pytest.mark.parametrize(
        ("longest", "days", "is_taken"),
        [(30, 30, True), (30, 31, False), (30, 0, False), (0, 0, True), (0, 9_999, True)],
    )
    def test_the_end_is_within_the_setting(
        self, editor: Any, settings: Any, longest: int, days: int, is_taken: bool
    ) -> None:
        settings.TOKEN_MAX_SECONDS = longest * 86400
        if is_taken:
            token, _ = token_create(user=editor, name="a", days=days)
            assert (token.expires_at is None) == (days == 0)
        else:
            with pytest.raises(InvalidConfig, match="days"):
                token_create(user=editor, name="a", days=days)

    def test_unless_said_otherwise_the_setting_holds(self, editor: Any, settings: Any) -> None:
        settings.TOKEN_SECONDS = 7 * 86400
        token, _ = token_create(user=editor, name="a")
        assert token.expires_at is not None
        assert token.expires_at - timezone.now() < timedelta(days=7)


class TestScope:
    def test_a_token_that_may_read_does_not_write(
        self, editor: Any, replicator: Replicator
    ) -> None:
        _, text = token_create(user=editor, name="reader", scope=Scope.READ)
        url = f"{LIST}{replicator.pk}/start/"
        assert asks(text) == 200
        refused = Client().post(url, headers={"Authorization": f"Bearer {text}"})
        assert (refused.status_code, "only read" in refused.json()["message"]) == (403, True)
        _, text = token_create(user=editor, name="writer")
        assert asks(text, "post", url) == 202

    def test_what_a_token_makes_is_no_more_than_itself(self, editor: Any) -> None:
        maker, _ = token_create(user=editor, name="maker", days=2)
        made, _ = token_create(user=editor, name="made", days=30, maker=maker)
        assert made.expires_at == maker.expires_at
        reader, _ = token_create(user=editor, name="reader", scope=Scope.READ)
        with pytest.raises(InvalidConfig, match="scope"):
            token_create(user=editor, name="writer", maker=reader)


class TestPassword:
    @pytest.mark.parametrize("keeps", [True, False])
    def test_tokens_end_with_the_password_unless_they_are_kept(
        self, browser: Client, editor: Any, keeps: bool
    ) -> None:
        _, text = token_create(user=editor, name="nightly")
        form = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
        form |= {"keep_tokens": "true"} if keeps else {}
        assert 'name="keep_tokens"' in browser.get("/account/").content.decode()
        assert browser.post("/account/password/", form).status_code == 302
        assert asks(text) == (200 if keeps else 401)
        assert reported("password_changed").new_values == ({} if keeps else {"tokens_ended": 1})
        assert AuditEntry.objects.filter(act="token_revoked").exists() is not keeps
        assert NEW not in str(list(AuditEntry.objects.values()))

    def test_tokens_end_with_a_password_that_an_administrator_gives(
        self, boss: Client, editor: Any
    ) -> None:
        _, text = token_create(user=editor, name="nightly")
        form = {"password1": NEW, "password2": NEW, "usable_password": "true"}
        answer = boss.post(f"/admin/auth/user/{editor.pk}/password/", form)
        assert answer.status_code == 302
        assert asks(text) == 401
        row = reported("password_changed")
        assert (row.actor, row.how, row.object_name) == ("boss", "administration", "editor")


class TestPages:
    def test_a_token_is_made_with_its_end_and_scope(self, browser: Client) -> None:
        form = {"name": "nightly", "days": "5", "scope": "read"}
        page = browser.post("/account/tokens/", form).content.decode()
        token = ApiToken.objects.get()
        assert re.search(r'value="rpl_', page)
        assert token.scope == "read"
        assert token.expires_at is not None
        assert f"{token.expires_at:%Y-%m-%d}" in page
        row = reported("token_made")
        assert row.new_values["scope"] == "read"
        assert token.digest not in str(row.new_values)
        browser.post(f"/account/tokens/{token.pk}/revoke/")
        assert reported("token_revoked").actor == "editor"

    @pytest.mark.parametrize("days", ["0", "99999", "x", "-1"])
    def test_an_end_that_can_not_be_is_refused_with_what_was_typed(
        self, browser: Client, days: str
    ) -> None:
        answer = browser.post("/account/tokens/", {"name": "nightly", "days": days})
        assert answer.status_code == 422
        assert "must be a number from 1 to 365" in answer.content.decode()
        assert 'value="nightly"' in answer.content.decode()

    def test_an_administrator_revokes_anybodys_token(self, boss: Client, editor: Any) -> None:
        token, text = token_create(user=editor, name="nightly")
        assert "nightly" in boss.get("/admin/replicators/apitoken/").content.decode()
        url = f"/admin/replicators/apitoken/{token.pk}/delete/"
        assert boss.post(url, {"post": "yes"}).status_code == 302
        assert asks(text) == 401
        assert reported("token_revoked").actor == "boss"


class TestAccounts:
    def test_who_came_who_did_not_and_who_went(self, client: Client, editor: Any) -> None:
        client.post("/sign-in/", {"username": "editor", "password": "wrong"})
        client.post("/sign-in/", {"username": PASSWORD, "password": "editor"})
        client.post("/sign-in/", {"username": "editor", "password": PASSWORD})
        client.post("/sign-out/")
        rows = AuditEntry.objects.order_by("id")
        assert [(r.act, r.actor, r.object_name) for r in rows] == [
            ("sign_in_failed", "", "editor"),
            ("sign_in_failed", "", "a name of no user"),
            ("signed_in", "editor", "editor"),
            ("signed_out", "editor", "editor"),
        ]
        assert {r.address for r in rows} == {"127.0.0.1"}

    def test_what_an_administrator_does_to_users_and_groups(self, boss: Client) -> None:
        form = {
            "username": "new",
            "password1": NEW,
            "password2": NEW,
            "usable_password": "true",
        }
        assert boss.post("/admin/auth/user/add/", form).status_code == 302
        row = reported("user_made")
        assert (row.actor, row.object_name, row.new_values["username"]) == ("boss", "new", "new")
        assert NEW not in str(row.new_values)
        url = f"/admin/auth/user/{row.object_id}/change/"
        changes = {"username": "new", "is_active": "", "is_staff": "on", "groups": []}
        joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
        assert boss.post(url, {**changes, **joined}).status_code == 302
        row = reported("user_changed")
        assert row.old_values["is_staff"] is False
        assert row.new_values["is_staff"] is True
        assert boss.post(url.replace("change", "delete"), {"post": "yes"}).status_code == 302
        assert reported("user_deleted").object_name == "new"
