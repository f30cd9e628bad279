"""A target table whose columns somebody changed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.errors import ReplicationError, Retry
from replicators.targets.lakehouse.sessions import fresh
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.spark.lakehouses import PLAIN, Lakehouse, shape
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


def test_a_column_that_was_dropped_by_hand_is_told_and_nothing_is_merged(house: Lakehouse) -> None:
    """Guards that a merge never goes into a table of another shape, losing the column's values unseen; and that a re-sync, in
    a new generation, makes the table whole again."""
    schema = shape("dropped_column", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y")])
    writer = house.writer
    path = writer.format.path(writer.names(table.source))
    session = fresh(writer.spark, writer.format.session_conf)
    session.sql(f"ALTER TABLE {path} DROP COLUMN `{schema.columns[2].name}`")
    with pytest.raises(ReplicationError) as caught:
        writer.merge(table, house.batch(schema, 8, [(2, "new", "z"), (3, "c", "w")]))
    assert (caught.value.code, caught.value.retry) == ("target:column-missing", Retry.NEVER)
    assert writer.token(table).sequence == 1  # type: ignore[union-attr]

    house.copied(schema, [(1, "a", "x"), (2, "new", "z"), (3, "c", "w")], generation=2)
    assert house.read(schema) == [(1, "a", "x"), (2, "new", "z"), (3, "c", "w")]
