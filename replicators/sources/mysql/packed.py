"""MariaDB's compressed columns. The log has their values in a form of its own, so this gives the
statement that stores a column uncompressed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.model.types import Unsupported
from replicators.connectors.mysql import sql
from replicators.connectors.problems.problem import Problem
from replicators.sources.mysql.connections import Connection, query

COMPRESSED = re.compile(r" ?/\*M?!\d* COMPRESSED(?:=\w+)?\*/", re.IGNORECASE)


def unpacking(
    connection: Connection, tables: Iterable[TableSchema]
) -> dict[tuple[TableId, str], str]:
    """For each compressed column, the ALTER TABLE that removes its compression and keeps the rest
    of its definition."""
    found = {}
    for table in tables:
        names = [c.name for c in table.columns if _is_packed(c.type)]
        if not names:
            continue
        said = str(query(connection, f"SHOW CREATE TABLE {sql.table(table.id)}")[0][1])
        lines = [line.strip().removesuffix(",") for line in said.splitlines()]
        for name in names:
            line = next((x for x in lines if x.startswith(f"{sql.name(name)} ")), "")
            if line and COMPRESSED.search(line):
                # The same word in a default or a comment comes later in the line.
                declared = COMPRESSED.sub("", line, count=1)
                statement = f"ALTER TABLE {sql.table(table.id)} MODIFY {declared};"
                found[table.id, name] = statement
    return found


def _is_packed(kind: object) -> bool:
    return isinstance(kind, Unsupported) and COMPRESSED.search(kind.native) is not None


def reported(problem: Problem, statements: Mapping[tuple[TableId, str], str]) -> Problem:
    """The problem, with the statement that mends it if there is one."""
    table, column = problem.table, problem.column
    if problem.code != "source:column-unsupported" or table is None or column is None:
        return problem
    statement = statements.get((table, column))
    if statement is None:
        return problem
    facts: dict[str, Any] = dict(problem.facts)
    return Problem.of(
        "source:column-compressed", table=table, column=column, statement=statement, **facts
    )
