"""The whole data path with real parts, for crash and engine tests: a source database, the
application's own database, a warehouse, and runs as real child processes. Targets are read by
pyiceberg and deltalake, never by Spark."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import dj_database_url
import psycopg
from django.conf import settings
from django.db import connections
from django.utils import timezone

from replicators.config import parse_tables
from replicators.models import Replicator
from replicators.services import replicator_create
from runners.engine import failpoints
from runners.engine.processes import LEASE, end_session, started_at
from runners.models import ChangeFile, LogLine, Progress, Run, Segment, Table
from runners.selectors import replicator_badge
from runners.services import (
    run_ask_stop,
    table_remove,
    table_resync,
    table_rewind,
    tables_sync,
)
from runners.supervision.supervisor import run_lose
from runners.tables.changes import table_add
from runners.transitions import run_transition
from tests.background import Background
from tests.forking import Copy, forks
from tests.model.reading import delta_rows, iceberg_rows
from tests.servers import Database

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_SECONDS = 300.0
START_LEASE = timedelta(seconds=120)
CATALOG, NAMESPACE = "lake", "shop"
FAST = {
    "REPLICATOR_HEARTBEAT_SECONDS": "1",
    "REPLICATOR_LEASE_SECONDS": "30",
    "REPLICATOR_DISK_RESERVE_BYTES": "1",
    "REPLICATOR_ROWS_PER_CHUNK": "250",
    "REPLICATOR_MAINTAIN_EVERY_COMMITS": "15",
    "REPLICATOR_WATERMARK_SECONDS": "0",
    "REDIS_URL": "",
}
SEND_LOG = "SELECT (pg_logical_emit_message(true, 'test', 'mark') - '0/0')::bigint"
PLAIN_TYPES = {
    "smallint", "integer", "bigint", "numeric", "text", "character varying", "boolean", "bytea",
    "timestamp with time zone", "timestamp without time zone", "date", "ARRAY", "double precision",
}  # fmt: skip


def until(
    holds: Callable[[], Any],
    what: str | Callable[[], str],
    seconds: float = DEADLINE_SECONDS,
    every: float = 0.1,
) -> Any:
    """Poll until `holds` is true and return what it gave; fails with `what` at the deadline."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        said = what if isinstance(what, str) else what()
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {said}"
        time.sleep(every)
    return found


def migrate(url: str) -> None:
    """Bring an application database up to date, in a process of its own."""
    command("migrate", "--noinput", "--verbosity", "0", environment={"DATABASE_URL": url})


def command(*arguments: str, environment: Mapping[str, str]) -> None:
    """Run `manage.py ARGUMENTS...` to its end."""
    with tempfile.NamedTemporaryFile() as output:
        given = {**os.environ, **environment}
        code = forks().start(["manage.py", *arguments], given, Path(output.name)).wait(300)
        assert code == 0, output.read().decode(errors="replace")[-4000:]


@contextmanager
def application_database(url: str, blocker: Any) -> Iterator[None]:
    """This process uses the migrated database at `url` as Django's default one."""
    before = connections["default"]
    values = {**before.settings_dict, "OPTIONS": {}, **dj_database_url.parse(url)}
    if values["ENGINE"].endswith("sqlite3"):
        values["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 30,
                             "init_command": "PRAGMA journal_mode=WAL;"}  # fmt: skip
    with blocker.unblock():
        kept = connections.settings["default"]
        connections.settings["default"] = values
        connections["default"] = connections.create_connection("default")
        try:
            yield
        finally:
            connections["default"].close()
            connections.settings["default"] = kept
            connections["default"] = before


