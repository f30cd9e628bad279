"""PostgreSQL 15 as Debian packages it: what every source promises, and the log, the snapshot and the checks, once more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from setup.machine import OLDER_POSTGRES
from tests.harness import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

MODULES = (
    "contract/test_postgresql.py",
    "integration/test_postgresql_any_values.py",
    "integration/test_postgresql_catalog.py",
    "integration/test_postgresql_checks.py",
    "integration/test_postgresql_log.py",
    "integration/test_postgresql_partitions.py",
    "integration/test_postgresql_roles.py",
    "integration/test_postgresql_snapshot.py",
    "integration/test_postgresql_values.py",
)


ENGINE = (
    "integration/test_engine_cases.py",
    "integration/test_ddl.py",
    "integration/test_schema_policies.py",
    "crash/test_keyless.py",
    "crash/test_row_filters.py",
    "crash/test_transactions.py",
)


@pytest.mark.skipif(
    not OLDER_POSTGRES.is_dir(), reason="the package postgresql-15 is not installed"
)
@pytest.mark.parametrize(
    "modules",
    [
        MODULES,
        pytest.param(ENGINE, marks=[pytest.mark.long, pytest.mark.timeout(7200)]),
    ],
    ids=["source", "engine"],
)
def test_the_same_tests_pass_on_postgresql_15(modules: tuple[str, ...]) -> None:
    """Guards what asks for the server's version: its slots take no FAILOVER, its publications and catalogs lack what came
    later, and it sends no generated columns."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider",
               *(["--long", "-k", "not delta"] if modules is ENGINE else []),
               *(f"tests/{module}" for module in modules)]  # fmt: skip
    environment = {**os.environ, "TEST_POSTGRES_BIN": str(OLDER_POSTGRES)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "PostgreSQL 15" in done.stdout, "another server was tested"
