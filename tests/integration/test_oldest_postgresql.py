"""PostgreSQL 15 as Debian packages it: tests with the mark `oldest_postgresql` run on it too, the
engine's own in `make test-long`."""

from __future__ import annotations

import pytest

from demo.postgres import EmbeddedPostgres
from tests.postgres_versions import OLDEST

pytestmark = [pytest.mark.integration, pytest.mark.oldest_postgresql]


def test_a_marked_test_has_the_server_that_its_name_says(
    postgres: EmbeddedPostgres, request: pytest.FixtureRequest
) -> None:
    """Guards what asks for the server's version: its slots take no FAILOVER, its publications and
    catalogs lack what came later, and it sends no generated columns. Were both of the mark's cases
    on one server, none of that would be seen."""
    major = postgres.execute("SHOW server_version")[0][0].split(".")[0]
    assert (major == "15") is (OLDEST in request.node.callspec.id)
