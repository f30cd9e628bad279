"""A Python package that is missing is reported by its name, never as a target that is not
reachable."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from assessments.services import translated
from replicators.connectors import registry
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.errors import translate
from replicators.targets.lakehouse.params import LakehouseParams
from tests.unit.targets.test_lakehouse_leftovers import SCHEMA

CASES = [
    ("delta", "postgresql://db/c", "deltalake"),
    ("iceberg", "postgresql://db/c", "psycopg"),
    ("iceberg", "postgresql://db/c", "sqlalchemy"),
]


@pytest.mark.parametrize(("form", "uri", "package"), CASES)
def test_checks_name_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, uri: str, package: str
) -> None:
    """Guards `_problem`: "does not answer" sends people to a network that is fine."""
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    checks = LakehouseChecks(LakehouseParams(warehouse=str(tmp_path), format=form, catalog_uri=uri))
    for found in (checks.connection(), checks.tables([SCHEMA], "r1")):
        assert [(p.code, dict(p.facts)["driver"]) for p in found] == [
            ("target:driver-missing", package)
        ]


@pytest.mark.parametrize(
    ("plugin", "code"),
    [(PLUGIN, "target:driver-missing"), (registry.sources()["mysql"], "source:driver-missing")],
)
def test_so_does_whatever_opens_a_plugin(plugin: Any, code: str) -> None:
    """Guards `translated`; also a package whose own library can't be loaded."""
    for err in (ModuleNotFoundError("no", name="pack.part"), ImportError("libpq.so", name="pack")):
        with pytest.raises(ReplicationError) as caught, translated(plugin):
            raise err
        assert (caught.value.code, caught.value.facts["driver"]) == (code, "pack")
    assert translate(ImportError("no", name="pack")).code == "target:driver-missing"
