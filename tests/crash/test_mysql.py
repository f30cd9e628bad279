"""From MariaDB into Iceberg: the copy under traffic, changes, kills, and every row equal, read by pyiceberg."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Child, application_database, until
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.mysql_world import SHOP_TABLES, MysqlTraffic, MysqlWorld, make_shop

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

KILLS = ("segment_recorded", "change_files_listed", "source_acknowledged")


def died(child: Child, name: str) -> None:
    """Wait for its death by SIGKILL at a failpoint, and say so as the supervisor does."""
    until(child.is_dead, lambda: f"death at {name}\n{child.tail()}")
    assert child.wait() == -signal.SIGKILL, child.tail()
    child.end()


def test_nothing_is_lost_or_doubled_through_kills(
    mariadb: SqlServer,
    tmp_path: Path,
    app_template: Path,
    django_db_blocker: Any,
) -> None:
    """Guards the order of writes, and CORRECTNESS 19: chunks read while rows change converge with the log."""
    shutil.copy(app_template, tmp_path / "app.sqlite3")
    url = f"sqlite:///{tmp_path}/app.sqlite3"
    with (
        fresh_sql_database(mariadb) as database,
        application_database(url, django_db_blocker),
    ):
        make_shop(database)
        world = MysqlWorld(tmp_path, database, SHOP_TABLES, url)  # type: ignore[arg-type]
        traffic = MysqlTraffic(database)
        try:
            child = world.start()
            world.until(lambda: "snapshotting" in world.states().values(), "the copy begins")
            traffic.write(30)
            world.assert_equal()
            for name in KILLS:
                world.arm(name)
                traffic.write(5)
                died(child, name)
                traffic.write(5)
                child = world.start()
                world.assert_equal()
        finally:
            world.close()
