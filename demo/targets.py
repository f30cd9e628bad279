"""Where the demo copies the shop to: one entry for each name of `DEMO_TARGET`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from demo import shop
from demo.bigquery import EmbeddedBigQuery
from demo.place import Place
from demo.postgres import EmbeddedPostgres

CATALOG = "demo"
WAREHOUSE = "warehouse"


class Server(Protocol):
    """A server that the demo starts, watches and stops."""

    @property
    def pid(self) -> int | None: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A target that is ready: its parameters, its server if it has one of its own, and the options
    that the demo's replicator has there."""

    params: Mapping[str, Any]
    server: Server | None = None
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DemoTarget:
    """`kind` is the plugin's name. `open` makes what the target needs, in the demo's folder."""

    kind: str
    label: str
    open: Callable[[Place, EmbeddedPostgres], Opened]

    @property
    def replicator(self) -> str:
        """The name of the demo's replicator."""
        return f"{shop.DATABASE} to {self.label}"


def _lakehouse(place: Place, postgres: EmbeddedPostgres) -> Opened:
    """Iceberg in a folder."""
    del postgres
    return Opened(
        {
            "format": "iceberg",
            "catalog_name": CATALOG,
            "catalog_uri": f"sqlite:///{place.folder / 'catalog.sqlite3'}",
            "warehouse": str(place.folder / "warehouse"),
            "namespace": shop.SCHEMA,
        }
    )


def _postgresql(place: Place, postgres: EmbeddedPostgres) -> Opened:
    """Another database of the demo's server, with a login that may make schemas there."""
    del place
    known = postgres.execute("SELECT 1 FROM pg_database WHERE datname = %s", [WAREHOUSE])
    if not known:
        postgres.execute(f'CREATE DATABASE "{WAREHOUSE}"')
    postgres.execute(f'GRANT CREATE, CONNECT, TEMPORARY ON DATABASE "{WAREHOUSE}" TO {shop.LOGIN}')
    return Opened({**postgres.params(WAREHOUSE), "user": shop.LOGIN})


def _bigquery(place: Place, postgres: EmbeddedPostgres) -> Opened:
    """The emulator, with its data in the demo's folder. A table is merged every few seconds: the
    emulator has no quotas, and nobody who tries the demo waits 90 s."""
    del postgres
    from demo.processes import MARK

    noted = place.folder / "bigquery.json"
    server = EmbeddedBigQuery(
        folder=place.folder / "bigquery",
        port=place.read(noted).get("port", 0),
        dies_with_parent=False,
        environment={MARK: str(place.folder)},
    )
    server.start()
    place.write_private(noted, json.dumps({"port": server.port}))
    params = {"project": "shop-demo", "location": "EU", "endpoint": server.url}
    return Opened(params, server, {"merge_seconds": 5.0})


TARGETS = {
    t.kind: t
    for t in (
        DemoTarget("lakehouse", "lakehouse", _lakehouse),
        DemoTarget("postgresql", "PostgreSQL", _postgresql),
        DemoTarget("bigquery", "BigQuery", _bigquery),
    )
}
