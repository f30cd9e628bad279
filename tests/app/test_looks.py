"""Looks into sources and targets: each has a time limit, and there are never so many that the pages
have no thread left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from assessments import looks, services
from assessments.looks import Looks, LookTimedOut, TooManyLooks
from drafts.services import draft_create
from replicators.config import ReplicatorConfig
from replicators.connectors import limits
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from tests.app.factories import config_fields
from tests.app.pages import htmx
from tests.fakes.silent import SilentServer

SECONDS = 1.0
pytestmark = pytest.mark.django_db
KINDS = ("postgresql", "mysql")


@pytest.fixture(params=KINDS)
def silent(request: pytest.FixtureRequest) -> Iterator[tuple[str, SilentServer]]:
    with getattr(SilentServer, request.param)() as server:
        yield request.param, server


@pytest.fixture(autouse=True)
def _short(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.LOOK_SECONDS = SECONDS
    looks._looks.cache_clear()


def params_of(kind: str, server: SilentServer) -> dict[str, Any]:
    place = {"host": "127.0.0.1", "port": server.port, "user": "u", "password": "p"}
    return {**place, "database": "d"}


def assert_free(server: SilentServer) -> None:
    """The connection was cut off, and its place is free again."""
    assert server.gone.acquire(timeout=5), "the connection stayed"
    deadline = time.monotonic() + 5
    while any(t.name == "look" for t in threading.enumerate()):
        assert time.monotonic() < deadline, "the look still waits"


@pytest.mark.parametrize(
    "ask",
    [
        lambda source: services.list_tables(**source),
        lambda source: services.describe_table(**source, table=TableId("shop", "orders")),
    ],
    ids=["list", "describe"],
)
def test_a_server_that_signs_in_and_then_stays_silent_is_left_in_time(
    silent: tuple[str, SilentServer], ask: Callable[[dict[str, Any]], Any]
) -> None:
    """Guards `limits.watch`: neither driver has a limit of its own for the whole, and libpq none at
    all."""
    kind, server = silent
    began = time.monotonic()
    with pytest.raises(ReplicationError) as caught:
        ask({"kind": kind, "params": params_of(kind, server)})
    assert caught.value.code == "source:timeout"
    assert caught.value.facts["seconds"] == "1"
    assert time.monotonic() - began < SECONDS + 2
    assert server.asked == 1
    assert_free(server)


def test_an_assessment_names_the_source_that_stays_silent(
    silent: tuple[str, SilentServer],
) -> None:
    """Guards `services.assess`: it asked without a limit."""
    kind, server = silent
    fields = config_fields(source_kind=kind, source_params=params_of(kind, server))
    report = services.assess(ReplicatorConfig.parse(fields))
    assert "source:timeout" in [p.code for p in report.problems]
    assert_free(server)


def test_a_test_and_a_look_at_the_log_leave_no_thread_behind(
    silent: tuple[str, SilentServer],
) -> None:
    """Guards `connection_test`: it answered in time, and its thread hung for ever."""
    kind, server = silent
    found = services.connection_test(role="source", kind=kind, params=params_of(kind, server))
    assert [p.code for p in found] == ["source:timeout"]
    assert_free(server)
    params = services._params("source", kind, params_of(kind, server))
    position = Position(1, {})
    assert services.log_fault(kind=kind, params=params, name="r", position=position) is None
    assert_free(server)


def test_a_catalog_that_stays_silent_is_left_in_time(tmp_path: Path) -> None:
    """Guards `catalog._watched`: SQLAlchemy asks a new connection for its version, and has no limit
    for the answer."""
    with SilentServer.postgresql() as server:
        target = {
            "warehouse": str(tmp_path / "lake"),
            "catalog_uri": f"postgresql://127.0.0.1:{server.port}/lake",
            "catalog_user": "u",
            "catalog_password": "p",
        }
        found = services.connection_test(role="target", kind="lakehouse", params=target)
        assert [p.code for p in found] == ["target:timeout"]
        assert_free(server)


class TestLooks:
    """The places, without a server."""

    def test_no_more_than_so_many_go_on_and_nobody_waits_for_a_place(self) -> None:
        pool, go_on, results = Looks(2), threading.Event(), []
        asked = [
            threading.Thread(target=lambda: results.append(pool.ask(go_on.wait, 30)))
            for _ in range(2)
        ]
        for thread in asked:
            thread.start()
        deadline = time.monotonic() + 5
        while sum(t.name == "look" for t in threading.enumerate()) < 2:
            assert time.monotonic() < deadline
        with pytest.raises(TooManyLooks):
            pool.ask(lambda: 1, 30)
        go_on.set()
        for thread in asked:
            thread.join(5)
        assert results == [True, True]
        assert pool.ask(lambda: 1, 30) == 1

    def test_a_look_that_can_not_be_cut_off_keeps_its_place_until_it_ends(self) -> None:
        """A place that was given away again would let hanging looks grow without end."""
        pool, go_on = Looks(1), threading.Event()
        with pytest.raises(LookTimedOut):
            pool.ask(go_on.wait, 0.05)
        with pytest.raises(TooManyLooks):
            pool.ask(lambda: 1, 30)
        go_on.set()
        deadline = time.monotonic() + 5
        while True:
            try:
                assert pool.ask(lambda: 1, 30) == 1
                break
            except TooManyLooks:
                assert time.monotonic() < deadline

    def test_what_the_look_raises_is_raised_also_a_time_out_of_its_own(self) -> None:
        def fail() -> None:
            raise TimeoutError("its own")

        with pytest.raises(TimeoutError, match="its own"):
            Looks(1).ask(fail, 30)

    def test_a_connection_that_is_made_after_the_end_is_cut_off_at_once(self) -> None:
        with SilentServer.postgresql() as server:
            import socket

            limit = limits.Limit(1)
            limit.end()
            with socket.create_connection(("127.0.0.1", server.port)) as late:
                limit.watch(late.fileno())
                assert late.recv(1) == b""
            limit.close()

    def test_a_run_has_no_limit(self) -> None:
        assert limits.left(60) == 60
        assert limits.statement_seconds() is None


class TestAnswers:
    """What people and programs are told."""

    @pytest.fixture(autouse=True)
    def _full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any) -> None:
            raise TooManyLooks

        monkeypatch.setattr(services, "look", refuse)

    def test_rest_says_when_to_ask_again(self, browser: Client) -> None:
        body = {"kind": "memory", "params": {"host": "h"}}
        for url in ("sources/tables", "connections/test"):
            more = {"role": "source"} if url == "connections/test" else {}
            found = browser.post(
                f"/api/v1/{url}/", {**body, **more}, content_type="application/json"
            )
            assert (found.status_code, found["Retry-After"]) == (503, "5")
            assert found.json()["code"] == "too-many-looks"
            assert "Too many looks" in found.json()["message"]

    @pytest.mark.parametrize("is_debug", [True, False])
    def test_a_page_says_so_too(self, browser: Client, settings: Any, is_debug: bool) -> None:
        settings.DEBUG = is_debug
        draft = draft_create(actor=None, **config_fields())
        for headers in ({}, htmx()):
            found = browser.post(
                f"/drafts/{draft.pk}/assessment/",
                {"act": "run", "version": draft.version},
                headers=headers,
            )
            assert (found.status_code, found["Retry-After"]) == (503, "5")
            assert "Too many looks" in found.content.decode()


def test_a_time_out_is_504_in_rest(browser: Client) -> None:
    """Guards `api.errors._STATUS`: 502 says that the server answered wrongly."""
    with SilentServer.postgresql() as server:
        found = browser.post(
            "/api/v1/sources/tables/",
            {"kind": "postgresql", "params": params_of("postgresql", server)},
            content_type="application/json",
        )
        assert (found.status_code, found.json()["code"]) == (504, "source:timeout")


def test_what_a_server_is_told_differs_between_a_look_and_a_run() -> None:
    """Guards `limits.statement_seconds`: the server itself would go on with what nobody waits for
    any more; a copy takes hours."""
    from replicators.connectors.postgres import connections as postgres
    from replicators.sources.mysql import connections as mysql

    reported = (mysql._settings, lambda: str(postgres.limited(postgres.SETTINGS)))
    wanted = ("max_execution_time = 0,", "max_statement_time = 0,", "'statement_timeout': '0'")
    in_a_run = " ".join(make() for make in reported)
    assert all(text in in_a_run for text in wanted)
    with limits.limited(limits.Limit(1)):
        in_a_look = " ".join(make() for make in reported)
    assert "max_execution_time = 2000," in in_a_look
    assert "max_statement_time = 2," in in_a_look
    assert "'statement_timeout': '2000'" in in_a_look
