"""Conditions of the queries that read current rows back (`CurrentRows`), as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from replicators.connectors.arrow import reading
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import arrow_type

KEYS_A_QUERY = 1000


@dataclass(frozen=True, slots=True)
class Conditions:
    """`name` gives a column's quoted name, `literal` a value of it."""

    schema: TableSchema
    name: Callable[[Column], str]
    literal: Callable[[Column, Any], str]

    def between(self, lower: Any, upper: Any) -> list[str]:
        """The first key column is at least `lower` and less than `upper`; None: no limit."""
        found = []
        for sign, limit in ((">=", lower), ("<", upper)):
            if limit is not None:
                first = self.schema.column(self.schema.key[0])
                value = reading.scalar(limit, arrow_type(first.type)).as_py()
                found.append(f"{self.name(first)} {sign} {self.literal(first, value)}")
        return found

    def any_key(self, keys: pa.Table) -> str:
        """The row has one of these keys."""
        key = [self.schema.column(n) for n in self.schema.key]
        values = [keys.column(c.name).to_pylist() for c in key]
        if len(key) == 1 and None not in values[0]:
            shown = ", ".join(self.literal(key[0], v) for v in values[0])
            return f"{self.name(key[0])} IN ({shown})"
        rows = (
            " AND ".join(self._is(c, v) for c, v in zip(key, row, strict=True))
            for row in zip(*values, strict=True)
        )
        return f"({' OR '.join(f'({row})' for row in rows)})"

    def _is(self, column: Column, value: Any) -> str:
        name = self.name(column)
        return f"{name} IS NULL" if value is None else f"{name} = {self.literal(column, value)}"
