"""Foreign keys by which the server changes rows without logging it (CORRECTNESS 24)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from replicators.connectors.model.schema import TableId
from replicators.connectors.mysql import sql
from replicators.connectors.problems.problem import Problem
from replicators.sources.mysql.connections import Connection, Server, query
from replicators.sources.mysql.foreign_keys import ALL, INLINE_SINCE, NAMED, NONE

# MySQL logs the changes of a cascade from this version on; MariaDB never does.
LOGGED_SINCE = (9, 6, 0)
# A MariaDB user with only SELECT gets no rows from the other catalog views.
_WITH_FOREIGN_KEYS = """
SELECT DISTINCT table_schema, table_name FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL AND (table_schema, table_name) IN ({pairs})
"""
# With this setting the storage engine changes the rows, as in earlier versions.
_BY_THE_ENGINE = (
    "SHOW GLOBAL VARIABLES WHERE variable_name = 'innodb_native_foreign_keys' AND value = 'ON'"
)
_CONSTRAINT = re.compile(r"^  CONSTRAINT (`(?:[^`]|``)*`) FOREIGN KEY (.*)$", re.MULTILINE)
_NAME = re.compile(r"`(?:[^`]|``)*`")
_RULE = re.compile(r"ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)")


def are_logged(connection: Connection, server: Server) -> bool:
    """Whether the server logs the row changes of foreign keys' rules."""
    if server.is_mariadb or server.version < LOGGED_SINCE:
        return False
    return not query(connection, _BY_THE_ENGINE)


def cascades(connection: Connection, tables: Sequence[TableId]) -> dict[TableId, list[Problem]]:
    """`source:cascade` for each foreign key with such a rule, for tables that the user may read.
    The rules come from SHOW CREATE TABLE, which needs SELECT only."""
    if not tables:
        return {}
    pairs = ", ".join(f"({sql.literal(t.schema)}, {sql.literal(t.name)})" for t in tables)
    with_keys = query(connection, _WITH_FOREIGN_KEYS.format(pairs=pairs))
    if with_keys:
        query(connection, "SET SESSION sql_quote_show_create = 1")
    found = {}
    for schema, name in with_keys:
        table = TableId(schema, name)
        made = query(connection, f"SHOW CREATE TABLE {sql.table(table)}")[0][1]
        problems = [
            Problem.of("source:cascade", table=table, constraint=key, rule=rules)
            for key, rules in rules_of(made)
        ]
        if problems:
            found[table] = problems
    return found


def rules_of(statement: str) -> Iterator[tuple[str, str]]:
    """Name and rules (`DELETE CASCADE, ON UPDATE SET NULL`) of each foreign key that changes rows,
    from the text of SHOW CREATE TABLE. String literals contain no line break there, so a line that
    begins like a constraint is one."""
    for name, rest in _CONSTRAINT.findall(statement):
        rules = [" ".join(found) for found in _RULE.findall(_NAME.sub("", rest))]
        if rules:
            yield name[1:-1].replace("``", "`"), ", ON ".join(rules)


def unlogged_keys(connection: Connection, server: Server) -> str:
    """Which foreign keys that a statement creates at this server change rows without logging it
    (`foreign_keys.NONE`, `NAMED`, `ALL`)."""
    if are_logged(connection, server):
        return NONE
    return ALL if server.is_mariadb or server.version >= INLINE_SINCE else NAMED
