"""Values at the edges of each type: by the log in binary, by the log in text, and as expected, are
the same."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal

import psycopg
import pytest

from replicators.connectors.log import DecodedTable, PassedOver, Poison
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.postgres.connections import SETTINGS
from replicators.sources.postgresql.catalog import PostgresqlCatalog
from replicators.sources.postgresql.decode import decode
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.types import BINARY_WIRES

pytestmark = [pytest.mark.integration, pytest.mark.oldest_postgresql(is_long=True)]

PUBLICATION = "edges"
SLOT = "edges"
NAN = float("nan")
INF = float("inf")


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


MAX_TIME = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
EDGES: dict[str, tuple[list[str], list[object]]] = {
    "boolean": (["true", "false", "NULL"], [True, False, None]),
    "smallint": (["-32768", "32767", "0", "NULL"], [-32768, 32767, 0, None]),
    "integer": (["-2147483648", "2147483647", "NULL"], [-(2**31), 2**31 - 1, None]),
    "bigint": (["-9223372036854775808", "9223372036854775807", "NULL"],
    [-(2**63), 2**63 - 1, None]),
    "oid": (["0", "4294967295"], [0, 2**32 - 1]),
    "real": (
        ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "3.4028235e38", "1e-45", "0.1"],
        [NAN, INF, -INF, -0.0, 3.4028234663852886e38, 1.401298464324817e-45, 0.10000000149011612],
    ),
    "double precision": (
        ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "1.7976931348623157e308", "5e-324", "0.1",
        "NULL"],
        [NAN, INF, -INF, -0.0, 1.7976931348623157e308, 5e-324, 0.1, None],
    ),
    "numeric(12,2)": (
        ["0", "0.01", "-0.01", "9999999999.99", "-9999999999.99", "10000", "0.1", "1234.5", "NULL"],
        [Decimal(v) for v in
         ("0.00", "0.01", "-0.01", "9999999999.99", "-9999999999.99", "10000.00", "0.10",
         "1234.50")]
        + [None],
    ),
    "numeric(38,0)": (
        ["9" * 38, "-" + "9" * 38, "0", "10000000000000000000", "18446744073709551616"],
        [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), Decimal(10**19), Decimal(2**64)],
    ),
    "numeric(38,38)": (
        ["0." + "9" * 38, "-0." + "0" * 37 + "1", "0", "0.00012"],
        [Decimal("0." + "9" * 38), Decimal("-1E-38"), Decimal("0E-38"), Decimal("0.00012")],
    ),
    "numeric(38,10)": (
        ["9" * 28 + "." + "9" * 10, "0.0000000001", "100000000"],
        [Decimal("9" * 28 + "." + "9" * 10), Decimal("0.0000000001"), Decimal(10**8)],
    ),
    "numeric(7,3)": (["0.001", "1234.567", "10", "-0.05"],
                     [Decimal(v) for v in ("0.001", "1234.567", "10.000", "-0.050")]),
    "numeric": (
        ["0", "-0.000", "1.500", "'NaN'", "'Infinity'", "'-Infinity'", "1e40", "1e-20",
        "12345678.000012345",
         "-0.00001", "10000", "1e131071", "NULL"],
        ["0", "0.000", "1.500", "NaN", "Infinity", "-Infinity", "1" + "0" * 40,
        "0." + "0" * 19 + "1",
         "12345678.000012345", "-0.00001", "10000", "1" + "0" * 131071, None],
    ),
    "numeric(5,-2)": (["12345", "-99", "49"], ["12300", "-100", "0"]),
    "numeric(40,2)": (["1.5"], ["1.50"]),
    "text": (["''", "'a'", "'\U0001f600 €'", "E'\\t\\\\\"'", "repeat('x', 100000)", "NULL"],
             ["", "a", "\U0001f600 €", '\t\\"', "x" * 100000, None]),
    "varchar(5)": (["'abcde'", "''"], ["abcde", ""]),
    "char(4)": (["'ab'", "''"], ["ab  ", "    "]),
    "name": (["'n'"], ["n"]),
    "json": (["'{\"a\":  1}'", "'null'"], ['{"a":  1}', "null"]),
    "jsonb": (["'{\"b\":  1, \"a\": \"\U0001f600\"}'", "'[]'", "NULL"],
              ['{"a": "\U0001f600", "b": 1}', "[]", None]),
    "uuid": (["'00000000-0000-0000-0000-000000000000'", "'FFFFFFFF-0123-4567-89AB-cdefffffffff'"],
             ["00000000-0000-0000-0000-000000000000", "ffffffff-0123-4567-89ab-cdefffffffff"]),
    "bytea": (["'\\x'", "'\\x00ff7f'", "NULL"], [b"", b"\x00\xff\x7f", None]),
    "date": (["'0001-01-01'", "'9999-12-31'", "'2000-02-29'", "'1970-01-01'", "'1900-03-01'",
    "NULL"],
             [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 2, 29), dt.date(1970, 1, 1),
              dt.date(1900, 3, 1), None]),
    "time": (["'00:00'", "'23:59:59.999999'", "'01:02:03.4'"],
             [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(1, 2, 3, 400000)]),
    "timestamp": (["'0001-01-01 00:00'", "'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.9'",
    "NULL"],
                  [dt.datetime(1, 1, 1), MAX_TIME, dt.datetime(1969, 12, 31, 23, 59, 59, 900000),
                  None]),
    "timestamptz": (["'0001-01-01 00:00+00'", "'9999-12-31 23:59:59.999999+00'",
                     "'2024-03-31 02:30:00 Europe/Berlin'", "NULL"],
                    [utc(1, 1, 1), MAX_TIME.replace(tzinfo=dt.UTC), utc(2024, 3, 31, 1, 30), None]),
    "mood": (["'sad'", "'very \"happy\"'", "NULL"], ["sad", 'very "happy"', None]),
    "price": (["1.5", "NULL"], [Decimal("1.50"), None]),
    "integer[]": (["'{}'", "'{1,NULL,-3}'", "NULL", "'[5:6]={8,9}'"],
                  [[], [1, None, -3], None, [8, 9]]),
    "text[]": (["'{}'", "ARRAY['', 'a,b', 'NULL', NULL, '\"', '\\', '{x}', '\U0001f600']"],
               [[], ["", "a,b", "NULL", None, '"', "\\", "{x}", "\U0001f600"]]),
    "numeric(10,2)[]": (["'{1.5,NULL,-99999999.99}'"],
    [[Decimal("1.50"), None, Decimal("-99999999.99")]]),
    "numeric[]": (["'{1.50,NaN,NULL}'"], [["1.50", "NaN", None]]),
    "float8[]": (["'{1.5,-0,NULL,Infinity}'", "'{0.1}'"], [[1.5, -0.0, None, INF], [0.1]]),
    "timestamptz[]": (["ARRAY['2024-01-02 03:04:05+00'::timestamptz, NULL]"],
    [[utc(2024, 1, 2, 3, 4, 5), None]]),
    "bytea[]": (["ARRAY['\\x00ff'::bytea, '\\x'::bytea]"], [[b"\x00\xff", b""]]),
    "boolean[]": (["'{t,f,NULL}'"], [[True, False, None]]),
    "uuid[]": (["ARRAY['00000000-0000-0000-0000-00000000000a'::uuid]"],
               [["00000000-0000-0000-0000-00000000000a"]]),
    "jsonb[]": (["ARRAY['{\"a\": [1, 2]}'::jsonb]"], [['{"a": [1, 2]}']]),
    "mood[]": (["'{sad,NULL}'"], [["sad", None]]),
    "interval": (["'1 day 02:03:04.5'", "'-1 year'"], ["1 day 02:03:04.5", "-1 years"]),
    "timetz": (["'01:02:03.5+02'"], ["01:02:03.5+02"]),
    "inet": (["'10.0.0.1'", "'::1/64'"], ["10.0.0.1", "::1/64"]),
    "int4range": (["'[1,5)'", "'empty'"], ["[1,5)", "empty"]),
    "int4multirange": (["'{[1,2),[5,6)}'"], ["{[1,2),[5,6)}"]),
    "tsvector": (["'a fat cat'"], ["'a' 'cat' 'fat'"]),
    "bit(3)": (["B'101'"], ["101"]),
    "point": (["'(1,2.5)'"], ["(1,2.5)"]),
    "inet[]": (["'{10.0.0.1,NULL}'"], [["10.0.0.1", None]]),
}  # fmt: skip

TEXT_ONLY = {
    "interval", "timetz", "inet", "int4range", "int4multirange", "tsvector", "bit(3)", "point",
    "inet[]",
}  # fmt: skip

REFUSED = {
    "numeric(5,2)": ["'NaN'"],
    "date": ["'infinity'", "'-infinity'", "'0001-12-31 BC'", "'10000-01-01'"],
    "timestamp": ["'infinity'", "'-infinity'", "'0001-12-31 23:59:59 BC'", "'10000-01-01'"],
    "timestamptz": ["'infinity'", "'-infinity'", "'0001-12-31 23:59:59+00 BC'"],
    "time": ["'24:00'"],
    "integer[]": ["'{{1,2},{3,4}}'"],
    "text[]": ["'{{a}}'"],
    "numeric(5,2)[]": ["'{1,NaN}'"],
}


@pytest.fixture
def edges(database):
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'very \"happy\"')")
    database.execute("CREATE DOMAIN price AS numeric(8,2)")
    pinned = {**SETTINGS, "search_path": "public", "synchronous_commit": "on"}
    options = " ".join(f"-c {k}={v}" for k, v in pinned.items())
    with psycopg.connect(database.dsn, autocommit=True, options=options) as connection:
        yield Edges(database, connection)


class Edges:
    """Makes tables, and takes what the log says of them."""

    def __init__(self, database, connection) -> None:
        self.database = database
        self.connection = connection

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def watch(self) -> None:
        self.run(
            f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES",
            f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')",
        )

    def changes(self, tables: list[str], *, binary: bool) -> list[DecodedTable | Poison]:
        rows = self.connection.execute(
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, "
            "'proto_version', '1',"
            " 'publication_names', %s, 'binary', %s)",
            (SLOT, PUBLICATION, str(binary).lower()),
        ).fetchall()
        body = b"".join(struct.pack("<I", len(data)) + data for (data,) in rows)
        with PostgresqlCatalog(PostgresqlParams(**self.database.params)) as catalog:
            schemas = catalog.describe([TableSelection(TableId("public", t)) for t in tables])
        context = {"relations": {}, "transaction": None, "binary": binary}
        assert len(schemas) == len(tables)
        assert body
        head = {"context": context, "tables": [s.to_json() for s in schemas.values()]}
        return [p for p in decode(head, body, 1) if not isinstance(p, PassedOver)]


def same(left: object, right: object) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return type(left) is type(right) and left == right


def test_each_value_is_the_same_by_binary_by_text_and_as_expected(edges):
    """Guards each loop of `kernels` and each line of `types.SCALARS`, at the edges of their types:
    fails where either form of the log is read otherwise, and where a type wrongly counts as
    readable in binary."""
    names = {f"e{i}": native for i, native in enumerate(EDGES)}
    edges.run(
        *(f"CREATE TABLE {t} (id int PRIMARY KEY, v {native})" for t, native in names.items())
    )
    edges.watch()
    for table, native in names.items():
        literals = ", ".join(f"({i}, ({v})::{native})" for i, v in enumerate(EDGES[native][0]))
        edges.run(f"INSERT INTO {table} VALUES {literals}")
    for binary in (True, False):
        decoded = edges.changes(list(names), binary=binary)
        assert [d for d in decoded if isinstance(d, Poison) and binary is False] == []
        found = {d.schema.id.name: d for d in decoded if isinstance(d, DecodedTable)}
        for table, native in names.items():
            if binary and table not in found:
                continue
            column = found[table].changes["v"]
            column.validate(full=True)
            values, expected = column.to_pylist(), EDGES[native][1]
            assert same(values, expected), (native, binary, values, expected)
        known = {t for t, d in found.items() if d.schema.column("v").wire in BINARY_WIRES}
        assert {names[t] for t in known} == set(EDGES) - TEXT_ONLY
        assert not binary or known == set(found)


@pytest.mark.parametrize("binary", [True, False])
def test_values_without_a_place_are_marked_and_their_column_is_named(edges, binary):
    """Guards `unsupported.read_images_with_unsupported`: without the mark in `_faulty` the NULL
    that stands for such a value would be merged as if the source had it."""
    cases = [(native, literal) for native, literals in REFUSED.items() for literal in literals]
    tables = [f"r{i}" for i in range(len(cases))]
    edges.run(
        *(
            f"CREATE TABLE {t} (id int PRIMARY KEY, v {n})"
            for t, (n, _) in zip(tables, cases, strict=True)
        )
    )
    edges.watch()
    edges.run(
        *(f"INSERT INTO {t} VALUES (1, {v})" for t, (_, v) in zip(tables, cases, strict=True))
    )
    results = edges.changes(tables, binary=binary)
    for (native, literal), result in zip(cases, results, strict=True):
        assert isinstance(result, DecodedTable), (native, literal)
        assert result.changes["_faulty"].to_pylist() == [bytes([0b10])]
        assert result.changes["v"].to_pylist() == [None]
        assert result.changes["_fault_reason"][0].as_py().startswith("v: ")


@pytest.mark.parametrize("binary", [True, False])
def test_a_real_server_sends_the_images_that_are_understood(edges, binary):
    """Guards `decode._decode_schema` by the server's own messages: what was not sent (`_unchanged`,
    CORRECTNESS 9) is no NULL, a changed key comes with the old one (8), FULL fills what was not
    sent, and row numbers count all tables (3)."""
    edges.run(
        "CREATE TABLE keyed (id int PRIMARY KEY, big text, n int)",
        "ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL",
        "CREATE TABLE whole (id int, big text, n int)",
        "ALTER TABLE whole ALTER big SET STORAGE EXTERNAL",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
    )
    edges.watch()
    for table in ("keyed", "whole"):
        edges.run(
            f"INSERT INTO {table} VALUES (1, repeat('x', 9000), 1), (2, 'short', 2)",
            f"UPDATE {table} SET n = 10 WHERE id = 1",
            f"UPDATE {table} SET id = 3 WHERE id = 1",
            f"DELETE FROM {table} WHERE id = 2",
        )
    edges.run("TRUNCATE keyed, whole")
    keyed, whole = edges.changes(["keyed", "whole"], binary=binary)
    long = "x" * 9000
    assert [
        (r["_op"], r["id"], r["big"], r["n"], r["_unchanged"], r["_before"])
        for r in keyed.changes.to_pylist()
    ] == [
        (0, 1, long, 1, None, None),
        (0, 2, "short", 2, None, None),
        (1, 1, None, 10, b"\x02", None),
        (1, 3, None, 10, b"\x02", {"id": 1}),
        (2, 2, None, None, None, {"id": 2}),
        (3, None, None, None, None, None),
    ]
    rows = whole.changes.to_pylist()
    assert [r["_op"] for r in rows] == [0, 0, 1, 1, 2, 3]
    assert [r["big"] for r in rows[:4]] == [long, "short", long, long]
    assert {r["_unchanged"] for r in rows} == {None}
    assert rows[3]["_before"] == {"id": 1, "big": long, "n": 10}
    sequences = keyed.changes["_sequence"].to_pylist() + whole.changes["_sequence"].to_pylist()
    assert sorted(s & 0xFFFFFFFF for s in sequences) == list(range(12))
