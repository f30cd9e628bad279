"""Reads the current rows of a table back. Each query shows one moment; two of them may show
different ones, since connections of MySQL can't share a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pymysql.cursors import SSCursor

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Float,
)
from replicators.connectors.mysql import sql
from replicators.connectors.sql import engines
from replicators.connectors.sql.reading import QueriedRows, pages_of
from replicators.targets.mysql.connections import FAULTS, TEXTS, Connection, connect
from replicators.targets.mysql.errors import translate
from replicators.targets.mysql.params import MysqlTargetParams
from replicators.targets.mysql.types import native

_LITERALS = engines.mysql(lambda column: native(column, is_mariadb=False)).literals


@dataclass(frozen=True, slots=True)
class MysqlRows(QueriedRows[Connection]):
    """Each query has a moment of its own."""

    params: MysqlTargetParams

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection. Errors of the driver are translated."""
        try:
            with closing(connect(self.params, conv=TEXTS)) as connection:
                yield connection
        except FAULTS as err:
            raise translate(err, self.params, table=self.schema.id) from err

    def read(self, opened: Connection, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows, some thousand at a time."""
        path = ".".join(map(sql.name, self.names))
        with opened.cursor(SSCursor) as cursor:
            cursor.execute(self.query([self._shown(c) for c in columns], path, where))
            yield from self.paged(pages_of(cursor), columns)

    def _shown(self, column: Column) -> str:
        """The expression whose text `values` reads. A FLOAT would be shown with six digits."""
        name = self.quoted(column.name)
        is_short = isinstance(column.type, Float) and column.type.bits == 32
        return f"CAST({name} AS DOUBLE)" if is_short else name

    def quoted(self, name: str) -> str:
        """A name in backticks."""
        return sql.name(name)

    def literal(self, column: Column, value: Any) -> str:
        """A value without a type."""
        return _LITERALS.literal(column, value, "")
