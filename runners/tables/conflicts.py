"""Changes that lost against later ones at a target that is replicated back, as pages and REST show
them. They lie at the target, which is asked each time."""

from __future__ import annotations

from assessments import services as assessments
from assessments.looks import TooManyLooks
from replicators.config import target_plugin
from replicators.connectors.conflicts import Conflict
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.services import target_of
from runners.models import Table

CONFLICTS_SHOWN = 100


def settles(replicator: Replicator) -> bool:
    """Whether its target is replicated back, so that there may be conflicts."""
    try:
        plugin = target_plugin(replicator.target_kind)
        return plugin.conflicts is not None and plugin.settles(target_of(replicator))
    except (ReplicationError, InvalidConfig):
        return False


def conflicts_of(replicator: Replicator, limit: int = CONFLICTS_SHOWN) -> list[Conflict]:
    """The last ones, newest first. ReplicationError where the target can't be asked."""
    if not settles(replicator):
        return []
    rows = Table.objects.shown().filter(replicator=replicator)
    tables = [TableId(t.schema_name, t.name) for t in rows]
    try:
        return assessments.conflicts(
            kind=replicator.target_kind, params=target_of(replicator), tables=tables, limit=limit
        )
    except TooManyLooks as err:
        raise ReplicationError("target:timeout", seconds="0") from err
