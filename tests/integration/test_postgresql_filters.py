"""Row filters: the server keeps the rows that the engine keeps (guards `sources.postgresql.filters`
against `connectors.filter_arrow`: where they differ, a row would be there by snapshot and go by
log, or stay away)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicators.connectors.filters.arrow import matches
from replicators.connectors.filters.problems import filter_problems
from replicators.connectors.filters.types import bind
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.sources.postgresql import filters
from tests.integration.postgresql_source import begin, describe, params_of, snapshot
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

MAKE = r"""
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN cents AS numeric(8,2);
CREATE DOMAIN code AS char(5);
CREATE TABLE t (id bigint PRIMARY KEY, small int2, n int, exact numeric(6,2), price cents, single real, double float8,
    ok boolean, note text, "odd ""name" varchar(30), mood mood, day date, at timestamptz, wall timestamp(3), uid uuid,
    doc jsonb, padded char(5), loose numeric, address inet, code code);
INSERT INTO t SELECT i, i % 7 - 3, nullif(i % 11, 0) * 1000000, (i - 50) / 7.0, nullif(i % 5, 0) + 0.5,
    CASE WHEN i % 10 = 0 THEN 'NaN' ELSE 0.1 * (i % 4) END, CASE WHEN i % 9 = 0 THEN 'NaN' WHEN i % 8 = 0 THEN 'Infinity'
    ELSE i / 10.0 END, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END,
    (ARRAY[NULL, '', 'a', 'A', 'a ', 'ä', 'Z', 'it''s', 'a_b', 'a%b', E'a\nb', E'back\\slash', 'b🐘', 'aab'])[1 + i % 14],
    'v' || i % 6, (ARRAY['sad', 'ok', 'happy', NULL]::mood[])[1 + i % 4], '2024-02-27'::date + (i % 5)::int,
    '2024-01-01 00:00:00Z'::timestamptz + i * interval '1 hour', '2024-01-01'::timestamp + i * interval '1.5 seconds',
    md5((i % 3)::text)::uuid, CASE WHEN i % 2 = 0 THEN '{"a": 1}'::jsonb END, 'ab', i, '10.1.2.3', 'c' || i % 9
FROM generate_series(1, 200) i
"""  # noqa: E501
KEPT = [
    "id = 7", "id <> 7", "id < 3.5", "id >= 198.5", "id > 99999999999999999999999",
    "id < 99999999999999999999999",
    "small IN (-3, 0, 2.5)", "n = 3000000", "n NOT IN (1000000, 2000000)", "n IS NULL",
    "n IS NOT NULL AND NOT n = 1000000",
    "exact = 1.43", "exact = 1.428", "exact < 1.428", "exact >= -7.1428", "exact <> 100000",
    "price BETWEEN 1.5 AND 3",
    "single = 0.1", "single > 0.1", "single <> 0.2", "double > 15", "double <= 15", "double <> 1.5",
    "NOT double > 15", "ok = TRUE", "ok <> TRUE", "NOT ok = FALSE", "ok IS NULL OR ok = TRUE",
    "note = 'a'", "note = ''", "note > 'Z'", "note >= 'a ' AND note < 'b'",
    "note IN ('it''s', 'ä', 'back\\slash')",
    "note LIKE 'a%'", "note NOT LIKE 'a%'", "note LIKE '_'", "note LIKE 'a_b'", "note LIKE 'a\\_b'",
    "note LIKE '%\\%%'",
    "note LIKE '%\\\\%'", "note LIKE 'b_'", "\"odd \"\"name\" = 'v3'", "mood = 'ok'",
    "mood > 'happy'", "mood IN ('sad', 'none')",
    "day = '2024-02-29'", "day < '2024-02-29' OR day > '2024-03-01'",
    "at > '2024-01-03 12:00:00+02:00'",
    "at = '2024-01-02'", "wall <= '2024-01-01 00:00:30.500'",
    "uid = 'CFCD2084-95D5-65EF-66E7-DFF9F98764DA'",
    "uid > 'a0000000-0000-0000-0000-000000000000'", "doc IS NULL",
    "NOT doc IS NULL AND (id < 50 OR id > 150 AND ok = TRUE)",
    "padded IS NOT NULL AND loose IS NOT NULL", "code = 'c3   '", "code <> 'c3'",
    "code LIKE 'c_ %'", "code > 'c4'",
]  # fmt: skip


@pytest.fixture
def made(database: Database) -> Database:
    database.execute(MAKE)
    return database


def test_the_server_keeps_the_rows_that_the_engine_keeps(made: Database) -> None:
    """Guards the SQL of `filters.where` (texts byte by byte, reals as float8, each value in its
    column's type) against `filter_arrow.matches`, for chunks by place and by key; fails where one
    kind of condition is written otherwise."""
    (table,) = describe(made, "t")
    reader, session = begin(made, "r_filter", [table])
    with reader, session:
        rows = snapshot(session, made, table)
        seen = set()
        for text in KEPT:
            filtered = replace(table, filter=text)
            expected = rows.filter(matches(bind(text, table, filters.refusal), rows))
            found = snapshot(session, made, filtered, rows_per_chunk=50)
            assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist()), text
            seen.add(found.num_rows)
            keys = rows.select(["id"]).slice(0, 20)
            chunk = session.keyed_chunk(filtered, 0, keys)
            first = {i for i in expected["id"].to_pylist() if i <= 20}
            asked = made.execute(f"SELECT id FROM ({chunk.spec}) q")  # noqa: S608 - the plugin's text
            assert {i for (i,) in asked} == first, text
        assert len(seen) > 20, "the filters hardly differ"


def test_what_can_not_be_compared_is_refused_and_what_may_not_be_sent_is_reported(
    made: Database,
) -> None:
    """Guards values that look otherwise in the copy (blanks, own forms of text), and columns stored
    apart."""
    (table,) = describe(made, "t")

    def reported(text: str, **changes: object) -> list[tuple[str, str | None]]:
        selection = TableSelection(TableId("public", "t"), filter=text)
        found = filter_problems(
            selection, replace(table, **changes), filters.refusal, filters.may_be_unsent
        )
        return [(p.code, p.column) for p in found]

    for column in ("padded", "loose", "address"):
        assert reported(f"{column} = '1'") == [("source:filter-invalid", None)]
    assert reported("gone = 1") == [("source:filter-invalid", None)]
    assert reported("note = 'a' AND id = 1 AND n = 1") == [("source:filter-may-be-unsent", "note")]
    assert reported("note = 'a'", full_before=True) == []
    assert reported("") == []


def test_a_filtered_table_is_described_with_its_filter(made: Database) -> None:
    """Guards the way to the segments' heads: change files carry the filter that was in force."""
    from replicators.sources.postgresql.catalog import PostgresqlCatalog

    chosen = TableSelection(TableId("public", "t"), filter="id = 1")
    with PostgresqlCatalog(params_of(made)) as catalog:
        assert catalog.describe([chosen])[chosen.id].filter == "id = 1"
