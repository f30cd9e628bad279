"""The whole path over a fail-over: the server behind the source's address ends, its replica takes
over there, the run goes on by itself, and the checker finds every row equal; also where the run was
killed meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.crash.test_mysql import assert_same
from tests.harness import application_database, until
from tests.integration.test_mysql_failover import _attach
from tests.mysql_servers import MariadbServer, MysqlServer, SqlDatabase, SqlServer
from tests.mysql_world import SHOP_TABLES, MysqlTraffic, MysqlWorld, make_shop
from tests.proxies import CuttingProxy

pytestmark = [pytest.mark.crash, pytest.mark.long, pytest.mark.timeout(900)]
LEVEL = (
    "SELECT (SELECT count(*) FROM items), (SELECT sum(n) FROM items), (SELECT count(*) FROM pairs)"
)


@pytest.mark.parametrize("kind", [MariadbServer, MysqlServer])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_goes_on_at_the_promoted_replica(
    kind: type[SqlServer],
    is_killed: bool,
    tmp_path: Path,
    app_template: Path,
    django_db_blocker: Any,
) -> None:
    """Guards CORRECTNESS 4 and 26 end to end: sequences and positions never go back, rows come
    whole and once."""
    shutil.copy(app_template, tmp_path / "app.sqlite3")
    url = f"sqlite:///{tmp_path}/app.sqlite3"
    logs = {"log-slave-updates" if kind is MariadbServer else "log-replica-updates": "ON"}
    with (
        kind(options=logs) as primary,
        kind(options={**logs, "server-id": "2"}) as replica,
        CuttingProxy(primary.port) as proxy,
        application_database(url, django_db_blocker),
    ):
        _attach(primary, replica)
        primary.execute("CREATE DATABASE moving")
        here, there = SqlDatabase(primary, "moving"), SqlDatabase(replica, "moving")
        make_shop(here)
        traffic = MysqlTraffic(here)
        world = MysqlWorld(tmp_path, here, SHOP_TABLES, url, source={"port": proxy.port})  # type: ignore[arg-type]
        try:
            world.start()
            traffic.write(30)
            world.settle()
            if is_killed:
                world.kill()
            traffic.write(20)
            until(lambda: there.execute(LEVEL) == here.execute(LEVEL), "the replica is level", 60)
            word = "SLAVE" if kind is MariadbServer else "REPLICA"
            replica.execute(f"STOP {word}", f"RESET {word} ALL")
            primary.kill()
            proxy.lead_to(replica.port)
            world.database = there
            traffic.move(there)
            traffic.write(30)
            if is_killed:
                world.start()
            assert_same(world)
            traffic.write(10)
            assert_same(world)
        finally:
            world.close()
