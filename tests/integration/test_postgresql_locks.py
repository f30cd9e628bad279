"""Locks that keep tables from being published: who holds them is reported, nobody else has to wait
for it, and it goes on by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from replicators.connectors.snapshot import OpenTransaction
from replicators.sources.postgresql.log import LogControl, LogReader
from tests.integration.postgresql_source import describe, params_of
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SLOT = "locks_slot"


def test_who_holds_a_lock_is_reported_and_writers_do_not_wait_behind_us(database: Database) -> None:
    """Guards `slots.publish`: in line for the lock, the run would say nothing for as long as it is
    held, and all who write to the table would stand behind it."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
    tables = describe(database, "t", "u")
    reported: list[Sequence[OpenTransaction]] = []
    with (
        database.connect(application_name="nightly index") as other,
        database.connect() as writer,
    ):
        other.execute("BEGIN; LOCK TABLE t IN SHARE MODE; LOCK TABLE u IN ROW EXCLUSIVE MODE")
        pid = other.info.backend_pid

        def wait(seconds: float, holders: Sequence[OpenTransaction]) -> None:
            reported.append(holders)
            writer.execute("SET lock_timeout = '100ms'; SELECT FROM t FOR UPDATE")
            if len(reported) == 2:
                other.execute("COMMIT")

        LogReader(params_of(database), SLOT).prepare(tables, None, wait)
    assert len(reported) == 2
    (holder,) = reported[0]
    assert (holder.pid, holder.application, holder.lock) == (
        pid,
        "nightly index",
        "a lock (Share) on public.t",
    )
    assert holder.age_seconds is not None
    assert f"process {pid} (nightly index) with a lock (Share) on public.t, open for " in str(
        holder
    )
    with LogControl(params_of(database), SLOT) as control:
        assert control.unpublished(tables) == []


def test_a_prepared_transaction_that_holds_one_is_reported_by_its_name(database: Database) -> None:
    """Guards `slots.LOCKS`: it has no process, and is found in no session."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    (table,) = describe(database, "t")
    reported: list[str] = []
    with database.connect() as other, LogControl(params_of(database), SLOT) as control:
        other.execute("BEGIN; LOCK TABLE t IN SHARE MODE; PREPARE TRANSACTION 'left alone'")

        def wait(seconds: float, holders: Sequence[OpenTransaction]) -> None:
            reported.extend(map(str, holders))
            other.execute("ROLLBACK PREPARED 'left alone'")

        assert control.add_tables([table], wait) == [table]
    assert reported[0].startswith(
        "prepared transaction 'left alone' with a lock (Share) on public.t, open for "
    )


def test_a_table_that_was_out_for_a_while_is_not_carried(database: Database) -> None:
    """Guards `TableSchema.member`: what was done meanwhile, the log does not have, and nothing else
    tells it afterwards."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
    tables = describe(database, "t", "u")
    with LogControl(params_of(database), SLOT) as control:
        control.add_tables(tables)
        found = control.members(tables)
        known = [replace(t, member=found[t.id]) for t in tables]
        assert control.unpublished(known) == []
        database.execute(f"ALTER PUBLICATION {SLOT}_full DROP TABLE t")
        database.execute(f"ALTER PUBLICATION {SLOT}_full ADD TABLE t")
        control.add_tables(known)
        assert control.unpublished(known) == known[:1]
        assert control.unpublished(tables) == [], "copies of before tell no place"
