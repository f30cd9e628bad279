"""Two runs that both believe they own a replicator, and a program whose own database goes away."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from demo.postgres import EmbeddedPostgres
from runners.models import Run, Segment
from runners.supervision.supervisor import LEASE_MARGIN, run_lose
from tests.harness import Child, Traffic, World, migrate, until
from tests.servers import fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

LEASE = 9.0
OUTAGE = 60.0


def hold_merges(world: World) -> str:
    """A failpoint that holds merges between the target's commit and its recording while the flag is
    there."""
    return f"target_merged=hold:{world.folder / 'held'}"


def is_held(world: World) -> bool:
    """Whether the target is ahead of what is recorded."""
    return any(max(world.tokens(t)) > world.row(t).merged_sequence for t in world.tables)


def stop_between_writes(world: World, child: Child) -> None:
    """SIGSTOP to the run's processes at a moment when none holds the write lock of the program's
    SQLite: a process that is stopped within a transaction keeps the lock, and nobody else could
    write."""

    def is_stopped() -> bool:
        os.killpg(child.pid, signal.SIGSTOP)
        try:
            with closing(sqlite3.connect(world.folder / "app.sqlite3", timeout=1)) as app:
                app.execute("BEGIN IMMEDIATE")
                app.rollback()
        except sqlite3.OperationalError:
            os.killpg(child.pid, signal.SIGCONT)
            return False
        return True

    until(is_stopped, "the run is stopped while it writes nothing", 60)


def until_lease_is_over(child: Child) -> None:
    def is_over() -> bool:
        run = Run.objects.get(pk=child.run.pk)
        return run.lease_until is not None and run.lease_until + LEASE_MARGIN < timezone.now()

    until(is_over, "the lease runs out", 60)


def names(world: World) -> dict[int, str]:
    """The paths of all segments; each run's have a part of their own."""
    return dict(Segment.objects.filter(replicator=world.replicator).values_list("number", "path"))


def test_a_run_that_was_stopped_past_its_lease_writes_nothing_more_when_it_goes_on(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 29 and 14: the older run is held between the target's commit and its
    recording, and stopped by the system; a newer one takes over; continued, the older one must end
    without a write. Were the lease not looked at with each write, it would record its merge, list
    its change files or acknowledge its position over the newer run's."""
    options = {"wal_sender_timeout": "6s"}
    with (
        EmbeddedPostgres(fsync=False, options=options) as server,
        twin_maker(server=server, tables=("items", "pairs")) as world,
    ):
        traffic = Traffic(world.database)
        held = world.folder / "held"
        older = world.start(
            REPLICATOR_LEASE_SECONDS=str(LEASE), REPLICATOR_FAILPOINTS=hold_merges(world)
        )
        world.settle()
        held.touch()
        traffic.write(20)
        world.until(lambda: is_held(world), "a merge is held")
        stop_between_writes(world, older)
        try:
            until_lease_is_over(older)
            older.run.refresh_from_db()
            now = timezone.now() + timedelta(seconds=1)
            run_lose(run=older.run, code="run:lost", facts={}, event="run_lost", now=now)
            before = names(world)

            world.child = None
            newer = world.start()
            traffic.write(20)
            world.assert_equal()
            known = {os.path.basename(p) for p in before.values()}
            held.unlink()
            rows = {t: world.row(t).merged_sequence for t in world.tables}
        finally:
            os.killpg(older.pid, signal.SIGCONT)
        # What is left of it are its Spark workers, which have groups of their own.
        assert older.wait(60) == -signal.SIGKILL, older.tail()
        traffic.write(20)
        world.assert_equal()
        assert not newer.is_dead()
        assert all(world.row(t).merged_sequence >= s for t, s in rows.items())
        for table in world.tables:
            tokens = world.tokens(table)
            assert tokens == sorted(tokens), f"{table}: a token went back"
        older_part = {name.split("-")[-1] for name in known}
        late = {n: p for n, p in names(world).items() if n > max(before, default=0)}
        assert not {os.path.basename(p).split("-")[-1] for p in late.values()} & older_part
        assert world.stop() == 0


@pytest.mark.long
def test_a_program_whose_database_goes_away_loses_nothing(
    world_maker: MakeWorld, postgres: EmbeddedPostgres, private_postgres: EmbeddedPostgres
) -> None:
    """Guards CORRECTNESS 27 and 29: nothing is acknowledged to the source that could not be
    recorded, and a run that can't prove its lease ends by itself before another may begin."""
    with fresh_database(private_postgres) as own:
        migrate(own.dsn)
        with world_maker(server=postgres, application=own.dsn) as world:
            traffic = Traffic(world.database)
            child = world.start()
            world.settle()
            with traffic.going_on():
                before = traffic.transactions
                private_postgres.stop("immediate")
                until(child.is_dead, lambda: child.tail(), 90)
                until(lambda: traffic.transactions > before + 20, "traffic goes on")
            private_postgres.start()
            connection.close()
            child.end()
            world.start()
            world.assert_equal()
            assert world.stop() == 0


@pytest.mark.long
def test_a_program_whose_database_is_away_for_a_minute_goes_on(
    world_maker: MakeWorld, postgres: EmbeddedPostgres, private_postgres: EmbeddedPostgres
) -> None:
    """Guards CORRECTNESS 27 and 29: the run waits as long as its lease lets it, writes nothing of
    which it is not known whether it was written, and goes on. Without the wait its first write
    would end it."""
    with fresh_database(private_postgres) as own:
        migrate(own.dsn)
        with world_maker(server=postgres, application=own.dsn) as world:
            traffic = Traffic(world.database)
            child = world.start(REPLICATOR_LEASE_SECONDS="120")
            world.settle()
            with traffic.going_on():
                before = traffic.transactions
                private_postgres.stop("immediate")
                gone_at = time.monotonic()
                until(lambda: time.monotonic() > gone_at + OUTAGE, "a minute", 90, every=1)
                assert not child.is_dead(), child.tail()
                private_postgres.start()
                connection.close()
                until(lambda: traffic.transactions > before + 20, "traffic goes on")
            world.assert_equal()
            child.run.refresh_from_db()
            lease_until = child.run.lease_until
            assert not child.is_dead() and lease_until and lease_until > timezone.now()
            assert world.stop() == 0
