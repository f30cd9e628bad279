"""Sign in, account, tokens, theme, and what no page may have."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators import throttle
from replicators.models import ApiToken, Replicator, Tries
from tests.app.factories import PASSWORD

pytestmark = pytest.mark.django_db


def test_signing_in_leads_to_the_page_that_was_asked_for(client: Client, editor: Any) -> None:
    page = client.get("/sign-in/?next=/account/")
    assert page.status_code == 200
    form = {"username": "editor", "password": PASSWORD, "next": "/account/"}
    assert client.post("/sign-in/", form)["Location"] == "/account/"


def test_guessing_is_slowed_down_even_for_the_right_password(client: Client, editor: Any) -> None:
    wrong = {"username": "editor", "password": "guess"}
    for _ in range(throttle.PER_NAME):
        assert client.post("/sign-in/", wrong).status_code == 422
    refused = client.post("/sign-in/", {"username": "Editor", "password": PASSWORD})
    assert refused.status_code == 429
    assert "Too many tries" in refused.content.decode()
    assert refused["Retry-After"] == str(throttle.WINDOW_SECONDS)


def test_one_address_can_not_try_many_names(client: Client) -> None:
    for number in range(throttle.PER_ADDRESS):
        throttle.failed(f"name {number}", "127.0.0.1")
    assert client.post("/sign-in/", {"username": "x", "password": "y"}).status_code == 429


def test_a_window_ends_and_a_right_password_ends_it_too(client: Client, editor: Any) -> None:
    """Guards `Tries.ends_at`, and that counts lie in the database: each web process counted for
    itself, and a restart forgot."""
    wrong = {"username": "editor", "password": "guess"}
    for _ in range(throttle.PER_NAME):
        client.post("/sign-in/", wrong)
    assert [row.count for row in Tries.objects.order_by("count")] == [throttle.PER_NAME] * 2
    Tries.objects.update(ends_at=timezone.now())
    right = {"username": "editor", "password": PASSWORD}
    assert client.post("/sign-in/", wrong).status_code == 422
    assert client.post("/sign-in/", right).status_code == 302
    assert [row.count for row in Tries.objects.all()] == [1]  # of the address


def test_the_old_password_can_not_be_guessed_on_the_account_page(
    browser: Client, editor: Any
) -> None:
    """Guards `views.password`: whoever finds an open session could try passwords there without
    end."""
    new = "another-horse-staple"
    form = {"old_password": "guess", "new_password1": new, "new_password2": new}
    for _ in range(throttle.PER_NAME):
        assert browser.post("/account/password/", form).status_code == 422
    refused = browser.post("/account/password/", {**form, "old_password": PASSWORD})
    assert refused.status_code == 429
    assert "Too many tries" in refused.content.decode()
    assert refused["Retry-After"] == str(throttle.WINDOW_SECONDS)
    editor.refresh_from_db()
    assert editor.check_password(PASSWORD)


@pytest.mark.parametrize("url", ["/", "/account/", "/api/v1/replicators/", "/metrics", "/none/"])
def test_nobody_keeps_what_was_answered_to_somebody(browser: Client, url: str) -> None:
    """Guards `project.no_store`: after a sign-out the Back button, or a proxy, showed the page
    again."""
    assert "no-store" in browser.get(url)["Cache-Control"]


def test_a_token_is_shown_once(browser: Client) -> None:
    made = browser.post("/account/tokens/", {"name": "nightly"}).content.decode()
    text = re.search(r'value="(rpl_[^"]+)"', made)
    assert text
    assert text[1] not in browser.get("/account/").content.decode()
    token = ApiToken.objects.get()
    browser.post(f"/account/tokens/{token.pk}/revoke/")
    assert not ApiToken.objects.exists()


def test_a_token_of_somebody_else_is_not_there(browser: Client, viewer: Any) -> None:
    token = ApiToken.objects.create(user=viewer, name="theirs", digest="x")
    assert browser.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404


def test_the_password_is_changed_and_the_session_stays(browser: Client, editor: Any) -> None:
    new = "another-horse-staple"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert browser.post("/account/password/", form).status_code == 302
    assert browser.get("/account/").status_code == 200
    editor.refresh_from_db()
    assert editor.check_password(new)
    assert browser.post("/account/password/", form).status_code == 422


def test_the_theme_is_kept_in_a_cookie(browser: Client) -> None:
    browser.post("/account/theme/", {"theme": "dark"})
    assert 'data-bs-theme="dark"' in browser.get("/account/").content.decode()
    browser.post("/account/theme/", {"theme": ""})
    assert "data-bs-theme" not in browser.get("/account/").content.decode()


def test_the_style_guide_is_there_only_with_debug(browser: Client, settings: Any) -> None:
    settings.DEBUG = False
    assert browser.get("/styleguide/").status_code == 404
    settings.DEBUG = True
    assert browser.get("/styleguide/").status_code == 200


PAGES = (
    "/", "/activity/", "/drafts/", "/replicators/new/", "/account/", "/api/",
    "/replicators/{pk}/", "/replicators/{pk}/logs/", "/replicators/{pk}/activity/",
    "/replicators/{pk}/configuration/", "/replicators/{pk}/delete/",
)  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_inline_script_or_style(
    path: str, browser: Client, replicator: Replicator
) -> None:
    response = browser.get(path.format(pk=replicator.pk))
    html = response.content.decode()
    assert response.status_code == 200
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|hx-on", html)
    assert not re.search(r'(?:src|href|action|hx-get|hx-post)="(?:https?:)?//', html)
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert 'data-testid="banner"' in html
