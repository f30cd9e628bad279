"""Who may call which address of REST and of the pages: one table, so that an address without a rule
fails."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from replicators.models import ApiToken, Replicator
from replicators.tokens import token_create
from tests.app.factories import make_replicator, make_user

pytestmark = pytest.mark.django_db

ONE = "/api/v1/replicators/{pk}/"
VERIFICATION = "00000000-0000-4000-8000-000000000001"
READ = {
    "/api/v1/", "/api/v1/plugins/", "/api/v1/plugins/source/memory/", "/api/v1/replicators/", ONE,
    f"{ONE}tables/quarantined/?schema=shop&table=orders",
    f"{ONE}tables/changes/?schema=shop&table=orders",
    "/replicators/{pk}/tables/quarantined/?schema=shop&table=orders",
    f"{ONE}export/", f"{ONE}status/", f"{ONE}logs/", f"{ONE}events/", f"{ONE}metrics/",
    f"{ONE}verifications/", f"{ONE}verifications/schedule/", f"{ONE}repairs/",
    "/replicators/{pk}/verify/", "/replicators/{pk}/subscribers/", f"{ONE}subscribers/",
    f"{ONE}watermarks/", f"{ONE}deliveries/", f"{ONE}tables/new/", f"{ONE}tables/",
    "/api/v1/drafts/", "/api/schema/", "/metrics", "/api/v1/changefeeds/",
    "/", "/activity/", "/drafts/", "/replicators/{pk}/", "/replicators/{pk}/logs/",
    "/replicators/{pk}/tables/", "/replicators/{pk}/head/", "/replicators/{pk}/charts/",
    "/replicators/{pk}/activity/", "/replicators/{pk}/configuration/",
    f"{ONE}conflicts/", "/replicators/{pk}/conflicts/",
    "/statements/", "/replicators/{pk}/statement/",
}  # fmt: skip
WRITE = {
    "/api/v1/replicators/", f"{ONE}resync/", f"{ONE}start/", f"{ONE}pause/", f"{ONE}resume/",
    f"{ONE}retry/", f"{ONE}tables/resync/", f"{ONE}tables/retry/",
    f"{ONE}tables/", f"{ONE}tables/ignore/", f"{ONE}tables/replay/",
    f"{ONE}tables/rewind/", "/replicators/{pk}/tables/rewind/",
    f"{ONE}verifications/", f"{ONE}repairs/",
    f"{ONE}verifications/{VERIFICATION}/cancel/", "/replicators/{pk}/verify/start/",
    "/replicators/{pk}/verify/schedule/", f"/replicators/{{pk}}/verify/{VERIFICATION}/cancel/",
    f"/replicators/{{pk}}/verify/{VERIFICATION}/repair/",
    "/api/v1/drafts/", "/api/v1/connections/test/", "/api/v1/sources/tables/",
    "/api/v1/sources/tables/describe/", "/api/v1/assess/",
    f"{ONE}connections/test/", f"{ONE}source/tables/", f"{ONE}source/tables/describe/",
    f"{ONE}subscribers/", "/replicators/{pk}/subscribers/register/",
    f"/replicators/{{pk}}/subscribers/{VERIFICATION}/remove/",
    "/replicators/{pk}/start/", "/replicators/{pk}/pause/", "/replicators/{pk}/resume/",
    "/replicators/{pk}/retry/",
    "/replicators/{pk}/tables/resync/", "/replicators/{pk}/tables/retry/",
    "/replicators/{pk}/tables/columns/", "/replicators/{pk}/tables/add/",
    "/replicators/{pk}/tables/remove/",
    "/replicators/{pk}/tables/pick/",
    "/replicators/{pk}/tables/ignore/",
    "/replicators/{pk}/tables/replay/",
    "/replicators/{pk}/delete/", "/replicators/{pk}/duplicate/", "/replicators/{pk}/edit/",
    "/replicators/new/",
}  # fmt: skip
OWN = {
    "/api/v1/tokens/",
    "/account/",
    "/account/password/",
    "/account/theme/",
    "/account/tokens/",
    "/api/",
}
ROWS = {
    f"{ONE}tables/changes/files/?schema=shop&table=orders&first=1&last=2": 410,
    f"{ONE}subscribers/search/changes/": 404,
    f"{ONE}subscribers/search/events/": 404,
    f"{ONE}subscribers/search/snapshot/?schema=shop&table=orders": 404,
}
"""What an editor gets where there are no changes yet."""
PARAMS = {"memory": {"namespace": "feeds"}, "files": {"location": "/tmp/feeds"}}  # noqa: S108
ADMINISTRATORS = {"/api/v1/audit/", "/audit/", "/api/v1/users/"}
OPEN = {"login", "logout"}
COVERED = {
    "index", "audit", "changefeeds", "statements", "statement",
    "token-list", "token-detail", "user-list", "user-detail",
    "replicator-resync-many",
    "replicator-list", "replicator-detail", "replicator-export", "replicator-status",
    "replicator-logs", "replicator-events", "replicator-metrics", "replicator-watermarks",
    "replicator-deliveries", "replicator-conflicts",
    "replicator-start",
    "replicator-pause", "replicator-resume", "replicator-resync", "replicator-retry",
    "replicator-retry-now", "replicator-rewind", "table-rewind",
    "draft-list", "draft-detail", "draft-assess", "draft-deploy", "plugins", "plugin",
    *(f"{row}-{look}" for row in ("draft", "replicator") for look in ("test-connection",
    "source-tables", "source-table")),
    "connection-test", "source-tables", "source-table", "assess", "api-schema", "metrics",
    "replicators", "activity", "drafts", "replicator", "replicator-activity", "replicator-head",
    "replicator-charts", "replicator-tables", "duplicate", "health",
    "replicator-configuration", "replicator-delete", "replicator-edit", "table-resync",
    "table-retry", "new",
    "table-add", "tables-pick", "table-columns", "table-remove", "tables", "table-quarantined",
    "table-replay",
    "replicator-quarantined", "replicator-replay",
    "verifications", "verification", "verification-cancel", "verification-rows", "repairs",
    "replicator-verify", "verify-start", "verify-schedule", "verify-cancel", "verify-rows",
    "verify-repair",
    "changes", "change-files",
    "subscribers", "subscriber", "subscriber-changes", "subscriber-events", "subscriber-snapshot",
    "replicator-subscribers", "subscriber-register", "subscriber-remove",
    "new-table-ignore", "replicator-new-tables",
    "replicator-ignore", "replicator-deletion",
    "draft", "draft-delete", "draft-name", "draft-source", "draft-target", "draft-tables",
    "draft-columns", "draft-advanced", "draft-assessment", "draft-summary", "account",
    "account-password", "account-theme", "token-new",
    "token-revoke", "api-guide", "styleguide", *OPEN,
}  # fmt: skip


def _names(patterns: list[Any]) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        if isinstance(pattern, URLResolver) and pattern.app_name != "admin":
            found |= _names(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and pattern.name:
            found.add(pattern.name)
    return found


def test_every_address_has_a_rule_here() -> None:
    assert _names(get_resolver().url_patterns) == COVERED


def _signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("path", sorted(READ))
def test_reading_needs_the_right_to_view(
    path: str, replicator: Replicator, viewer: Any, stranger: Any
) -> None:
    url = path.format(pk=replicator.pk)
    assert _signed_in(viewer).get(url).status_code == 200
    assert _signed_in(stranger).get(url).status_code == 403


@pytest.mark.parametrize("path", sorted(WRITE))
def test_writing_needs_the_right_to_edit(
    path: str, replicator: Replicator, viewer: Any, stranger: Any, editor: Any
) -> None:
    url = path.format(pk=replicator.pk)
    for user in (viewer, stranger):
        assert _signed_in(user).post(url, {}, "application/json").status_code == 403
    assert _signed_in(editor).post(url, {}, "application/json").status_code != 403


MAKING = {
    "/api/v1/replicators/", "/api/v1/drafts/", "/api/v1/connections/test/",
    "/api/v1/sources/tables/", "/api/v1/sources/tables/describe/", "/api/v1/assess/",
    "/replicators/new/",
}  # fmt: skip
"""What names nothing of somebody's."""


