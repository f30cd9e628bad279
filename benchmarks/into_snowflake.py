"""Databases of an emulator of Snowflake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snowflake.connector.errors import Error

from benchmarks.into import OURS
from replicators.connectors import registry
from replicators.connectors.target import TargetPlugin
from replicators.targets.snowflake.connection import Connection, connect, rows
from replicators.targets.snowflake.params import SnowflakeParams
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import params_of

SUMS = """
SELECT count(*) AS a, sum(id) AS b, sum(customer) AS c, sum(ok::int) AS d,
       count_if(status = 'shipped') AS e, sum(regexp_replace(note, '[^0-9]', '')::bigint) AS f,
       sum(length(note)) AS g, (sum(amount) * 100)::bigint AS h,
       sum(extract(epoch_second FROM moment)) AS i,
       sum(id % 1000 * (customer + ok::int)) AS j, sum(id % 1000 * (amount * 100)::bigint) AS k,
       sum(id % 1000 * regexp_replace(note, '[^0-9]', '')::bigint) AS l,
       sum(id % 1000 * extract(epoch_second FROM moment)) AS m
FROM (SELECT {columns} FROM {table}) GROUP BY floor(id / 1000)
"""
"""For each thousand keys: the emulator adds up in floating-point numbers."""
NAMED = {"at": "moment"}  # a word of the emulator's own grammar
COLUMNS = ("id", "customer", "status", "amount", "note", "at", "ok")


@dataclass
class IntoSnowflake:
    """A database for each side. Our names are those of the source, dlt's are in capital letters."""

    server: SnowflakeServer
    _open: dict[str, Connection] = field(default_factory=dict)

    @property
    def plugin(self) -> TargetPlugin:
        return registry.targets()["snowflake"]

    def values(self, side: str) -> dict[str, Any]:
        return params_of(self.server, side.upper())

    def fresh(self, side: str) -> None:
        for schema in ("bench", "BENCH"):
            self._asked(side, f'DROP SCHEMA IF EXISTS {side.upper()}."{schema}" CASCADE')

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        port = self.server.port
        address = f"emulated/{side.upper()}?protocol=http&host=127.0.0.1&port={port}"
        return {"snowflake": f"snowflake://REPLICATOR:any@{address}&warehouse=LOADS"}, "bench"

    def sums(self, side: str) -> tuple[int, ...]:
        shown = ", ".join(f'"{self._cased(side, c)}" AS {NAMED.get(c, c)}' for c in COLUMNS)
        found = self._asked(side, SUMS.format(columns=shown, table=self._table(side)))
        rows = [[int(v or 0) for v in row.values()] for row in found]
        return tuple(sum(values) for values in zip(*rows, strict=True))

    def has(self, side: str, key: int) -> bool:
        name = self._cased(side, "id")
        with suppress(Error):
            return bool(
                self._asked(side, f'SELECT 1 AS a FROM {self._table(side)} WHERE "{name}" = {key}')
            )
        return False

    def _cased(self, side: str, name: str) -> str:
        return name if side == OURS else name.upper()

    def _table(self, side: str) -> str:
        schema, table = self._cased(side, "bench"), self._cased(side, "events")
        return f'{side.upper()}."{schema}"."{table}"'

    def _asked(self, side: str, text: str) -> list[dict[str, Any]]:
        if side not in self._open:
            self._open[side] = connect(SnowflakeParams(**self.values(side)))
        return rows(self._open[side], text)

    def close(self) -> None:
        """End the sessions of the readers."""
        while self._open:
            self._open.popitem()[1].close()


@contextmanager
def served(folder: Path) -> Iterator[IntoSnowflake]:
    """An emulator, until the end."""
    with SnowflakeServer() as server, closing(IntoSnowflake(server)) as into:
        yield into
