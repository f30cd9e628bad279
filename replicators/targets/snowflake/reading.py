"""Reads the current rows of a table back. Each query shows one moment; two of them may show
different ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Float, Json, Timestamp
from replicators.connectors.sql import engines, texts
from replicators.connectors.sql.reading import QueriedRows, pages_of
from replicators.targets.snowflake.connection import Connection, connect
from replicators.targets.snowflake.errors import FAULTS, translate
from replicators.targets.snowflake.naming import quoted
from replicators.targets.snowflake.params import SnowflakeParams
from replicators.targets.snowflake.types import native

_LITERALS = engines.snowflake(native).literals


@dataclass(frozen=True, slots=True)
class SnowflakeRows(QueriedRows[Connection]):
    """Each query has a moment of its own."""

    params: SnowflakeParams

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A session. Errors of the driver are translated."""
        try:
            with closing(connect(self.params)) as connection:
                yield connection
        except FAULTS as err:
            raise translate(err, self.params) from err

    def read(self, opened: Connection, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows, some thousand at a time."""
        with opened.cursor() as cursor:
            cursor.execute(self.query([_shown(c) for c in columns], quoted(self.names), where))
            yield from self.paged(pages_of(cursor), columns)

    def values(self, found: list[Any], column: Column) -> pa.Array:
        """What the driver gives: most values as texts."""
        if isinstance(column.type, Float):
            return pa.array(found, pa.float64())
        if native(column) == "BINARY":
            return pa.array([None if v is None else bytes(v) for v in found], pa.binary())
        return texts.values(found, column.type)

    def quoted(self, name: str) -> str:
        """A name in quotes."""
        return quoted((name,))

    def literal(self, column: Column, value: Any) -> str:
        """A value with its type."""
        return _LITERALS.literal(column, value, native(column))


def _shown(column: Column) -> str:
    """The expression that `values` reads: the driver gives most values as text."""
    name = quoted((column.name,))
    match column.type:
        case Json() | Array():
            return f"TO_JSON({name})"
        case Timestamp():
            return f"CAST(CAST({name} AS TIMESTAMP_NTZ(6)) AS TEXT)"
        case Float():
            return name
    return name if native(column) == "BINARY" else f"CAST({name} AS TEXT)"
