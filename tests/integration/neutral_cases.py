"""PostgreSQL's unusual tables into a target whose rows tests read in the values of a source."""

from __future__ import annotations

from typing import Any

from replicators.connectors.model.schema import TableSchema
from runners.models import Table
from tests.integration.case_world import CaseWorld
from tests.integration.source_cases import CASES, Case
from tests.model.reading import PostgresTable


class NeutralCases(CaseWorld):
    """The cases of PostgreSQL."""

    cases = CASES

    def neutral(self, schema: TableSchema) -> list[dict[str, Any]]:
        """All rows of a copy, with the mode's columns."""
        raise NotImplementedError

    def wanted(self, case: Case) -> PostgresTable:
        name = case.against or case.name
        return PostgresTable(self.database.dsn, case.schema, name, only=case.only)

    def _copy(self, case: Case) -> Any:
        found = Table.objects.get(
            replicator=self.replicator, schema_name=case.schema, name=case.name
        )
        schema = TableSchema.from_json(found.schema)
        rows = self.neutral(schema)
        columns = tuple(rows[0]) if rows else tuple(c.name for c in schema.supported)
        return columns, iter(rows)
