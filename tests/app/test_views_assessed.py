"""Names of views are checked for the tables that get one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assessments import services
from replicators.config import ReplicatorConfig
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.problem import Problem
from replicators.targets.memory.checks import MemoryChecks
from tests.app.factories import config_fields

pytestmark = pytest.mark.django_db


def test_views_are_checked_for_the_tables_in_a_mode_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `ViewChecks`: a table whose own mode is a mirror has no view, so its view's name can't
    be taken. The other tables count too, since a view may not have the name of one."""

    def views(
        _: MemoryChecks,
        viewed: Sequence[TableSchema],
        chosen: Sequence[TableSchema],
        replicator: str,
    ) -> list[Problem]:
        assert [t.id.name for t in chosen] == ["orders", "customers"]
        assert isinstance(replicator, str)
        return [Problem.of("target:view-taken", table=t.id, view="v") for t in viewed]

    monkeypatch.setattr(MemoryChecks, "views", views, raising=False)
    tables = [
        {"schema": "shop", "name": "orders", "mode": "mirror"},
        {"schema": "shop", "name": "customers"},
    ]
    fields = config_fields(tables=tables, options={"mode": "soft_delete"})
    report = services.assess(ReplicatorConfig.parse(fields))
    found = [p.table for p in report.problems if p.code == "target:view-taken"]
    assert [t.name for t in found if t is not None] == ["customers"]
