"""Targets whose tables hold bench.events beside each other, one for each side: databases of
PostgreSQL, datasets of BigQuery. Each is filled and compared in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from google.api_core.exceptions import NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from benchmarks.copied import POSTGRESQL_SUMS
from benchmarks.native import fresh
from demo.postgres import EmbeddedPostgres
from replicators.connectors import registry
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin

OURS = "ours"
BIGQUERY_SUMS = """
SELECT COUNT(*), SUM(id), SUM(customer), SUM(CAST(ok AS INT64)), COUNTIF(status = 'shipped'),
       SUM(CAST(REGEXP_REPLACE(note, '[^0-9]', '') AS INT64)), SUM(LENGTH(note)),
       CAST(SUM(amount) * 100 AS INT64), SUM(UNIX_SECONDS(at)),
       SUM(MOD(id, 1000) * (customer + CAST(ok AS INT64))),
       SUM(MOD(id, 1000) * CAST(amount * 100 AS INT64)),
       SUM(MOD(id, 1000) * CAST(REGEXP_REPLACE(note, '[^0-9]', '') AS INT64)),
       SUM(MOD(id, 1000) * UNIX_SECONDS(at))
FROM `{}`
"""


class Into(Protocol):
    """A target. `side` names a side's database or dataset."""

    @property
    def plugin(self) -> TargetPlugin:
        """Our plugin."""
        ...

    def values(self, side: str) -> dict[str, Any]:
        """Our plugin's parameters, as a person would enter them in the form."""
        ...

    def fresh(self, side: str) -> None:
        """Make a side's place, empty."""
        ...

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        """Where dlt finds the place, and its name for the dataset."""
        ...

    def sums(self, side: str) -> tuple[int, ...]:
        """Checksums of a side's table, as `copied.sums`."""
        ...

    def has(self, side: str, key: int) -> bool:
        """Whether a reader sees the row with this key."""
        ...


def params(into: Into, side: str) -> Any:
    """The parsed parameters of our plugin."""
    return parse(into.plugin.params, into.values(side))


@dataclass
class IntoPostgresql:
    """Databases of a server."""

    server: EmbeddedPostgres

    @property
    def plugin(self) -> TargetPlugin:
        return registry.targets()["postgresql"]

    def values(self, side: str) -> dict[str, Any]:
        return self.server.params(side)

    def fresh(self, side: str) -> None:
        fresh(self.server, side)

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        return {"url": self.server.dsn(side)}, "bench"

    def sums(self, side: str) -> tuple[int, ...]:
        (row,) = self.server.execute(POSTGRESQL_SUMS, database=side)
        return tuple(int(v or 0) for v in row)

    def has(self, side: str, key: int) -> bool:
        sql = "SELECT to_regclass('bench.events') IS NOT NULL"
        if not self.server.execute(sql, database=side)[0][0]:
            return False
        return bool(
            self.server.execute(f"SELECT 1 FROM bench.events WHERE id = {key}", database=side)
        )


@dataclass
class IntoBigquery:
    """Datasets of an emulator of BigQuery."""

    host: str
    project: str

    @property
    def plugin(self) -> TargetPlugin:
        return registry.targets()["bigquery"]

    def values(self, side: str) -> dict[str, Any]:
        return {"project": self.project, "dataset": side, "endpoint": self.host}

    def fresh(self, side: str) -> None:
        client = self._client()
        client.delete_dataset(side, delete_contents=True, not_found_ok=True)
        client.create_dataset(side)

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        return {"host": self.host, "project": self.project}, side

    def sums(self, side: str) -> tuple[int, ...]:
        (row,) = self._client().query(BIGQUERY_SUMS.format(self._table(side))).result()
        return tuple(int(v or 0) for v in row.values())

    def has(self, side: str, key: int) -> bool:
        sql = f"SELECT 1 FROM `{self._table(side)}` WHERE id = {key}"
        try:
            return bool(list(self._client().query(sql).result()))
        except NotFound:
            return False

    def _table(self, side: str) -> str:
        return f"{self.project}.{side}.events"

    def _client(self) -> bigquery.Client:
        return bigquery.Client(
            self.project,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.host},
        )
