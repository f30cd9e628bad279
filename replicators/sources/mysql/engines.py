"""Finds tables whose rows are not logged, by their storage engine or kind. The checks before a
deploy and each copy use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from replicators.connectors.model.schema import TableId
from replicators.connectors.mysql import sql
from replicators.connectors.problems.problem import Problem
from replicators.sources.mysql.connections import Connection, query

ENGINES = frozenset({"innodb", "myisam", "aria", "rocksdb", "tokudb", "archive", "partition"})
VERSIONED = "SYSTEM VERSIONED"
_KINDS = """
SELECT table_schema, table_name, engine, table_type FROM information_schema.tables
WHERE (table_schema, table_name) IN ({pairs})"""


def kinds(connection: Connection, tables: Iterable[TableId]) -> Mapping[TableId, tuple[str, str]]:
    """Each table's engine and type, as information_schema names them. Missing tables are left
    out."""
    pairs = ", ".join(f"({sql.literal(t.schema)}, {sql.literal(t.name)})" for t in tables)
    found = query(connection, _KINDS.format(pairs=pairs))
    return {TableId(s, n): (str(e or ""), str(kind)) for s, n, e, kind in found}


def unlogged_problems(table: TableId, engine: str, kind: str) -> Iterator[Problem]:
    """The reasons why the table can't be followed: `source:engine-unlogged`,
    `source:table-versioned`."""
    if engine.lower() not in ENGINES:
        yield Problem.of(
            "source:engine-unlogged", table=table, engine=engine, quoted=sql.table(table)
        )
    if kind == VERSIONED:
        yield Problem.of("source:table-versioned", table=table, quoted=sql.table(table))
