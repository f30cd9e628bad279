"""The indexes and aliases of one table. What an index is, and whose, stands in its mapping's
`_meta`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable
from replicators.targets.elasticsearch.bulk import WRONG
from replicators.targets.elasticsearch.client import NOT_FOUND, Search
from replicators.targets.elasticsearch.errors import Answer, error_of
from replicators.targets.elasticsearch.naming import (
    index_of,
    is_index_of,
    refused_index,
    writing_alias,
)
from replicators.targets.elasticsearch.params import OBJECTS, REFRESH, ElasticsearchParams
from replicators.targets.elasticsearch.types import fields

KEPT_DELETES = "1h"
"""For so long the cluster knows the version of a deleted document. No request of ours lives so
long, so nothing old comes back after a deletion."""
FIELDS_AT_LEAST = 1000
COPYING = "-1"


@dataclass(frozen=True, slots=True)
class Meta:
    """What stands in an index's mapping. `truncated_at`: the sequence of the TRUNCATE that emptied
    it; changes up to there count no more. `columns`: the fields' types, by the source's number and
    the name of the column."""

    index: str
    replicator: str
    source: tuple[str, str]
    generation: int
    truncated_at: int
    columns: dict[str, Any]

    @classmethod
    def of(cls, index: str, mapping: Mapping[str, Any]) -> Meta | None:
        """The meta of an index; None where it is not ours."""
        found = mapping.get("mappings", {}).get("_meta", {})
        if not isinstance(found, dict) or "replicator" not in found:
            return None
        source = (found["schema"], found["table"])
        return cls(
            index, found["replicator"], source, found.get("generation", 0),
            found.get("truncated_at", 0), found.get("columns", {}),
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """As it stands in the mapping."""
        return {
            "replicator": self.replicator,
            "schema": self.source[0],
            "table": self.source[1],
            "generation": self.generation,
            "truncated_at": self.truncated_at,
            "columns": self.columns,
        }

    def knows(self, schema: TableSchema) -> bool:
        """Whether the index has every column of the schema."""
        return columns_of(schema).items() <= self.columns.items()


def columns_of(schema: TableSchema) -> dict[str, Any]:
    """The numbers of columns, by name."""
    return {c.name: c.ordinal for c in schema.columns}


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of one table: `alias` is where people search."""

    search: Search
    params: ElasticsearchParams
    alias: str
    table: TargetTable

    @property
    def writing(self) -> str:
        """The alias by which this replicator writes this generation."""
        return writing_alias(self.alias, self.table.generation, self.table.replicator)

    @property
    def refused(self) -> str:
        """The index of this generation's refused documents."""
        return refused_index(self.alias, self.table.generation)

    def owner(self) -> dict[str, Any]:
        """What tells whose an index is."""
        return Meta(
            "", self.table.replicator, (self.table.source.schema, self.table.source.name),
            self.table.generation, 0, {},
        ).to_json()  # fmt: skip

    def is_ours(self, meta: Meta | None) -> bool:
        """Whether an index belongs to this table of this replicator."""
        source = self.table.source
        return (
            meta is not None
            and meta.replicator == self.table.replicator
            and meta.source == (source.schema, source.name)
        )

    def all(self) -> Iterator[tuple[str, Meta | None, set[str]]]:
        """The indexes that have the table's name, with their aliases."""
        names = f"{self.alias},{self.alias}-g*"
        found = self._get(f"/{names}?ignore_unavailable=true&allow_no_indices=true").content
        for index, said in found.items():
            aliases = set(said.get("aliases", ()))
            if index == self.alias or is_index_of(self.alias, index) or self.alias in aliases:
                yield index, Meta.of(index, said), aliases

    def claim(self) -> None:
        """Remove what earlier tries left. `target:table-taken` where somebody else has the name."""
        found = list(self.all())
        if any(not self.is_ours(meta) for _, meta, _ in found):
            raise self.taken()
        live = {m.generation for _, m, aliases in found if m and self.alias in aliases}
        kept = {g for g in live if g < self.table.generation}
        self._delete([index for index, meta, _ in found if meta and meta.generation not in kept])

    def taken(self) -> ReplicationError:
        """The name belongs to somebody else."""
        return ReplicationError("target:table-taken", table=self.table.source, target=self.alias)

    def make(self, schema: TableSchema) -> Meta:
        """Make the generation's index. It is refreshed once the copy is whole."""
        source, generation = self.table.source, self.table.generation
        meta = Meta(
            index_of(self.alias, generation), self.table.replicator,
            (source.schema, source.name), generation, 0, columns_of(schema),
        )  # fmt: skip
        self._make(meta, schema, {self.writing: {}}, COPYING)
        return meta

    def _make(
        self, meta: Meta, schema: TableSchema, aliases: dict[str, Any], refresh: str
    ) -> Answer:
        properties = self._fields(schema)
        body = {
            "settings": {
                "number_of_shards": self.params.shards,
                "number_of_replicas": self.params.replicas,
                "refresh_interval": refresh,
                "gc_deletes": KEPT_DELETES,
                "mapping.total_fields.limit": max(FIELDS_AT_LEAST, 4 * len(properties)),
            },
            "mappings": {"dynamic": False, "_meta": meta.to_json(), "properties": properties},
            "aliases": aliases,
        }
        return self.search.ask(
            "PUT", f"/{meta.index}", body, act="make an index", table=self.table.source
        )

    def _fields(self, schema: TableSchema) -> dict[str, Any]:
        return fields(schema, json_objects=self.params.json == OBJECTS)

    def current(self) -> Meta:
        """The index that this generation is written to."""
        answer = self._get(f"/{self.writing}", accepts=(NOT_FOUND,))
        if answer.status == NOT_FOUND:
            self.check_missing()
            raise ReplicationError("target:table-missing", table=self.table.source)
        ((index, said),) = answer.content.items()
        meta = Meta.of(index, said)
        if meta is None or not self.is_ours(meta):
            raise ReplicationError("target:table-replaced", table=self.table.source)
        return meta

    def check_missing(self) -> None:
        """`target:table-replaced` where the table's name belongs to somebody else now."""
        if any(not self.is_ours(meta) for _, meta, _ in self.all()):
            raise ReplicationError("target:table-replaced", table=self.table.source)

    def publish(self, meta: Meta) -> None:
        """Move the alias to this generation in one step, and remove the earlier ones with it."""
        found = list(self.all())
        if any(not self.is_ours(m) for _, m, _ in found):
            raise ReplicationError("target:table-replaced", table=self.table.source)
        kept = {meta.index, self.refused}
        old = [
            index
            for index, m, _ in found
            if m and index not in kept and m.generation <= meta.generation
        ]
        is_live = any(i == meta.index and self.alias in aliases for i, _, aliases in found)
        if is_live and not old:
            return
        settings = {"index": {"refresh_interval": REFRESH[self.params.refresh]}}
        self._ask("PUT", f"/{meta.index}/_settings", settings, "change an index")
        self._ask("POST", f"/{meta.index}/_refresh", None, "refresh an index")
        self._swap([{"add": {"index": meta.index, "alias": self.alias}}], old)

    def extend(self, meta: Meta, schema: TableSchema) -> Meta:
        """Add the fields of new columns. `target:evolve` for what an index can't do in place."""
        known = {ordinal: name for name, ordinal in meta.columns.items() if ordinal}
        for column in schema.columns:
            was = known.get(column.ordinal, column.name)
            if was != column.name:
                raise ReplicationError(
                    "target:evolve", table=self.table.source, change=f"rename {was} {column.name}"
                )
        made = replace(meta, columns={**meta.columns, **columns_of(schema)})
        body = {"_meta": made.to_json(), "properties": self._fields(schema)}
        answer = self.search.ask(
            "PUT", f"/{meta.index}/_mapping", body,
            act="add fields", table=self.table.source, accepts=(WRONG,),
        )  # fmt: skip
        if answer.status == WRONG:
            cause = error_of(answer, "add fields", self.table.source)
            raise ReplicationError(
                "target:evolve", table=self.table.source, change="another type of a column"
            ) from cause
        return made

    def emptied(self, meta: Meta, schema: TableSchema, truncated_at: int) -> Meta:
        """An empty index in place of the generation's one: what a TRUNCATE leaves."""
        made = replace(
            meta,
            index=index_of(self.alias, meta.generation, truncated_at),
            truncated_at=truncated_at,
            columns=columns_of(schema),
        )
        self._delete([i for i, _, aliases in self.all() if i == made.index and not aliases])
        self._make(made, schema, {}, REFRESH[self.params.refresh])
        add = [{"add": {"index": made.index, "alias": a}} for a in (self.writing, self.alias)]
        self._swap(add, [meta.index])
        self._delete([i for i, _, _ in self.all() if i == self.refused])
        return made

    def remove(self) -> None:
        """Remove everything of the table that is ours."""
        self._delete([index for index, meta, _ in self.all() if self.is_ours(meta)])

    def _swap(self, add: list[dict[str, Any]], old: list[str]) -> None:
        actions = [*add, *({"remove_index": {"index": index}} for index in old)]
        self._ask("POST", "/_aliases", {"actions": actions}, "change aliases")

    def _delete(self, indexes: list[str]) -> None:
        for index in indexes:
            self.search.ask(
                "DELETE", f"/{index}",
                act="delete an index", table=self.table.source, accepts=(NOT_FOUND,),
            )  # fmt: skip

    def _get(self, path: str, accepts: tuple[int, ...] = ()) -> Answer:
        return self.search.ask(
            "GET", path, act="look at indexes", table=self.table.source, accepts=accepts
        )

    def _ask(self, method: str, path: str, body: Any, act: str) -> Answer:
        return self.search.ask(method, path, body, act=act, table=self.table.source)
