"""Makes the target's writer from the parts that are PostgreSQL's own."""

from __future__ import annotations

from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.target import SqlMergeTarget, SqlPlaces
from replicators.targets.postgresql import naming
from replicators.targets.postgresql.client import PostgresqlClient
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.types import is_wider


def writer(params: PostgresqlTargetParams, folder: str) -> SqlMergeTarget:
    """The writer. A snapshot's files wait in `folder` until they are loaded."""
    places = SqlPlaces(
        lambda table: naming.names(params, table),
        folder,
        view=lambda names: naming.view(params, names),
    )
    client = PostgresqlClient(params)
    return SqlMergeTarget(client, places, Types(client.native, is_wider))
