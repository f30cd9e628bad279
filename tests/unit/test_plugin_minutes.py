"""Whose test a file is, and what the table of minutes says."""

from __future__ import annotations

import pytest

from tests import plugin_minutes

KNOWN = [
    ("source", "mysql"), ("source", "postgresql"), ("target", "files"), ("target", "postgresql"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("tests/unit/sources/test_postgresql_decode.py", ("source", "postgresql", True)),
        ("tests/unit/targets/test_postgresql_types.py", ("target", "postgresql", True)),
        ("tests/contract/test_postgresql_target.py", ("target", "postgresql", True)),
        ("tests/integration/test_postgresql_target_copy.py", ("target", "postgresql", True)),
        ("tests/integration/test_mysql_ddl.py", ("source", "mysql", True)),
        ("tests/spark/test_files_sink.py", ("target", "files", True)),
        ("tests/integration/test_engine_cases_mysql.py", ("source", "mysql", False)),
        ("tests/crash/test_mysql.py", ("source", "mysql", False)),
        ("tests/e2e/test_files_target.py", ("target", "files", False)),
        ("tests/integration/test_application_on_postgresql.py", ("source", "postgresql", False)),
        ("tests/unit/test_states.py", None),
    ],
)
def test_a_file_belongs_to_the_plugin_that_it_is_named_after(
    file: str, owner: tuple[str, str, bool] | None
) -> None:
    """Guards `plugin_minutes.owner`: a plugin whose tests count for nobody, or for another, would
    take what it likes."""
    assert plugin_minutes.owner(file, KNOWN) == owner


def test_what_is_over_the_limit_is_named_and_in_the_table() -> None:
    """Guards the sums: seconds of all own files together, without those of the engine's tests."""
    seconds = {
        "tests/contract/test_mysql.py": 100.0,
        "tests/integration/test_mysql_ddl.py": 90.4,
        "tests/crash/test_mysql.py": 500.0,
        "tests/contract/test_files.py": 179.0,
        "tests/unit/test_states.py": 900.0,
    }
    assert plugin_minutes.over(seconds, KNOWN) == ["source mysql 190 s"]
    table = plugin_minutes.table(seconds, KNOWN)
    assert "| source mysql |  | 100 s |  | 90 s | 190 s | over | 500 s |" in table
    assert "| target files |  | 179 s |  |  | 179 s | within |  |" in table
    assert plugin_minutes.file_of("tests/a.py::test_b[c::d]") == "tests/a.py"
    assert set(plugin_minutes.plugins()) >= set(KNOWN)
