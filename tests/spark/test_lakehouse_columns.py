"""A target table whose columns somebody changed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Decimal, Int, String
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.targets.lakehouse.sessions import Sessions
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.spark.lakehouses import DELTA_LONG, PLAIN, Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


@DELTA_LONG
def test_a_column_that_was_dropped_by_hand_is_reported_and_nothing_is_merged(
    house: Lakehouse,
) -> None:
    """Guards that a merge never goes into a table of another schema, losing the column's values
    unseen; and that a re-sync, in a new generation, makes the table whole again."""
    schema = table_schema("dropped_column", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y")])
    writer = house.writer
    path = writer.format.path(writer.names(table.source))
    with Sessions(writer.spark, writer.format.session_conf).lent() as session:
        session.sql(f"ALTER TABLE {path} DROP COLUMN `{schema.columns[2].name}`")
    with pytest.raises(ReplicationError) as caught:
        writer.merge(table, house.batch(schema, 8, [(2, "new", "z"), (3, "c", "w")]))
    assert (caught.value.code, caught.value.retry) == ("target:column-missing", Retry.NEVER)
    assert writer.token(table).sequence == 1  # type: ignore[union-attr]

    house.copied(schema, [(1, "a", "x"), (2, "new", "z"), (3, "c", "w")], generation=2)
    assert house.read(schema) == [(1, "a", "x"), (2, "new", "z"), (3, "c", "w")]


@pytest.mark.parametrize("house", ["delta"], indirect=True)
def test_a_type_that_delta_does_not_widen_asks_for_a_fresh_copy(house: Lakehouse) -> None:
    """Guards `widens` in `evolve.plan`: what Delta says of it would be an unknown fault, tried
    again for ever, where a fresh copy mends it. Nothing of the change is done."""
    old = table_schema("widened", {"id": Int(64), "number": Int(32), "price": Decimal(10, 2)})
    table = house.copied(old, [(1, 2, None)])
    for columns in ({"number": Int(64)}, {"price": Decimal(12, 2)}):
        new = table_schema(
            "widened", {"id": Int(64), "number": Int(32), "price": Decimal(10, 2)} | columns
        )
        more = Column("more", String(), "text", ordinal=4)
        new = replace(new, columns=(*new.columns, more))
        with pytest.raises(ReplicationError) as caught:
            house.writer.evolve(table, old, new)
        assert caught.value.code == "target:evolve"
        assert house.records(old) == [{"id": 1, "number": 2, "price": None}]
