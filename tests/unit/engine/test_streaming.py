"""What ends the stream, and what is only a cut that is made good."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.policy import SchemaPolicy
from runners.engine.capture.stream import Streaming
from runners.engine.store.protocol import MemoryStore, chosen


def stream(fault: BaseException) -> Any:
    """A stream whose capture ended so, at a source that takes every fault for a cut of its
    connection."""
    made: Any = Streaming.__new__(Streaming)
    made._job = SimpleNamespace(
        source=SimpleNamespace(translate=lambda err: ReplicationError("source:connection-lost"))
    )
    made._stop = threading.Event()
    made._stop.set()
    made._reconnects, made._reconnected_at = 0, time.monotonic()
    made.capture = SimpleNamespace(fault=fault, is_source_closed=False)
    made.again = 0
    made._reader = SimpleNamespace(close=lambda: None)
    made._drop_cut_transaction = lambda: None

    def connect() -> None:
        made.again += 1

    made._connect_again = connect
    return made


def test_a_fault_of_the_programs_own_database_is_never_taken_for_a_cut() -> None:
    """Guards rules 2 and 27: a segment whose recording was cut off may be recorded; going on
    without it, merges would pass it over for ever."""
    with pytest.raises(ReplicationError) as caught:
        stream(ReplicationError("run:database-lost")).check()
    assert caught.value.code == "run:database-lost"


def test_a_cut_of_the_sources_connection_is_made_again_some_times() -> None:
    """Guards the bound in `Streaming._count`: without `RECONNECT_SECONDS` as its end a source that
    cuts every connection would never fail the run, and nobody would be told."""
    streaming = stream(ConnectionError("reset by peer"))
    for _ in range(8):
        streaming.check()
    assert streaming.again == 8
    with pytest.raises(ReplicationError):
        streaming.check()


@pytest.mark.parametrize("is_at_reconnect", [False, True])
def test_a_log_that_goes_on_no_longer_fails_the_tables_at_once(is_at_reconnect: bool) -> None:
    """Guards tables that said *replicating* under a replicator whose position was lost while it
    ran, as after RESET MASTER: only a start looked at them."""
    lost = ReplicationError("source:position-lost", reason="it was reset")
    streaming = stream(ConnectionError("cut") if is_at_reconnect else lost)
    copied, waiting = TableId("s", "copied"), TableId("s", "waiting")
    streaming._store = MemoryStore([copied, waiting])
    streaming._store.table_event(copied, "table_snapshot_done", is_snapshot_done=True)

    def connect() -> None:
        raise lost

    streaming._connect_again = connect
    with pytest.raises(ReplicationError) as caught:
        streaming.check()
    assert caught.value.code == "source:position-lost"
    found = {r.id: (str(r.state), r.error_code) for r in streaming._store.tables()}
    assert found[copied] == ("failing", "source:position-lost")
    assert found[waiting] == ("waiting", "")


def test_a_table_that_somebody_took_out_does_not_come_back_silently() -> None:
    """Guards rule 21: the view of another table publishes every chosen one again, and afterwards no
    look into the catalog would find that this one was away. A table that was made again under its
    name is reported as that, not as this."""
    there, copied, asked, again = (TableId("s", n) for n in ("there", "copied", "asked", "again"))
    store = MemoryStore([there, copied, asked, again, TableId("s", "new")])
    for table in (there, copied, asked, again):
        schema = TableSchema(table, (), native_id=7 if table is again else 0)
        store.table_event(table, "table_snapshot_done", is_snapshot_done=True, schema=schema)
    store.table_progress(asked, is_resync_asked=True)
    reported: list[Any] = []
    streaming: Any = Streaming.__new__(Streaming)
    streaming._store, streaming._on_fault = store, lambda *fault: reported.append(fault)
    streaming._tell_missed([TableSchema(t.id, ()) for t in store.tables() if t.id != there])
    assert reported == [(copied, "source:table-unpublished", {})]


def test_a_table_that_the_catalog_lacks_already_stays_in_the_stream_until_the_log_tells_its_end() -> (  # noqa: E501
    None
):
    """Guards rows and statements between what is read of the log and the catalog, which is ahead of
    it: a table that is renamed, or away only between a DROP and a CREATE, would miss its own
    statement, and go on with another table's rows."""
    copied, copying, gone, never = (TableId("s", n) for n in ("a", "b", "c", "e"))
    store = MemoryStore([copied, copying, gone, never])
    column = Column("id", Int(64), "bigint", False)
    for table in (copied, gone):
        schema = TableSchema(table, (column,), ("id",), upto=100)
        store.table_event(table, "table_snapshot_done", is_snapshot_done=True, schema=schema)
    streaming: Any = Streaming.__new__(Streaming)
    streaming._store, streaming._chosen, streaming._schemas = store, chosen(store), {}
    streaming._policy, streaming._columns = SchemaPolicy.EVOLVE, ColumnKnowledge.BY_STATEMENTS
    seen = [TableSchema(copying, (column,), ("id",), upto=1, layout=((0, "id", 0),))]
    streaming._describe = lambda tables: list(seen)
    assert [t.id for t in streaming.describe()] == [copying, copied, gone]
    seen.clear()
    fault = {"error_code": "source:table-renamed", "error_facts": {"now": "x"}, "retry_at": None}
    store.table_event(gone, "table_failed", **fault)
    found = {t.id: t for t in streaming.describe()}
    assert set(found) == {copied, copying}
    assert found[copied].known == TableSchema(copied, (column,), ("id",), upto=100)
    assert found[copying].known is None
    store.table_event(copied, "table_failed", **(fault | {"error_code": "target:permission"}))
    assert copied in {t.id for t in streaming.describe()}
