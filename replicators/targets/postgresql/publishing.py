"""Puts a staged table in the place of the live one, inside the caller's transaction.

The new table gets what hangs on the old one (`dependents`). Where that is not possible, such as
with a materialised view or a foreign key from another table, the old table stays and gets the new
rows: that takes longer, and everything that depends on it stays as it is.
"""

# ruff: noqa: S608 - names are quoted, and the server made the definitions

from __future__ import annotations

import logging
from collections.abc import Iterable

import psycopg

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.postgres import sql
from replicators.targets.postgresql import dependents, message_table
from replicators.targets.postgresql.connections import Connection
from replicators.targets.postgresql.naming import cut

logger = logging.getLogger("replicator.target.postgresql")
Names = tuple[str, ...]

VERSIONS = frozenset({"_valid_from", "_row_hash"})
"""A copy with such a column has several rows of a key."""
CHANGES = frozenset({"_operation", "_sequence", "_unsent"})
"""A copy with these columns only gets more rows: nothing is looked up by its key."""
SORT_MEMORY_KIB = 262_144
"""Memory for building a key: more than the server's usual 64 MiB, never less than its own."""
_CAN_FILL = ("42", "2BP01", "0A000", "55000")
"""Codes of a replacement that is refused for what depends on the table."""
_IS_UNLOGGED = "SELECT FROM pg_class WHERE oid = %s AND relpersistence = 'u'"
_SORT_MEMORY = """
SELECT set_config('maintenance_work_mem', greatest(setting::bigint, %s)::text || 'kB', true)
FROM pg_settings WHERE name = 'maintenance_work_mem'
"""
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
"""
_KEY = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s AND c.relname LIKE '\\_replicator%%'
"""


def quoted(names: Names) -> str:
    """A table's qualified name."""
    return ".".join(sql.name(part) for part in names)


def make_ready(connection: Connection, staged: Names, schema: TableSchema) -> None:
    """Build the staged table's key before `publish`."""
    new = dependents.oid_of(connection, staged)
    assert new is not None, "it was loaded"
    _make_ready(connection, staged, schema, new)


def publish(
    connection: Connection,
    staged: Names,
    live: Names,
    schema: TableSchema,
    *,
    is_ready: bool = False,
) -> None:
    """The staged table becomes the live one, with an index of the key. `schema` has the mode's
    columns too. A table of messages is a part of the one of all messages. `is_ready`: `make_ready`
    was called."""
    old, new = dependents.oid_of(connection, live), dependents.oid_of(connection, staged)
    assert new is not None, "it was loaded"
    is_part = old is not None and message_table.is_part(connection, old)
    if not is_part and not message_table.is_of(schema):
        _publish(connection, staged, live, schema, old, new, is_ready=is_ready)
        return
    if not is_ready:
        _make_ready(connection, staged, schema, new)
    if message_table.is_of(schema):
        message_table.prepare(connection, staged, schema)
    if is_part:
        message_table.detach(connection, live)
    _publish(connection, staged, live, schema, old, new, is_ready=True)
    if message_table.is_of(schema):
        message_table.attach(connection, live, schema)


def _make_ready(connection: Connection, staged: Names, schema: TableSchema, new: int) -> None:
    """Build the staged table's key: the long part, in which no reader waits."""
    connection.execute(_SORT_MEMORY, [SORT_MEMORY_KIB])
    if connection.execute(_IS_UNLOGGED, [new]).fetchone() is not None:
        _run(connection, [f"ALTER TABLE {quoted(staged)} SET LOGGED"])
    _run(connection, [*index(staged, schema), f"ANALYZE {quoted(staged)}"])


def _publish(
    connection: Connection,
    staged: Names,
    live: Names,
    schema: TableSchema,
    old: int | None,
    new: int,
    *,
    is_ready: bool = False,
) -> None:
    found = None
    if old is not None:
        found = dependents.read(connection, old, new, quoted(live))
        if found.bound:
            _fill(connection, staged, live, old, new, why=", ".join(found.bound))
            return
    if not is_ready:
        _make_ready(connection, staged, schema, new)
    if old is None or found is None:
        _rename(connection, staged, live[-1])
        _name_key(connection, live, new)
        return
    try:
        with connection.transaction():
            _replace(connection, staged, live, new, found)
    except psycopg.Error as err:
        if not (err.sqlstate or "").startswith(_CAN_FILL):
            raise
        _fill(connection, staged, live, old, new, why=str(err.sqlstate))