@pytest.fixture
def maker(db: None) -> Any:
    """May make feeds."""
    return make_user("maker", "feed-maker")


def _owned_by(maker: Any, kind: str) -> Replicator:
    row = make_replicator(f"into {kind}", target_kind=kind, target_params=PARAMS[kind])
    Replicator.objects.filter(pk=row.pk).update(created_by=maker)
    return row


def _statuses(client: Client, row: Replicator, paths: set[str]) -> dict[str, int]:
    urls = {path: path.format(pk=row.pk) for path in sorted(paths)}
    return {p: client.post(url, {}, "application/json").status_code for p, url in urls.items()}


def test_a_maker_of_feeds_sees_what_a_viewer_sees(replicator: Replicator, maker: Any) -> None:
    client = _signed_in(maker)
    found = {path: client.get(path.format(pk=replicator.pk)).status_code for path in READ}
    assert {path for path, status in found.items() if status != 200} == set()


def test_a_maker_of_feeds_changes_its_own_feeds_alone(replicator: Replicator, maker: Any) -> None:
    """Guards every address that changes something: another's replicator, and one of the person's
    own that is no feed, are refused; the person's own feed is not, until the right is taken
    away."""
    client, named = _signed_in(maker), WRITE - MAKING
    for other in (replicator, _owned_by(maker, "memory")):
        assert {p for p, s in _statuses(client, other, named).items() if s != 403} == set()
    mine = _owned_by(maker, "files")
    assert {p for p, s in _statuses(client, mine, named | MAKING).items() if s == 403} == set()
    maker.groups.set(Group.objects.filter(name="viewer"))
    late = _statuses(_signed_in(maker), mine, named | MAKING)
    assert {p for p, s in late.items() if s != 403} == set()


