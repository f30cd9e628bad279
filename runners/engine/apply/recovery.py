"""At a start, compares each table's recorded state with its target, before anything is merged."""

from __future__ import annotations

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.apply.merge import Applier
from runners.engine.apply.rewind import Rewinder
from runners.engine.changelog.backlog import Backlog
from runners.engine.errors import fail_at_start, retry_delay
from runners.engine.store.protocol import Store, TableState


def adopt_all(rewinder: Rewinder, store: Store) -> None:
    """Record what was published, before tokens are compared."""
    for row in store.tables():
        is_followed = row.state in {TableState.REPLICATING, TableState.FAILING}
        if row.rewind_to is not None and is_followed:
            rewinder.adopt(store.table(row.id))


def recover_tables(
    rewinder: Rewinder | None, merger: Applier, store: Store, backlog: Backlog
) -> None:
    """Compare every table with its target. A table whose target has changed since fails; the others
    continue. A table that already fails is compared before its next merge."""
    if rewinder is not None:
        adopt_all(rewinder, store)
    for row in store.tables():
        touched = backlog.touched(row.id)
        if not row.is_snapshot_done:
            continue
        try:
            if row.state is TableState.REPLICATING:
                merger.recover(row)
        except ReplicationError as err:
            if err.table is None:
                raise
            fail_at_start(store, row.id, err, retry_delay(0))
        fresh = store.table(row.id)
        backlog.mark(row.id, merger.unmerged(fresh), touched)
