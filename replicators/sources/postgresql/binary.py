"""Decides whether the log can be read in binary. It looks at column types: in the catalog at the
start, in Relation messages later (CORRECTNESS 22)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import psycopg

from replicators.connectors.model.schema import TableSchema
from replicators.sources.postgresql.catalog import TypeBook
from replicators.sources.postgresql.connections import connect
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.types import BINARY_WIRES, builtin_type, column_type

COLUMN_TAIL = struct.Struct(">Ii")
LIVE = """
SELECT root.oid::bigint, t.relid::bigint, a.attname
FROM unnest(%s::oid[]) AS root (oid)
CROSS JOIN LATERAL (
    SELECT root.oid AS relid UNION SELECT relid::oid FROM pg_partition_tree(root.oid)
) t
JOIN pg_attribute a ON a.attrelid = t.relid AND a.attnum > 0 AND NOT a.attisdropped
"""


def relation_columns(message: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, type OID and typmod of each column of a Relation message."""
    at = message.index(b"\x00", 5) + 1
    at = message.index(b"\x00", at) + 2
    (count,) = struct.unpack_from(">H", message, at)
    at += 2
    for _ in range(count):
        end = message.index(b"\x00", at + 1)
        oid, typmod = COLUMN_TAIL.unpack_from(message, end + 1)
        yield message[at + 1 : end].decode(), oid, typmod
        at = end + 1 + COLUMN_TAIL.size


class BinaryGuard:
    """Knows which columns are decoded, and whether each of them has a binary decoder."""

    def __init__(self, params: PostgresqlParams, tables: Sequence[TableSchema]) -> None:
        self._params = params
        self._roots: dict[int, int] = {}
        self._left_out: dict[int, set[str]] = {}
        self._oids: dict[int, bool] = {}
        self._take(tables)

    def _take(self, tables: Sequence[TableSchema]) -> None:
        self._tables = {t.native_id: {c.name for c in t.columns} for t in tables}
        self._wires = {c.wire for t in tables for c in t.columns if c.wire}

    def follow(self, tables: Sequence[TableSchema]) -> bool:
        """Use these tables and columns from now on. True where every column has a binary
        decoder."""
        self._take(tables)
        for relid, root in self._roots.items():
            self._left_out[relid] -= self._tables.get(root, set())
        return self._wires <= BINARY_WIRES

    def allows_at_start(self) -> bool:
        """Whether every chosen column has a binary decoder now. Also notes which columns are left
        out."""
        with connect(self._params) as connection:
            for root, relid, name in connection.execute(LIVE, [list(self._tables)]).fetchall():
                if name not in self._tables[root]:
                    self._roots[relid] = root
                    self._left_out.setdefault(relid, set()).add(name)
        return self._wires <= BINARY_WIRES

    def allows(self, relation: bytes) -> bool:
        """Whether the rows that follow this Relation message can be decoded from binary."""
        (relid,) = struct.unpack_from(">xI", relation)
        left_out = self._left_out.get(relid, set())
        used = [(o, t) for n, o, t in relation_columns(relation) if n not in left_out]
        return all(self._is_binary(oid, typmod) for oid, typmod in used)

    def _is_binary(self, oid: int, typmod: int) -> bool:
        native = builtin_type(oid, typmod)
        if native is not None:
            return column_type(native)[1] in BINARY_WIRES
        if oid not in self._oids:
            self._oids[oid] = self._look_up(oid, typmod)
        return self._oids[oid]

    def _look_up(self, oid: int, typmod: int) -> bool:
        try:
            with connect(self._params) as connection:
                native = TypeBook(connection, [oid]).native(oid, typmod)
        except (psycopg.Error, KeyError):
            return False
        return column_type(native)[1] in BINARY_WIRES
