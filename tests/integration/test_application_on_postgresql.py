"""The program's own database on PostgreSQL, as `DATABASE_URL` allows: its tests once more, and a
whole run."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, transaction

from demo.postgres import EmbeddedPostgres
from replicators.connectors.model.positions import Position
from runners.engine.store.log_rows import SegmentRow
from runners.models import Run
from runners.services import replicator_locked
from runners.store.django import DjangoStore
from tests.harness import ROOT, Traffic, migrate
from tests.servers import fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

# Those whose code leans on locks, constraints, conflicts, JSON and aggregates; then the rest.
MODULES = ("store", "services", "tables_chosen", "audit_read")
MORE = ("supervisor", "drafts", "removal", "logs", "api_replicators", "pages_replicators", "audit",
        "audited_actions", "tokens")  # fmt: skip


@pytest.mark.parametrize(
    "modules", [MODULES, pytest.param(MODULES + MORE, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_the_programs_tests_pass_on_postgresql(
    postgres: EmbeddedPostgres, modules: tuple[str, ...]
) -> None:
    """Guards the program's own queries where `DATABASE_URL` names PostgreSQL: SQLite forgives what
    that does not: types, lengths, an error that breaks its transaction, ordering."""
    with fresh_database(postgres) as database:
        tested = f"test_{database.name}"
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                   "--create-db", "--reuse-db",
                   *(f"tests/app/test_{m}.py" for m in modules)]  # fmt: skip
        environment = {**os.environ, "DATABASE_URL": database.dsn}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
            with psycopg.connect(postgres.dsn(tested)) as connection:
                names = connection.execute("SELECT app FROM django_migrations").fetchall()
            assert {"runners", "replicators", "drafts"} <= {app for (app,) in names}
        finally:
            postgres.execute(f"DROP DATABASE IF EXISTS {tested} WITH (FORCE)")


def test_a_run_keeps_its_memory_in_postgresql(
    postgres: EmbeddedPostgres, twin_maker: MakeWorld
) -> None:
    """Guards `runners.store.django` against other writers: several threads of a run, and people
    beside it, write at once; on PostgreSQL they do so side by side."""
    with fresh_database(postgres) as own:
        migrate(own.dsn)
        with twin_maker(application=own.dsn, tables=("items", "pairs")) as world:
            traffic = Traffic(world.database)
            world.start()
            world.settle()
            with traffic.going_on():
                world.add("views")
                world.until_states("replicating", "views")
                world.resync("pairs")
                world.kill()
                world.start()
            world.assert_equal("items", "pairs", "views")
            assert world.stop() == 0
            found = own.execute("SELECT count(*) FROM runners_segment")
            assert found[0][0] > 0


def test_a_run_writes_while_a_person_acts_on_its_replicator(
    postgres: EmbeddedPostgres, twin_maker: MakeWorld
) -> None:
    """Guards against a deadlock: a person's action locks the replicator's row before its progress;
    a run changes its progress before it adds a row that refers to the replicator."""
    with fresh_database(postgres) as own:
        migrate(own.dsn)
        with twin_maker(application=own.dsn) as world, ThreadPoolExecutor(1) as pool:
            run = Run.objects.create(replicator=world.replicator, lease="held")

            def record() -> None:
                try:
                    store = DjangoStore(run.pk, "held")
                    at = Position(1)
                    store.record_segment(SegmentRow(1, "a", 1, 1, at, True), at)
                finally:
                    connection.close()

            with transaction.atomic():
                replicator_locked(world.replicator, "table_resync_asked")
                pool.submit(record).result(30)
            assert world.replicator.segments.count() == 1
