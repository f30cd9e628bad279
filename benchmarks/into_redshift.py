"""Databases of a PostgreSQL server that plays Redshift, with an S3 server beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.copied import POSTGRESQL_SUMS
from benchmarks.native import SERVER
from benchmarks.played import played
from demo.postgres import EmbeddedPostgres
from replicators.connectors import registry
from replicators.connectors.target import TargetPlugin
from tests.redshift_server import LOADER, RedshiftServer, make_redshift_database
from tests.redshift_target import params_of
from tests.servers import Database
from tests.stores import object_store


@dataclass
class IntoRedshift:
    """Databases of the server. `server` listens in another process."""

    server: RedshiftServer

    @property
    def plugin(self) -> TargetPlugin:
        return registry.targets()["redshift"]

    def values(self, side: str) -> dict[str, Any]:
        return params_of(self.server, Database(self.server.postgres, side), LOADER)

    def fresh(self, side: str) -> None:
        postgres = self.server.postgres
        postgres.execute(f'DROP DATABASE IF EXISTS "{side}" WITH (FORCE)')
        make_redshift_database(postgres, side)

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        values, login = self.values(side), self.server.postgres.params(side)
        return {
            "redshift": f"postgresql://{login['user']}:{login['password']}@127.0.0.1:"
            f"{self.server.port}/{side}",
            "bucket": f"s3://{self.server.store.bucket}/dlt",
            "endpoint": self.server.store.endpoint,
            "access": values["s3_access_key"],
            "secret": values["s3_secret_key"],
            "role": values["role"],
        }, "bench"

    def sums(self, side: str) -> tuple[int, ...]:
        (row,) = self.server.postgres.execute(POSTGRESQL_SUMS, database=side)
        return tuple(int(v or 0) for v in row)

    def has(self, side: str, key: int) -> bool:
        there = "SELECT to_regclass('bench.events') IS NOT NULL"
        if not self.server.postgres.execute(there, database=side)[0][0]:
            return False
        wanted = f"SELECT 1 FROM bench.events WHERE id = {key}"
        return bool(self.server.postgres.execute(wanted, database=side))


@contextmanager
def served(folder: Path) -> Iterator[IntoRedshift]:
    """The servers, until the end."""
    with (
        EmbeddedPostgres(fsync=False, options=SERVER) as postgres,
        object_store() as store,
        played("redshift", str(postgres.port), store.endpoint) as process,
    ):
        server = RedshiftServer(postgres, store)
        server.port = process.port
        yield IntoRedshift(server)
