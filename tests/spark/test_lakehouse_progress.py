"""What readers of a lakehouse are told of watermarks, and how long a version stays."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import naming, progress
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.expiry import current_at
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.spark.lakehouses import PLAIN, Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark

ORDERS, LINES = TableId("shop", "orders"), TableId("shop", "it's")


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, tmp_path: Path, lakehouse_root: Path
) -> Lakehouse:
    """A lakehouse of each format, whose namespace is its own."""
    name = f"reported_{tmp_path.name.split('_')[-1]}"[:40]
    params = lakehouse_params(lakehouse_root, request.param, namespace=name)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


def mark(number: int, kept_seconds: float = 600.0) -> Watermark:
    now = time.time()
    versions = {ORDERS: str(number), LINES: "2"}
    left_out = {TableId("shop", "slow"): "behind"}
    return Watermark(number << 32, Position(number), now, now + kept_seconds, versions, left_out)


def reported(house: Lakehouse) -> list[dict[str, Any]]:
    """The progress table's rows, read without Spark."""
    names = naming.progress_names(house.params)
    if house.form == "iceberg":
        rows = house.catalog().load_table(names).scan().to_arrow().to_pylist()
    else:
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(house.writer.format.folder(names))
        done = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
        rows = pa.table(done).to_pylist()
    return sorted(rows, key=lambda r: r["sequence"])


@pytest.mark.long_with("delta")
def test_a_watermark_is_a_row_that_plain_readers_see(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the row's content, and the bound of the table: without the pruning every row stays for
    ever."""
    monkeypatch.setattr(progress, "COMMITS_A_TURN", 3)
    for number, kept in ((1, -1.0), (2, 600.0), (3, -1.0), (4, -1.0)):
        house.writer.publish_watermark("r1", mark(number, kept))
    house.writer.publish_watermark("r2", mark(9))
    rows = reported(house)
    assert [(r["replicator"], r["sequence"] >> 32) for r in rows] == [
        ("r1", 2), ("r1", 4), ("r2", 9),
    ]  # fmt: skip
    names = [naming.names(house.params, t) for t in (LINES, ORDERS)]
    assert [(t["namespace"], t["name"]) for t in rows[0]["tables"]] == names
    assert [t["version"] for t in rows[0]["tables"]] == ["2", "2"]
    assert rows[0]["left_out"][0]["reason"] == "behind"
    assert rows[0]["position"] == 2 and rows[0]["committed_at"].tzinfo is not None

    house.writer.forget_watermarks("r1")
    assert [r["replicator"] for r in reported(house)] == ["r2"]


@pytest.mark.long_with("delta")
def test_a_table_of_somebody_else_is_not_written_and_the_name_is_kept(house: Lakehouse) -> None:
    """Guards the look at the owner's mark before the progress table is written, and the
    assessment's look at the name."""
    taken = table_schema(naming.PROGRESS, PLAIN)
    house.copied(taken, [(1, "a", "b")])
    with pytest.raises(ReplicationError, match="target:progress-taken"):
        house.writer.publish_watermark("r1", mark(1))
    house.writer.forget_watermarks("r1")
    assert house.read(taken) == [(1, "a", "b")]
    codes = [p.code for p in LakehouseChecks(house.params).tables([taken], "r1")]
    assert codes == ["target:name-reserved"]


def test_a_version_that_was_the_current_one_within_the_history_stays(house: Lakehouse) -> None:
    """Guards the bound of Iceberg's expiry: by commit time alone a version goes a moment after it
    was replaced, where it was old by then, and watermarks that name it can't be read."""
    if house.form == "delta":
        pytest.skip("VACUUM counts from the moment a file was replaced")
    schema = table_schema("shown", PLAIN)
    table = house.copied(schema, [(1, "a", "b")])
    first = house.writer.version(table)
    assert first is not None and first.token.sequence == 1
    between = datetime.now(UTC)
    while datetime.now(UTC).timestamp() - between.timestamp() < 0.01:
        pass
    house.writer.merge(table, house.batch(schema, 5, [(1, "c", None)]))
    second = house.writer.version(table)
    assert second is not None and second.token.sequence == 5 and second.version != first.version
    names = naming.names(house.params, schema.id)
    parts = [house.writer.format.path((*names, p)) for p in ("history", "snapshots")]
    shown = house.writer.spark.sql(current_at(*parts, between)).collect()[0][0]
    committed = {
        str(s.snapshot_id): s.timestamp_ms for s in house.catalog().load_table(names).snapshots()
    }
    assert shown // 1000 == committed[first.version]
