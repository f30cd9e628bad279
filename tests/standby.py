"""A standby of an embedded PostgreSQL, made by pg_basebackup, that receives the primary's slots too
(PostgreSQL 17)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from demo.postgres import EmbeddedPostgres, _as_account, _environment, wheel_binaries
from tests.harness import until

SLOT = "standby"
OPTIONS = {"hot_standby_feedback": "on", "sync_replication_slots": "on", "primary_slot_name": SLOT}


@contextmanager
def standby_of(primary: EmbeddedPostgres, database: str) -> Iterator[EmbeddedPostgres]:
    """A standby that runs; `database` is where it asks for the slots."""
    server = EmbeddedPostgres(fsync=False, options=OPTIONS, password=primary.password)
    server._prepare()
    command = [*_as_account(server._account), str(wheel_binaries() / "pg_basebackup"),
               "--pgdata", str(server.data_dir), "--write-recovery-conf", "--checkpoint=fast",
               "--create-slot", f"--slot={SLOT}", f"--dbname={primary.dsn(database)}"]  # fmt: skip
    made = subprocess.run(
        command, cwd=server.home, env=_environment(), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    try:
        with server:
            yield server
    finally:
        if primary.pid is not None:
            primary.execute(f"SELECT pg_drop_replication_slot('{SLOT}')")


def until_received(primary: EmbeddedPostgres, standby: EmbeddedPostgres) -> None:
    """Wait until the standby has all that the primary has written."""
    end = primary.execute("SELECT pg_current_wal_lsn()::text")[0][0]
    until(
        lambda: standby.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [end])[0][0],
        "the standby is level",
        60,
    )


def promote(standby: EmbeddedPostgres) -> None:
    """It becomes a primary, on a timeline of its own."""
    assert standby.execute("SELECT pg_promote(true, 60)")[0][0]
    until(lambda: not standby.execute("SELECT pg_is_in_recovery()")[0][0], "promoted", 30)
