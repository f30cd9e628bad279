"""Estimates how many rows the tables have that wait for their copy, so that progress counts all of
them from the start."""

from __future__ import annotations

import logging

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.job import Job
from runners.engine.store.protocol import Store, TableState, is_live

logger = logging.getLogger("replicator.run")


def estimate_rows(job: Job, store: Store) -> None:
    """Record the catalog's estimates, with one query. Tables with a row filter are left out: the
    catalog knows nothing of them. If the source does not answer, only the estimates are missing."""
    waiting = {
        r.id
        for r in store.tables()
        if is_live(r) and r.state is TableState.WAITING and not r.filter
    }
    if not waiting:
        return
    try:
        with job.source.catalog(job.source_params) as catalog:
            listed = catalog.list_tables()
    except ReplicationError as err:
        logger.warning("The tables' sizes could not be read: %s", err.message.text)
        return
    known = {t.id: t.rows_estimated for t in listed if t.id in waiting}
    store.record_estimates({table: rows for table, rows in known.items() if rows is not None})
