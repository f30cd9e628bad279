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
    "integration/test_postgresql_catalog.py",
    "integration/test_postgresql_checks.py",
    "integration/test_postgresql_log.py",
    "integration/test_postgresql_snapshot.py",
    "integration/test_postgresql_values.py",
)


@pytest.mark.skipif(
    not OLDER_POSTGRES.is_dir(), reason="the package postgresql-15 is not installed"
)
def test_the_tests_of_the_source_pass_on_postgresql_15() -> None:
    """Its slots take no FAILOVER, its publications and catalogs lack what came later."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider",
               *(f"tests/{module}" for module in MODULES)]  # fmt: skip
    environment = {**os.environ, "TEST_POSTGRES_BIN": str(OLDER_POSTGRES)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "PostgreSQL 15" in done.stdout, "another server was tested"
