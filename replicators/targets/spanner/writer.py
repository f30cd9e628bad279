"""Makes the target's writer from the parts that are Spanner's own."""

from __future__ import annotations

from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.keyed import KeyedTarget
from replicators.connectors.sql.places import SqlPlaces
from replicators.connectors.tasks import Tasks
from replicators.targets.spanner import naming, types
from replicators.targets.spanner.client import SpannerClient
from replicators.targets.spanner.params import SpannerParams


def writer(params: SpannerParams, tasks: Tasks) -> KeyedTarget:
    """The writer. All tables share a progress table: transactions lock its rows, one each."""
    places = SqlPlaces(lambda table: naming.names(params, table), tasks.folder)
    return KeyedTarget(SpannerClient(params, tasks), places, Types(types.native))
