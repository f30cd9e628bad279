"""The failpoints as the engine knows them. Targets have some too, so they lie in
`connectors/failpoints.py`."""

from __future__ import annotations

from replicators.connectors.failpoints import DELIVERY_NAMES as DELIVERY_NAMES
from replicators.connectors.failpoints import KEYED_NAMES as KEYED_NAMES
from replicators.connectors.failpoints import NAMES as NAMES
from replicators.connectors.failpoints import REPAIR_NAMES as REPAIR_NAMES
from replicators.connectors.failpoints import SINK_NAMES as SINK_NAMES
from replicators.connectors.failpoints import SQL_NAMES as SQL_NAMES
from replicators.connectors.failpoints import hit as hit