@dataclass
class Child:
    """A run's own process, started as the supervisor does."""

    run: Run
    process: Copy
    output: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_dead(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    def wait(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Its exit code, negative for a signal."""
        return self.process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL to the process."""
        self.process.kill()

    def end(self) -> None:
        """What the supervisor does after a death: nothing of the session lives on, and the run is
        lost or stopped."""
        code = self.process.poll()
        assert end_session(self.pid), "processes of the run could not be killed"
        self.process.wait(10)
        self.run.refresh_from_db()
        if code == 0:
            run_transition(run=self.run, event="run_stopped", lease="")
        else:
            error = self.run.error_code or "run:lost"
            facts = self.run.error_facts
            run_lose(run=self.run, code=error, facts=facts, event="run_lost", now=timezone.now())
        self.run.refresh_from_db()

    def tail(self) -> str:
        """The last lines of its output, for reports."""
        return self.output.read_text(errors="replace")[-6000:]


@dataclass
class World:
    """One replicator with everything real around it; `application` is the URL of the program's own
    database. `choices`: what is copied of some tables. `flags` hold failpoints off while their
    files exist."""

    kind: ClassVar[str] = "postgresql"
    program: ClassVar[tuple[str, ...]] = ("manage.py", "run_replicator")

    folder: Path
    database: Database
    tables: tuple[str, ...]
    application: str
    format: str = "iceberg"
    options: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    child: Child | None = None

    @property
    def schema(self) -> str:
        """Where the source's tables lie."""
        return "shop"

    @property
    def namespace(self) -> str:
        """The namespace that all target tables lie in; empty: each in its schema's."""
        return NAMESPACE

    def chosen(self) -> list[dict[str, Any]]:
        """The tables as the replicator is asked to copy them."""
        return [self.choice(n) for n in self.tables]

    def choice(self, name: str) -> dict[str, Any]:
        """One table as the replicator is asked to copy it."""
        mode = self.modes.get(name, "")
        return {"schema": self.schema, "name": name, "mode": mode, **self.choices.get(name, {})}

    def target_params(self) -> tuple[str, dict[str, Any]]:
        """The target's kind, and its parameters."""
        return "lakehouse", {
            "format": self.format,
            "catalog_name": CATALOG,
            "catalog_uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": str(self.warehouse),
            "namespace": self.namespace,
            **self.target,
        }

    def __post_init__(self) -> None:
        self.flags = self.folder / "flags"
        self.flags.mkdir()
        self.warehouse = self.folder / "warehouse"
        target_kind, target_params = self.target_params()
        self.replicator: Replicator = replicator_create(
            actor=None,
            name=self.folder.name,
            source_kind=self.kind,
            source_params={**self.database.params, **self.source},
            target_kind=target_kind,
            target_params=target_params,
            tables=self.chosen(),
            options={"seal_seconds": 0.3, "merge_seconds": 0.3, **self.options},
        )
        tables_sync(self.replicator)
        for name in failpoints.NAMES:
            self.disarm(name)

    # --- failpoints ----------------------------------------------------------------------------------------------  # noqa: E501
    def flag(self, name: str) -> Path:
        """The flag file of a failpoint."""
        return self.flags / name

    def disarm(self, name: str) -> None:
        """The failpoint does nothing from now on."""
        self.flag(name).write_text("off")

    def arm(self, name: str) -> None:
        """The next process or thread that comes to the failpoint dies there."""
        self.flag(name).unlink(missing_ok=True)

    # --- runs ----------------------------------------------------------------------------------------------------  # noqa: E501
    def start(self, **environment: str) -> Child:
        """A run in a real process; returns at once."""
        assert self.child is None or self.child.is_dead(), "a run is alive"
        run = Run.objects.create(
            replicator=self.replicator,
            lease=uuid.uuid4().hex,
            lease_until=timezone.now() + START_LEASE,
        )
        output = self.folder / f"{run.pk}.log"
        given = {**self._environment(environment), LEASE: run.lease}
        process = forks().start([*self.program, str(run.pk)], given, output)
        Run.objects.filter(pk=run.pk).update(
            pid=process.pid, pid_started_at=started_at(process.pid)
        )
        self.child = Child(run, process, output)
        return self.child

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        points = ",".join(f"{n}=kill:{self.flag(n)}" for n in failpoints.NAMES)
        return {
            **os.environ,
            **FAST,
            "DATABASE_URL": self.application,
            "SECRET_KEY": settings.SECRET_KEY,
            "REPLICATOR_SECRET_KEY": settings.REPLICATOR_SECRET_KEY,
            "REPLICATOR_JARS_DIR": settings.RUNNER.jars_dir,
            "REPLICATOR_LOG_URL": str(self.folder / "log"),
            "REPLICATOR_SPARK_LOCAL_DIR": str(self.folder / "spark"),
            "REPLICATOR_FAILPOINTS": points,
            **self.environment,
            **more,
        }

    def stop(self) -> int:
        """Ask the run to stop as a pause does, and wait for it: the exit code."""
        assert self.child is not None
        run_ask_stop(run=self.child.run, origin="user")
        code = self.child.wait()
        self.child.end()
        return code

    def kill(self) -> None:
        """kill -9, and what the supervisor does then."""
        assert self.child is not None
        self.child.kill()
        assert self.child.wait() == -signal.SIGKILL
        self.child.end()

    def close(self) -> None:
        """End what runs."""
        if self.child is not None:
            if not self.child.is_dead():
                self.child.kill()
            self.child.process.wait(10)
            end_session(self.child.pid)

    def _alive(self) -> None:
        if self.child is not None and self.child.is_dead():
            raise AssertionError(f"the run ended with {self.child.wait()}\n{self.child.tail()}")

    # --- what it says --------------------------------------------------------------------------------------------  # noqa: E501
    def row(self, name: str) -> Table:
        """The table's row, fresh."""
        return Table.objects.get(replicator=self.replicator, name=name)

    def states(self) -> dict[str, str]:
        """State, and the error where there is one, by table."""
        rows = Table.objects.filter(replicator=self.replicator)
        return {r.name: f"{r.state} {r.error_code}".strip() for r in rows}

    def facts(self) -> dict[str, Any]:
        """The last metrics of the source's log and of ours."""
        found = Progress.objects.filter(replicator=self.replicator).first()
        return dict(found.facts) if found else {}

    def label(self) -> str:
        """The state in words, as pages show it of a replicator that is asked to run."""
        Replicator.objects.filter(pk=self.replicator.pk).update(desired_state="running")
        return replicator_badge(self.replicator).label

    def position(self) -> int:
        """Captured position; 0 before the first."""
        found = Progress.objects.filter(replicator=self.replicator).first()
        return int(found.position["value"]) if found and found.position else 0

    def last_segment(self) -> int:
        """The highest segment number ever recorded."""
        found = Progress.objects.filter(replicator=self.replicator).first()
        return found.last_segment if found else 0

    def log_text(self) -> str:
        """The replicator's log lines."""
        lines = LogLine.objects.filter(replicator=self.replicator).values_list("text", flat=True)
        return "\n".join(lines)

    def resync(self, name: str) -> None:
        """Ask for a fresh copy of a table."""
        table_resync(replicator=self.replicator, schema=self.schema, name=name, actor=None)

    def rewind(self, name: str, at: datetime) -> None:
        """Ask that a table is taken back to that time."""
        table_rewind(replicator=self.replicator, schema=self.schema, name=name, at=at, actor=None)

    def add(self, name: str) -> None:
        """Ask for one more table."""
        (selection,) = parse_tables([self.choice(name)])
        table_add(is_assessed=False, replicator=self.replicator, selection=selection, actor=None)

    def remove(self, name: str, *, keep_target: bool = True) -> None:
        """Ask for a table no longer."""
        table_remove(
            replicator=self.replicator,
            schema=self.schema,
            name=name,
            actor=None,
            keep_target=keep_target,
        )

    def published(self) -> set[str]:
        """The tables that the source's stream carries."""
        found = self.database.execute(
            "SELECT tablename FROM pg_publication_tables WHERE pubname LIKE %s",
            [f"{self.replicator.slot_name}%"],
        )
        return {name for (name,) in found}

    def moves_on(self, name: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Wait until more of a table is merged than now, and fail where that takes long."""
        before = self.row(name).merged_sequence
        self.until(lambda: self.row(name).merged_sequence > before, f"{name} moves on", seconds)

    def until(self, holds: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> Any:
        """Wait for something while the run lives."""

        def look() -> Any:
            self._alive()
            return holds()

        def reported() -> str:
            tail = self.child.tail() if self.child else ""
            return f"{what}\n{self.states()}\n{self.unmerged()}\n{tail}"

        return until(look, reported, seconds)

    def until_states(self, state: str, *names: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Wait until these tables (default: all) say `state`, such as `failing
        target:table-missing`."""
        wanted = names or self.tables
        self.until(
            lambda: all(self.states()[n] == state for n in wanted), f"{wanted} {state}", seconds
        )

    def unmerged(self) -> dict[str, int]:
        """What is left to do in the change log: undecoded segments, and change files by table."""
        found = Counter(
            {
                "undecoded": Segment.objects.filter(
                    replicator=self.replicator, is_decoded=False
                ).count()
            }
        )
        for row in Table.objects.filter(replicator=self.replicator, is_snapshot_done=True):
            found[row.name] += ChangeFile.objects.filter(
                replicator=self.replicator,
                schema_name=row.schema_name,
                table_name=row.name,
                last_sequence__gt=row.merged_sequence,
                last_position__gte=row.snapshot_position,
            ).count()
        return {name: count for name, count in found.items() if count}

    def settle(self, *names: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Wait until these tables replicate and everything committed at the source by now is
        captured, decoded and merged; nothing can arrive later."""
        wanted = names or self.tables
        mark = self.mark()

        def is_done() -> bool:
            states = self.states()
            return all(states[n] == "replicating" for n in wanted) and self.is_merged(mark, wanted)

        self.until(is_done, f"settled past {mark}", seconds)

    def is_merged(self, mark: int, names: Sequence[str]) -> bool:
        """Whether these tables replicate and have everything up to `mark`. The position is read
        first: what is captured after that look at the change log would be missing from it, though
        the position says otherwise. The states are read last: a copy that was asked for has nothing
        unmerged as soon as it begins."""
        if self.position() < mark:
            return False
        left = self.unmerged()
        if any(left.get(n) for n in ("undecoded", *names)):
            return False
        mine = Table.objects.filter(replicator=self.replicator, name__in=names)
        level = {"state": "replicating", "is_snapshot_done": True, "is_resync_asked": False}
        return mine.filter(**level).count() == len(set(names))

    def mark(self) -> int:
        """A position of the source's log that follows everything committed by now."""
        return int(self.database.execute(SEND_LOG)[0][0])

    # --- equality ------------------------------------------------------------------------------------------------  # noqa: E501
    def target_rows(self, name: str) -> list[dict[str, Any]]:
        """The target table's rows, read without Spark."""
        if self.format == "delta":
            return _read_delta(self.warehouse / NAMESPACE / name)
        return list(self.lake_table(name).scan().to_arrow().to_pylist())

    def lake_table(self, name: str) -> Any:
        """The Iceberg table as a reader opens it."""
        from pyiceberg.catalog.sql import SqlCatalog

        uri = f"sqlite:///{self.folder}/catalog.db"
        catalog = SqlCatalog(CATALOG, uri=uri, warehouse=str(self.warehouse))
        return catalog.load_table((NAMESPACE, name))

    def has_target(self, name: str) -> bool:
        """Whether the Iceberg table is there."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            self.lake_table(name)
        except NoSuchTableError:
            return False
        return True

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        """Columns and rows of a copy, as the checkers compare them."""
        if self.format == "delta":
            return delta_rows(self.warehouse / NAMESPACE / name)
        uri = f"sqlite:///{self.folder}/catalog.db"
        return iceberg_rows(uri, str(self.warehouse), CATALOG, (NAMESPACE, name))

    @property
    def can_be_away(self) -> bool:
        """Whether `target_away` can hold the target's writers off."""
        return self.format == "iceberg"

    @contextmanager
    def target_away(self) -> Iterator[None]:
        """Nobody can write to the target meanwhile."""
        path = self.folder / "catalog.db"
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as catalog:
            catalog.execute("BEGIN EXCLUSIVE")
            yield
            catalog.execute("COMMIT")

    def left_over(self, name: str) -> set[str]:
        """Branches of the Iceberg table that a copy left there."""
        return set(self.lake_table(name).metadata.refs) - {"main"}

    def source_rows(self, name: str) -> list[dict[str, Any]]:
        """The source table's rows: types without a Python value of their own as text."""
        with self.database.connect() as connection:
            return table_rows(connection, "shop", name)

    def differences(self, name: str, key: Sequence[str] = ()) -> list[str]:
        """Rows that are not equally often in source and target, every column compared; empty when
        equal."""
        return differing(self.source_rows(name), self.target_rows(name), key)

    def assert_equal(self, *names: str) -> None:
        """Settle, then every row of the tables is equal in every column, exactly once."""
        wanted = names or self.tables
        self.settle(*wanted)
        for name in wanted:
            reported = self.differences(name)
            assert not reported, (
                f"{name}: {len(reported)} rows differ, of {len(self.source_rows(name))}\n"
                + ("\n".join(reported[:10]))
            )

    def tokens(self, name: str) -> list[int]:
        """The sequences in the Iceberg table's snapshots, oldest first: one for each commit with a
        token."""
        snapshots = sorted(self.lake_table(name).snapshots(), key=lambda s: s.sequence_number)
        values = [s.summary.additional_properties.get("replicator.sequence") for s in snapshots]
        return [int(v) for v in values if v is not None]


def table_rows(connection: psycopg.Connection[Any], schema: str, name: str) -> list[dict[str, Any]]:
    """A table's rows: types without a Python value of their own as text."""
    found = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        [schema, name],
    ).fetchall()
    listed = ", ".join(f'"{n}"' if t in PLAIN_TYPES else f'"{n}"::text' for n, t in found)
    cursor = connection.execute(f"SELECT {listed} FROM {schema}.{name}".encode())
    names = [n for n, _ in found]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def differing(
    source: Sequence[Mapping[str, Any]],
    target: Sequence[Mapping[str, Any]],
    key: Sequence[str] = (),
) -> list[str]:
    """Rows that are not equally often in both, every column compared; empty when equal."""
    columns = set(source[0] if source else ()) | set(target[0] if target else ())
    expected = Counter(_comparable(r, columns) for r in source)
    found = Counter(_comparable(r, columns) for r in target)
    lost, extra = expected - found, found - expected
    reported = [f"lost x{n}: {_short(r, key)}" for r, n in lost.items()]
    return reported + [f"extra x{n}: {_short(r, key)}" for r, n in extra.items()]


def _read_delta(folder: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    done = QueryBuilder().register("t", DeltaTable(str(folder))).execute("SELECT * FROM t")
    return list(pa.table(done.read_all()).to_pylist())


def _comparable(row: Mapping[str, Any], columns: set[str]) -> tuple[tuple[str, Any], ...]:
    return tuple((c, _plain(row.get(c))) for c in sorted(columns))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_plain(v) for v in value)
    if isinstance(value, memoryview):
        return bytes(value)
    return repr(value) if isinstance(value, float) else value


def _short(row: tuple[tuple[str, Any], ...], key: Sequence[str]) -> str:
    shown = [(c, v) for c, v in row if not key or c in key]
    return ", ".join(f"{c}={str(v)[:40]}" for c, v in shown)


# --- a source with everything in it ------------------------------------------------------------------------------  # noqa: E501
SHOP = """
CREATE SCHEMA shop;
CREATE TYPE shop.mood AS ENUM ('calm', 'busy', 'so-so');
CREATE TABLE shop.items (
    id bigint PRIMARY KEY, n int, price numeric(12,2), note text, big text, code varchar(20),
    ok boolean, at timestamptz, wall timestamp, day date, doc jsonb, ref uuid, raw bytea,
    mood shop.mood, tags text[]);
ALTER TABLE shop.items ALTER big SET STORAGE EXTERNAL;
CREATE TABLE shop.pairs (word text, part int, v text, big text, PRIMARY KEY (word, part));
ALTER TABLE shop.pairs ALTER big SET STORAGE EXTERNAL;
CREATE TABLE shop.views (n bigint, page text, at timestamptz);
CREATE SEQUENCE shop.numbers;
"""
FILL_ITEMS = """
INSERT INTO shop.items SELECT i, i %% 100, i / 7.0, 'row ' || i, repeat(md5(i::text), 100),
    'c' || i, i %% 2 = 0, now(), now() AT TIME ZONE 'UTC', '2024-01-01'::date + (i %% 900)::int,
    jsonb_build_object('i', i), md5(i::text)::uuid, decode(md5(i::text), 'hex'),
    (ARRAY['calm', 'busy', 'so-so']::shop.mood[])[1 + i %% 3], ARRAY['a' || i, NULL, 'ü"']
FROM generate_series(%(first)s::bigint, %(last)s::bigint) i
"""
FILL_PAIRS = """
INSERT INTO shop.pairs SELECT 'w' || i / 10, i %% 10, 'v' || i, repeat(md5(i::text), 100)
FROM generate_series(%(first)s::int, %(last)s::int) i
"""
FILL_VIEWS = """
INSERT INTO shop.views SELECT nextval('shop.numbers'), 'p' || i, now()
FROM generate_series(%(first)s::bigint, %(last)s::bigint) i
"""
SHOP_TABLES = ("items", "pairs", "views")


def make_shop(database: Database, rows: int = 3000) -> None:
    """Three tables: every type the demo has, a composite text key, and no key at all."""
    database.execute(SHOP)
    for fill in (FILL_ITEMS, FILL_PAIRS, FILL_VIEWS):
        database.execute(fill, {"first": 1, "last": rows})


class Traffic(Background):
    """Random transactions over the shop's tables: inserts, updates that send no TOAST column, key
    changes, deletes, and deletes followed by an insert of the same key. The seed makes them
    repeatable."""

    def __init__(self, database: Database, seed: int = 1) -> None:
        super().__init__()
        self._database = database
        self._random = random.Random(seed)
        self._next = seed * 1_000_000  # keys that another seed's traffic does not use
        self.transactions = 0

    def write(self, transactions: int, connection: psycopg.Connection[Any] | None = None) -> None:
        """So many transactions now."""
        own = connection or self._database.connect()
        try:
            for _ in range(transactions):
                with own.transaction():
                    self._transaction(own)
                self.transactions += 1
        finally:
            if connection is None:
                own.close()

    def _transaction(self, c: psycopg.Connection[Any]) -> None:
        self._next += 1
        one, two, three = (self._random.randint(1, 3000) for _ in range(3))
        new = {"first": self._next, "last": self._next}
        c.execute(FILL_ITEMS, new)
        c.execute(FILL_VIEWS, new)
        c.execute("UPDATE shop.items SET n = n + 1, note = %s WHERE id = %s", [f"u{one}", one])
        c.execute("UPDATE shop.items SET id = id + 10000000 WHERE id = %s", [two])
        c.execute("DELETE FROM shop.items WHERE id = %s", [three])
        if self._next % 3 == 0:
            c.execute("UPDATE shop.items SET big = big || 'x' WHERE id = %s", [self._next - 1])
            c.execute("DELETE FROM shop.items WHERE id = %s", [self._next - 2])
            c.execute(FILL_ITEMS, {"first": self._next - 2, "last": self._next - 2})
        word, part = f"w{one // 10}", one % 10
        c.execute("UPDATE shop.pairs SET v = %s WHERE word = %s AND part = %s", ["u", word, part])
        moved = [f"m{self._next}", f"w{two // 10}", two % 10]
        c.execute("UPDATE shop.pairs SET word = %s WHERE word = %s AND part = %s", moved)
        c.execute(
            "DELETE FROM shop.pairs WHERE word = %s AND part = %s", [f"w{three // 10}", three % 10]
        )

    def _go(self) -> None:
        """About 20 transactions a second."""
        with self._database.connect() as connection:
            while not self._stop.wait(0.05):
                self.write(1, connection)
