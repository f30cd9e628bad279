"""Enum types at the target: made, and given further labels, as columns and rows need them. A label
is never removed: rows may have it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import psycopg
from psycopg.errors import DuplicateObject, UniqueViolation

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Enum
from replicators.connectors.postgres import sql
from replicators.targets.postgresql.connections import Connection, connect
from replicators.targets.postgresql.encoding import Field
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.types import enum_name, enum_type

LABELS = "SELECT unnest(enum_range(NULL::{}))::text"
IS_THERE = "SELECT to_regtype(%s) IS NOT NULL, to_regnamespace(%s) IS NOT NULL"


def labels_of(column: Column) -> tuple[str, ...]:
    """The labels that the column's type has at the source."""
    kind = column.type.of if isinstance(column.type, Array) else column.type
    return kind.values if isinstance(kind, Enum) else ()


class Enums:
    """Makes the types of the columns that it was shown."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._wanted: dict[str, tuple[str, ...]] = {}
        self._made: dict[str, set[str]] = {}
        self._schemas: dict[str, str] = {}
        self._lock = threading.Lock()

    def note(self, column: Column) -> None:
        """Take notice of a column whose type will be needed."""
        kind, found = enum_type(column, self._schema), enum_name(column)
        if kind and found:
            with self._lock:
                self._schemas[kind] = sql.name(self._schema or found[0])
                known = self._wanted.get(kind, ())
                more = tuple(v for v in labels_of(column) if v not in known)
                self._wanted[kind] = known + more

    def make(self, connection: Connection) -> None:
        """Make the types and labels that are not there yet. The connection is in autocommit."""
        with self._lock:
            todo = {k: v for k, v in self._wanted.items() if set(v) - self._made.get(k, {""})}
        for kind, labels in todo.items():
            make_type(connection, kind, self._schemas[kind])
            add_labels(connection, kind, labels)
            with self._lock:
                self._made[kind] = {"", *labels}


def make_type(connection: Connection, kind: str, schema: str) -> None:
    """Make a type without labels, and its schema, where there is none."""
    row = connection.execute(IS_THERE, [kind, schema]).fetchone()
    assert row is not None, "a query without a table has a row"
    if row[0]:
        return
    if not row[1]:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    try:
        connection.execute(f"CREATE TYPE {kind} AS ENUM ()".encode())
    except (DuplicateObject, UniqueViolation):
        return  # another table's merge made it


def add_labels(connection: Connection, kind: str, labels: Sequence[str]) -> None:
    """Add the labels that the type lacks, each before the next one that it has."""
    text = LABELS.format(kind)
    there = [label for (label,) in connection.execute(text.encode()).fetchall()]
    for at, label in enumerate(labels):
        if label not in there:
            later = next((other for other in labels[at + 1 :] if other in there), None)
            place = f" BEFORE {sql.literal(later)}" if later is not None else ""
            connection.execute(
                f"ALTER TYPE {kind} ADD VALUE IF NOT EXISTS {sql.literal(label)}{place}".encode()
            )
            there.append(label)


def add_further(params: PostgresqlTargetParams, field: Field, labels: Sequence[str]) -> None:
    """Add labels that rows have and the column's type lacks. A transaction that reads these rows
    sees them, since they are added by another one."""
    try:
        with connect(params) as connection:
            add_labels(connection, field.native.removesuffix("[]"), labels)
    except psycopg.Error as err:
        raise translate(err, params) from err
