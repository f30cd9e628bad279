"""Brings the comments of a table and its columns to a copy that has other ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from replicators.connectors.model.schema import TableSchema
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.params import LakehouseParams


def wanted(params: LakehouseParams, schema: TableSchema) -> TableSchema:
    """The schema with the comments that its copy gets."""
    if params.comments:
        return schema
    bare = tuple(replace(c, comment="") for c in schema.columns)
    return replace(schema, columns=bare, comment="")


def changes(target: str, schema: TableSchema, fields: Any, about: str) -> Iterator[str]:
    """The statements that give the copy the comments of `schema`, where it has others. `fields`:
    the copy's columns in Spark; `about`: the copy's own comment. What `schema` has no comment for
    keeps its own."""
    live = {f.name: _of(f.metadata) for f in fields}
    for column in schema.supported:
        if column.comment and live.get(column.name, column.comment) != column.comment:
            yield dialect.comment_column(target, column.name, column.comment)
    if schema.comment and about != schema.comment:
        yield dialect.comment_table(target, schema.comment)


def without(schema: Any) -> list[tuple[str, Any]]:
    """The names and types of a Spark schema's columns, to compare it with another."""
    return [(f.name, f.dataType) for f in schema.fields]


def _of(metadata: Mapping[str, Any] | None) -> str:
    return str((metadata or {}).get(dialect.COMMENT, ""))
