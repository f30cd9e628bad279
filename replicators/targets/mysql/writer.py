"""Makes the target's writer from the parts that are MySQL's own."""

from __future__ import annotations

from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.target import SqlPlaces
from replicators.connectors.sql.together import TogetherTarget
from replicators.targets.mysql import naming
from replicators.targets.mysql.client import MysqlClient
from replicators.targets.mysql.params import MysqlTargetParams
from replicators.targets.mysql.types import is_wider


def writer(params: MysqlTargetParams, folder: str) -> TogetherTarget:
    """The writer. A snapshot's files wait in `folder` until they are loaded."""
    places = SqlPlaces(
        lambda table: naming.names(params, table),
        folder,
        view=lambda names: naming.view(params, names),
    )
    client = MysqlClient(params)
    return TogetherTarget(client, places, Types(client.native, is_wider))
