"""Rows that a `ChangeSink` refused. The target keeps them; the store has a list of them for pages
and REST. A person may ask to have them sent again."""

from __future__ import annotations

from replicators.connectors.target import ChangeSink, RejectsRows
from runners.engine.quarantine.decide import QUARANTINED_LIMIT
from runners.engine.store.protocol import Store, TableRow
from runners.engine.store.quarantine import QuarantinedRow
from runners.engine.store.target_table import target_table


def note_refused(sink: ChangeSink, store: Store, replicator: str, row: TableRow) -> None:
    """Record what the target refuses now, where that may have changed. The target kept the rows
    before, so a crash in between loses nothing: the next run's first list is complete."""
    if not isinstance(sink, RejectsRows):
        return
    found = sink.refused(target_table(replicator, row), QUARANTINED_LIMIT)
    if found is not None:
        rows = [QuarantinedRow(r.number, r.key, r.reason, b"") for r in found]
        store.record_refused(row.id, row.generation, rows)


def replay_refused(sink: ChangeSink, store: Store, replicator: str, row: TableRow) -> None:
    """Send the refused rows again. The request goes first: a person who asks meanwhile asks for
    another replay."""
    store.table_progress(row.id, is_replay_asked=False)
    if isinstance(sink, RejectsRows):
        sink.replay(target_table(replicator, row))
        note_refused(sink, store, replicator, row)
