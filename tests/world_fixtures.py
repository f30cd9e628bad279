"""Fixtures that make worlds: to be imported by the conftest of a folder whose tests run the whole
data path."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from demo.postgres import EmbeddedPostgres
from runners.engine.tasks.sharing.client import joined
from tests.harness import (
    FAST,
    SHOP_TABLES,
    World,
    application_database,
    make_shop,
    migrate,
)
from tests.local.world import local_twin
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.servers import fresh_database
from tests.shared_spark import SharedServer

MakeWorld = Callable[..., AbstractContextManager[World]]


@pytest.fixture(scope="session")
def app_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated application database (SQLite), to be copied. Test processes that run side by side
    make it once."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = folder / "application.sqlite3"
    with open(folder / "application.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            fresh = folder / "fresh.sqlite3"
            migrate(f"sqlite:///{fresh}")
            fresh.rename(made)
    return made


@pytest.fixture(scope="session")
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    """A Spark that the worlds of a test process share, as the replicators of a machine do. A run's
    start costs a third of what it costs with a JVM of its own."""
    folder = tmp_path_factory.mktemp("shared-spark")
    server = SharedServer(folder)
    server.start(
        {
            **FAST,
            "DATABASE_URL": f"sqlite:///{folder}/none.sqlite3",
            "REPLICATOR_JARS_DIR": settings.RUNNER.jars_dir,
            "REPLICATOR_SPARK_LOCAL_DIR": str(folder / "spark"),
        }
    )
    try:
        server.until_ready()
        with joined(str(folder), "tests"):  # without a client it ends after a minute
            yield server
    finally:
        server.close()


@pytest.fixture(scope="module")
def world_maker(
    postgres: EmbeddedPostgres,
    tmp_path_factory: pytest.TempPathFactory,
    app_template: Path,
    django_db_blocker: Any,
) -> MakeWorld:
    """A context manager that makes a world with the shop's tables; keyword arguments go to `World`.
    `application`: a migrated database for the program itself, in place of SQLite; `kind`: another
    class of world."""

    @contextmanager
    def make(
        *,
        server: EmbeddedPostgres | SqlServer | None = None,
        prepare: Callable[[Any], None] = make_shop,
        tables: tuple[str, ...] = SHOP_TABLES,
        application: str = "",
        kind: type[World] = World,
        **values: Any,
    ) -> Iterator[World]:
        folder = tmp_path_factory.mktemp("world")
        used = server or postgres
        if not application:
            shutil.copy(app_template, folder / "app.sqlite3")
        url = application or f"sqlite:///{folder}/app.sqlite3"
        fresh: Any = fresh_sql_database if isinstance(used, SqlServer) else fresh_database
        with fresh(used) as database, application_database(url, django_db_blocker):
            prepare(database)
            world = kind(folder, database, tables, url, **values)
            try:
                yield world
            finally:
                world.close()

    return make


LOCAL, SPARK = "local", "spark"


@pytest.fixture(scope="module", params=[LOCAL, pytest.param(SPARK, marks=pytest.mark.long)])
def twin_maker(request: pytest.FixtureRequest, world_maker: MakeWorld) -> MakeWorld:
    """`world_maker` for what does not depend on how a target is written: without a JVM, and in
    `make test-long` on Spark too."""

    def make(*, kind: type[World] = World, **values: Any) -> AbstractContextManager[World]:
        used = local_twin(kind) if request.param == LOCAL else kind
        return world_maker(kind=used, **values)

    return make