def _run(connection: Connection, statements: Iterable[str]) -> None:
    for text in statements:
        if text:
            connection.execute(text.encode())


def index(staged: Names, schema: TableSchema) -> tuple[str, ...]:
    """The statements that make the index by which merges find rows."""
    names = {c.name for c in schema.columns}
    if not schema.key or names >= CHANGES:
        return ()
    key = sql.names(schema.key)
    is_unique = not names & VERSIONS and not any(schema.column(k).nullable for k in schema.key)
    if is_unique:
        return (f"ALTER TABLE {quoted(staged)} ADD PRIMARY KEY ({key})",)
    return (f"CREATE INDEX ON {quoted(staged)} ({key})",)


def _rename(connection: Connection, names: Names, to: str) -> None:
    _run(connection, [f"ALTER TABLE {quoted(names)} RENAME TO {sql.name(to)}"])


def _name_key(connection: Connection, live: Names, new: int) -> None:
    """Give the key's index a name of the table's, if nothing has it."""
    for (index,) in connection.execute(_KEY, [new]).fetchall():
        _run_free(
            connection,
            f"ALTER INDEX {quoted((*live[:-1], index))} RENAME TO "
            f"{sql.name(cut(live[-1][:50] + '_key'))}",
        )


def _run_free(connection: Connection, statement: str) -> bool:
    """Run a statement that may fail; False where it did."""
    try:
        with connection.transaction():
            connection.execute(statement.encode())
    except psycopg.Error as err:
        if not (err.sqlstate or "").startswith(("22", "23", *_CAN_FILL)):
            raise
        return False
    return True


def _replace(
    connection: Connection, staged: Names, live: Names, new: int, found: dependents.Dependents
) -> None:
    table, indexes = quoted(live), []
    key = cut(live[-1][:50] + "_key")
    for at, (index, definition) in enumerate(f for f in found.indexes if f[0] != key):
        made = cut(f"{staged[-1][:50]}_i{at}")
        if _run_free(connection, dependents.on(definition, made, quoted(staged))):
            indexes.append((made, index))
        else:
            logger.warning("Index %s does not fit the new rows and is left out.", index)
    _run(connection, [f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"])
    gone = cut(f"{staged[-1][:50]}_old")
    _rename(connection, live, gone)
    _rename(connection, staged, live[-1])
    _run(connection, dependents.default_rights(connection, new, table))
    _run(connection, found.after)
    for statement in found.before:
        if not _run_free(connection, statement):
            logger.warning("This does not fit the new rows and is left out: %s", statement)
    _run(connection, [f"DROP TABLE {quoted((*live[:-1], gone))}"])
    for made, index in indexes:
        made_path = quoted((*live[:-1], made))
        _run(connection, [f"ALTER INDEX {made_path} RENAME TO {sql.name(index)}"])
    _name_key(connection, live, new)


def _fill(
    connection: Connection, staged: Names, live: Names, old: int, new: int, *, why: str
) -> None:
    """Put the staged rows into the live table, which stays. Columns that only it has are NULL."""
    logger.info("The table stays and gets the new rows, since this depends on it: %s", why)
    table = quoted(live)
    wanted: dict[str, str] = dict(connection.execute(_COLUMNS, [new]).fetchall())
    there: dict[str, str] = dict(connection.execute(_COLUMNS, [old]).fetchall())
    _run(connection, [f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"])
    _run(connection, [f"DELETE FROM {table}"])  # readers with an older snapshot see the old rows
    for name, kind in wanted.items():
        if name not in there:
            _run(connection, [f"ALTER TABLE {table} ADD COLUMN {sql.name(name)} {kind}"])
        elif there[name] != kind:
            change = f"ALTER COLUMN {sql.name(name)} TYPE {kind} USING NULL::{kind}"
            _run(connection, [f"ALTER TABLE {table} {change}"])
    names = sql.names(wanted)
    _run(
        connection,
        [
            f"INSERT INTO {table} ({names}) SELECT {names} FROM {quoted(staged)}",
            f"DROP TABLE {quoted(staged)}",
        ],
    )
