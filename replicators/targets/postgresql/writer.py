"""Makes the target's writer from the parts that are PostgreSQL's own."""

from __future__ import annotations

from sqlglot import exp

from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.steps import Statement
from replicators.connectors.sql.target import SqlPlaces
from replicators.connectors.sql.together import TogetherTarget
from replicators.targets.postgresql import naming
from replicators.targets.postgresql.client import PostgresqlClient
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.two_way import TwoWayTarget
from replicators.targets.postgresql.types import is_wider

DEFERRED = Statement(exp.Command(this="SET", expression="CONSTRAINTS ALL DEFERRED"))
"""Foreign keys that people made in the target are checked when all tables are merged."""


def writer(params: PostgresqlTargetParams, folder: str) -> TogetherTarget:
    """The writer. A snapshot's files wait in `folder` until they are loaded."""
    places = SqlPlaces(
        lambda table: naming.names(params, table),
        folder,
        view=lambda names: naming.view(params, names),
    )
    client = PostgresqlClient(params)
    types = Types(client.native, is_wider)
    if params.origin:
        return TwoWayTarget(client, places, types, before=(DEFERRED,), origin=params.origin)
    return TogetherTarget(client, places, types, before=(DEFERRED,))
