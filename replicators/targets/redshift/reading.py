"""Reads the current rows of a table back. Each query shows one moment; two of them may show
different ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Enum,
    Float,
    Json,
    String,
    Timestamp,
    Uuid,
)
from replicators.connectors.sql import engines, texts
from replicators.connectors.sql.reading import ROWS_AT_ONCE, QueriedRows
from replicators.targets.redshift.connection import Connection, connect, rows
from replicators.targets.redshift.errors import FAULTS, translate
from replicators.targets.redshift.naming import quoted
from replicators.targets.redshift.params import RedshiftParams
from replicators.targets.redshift.types import native

_LITERALS = engines.redshift(native).literals
_TEXTS = (String, Enum, Uuid)
_HEX = "TO_HEX(CAST({} AS VARBYTE))"


@dataclass(frozen=True, slots=True)
class RedshiftRows(QueriedRows[Connection]):
    """Each query has a moment of its own, in a cursor."""

    params: RedshiftParams

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection. Errors of the driver are translated."""
        try:
            with closing(connect(self.params)) as connection:
                yield connection
        except FAULTS as err:
            raise translate(err, self.params) from err

    def read(self, opened: Connection, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows, some thousand at a time: the driver would keep all of an answer."""
        query = self.query([_shown(c) for c in columns], quoted(self.names), where)
        rows(opened, "BEGIN")
        rows(opened, f"DECLARE replicator_rows CURSOR FOR {query}")
        fetched = f"FETCH FORWARD {ROWS_AT_ONCE} FROM replicator_rows"
        yield from self.paged(iter(lambda: rows(opened, fetched), []), columns)
        opened.rollback()

    def values(self, found: list[Any], column: Column) -> pa.Array:
        """What the driver gives: numbers with all their digits, otherwise texts."""
        if isinstance(column.type, Float):
            return pa.array(found, pa.float64())
        if isinstance(column.type, Bytes):
            return pa.array([None if v is None else bytes.fromhex(v) for v in found], pa.binary())
        return texts.values(found, column.type)

    def quoted(self, name: str) -> str:
        """A name in quotes."""
        return quoted((name,))

    def exact(self, column: Column) -> str:
        """Texts are compared by their bytes: blanks at the end don't count otherwise."""
        name = self.quoted(column.name)
        return _HEX.format(name) if isinstance(column.type, _TEXTS) else name

    def ordered(self, column: Column) -> str:
        """The same, since hexadecimal digits are ordered as bytes are."""
        return self.exact(column)

    def literal(self, column: Column, value: Any) -> str:
        """A value with its type; of a text its bytes."""
        if isinstance(column.type, _TEXTS) and value is not None:
            return _LITERALS.text(str(value).encode().hex())
        return _LITERALS.literal(column, value, native(column))


def _shown(column: Column) -> str:
    """The expression that `values` reads. A floating-point number as text would be rounded."""
    name = quoted((column.name,))
    match column.type:
        case Json() | Array():
            return f"JSON_SERIALIZE({name})"
        case Bytes():
            return f"TO_HEX({name})"
        case Float():
            return f"CAST({name} AS DOUBLE PRECISION)"
        case Timestamp(zone=True):
            return f"CAST({name} AT TIME ZONE 'UTC' AS VARCHAR)"
    if native(column) == "BOOLEAN":
        return f"CASE {name} WHEN TRUE THEN 'true' WHEN FALSE THEN 'false' END"
    return f"CAST({name} AS VARCHAR(65535))"
