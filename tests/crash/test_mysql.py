"""From MariaDB and MySQL: the copy under traffic, changes, kills, and every row equal. From MariaDB
without a JVM; in `make test-long` from both into Iceberg, by the checker."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Child, World, application_database, until
from tests.local.world import LocalCopies, local_twin
from tests.model.reading import iceberg_rows
from tests.model.reading_mysql import MysqlTable
from tests.model.verify import table_differences
from tests.mysql_servers import fresh_sql_database
from tests.mysql_world import SHOP_TABLES, MysqlTraffic, MysqlWorld, make_shop

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

SHORT = ("change_files_listed", "target_merged")
LONG = (
    "segment_renamed", "segment_recorded", "source_acknowledged", "change_files_written",
    "change_files_listed", "target_merged", "merge_recorded",
)  # fmt: skip
CASES = [
    ("mariadb", local_twin(MysqlWorld), SHORT),
    *(
        pytest.param(flavour, MysqlWorld, LONG, marks=pytest.mark.long)
        for flavour in ("mariadb", "mysql")
    ),
]


def died(child: Child, name: str) -> None:
    """Wait for its death by SIGKILL at a failpoint, and say so as the supervisor does."""
    until(child.is_dead, lambda: f"death at {name}\n{child.tail()}")
    assert child.wait() == -signal.SIGKILL, child.tail()
    child.end()


def assert_same(world: World) -> None:
    """All that was committed by now is merged, and no row differs: by the checker where the copies
    are a lakehouse's."""
    if isinstance(world, LocalCopies):
        world.assert_equal()
        return
    world.settle()
    uri = f"sqlite:///{world.folder}/catalog.db"
    for name in world.tables:
        source = MysqlTable(world.driver, world.schema, name)  # type: ignore[attr-defined]
        target = iceberg_rows(uri, str(world.warehouse), "lake", ("shop", name))
        ours, theirs, reported = table_differences(source, *target)
        assert not reported, (name, str(ours), str(theirs), [str(one) for one in reported[:10]])
        assert ours.rows


@pytest.mark.parametrize(("flavour", "kind", "steps"), CASES)
def test_nothing_is_lost_or_doubled_through_kills(
    request: pytest.FixtureRequest,
    flavour: str,
    kind: type[World],
    steps: tuple[str, ...],
    tmp_path: Path,
    app_template: Path,
    django_db_blocker: Any,
) -> None:
    """Guards the order of writes, and CORRECTNESS 19: chunks read while rows change converge with
    the log."""
    shutil.copy(app_template, tmp_path / "app.sqlite3")
    url = f"sqlite:///{tmp_path}/app.sqlite3"
    with (
        fresh_sql_database(request.getfixturevalue(flavour)) as database,
        application_database(url, django_db_blocker),
    ):
        make_shop(database)
        world = kind(tmp_path, database, SHOP_TABLES, url)  # type: ignore[arg-type]
        traffic = MysqlTraffic(database)
        try:
            child = world.start()
            world.until(lambda: "snapshotting" in world.states().values(), "the copy begins")
            traffic.write(30)
            world.settle()
            for name in steps:
                world.arm(name)
                traffic.write(5)
                died(child, name)
                traffic.write(5)
                child = world.start()
                assert_same(world)
        finally:
            world.close()
