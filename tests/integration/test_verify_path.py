"""Verifications as the workers start them, beside a run: from PostgreSQL into real targets, with
traffic, and with rows that another tool damaged."""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from django.utils import timezone

from replicators.models import Replicator
from runners.engine.processes import HOSTNAME, LEASE
from runners.engine.tasks.local import LocalTasks
from runners.engine.verify.reading import ScanLookup
from runners.engine.verify.report import Options
from runners.engine.verify.run import verify
from runners.states import VerificationState
from runners.supervision.jobs import job_of, settings_of
from runners.verifications import DifferingRow, Verification, VerifiedTable
from runners.verifying.followed import FollowedReplicator
from runners.verifying.services import verification_start
from tests.harness import DEADLINE_SECONDS, ROOT, START_LEASE, Traffic, World
from tests.lake_sql import lake_sql
from tests.local.tables import LocalTable
from tests.local.verified import Heard
from tests.local.world import local_twin
from tests.mysql_servers import SqlServer
from tests.mysql_world import SHOP_TABLES, MysqlTraffic, MysqlWorld, make_shop
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

MANY = 3_000_000


def verified(world: World, **asked: Any) -> dict[str, VerifiedTable]:
    """The tables of a verification in a process of its own, by name."""
    Replicator.objects.filter(pk=world.replicator.pk).update(desired_state="running")
    found = verification_start(replicator=world.replicator, actor=None, **asked)
    lease = uuid.uuid4().hex
    Verification.objects.filter(pk=found.pk).update(
        lease=lease, lease_until=timezone.now() + START_LEASE, hostname=HOSTNAME
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "verify_replicator", str(found.pk)],
        cwd=ROOT, env=world._environment({LEASE: lease}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    found.refresh_from_db()
    said = done.stdout.decode(errors="replace")[-6000:]
    assert (done.returncode, found.state) == (0, VerificationState.DONE), said
    tables = {t.name: t for t in found.tables.all()}
    assert all(t.outcome and not t.error_code for t in tables.values()), (
        [(t.name, t.outcome, t.error_code, t.error_facts) for t in tables.values()],
        said,
    )
    return tables


def rows_of(table: VerifiedTable) -> list[DifferingRow]:
    return list(table.rows.filter(is_unsettled=False))


@pytest.mark.long
def test_three_damaged_rows_are_named_and_traffic_is_no_difference(
    world_maker: MakeWorld,
) -> None:
    """Guards the process of a verification with real parts: the source's consistent snapshot and
    rows by key, the target's rows beside merges, and what the store says of both. Traffic does not
    touch the damaged rows, and makes no difference itself."""
    with world_maker() as world:
        world.database.execute(
            "INSERT INTO shop.items (id, note) VALUES (8000001, 'a'), (8000002, NULL)"
        )
        world.start()
        world.settle()
        lake_sql(
            world.target_params()[1],
            "DELETE FROM lake.shop.items WHERE id = 8000001",
            "UPDATE lake.shop.items SET note = '' WHERE id = 8000002",
            "INSERT INTO lake.shop.items (id, note) VALUES (8000003, 'd')",
        )
        with Traffic(world.database).going_on():
            tables = verified(world)
        assert {n: t.wrong for n, t in tables.items()} == {"items": 3, "pairs": 0, "views": 0}
        found = {dict(r.key)["id"]: r for r in rows_of(tables["items"])}
        kinds = {8_000_001: "missing", 8_000_002: "different", 8_000_003: "extra"}
        assert {key: row.kind for key, row in found.items()} == kinds
        changed = found[8_000_002]
        sides = [dict(changed.source or [])["note"], dict(changed.target or [])["note"]]
        assert (changed.columns, sides) == (["note"], [None, ""])
        assert tables["items"].rows_source > 2000 and tables["views"].rows_source > 0
        assert world.stop() == 0


@pytest.mark.long
def test_rows_of_mariadb_are_compared_under_traffic(
    world_maker: MakeWorld, mariadb: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards a source whose chunks are read while rows change, and whose positions are counted from
    the captured one: its rows are read by key, not searched for in a whole copy. Without a JVM."""
    with world_maker(
        server=mariadb, prepare=make_shop, tables=SHOP_TABLES, kind=local_twin(MysqlWorld)
    ) as world:
        world.database.execute(
            "INSERT INTO items (id, note) VALUES (8000001, 'a'), (8000002, NULL)"
        )
        world.start()
        world.settle()
        copy = LocalTable(world.warehouse / world.schema / "items")
        rows = copy.rows()
        ids = rows.column("id").to_pylist()
        at = rows.schema.get_field_index("note")
        notes = rows.column("note").to_pylist()
        notes[ids.index(8_000_002)] = ""
        rows = rows.set_column(at, rows.schema.field(at), pa.array(notes, pa.string()))
        copy.commit(rows.filter(pc.not_equal(rows.column("id"), 8_000_001)))
        Replicator.objects.filter(pk=world.replicator.pk).update(desired_state="running")
        traffic = MysqlTraffic(world.database)
        heard = Heard(act=lambda _: traffic.write(3))

        def no_search(*_: Any) -> None:
            raise AssertionError("the rows are searched for")

        monkeypatch.setattr(ScanLookup, "__call__", no_search)
        report = verify(
            job_of(world.replicator),
            FollowedReplicator(world.replicator),
            LocalTasks(folder=str(world.folder / "pairs")),
            replace(settings_of(world.replicator), rows_per_chunk=300),
            Options(),
            heard,
        )
        items, pairs = report.tables
        assert (items.code, pairs.code, pairs.wrong, pairs.unsettled) == ("", "", 0, 0)
        assert {d.key["id"]: (d.kind, d.columns) for d in items.differences} == {
            8_000_001: ("missing", ()),
            8_000_002: ("different", ("note",)),
        }
        assert not items.unsettled and traffic._next > 1_000_010
        assert world.stop() == 0


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_one_row_of_some_millions_is_found(world_maker: MakeWorld) -> None:
    """Guards pair files and buckets where a table is larger than one of each."""

    def prepare(database: Any) -> None:
        database.execute("CREATE SCHEMA shop")
        database.execute(
            "CREATE TABLE shop.items (id bigint PRIMARY KEY, note text, at timestamptz)"
        )
        database.execute(
            "INSERT INTO shop.items SELECT i, 'row ' || i, now() FROM generate_series(1, %s) i",
            [MANY],
        )

    environment = {"REPLICATOR_ROWS_PER_CHUNK": "250000"}
    with world_maker(prepare=prepare, tables=("items",), environment=environment) as world:
        world.start()
        world.settle(seconds=900)
        lake_sql(
            world.target_params()[1],
            "UPDATE lake.shop.items SET note = concat(note, ' ') WHERE id = 1234567",
        )
        items = verified(world)["items"]
        assert (items.rows_source, items.rows_target) == (MANY, MANY)
        (found,) = rows_of(items)
        assert (dict(found.key), found.kind, found.columns) == (
            {"id": 1234567},
            "different",
            ["note"],
        )
        assert world.stop() == 0
