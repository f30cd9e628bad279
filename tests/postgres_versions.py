"""On which PostgreSQL a test runs: the wheel's, and with the mark `oldest_postgresql` also on 15 as
Debian packages it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.postgres import EmbeddedPostgres
from setup.machine import OLDER_POSTGRES

NEWEST, OLDEST = "newest", "oldest"
OPTIONS = {
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "track_commit_timestamp": "on",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A marked test runs on both servers. Another than the wheel's that is named in
    TEST_POSTGRES_BIN is the only one."""
    marker = metafunc.definition.get_closest_marker("oldest_postgresql")
    if marker is None or "postgres" not in metafunc.fixturenames:
        return
    if os.environ.get("TEST_POSTGRES_BIN"):
        return
    marks = [
        pytest.mark.skipif(
            not OLDER_POSTGRES.is_dir(), reason="the package postgresql-15 is not installed"
        ),
        *([pytest.mark.long] if marker.kwargs.get("is_long") else []),
    ]
    servers = [NEWEST, pytest.param(OLDEST, marks=marks)]
    metafunc.parametrize("postgres", servers, indirect=True, scope="session")


class Servers:
    """Each server that was asked for, started once."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._known: dict[str, EmbeddedPostgres] = {}

    def get(self, which: str) -> EmbeddedPostgres:
        """The server, without fsync; tests make databases on it, not servers."""
        if which not in self._known:
            named = os.environ.get("TEST_POSTGRES_BIN")
            folder = OLDER_POSTGRES if which == OLDEST else Path(named) if named else None
            server = EmbeddedPostgres(fsync=False, options=OPTIONS, bin_dir=folder)
            self._known[which] = self._opened.enter_context(server)
        return self._known[which]


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[Servers]:
    """The session's servers; they go on while tests change between them."""
    with ExitStack() as opened:
        yield Servers(opened)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest, postgres_servers: Servers) -> EmbeddedPostgres:
    """The session's PostgreSQL: the wheel's 18, or that of the folder in TEST_POSTGRES_BIN, or the
    oldest that is supported."""
    return postgres_servers.get(getattr(request, "param", NEWEST))
