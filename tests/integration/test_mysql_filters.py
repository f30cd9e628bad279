"""Row filters: MySQL and MariaDB keep the rows that the engine keeps (guards
`sources.mysql.filters`)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from replicators.connectors.filters.arrow import matches
from replicators.connectors.filters.problems import filter_problems
from replicators.connectors.filters.types import bind
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.sources.mysql import filters
from replicators.sources.mysql.snapshot import ChunkReader
from tests.integration.mysql_source import Follower, decoded, following
from tests.mysql_servers import fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TEXTS = ["", "a", "A", "a ", "ä", "Z", "it''s", "a_b", "a%b", "a\\\\b", "aab"]
KEPT = [
    "id = 7", "id < 3.5", "id > 99999999999999999999", "small NOT IN (1, 2)", "small IS NULL",
    "huge > 18446744073709551000",
    "exact = 1.43", "exact < 1.428", "single = 0.1", "single > 0.1", "whole <> 1.5", "ok = TRUE",
    "NOT ok = TRUE",
    "note = 'a'", "note = 'A'", "note = ''", "note > 'Z'", "note <> 'a '", "note IN ('it''s', 'ä')",
    "latin = 'ä'",
    "note LIKE 'a%'", "note LIKE '_'", "note LIKE 'a_b'", "note LIKE 'a\\_b'", "note LIKE '%\\\\%'",
    "note NOT LIKE 'a%'",
    "mood = 'ok'", "mood > 'happy'", "NOT (id < 50 AND (small = 1 OR note IS NULL))",
]  # fmt: skip


def copied(follower: Follower, table: TableSchema) -> pa.Table:
    read = ChunkReader(follower.params, "")
    chunks = follower.session.plan(table, rows_per_chunk=20)
    batches = [b for chunk in chunks for b in read(chunk, table)]
    return pa.Table.from_batches(batches, schema=table.arrow_schema())


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_the_server_keeps_the_rows_that_the_engine_keeps(
    request: pytest.FixtureRequest, server: str
) -> None:
    """Guards texts against collations (`a` is `A`, `a ` is `a`) and numbers against rounding: where
    the two differ, a row would come by snapshot and go by log."""
    with fresh_sql_database(request.getfixturevalue(server)) as made:
        made.execute(
            "CREATE TABLE t (id int PRIMARY KEY, small tinyint, huge bigint unsigned, exact "
            "decimal(6,2), single float,"
            " whole double, ok bit(1), note varchar(20) COLLATE utf8mb4_general_ci,"
            " latin char(4) CHARACTER SET latin1, mood enum('sad', 'ok', 'happy'), day date)"
        )
        rows = [
            f"({i}, {i % 5 or 'NULL'}, {2**64 - i}, {i - 50} / 7, 0.1 * {i % 4}, {i} / 4, {i % 2},"
            f" {'NULL' if i % 12 == 0 else chr(39) + TEXTS[i % 11] + chr(39)}, "
            f"'{'ä' if i % 3 else 'A'}',"
            f" {i % 3 + 1}, '2024-01-01')"
            for i in range(1, 121)
        ]
        made.execute("INSERT INTO t VALUES " + ", ".join(rows))
        with following(made, "t") as follower:
            (table,) = follower.tables
            whole, seen = copied(follower, table), set()
            for text in KEPT:
                expected = whole.filter(matches(bind(text, table, filters.refusal), whole))
                found = copied(follower, replace(table, filter=text))
                assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist()), text
                seen.add(found.num_rows)
            assert len(seen) > 10, "the filters hardly differ"
            made.execute("INSERT INTO t (id) VALUES (1000)")
            part = decoded(follower.blocks(), [replace(table, filter="id = 7")])["t"]
            assert sum(p.num_rows for p in part) == 1
            chosen = TableSelection(TableId(made.name, "t"), filter="day > '2024-01-01'")
            (problem,) = filter_problems(chosen, table, filters.refusal)
            assert problem.code == "source:filter-invalid"
