"""Preflight of an Elasticsearch target. It reads only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Self

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.connectors.target import FitKind, TargetTable
from replicators.targets.elasticsearch.client import Search
from replicators.targets.elasticsearch.indexes import Indexes
from replicators.targets.elasticsearch.naming import alias_of, name_fault
from replicators.targets.elasticsearch.params import ElasticsearchParams
from replicators.targets.elasticsearch.types import fit

OLDEST = (7, 10)
METADATA = frozenset(
    {
        "_id", "_index", "_source", "_size", "_doc_count", "_field_names", "_ignored", "_routing",
        "_meta", "_tier", "_type", "_version", "_seq_no", "_primary_term", "_nested_path",
        "_feature", "_data_stream_timestamp", "_tsid",
    }
)  # fmt: skip


class ElasticsearchChecks:
    """`TargetChecks`."""

    def __init__(self, params: ElasticsearchParams) -> None:
        self._params = params

    def close(self) -> None:
        """Nothing stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def connection(self) -> list[Problem]:
        """Whether the cluster answers, and is new enough."""
        return _reported(lambda: self._version(self._search()))

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Names that can't be used, or are used already; tables without a key; types that don't
        fit."""
        found = [p for t in tables for p in self._table(t)]
        found += self._shared(tables)
        usable = [t for t in tables if not name_fault(alias_of(self._params.index, t.id))]
        return [*found, *_reported(lambda: self._taken(usable, replicator))]

    def _search(self) -> Search:
        return Search(self._params, patience=2.0, read_seconds=8.0)

    def _version(self, search: Search) -> list[Problem]:
        said = search.ask("GET", "/", act="look at the cluster").content.get("version", {})
        product = str(said.get("distribution", "elasticsearch"))
        number = str(said.get("number", ""))
        parts = re.findall(r"\d+", number)[:2]
        is_known = product == "opensearch" or tuple(map(int, parts)) >= OLDEST
        if is_known and parts:
            return []
        product = "OpenSearch" if product == "opensearch" else "Elasticsearch"
        return [Problem.of("target:search-version", product=product, version=number or "unknown")]

    def _table(self, table: TableSchema) -> list[Problem]:
        alias = alias_of(self._params.index, table.id)
        found = []
        if fault := name_fault(alias):
            found.append(
                Problem.of("target:index-name", table=table.id, target=alias, reason=fault)
            )
        if not table.key:
            found.append(Problem.of("target:index-needs-key", table=table.id))
        return [*found, *_columns(table)]

    def _shared(self, tables: Sequence[TableSchema]) -> list[Problem]:
        seen: dict[str, TableId] = {}
        found = []
        for table in tables:
            alias = alias_of(self._params.index, table.id)
            if alias in seen:
                found.append(
                    Problem.of(
                        "target:index-shared", table=table.id, other=str(seen[alias]), target=alias
                    )
                )
            seen.setdefault(alias, table.id)
        return found

    def _taken(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        search, found = self._search(), []
        for table in tables:
            alias = alias_of(self._params.index, table.id)
            indexes = Indexes(search, self._params, alias, TargetTable(table.id, replicator, 0))
            if any(not indexes.is_ours(meta) for _, meta, _ in indexes.all()):
                found.append(Problem.of("target:table-taken", table=table.id, target=alias))
        return found


def _columns(table: TableSchema) -> list[Problem]:
    found = []
    for column in table.supported:
        fitted = fit(column.type)
        if fitted.kind is FitKind.UNSUPPORTED:
            found.append(
                Problem.of(
                    "target:column-unsupported",
                    table=table.id,
                    column=column.name,
                    native=column.native,
                    reason=fitted.reason,
                )
            )
        if reason := _name_fault(column.name):
            found.append(
                Problem.of("target:field-name", table=table.id, column=column.name, reason=reason)
            )
    return found


def _name_fault(name: str) -> str:
    if name in METADATA:
        return "the cluster keeps this name for itself"
    if "." in name:
        return "a point in its name would mean a field within a field"
    return "" if name.strip() else "its name is blank"


def _reported(act: Callable[[], list[Problem]]) -> list[Problem]:
    try:
        return act()
    except ReplicationError as err:
        return [Problem(err.code, table=err.table, facts=tuple(err.facts.items()))]