def test_a_maker_of_feeds_reads_rows_of_its_own_feeds_alone(
    replicator: Replicator, maker: Any
) -> None:
    client, mine = _signed_in(maker), _owned_by(maker, "files")
    for path, status in ROWS.items():
        assert client.get(path.format(pk=replicator.pk)).status_code == 403
        assert client.get(path.format(pk=mine.pk)).status_code == status


@pytest.mark.parametrize("path", sorted(ROWS))
def test_reading_rows_needs_a_right_of_its_own(
    path: str, replicator: Replicator, viewer: Any, editor: Any
) -> None:
    url = path.format(pk=replicator.pk)
    assert _signed_in(viewer).get(url).status_code == 403
    assert _signed_in(editor).get(url).status_code == ROWS[path]


@pytest.mark.parametrize("path", sorted(ADMINISTRATORS))
def test_some_pages_are_for_administrators_alone(path: str, editor: Any) -> None:
    assert _signed_in(editor).get(path).status_code == 403
    assert _signed_in(make_user("boss", is_superuser=True)).get(path).status_code == 200


@pytest.mark.parametrize("path", sorted(READ | WRITE | OWN | set(ROWS) | ADMINISTRATORS))
def test_nothing_is_open_without_signing_in(path: str, replicator: Replicator) -> None:
    response = Client().get(path.format(pk=replicator.pk))
    if path.startswith(("/api/v1/", "/api/schema/", "/metrics")):
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == "Bearer"
    else:
        assert response.status_code == 302
        assert response["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("path", sorted(p for p in READ | WRITE if p.startswith("/api/v1/")))
def test_rest_refuses_a_query_parameter_that_it_does_not_know(
    path: str, replicator: Replicator, editor: Any
) -> None:
    """Guards `?status=failed`, which was answered with all replicators."""
    url = path.format(pk=replicator.pk)
    url += f"{'&' if '?' in url else '?'}nonsense=1"
    client = _signed_in(editor)
    calls = [client.get] * (path in READ) + [client.post] * (path in WRITE)
    for call in calls:
        answer = call(url, content_type="application/json")
        assert answer.status_code == 400, answer.content
        assert answer.json()["fields"] == {"nonsense": ["This query parameter is not known."]}


@pytest.mark.parametrize("act", ["start", "pause", "resume", "retry", "tables/retry"])
def test_actions_are_not_done_by_get(act: str, replicator: Replicator, editor: Any) -> None:
    client = _signed_in(editor)
    assert client.get(f"/replicators/{replicator.pk}/{act}/").status_code == 405
    assert client.get(f"/api/v1/replicators/{replicator.pk}/{act}/").status_code == 405


@pytest.mark.parametrize("word", ["Bearer", "bearer", "Token"])
def test_a_token_is_known_by_its_digest_and_refused_once_revoked(word: str, editor: Any) -> None:
    token, text = token_create(user=editor, name="nightly")
    headers = {"Authorization": f"{word} {text}"}
    assert text not in token.digest
    assert Client().get("/api/v1/replicators/", headers=headers).status_code == 200
    token.refresh_from_db()
    assert token.last_used_at is not None
    ApiToken.objects.all().delete()
    refused = Client().get("/api/v1/replicators/", headers=headers)
    assert refused.status_code == 401
    assert refused.json()["code"] == "authentication-failed"


def test_a_token_needs_no_csrf_and_a_session_does(editor: Any, replicator: Replicator) -> None:
    _, text = token_create(user=editor, name="nightly")
    url = f"/api/v1/replicators/{replicator.pk}/pause/"
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(url, headers={"Authorization": f"Bearer {text}"}).status_code == 202
    strict.force_login(editor)
    assert strict.post(url).status_code == 403
