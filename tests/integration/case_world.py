"""A world of many small tables, each an unusual case of its source, and their way by snapshot, by
log and across a stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from replicators.targets.lakehouse import naming
from runners.models import Table
from tests.harness import CATALOG, World
from tests.integration.source_cases import Case
from tests.model.reading import delta_rows, iceberg_rows
from tests.model.verify import SourceTable, table_differences

SETTLE_SECONDS = 1200.0
"""Some sixty copies and as many merges, one after the other where the cores are busy."""
SHOWN = 40


class CaseWorld(World):
    """A world of the cases' tables, in schemas and namespaces of their own."""

    cases: ClassVar[Sequence[Case]] = ()

    @property
    def namespace(self) -> str:
        return ""

    def chosen(self) -> list[dict[str, Any]]:
        return [{"schema": c.schema, "name": c.name, **c.choice} for c in self.cases]

    def wanted(self, case: Case) -> SourceTable:
        """The rows that the case's copy should have, at the source."""
        raise NotImplementedError

    def case_states(self) -> dict[str, str]:
        """State and error of every table that does not replicate."""
        rows = Table.objects.filter(replicator=self.replicator).exclude(state="replicating")
        return {str(r): f"{r.state} {r.error_code} {r.error_facts}" for r in rows}

    def settled(self) -> None:
        """Every table that is not failing has everything that was committed by now."""
        mark = self.mark()

        def are_level() -> bool:
            return all(s.startswith("failing") for s in self.case_states().values())

        self.until(
            lambda: are_level() and self.position() >= mark and not self.unmerged() and are_level(),
            "all cases settled",
            SETTLE_SECONDS,
        )

    def reported(self, case: Case) -> list[str]:
        """What differs between a table and its copy."""
        _, _, differences = table_differences(self.wanted(case), *self._copy(case))
        return [f"{case.sql_name}: {d}" for d in differences]

    def _copy(self, case: Case) -> Any:
        if self.format == "delta":
            names = (naming.folder(case.schema), naming.folder(case.name))
            return delta_rows(self.warehouse.joinpath(*names))
        uri = f"sqlite:///{self.folder}/catalog.db"
        return iceberg_rows(uri, str(self.warehouse), CATALOG, (case.schema, case.name))


def assert_all_arrive(world: CaseWorld, one_round: Callable[[int], None]) -> None:
    """By snapshot, by the log of a first round, in one batch after a stop, and by a third round
    while that is merged, every table comes to be as its case wants it. `one_round` makes the
    traffic of a round."""
    world.start()
    world.settled()
    one_round(1)
    world.settled()
    assert world.stop() == 0
    one_round(2)
    world.start()
    one_round(3)
    world.settled()
    assert not world.case_states()
    reported = [line for case in world.cases for line in world.reported(case)]
    assert not reported, "\n".join(reported[:SHOWN])
    assert world.stop() == 0
