"""Unusual keys, unsent values, transactions, shapes and names: many small tables, one replicator, the whole path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from runners.models import Table
from tests.harness import CATALOG, World
from tests.integration.source_cases import CASES, FEWER, Case, make_cases, one_round
from tests.model.reading import PostgresTable, delta_rows, iceberg_rows
from tests.model.verify import table_differences
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]
SETTLE_SECONDS = 1200.0
"""Some forty copies and as many merges, one after the other where the cores are busy."""


class CaseWorld(World):
    """A world of the cases' tables, in schemas and namespaces of their own."""

    cases: ClassVar[Sequence[Case]] = CASES

    @property
    def namespace(self) -> str:
        return ""

    def chosen(self) -> list[dict[str, Any]]:
        return [{"schema": c.schema, "name": c.name} for c in self.cases]

    def case_states(self) -> dict[str, str]:
        """State and error of every table that does not replicate."""
        rows = Table.objects.filter(replicator=self.replicator).exclude(state="replicating")
        return {str(r): f"{r.state} {r.error_code} {r.error_facts}" for r in rows}

    def settled(self) -> None:
        """Every table that is not failing has everything that was committed by now."""
        mark = self.mark()
        self.until(
            lambda: (
                all(s.startswith("failing") for s in self.case_states().values())
                and self.position() >= mark
                and not self.unmerged()
            ),
            "all cases settled",
            SETTLE_SECONDS,
        )

    def told(self, case: Case) -> list[str]:
        """What differs between a table and its copy."""
        source = PostgresTable(self.database.dsn, case.schema, case.name, only=case.only)
        _, _, differences = table_differences(source, *self._copy(case))
        return [f"{case.sql_name}: {d}" for d in differences]

    def _copy(self, case: Case) -> Any:
        if self.format == "delta":
            from replicators.targets.lakehouse import naming

            names = (naming.folder(case.schema), naming.folder(case.name))
            return delta_rows(self.warehouse.joinpath(*names))
        uri = f"sqlite:///{self.folder}/catalog.db"
        return iceberg_rows(uri, str(self.warehouse), CATALOG, (case.schema, case.name))


class FewerWorld(CaseWorld):
    """Only the cases of `make test`."""

    cases = FEWER


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("iceberg", FewerWorld),
        pytest.param("iceberg", CaseWorld, marks=pytest.mark.long),
        pytest.param("delta", CaseWorld, marks=pytest.mark.long),
    ],
    ids=["iceberg", "iceberg, all", "delta, all"],
)
def test_every_case_of_the_source_arrives_by_snapshot_by_log_and_across_a_restart(
    world_maker: MakeWorld, form: str, kind: type[CaseWorld]
) -> None:
    """Guards CORRECTNESS 1 (whole transactions), 6 (truncate, also by CASCADE), 8 (changed keys, in chains and circles), 9
    (unsent values under every identity), 10 (the key is the identity's), 11 (key ranges by the target's order of keys), and
    that no name or key is changed on the way: with any of them switched off some table here differs."""
    cases = kind.cases

    def prepare(database: Database) -> None:
        make_cases(database, cases)

    with world_maker(prepare=prepare, tables=(), kind=kind, format=form) as world:
        assert isinstance(world, CaseWorld)
        world.start()
        world.settled()
        one_round(world.database, 1, cases)
        world.settled()
        assert world.stop() == 0
        one_round(world.database, 2, cases)
        world.start()
        one_round(world.database, 3, cases)
        world.settled()
        assert not world.case_states()
        told = [line for case in cases for line in world.told(case)]
        assert not told, "\n".join(told[:40])
        assert world.stop() == 0
