"""The keeping of what happened, held against the log of a real server."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.sources.postgresql.catalog import PostgresqlCatalog
from replicators.sources.postgresql.log import LogControl
from tests.integration.postgresql_source import begin, changes, params_of, read_all
from tests.model.history import failures, file_events, numbered_events
from tests.model.sources import PostgresSource
from tests.model.writes import Writes
from tests.servers import Database

pytestmark = pytest.mark.integration
SLOT = "kept"
TURNS = 4


def logged(database: Database, writes: Writes) -> dict[str, pa.Table]:
    """What the log says of the two streamed tables while these writes are made."""
    ids = [TableId("shop", name) for name in ("accounts", "notes")]
    with PostgresqlCatalog(params_of(database)) as catalog:
        schemas = catalog.describe([TableSelection(i) for i in ids])
    tables = [schemas[i] for i in ids]
    reader, session = begin(database, SLOT, tables)
    with reader, session, LogControl(params_of(database), SLOT) as control:
        for _ in range(TURNS):
            for act in (
                writes.transfer,
                writes.swap,
                writes.chain,
                writes.toast,
                writes.rename,
                writes.come_and_go,
            ):
                act()
            writes.rollback()
        found = changes(read_all(reader, control), tables)
        control.drop()
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def spoiled(table: pa.Table, column: str, value: Any) -> pa.Table:
    """With another value in the last row that has one."""
    values = table.column(column).to_pylist()
    last = max(i for i, v in enumerate(values) if v is not None)
    values[last] = value
    kind = table.schema.field(column).type
    return table.set_column(table.column_names.index(column), column, pa.array(values, kind))


def test_the_images_that_triggers_keep_are_those_of_the_log(
    database: Database, tmp_path: Path
) -> None:
    """Guards the checker of change files against finding what is none, and against finding nothing:
    the log of changed keys, of large values that are not sent, of documents and of what was rolled
    back is what was kept; one value of it changed is not."""
    PostgresSource.prepare(database)
    world: Any = SimpleNamespace(database=database)
    source = PostgresSource(world, None)
    found = logged(database, Writes(source, random.Random(7)))
    path = tmp_path / "changes.parquet"

    def reported(name: str, table: pa.Table) -> list[str]:
        pq.write_table(table, path)
        numbered = numbered_events(source.events(0), name, source.images(name, 0))
        return failures([event for _, event in numbered], file_events([path], "id"))

    for name, column, value in (
        ("accounts", "extra", '{"i": 0}'),
        ("accounts", "memo", "other"),
        ("notes", "big", "other"),
    ):
        assert found[name].num_rows > 10
        assert reported(name, found[name]) == []
        assert f"{column} after" in "".join(reported(name, spoiled(found[name], column, value)))
    assert any(e.after is not None and "big" not in e.after for _, e in file_events([path], "id"))
    actions = [transaction for _, transaction, *_ in source.events(0)]
    assert actions == sorted(actions) and len(set(actions)) < len(actions) / 2
