"""The views of the living rows in a lakehouse's catalog, read by Spark. A test class inherits
`LakehouseViews` beside its fixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import MergeTarget, TargetPlugin, TargetTable
from replicators.targets.lakehouse.sessions import LentSession
from runners.engine.tasks.on_spark import SparkTasks
from tests.sql_views import IsThere, Opened, Shown, SqlViews, Statement

STATEMENTS = ("DROP VIEW", "SET TBLPROPERTIES ('replicator.view", "CREATE VIEW")


class Killed(Exception):
    """The process is gone."""


class LakehouseViews(SqlViews):
    """As the views of SQL targets: same option, same names, same refusals."""

    @pytest.fixture
    def viewing(self, plugin: TargetPlugin, params: Any, spark: Any) -> Opened:
        def opened(**given: Any) -> MergeTarget:
            asked = replace(params, **{"current_views": True, **given})
            return plugin.writer(asked, SparkTasks(spark))

        return opened

    @pytest.fixture
    def place(self, params: Any) -> Callable[[str], str]:
        """The name of a table or view in SQL."""
        return lambda name: f"`{params.catalog_name}`.`contract`.`{name}`"

    @pytest.fixture
    def shown(self, place: Callable[[str], str], spark: Any) -> Shown:
        def rows(name: str) -> list[dict[str, Any]]:
            found = spark.sql(f"SELECT * FROM {place(name)} ORDER BY 1").collect()
            return [row.asDict() for row in found]

        return rows

    @pytest.fixture
    def statement(self, place: Callable[[str], str], spark: Any) -> Statement:
        def run(text: str) -> None:
            before, _, rest = text.partition("{")
            name, _, after = rest.partition("}")
            spark.sql(f"{before}{place(name)}{after}")

        return run

    @pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("step", STATEMENTS)
    def test_a_view_that_died_is_made_by_the_next_process(
        self,
        viewing: Opened,
        wide: TableSchema,
        shown: Shown,
        is_there: IsThere,
        folded: Any,
        monkeypatch: pytest.MonkeyPatch,
        step: str,
        is_done: bool,
    ) -> None:
        """Guards the property that is written first: without it, the view of another name would
        stay for good. Each statement of a copy under another name of its view and with fewer
        columns."""
        table = TargetTable(wide.id, "r1", 1, mode=Mode.SOFT_DELETE)
        live = self.copy(viewing(), wide, table, 1)
        narrow = replace(wide, columns=wide.columns[:2])
        real = LentSession.sql

        def sql(session: LentSession, text: str) -> Any:
            if step in text and not is_done:
                raise Killed(text)
            made = real(session, text)
            if step in text:
                raise Killed(text)
            return made

        second = replace(live, generation=2)
        with monkeypatch.context() as patched:
            patched.setattr(LentSession, "sql", sql)
            with pytest.raises(ReplicationError) as info:
                self.copy(viewing(view_suffix="_now"), narrow, second, 2)
        assert isinstance(info.value.__cause__, Killed)
        rows = [{"id": 2, "name": "N2", "_deleted_at": None}]
        batch = folded(narrow, 20, rows, Mode.SOFT_DELETE)
        assert viewing(view_suffix="_now").merge(second, batch).was_applied
        assert shown(f"{wide.id.name}_now") == [{"id": 2, "name": "N2"}]
        assert not is_there(f"{wide.id.name}_current")
