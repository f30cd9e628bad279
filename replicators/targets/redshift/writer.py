"""Makes the target's writer from the parts that are Redshift's own."""

from __future__ import annotations

from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.places import SqlPlaces, one_per_table
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.targets.redshift import naming
from replicators.targets.redshift.client import RedshiftClient
from replicators.targets.redshift.params import RedshiftParams
from replicators.targets.redshift.types import is_wider, native


def writer(params: RedshiftParams, folder: str) -> SqlMergeTarget:
    """The writer. Each table has a progress table of its own: transactions that change one table
    wait for each other, and then fail. A snapshot's files wait in `folder` until they are
    loaded."""
    places = SqlPlaces(
        lambda table: naming.names(params, table),
        folder,
        progress=one_per_table,
        view=lambda names: naming.view(params, names),
    )
    return SqlMergeTarget(RedshiftClient(params), places, Types(native, is_wider))
