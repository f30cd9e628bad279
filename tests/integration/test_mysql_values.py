"""Every type of MySQL and MariaDB: the log and the snapshot give the same value, and it is the one
that was written."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.log import Poison
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Timestamp, Unsupported
from replicators.connectors.problems.errors import ReplicationError
from tests.integration.mysql_source import decode_all, following
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# Column type, and pairs of SQL and the value expected (a text of SQL where it is the value itself).
COMMON: dict[str, list[tuple[str, Any]]] = {
    "tinyint": [("-128", -128), ("127", 127)],
    "tinyint unsigned": [("0", 0), ("255", 255)],
    "smallint": [("-32768", -32768), ("32767", 32767)],
    "smallint unsigned": [("65535", 65535)],
    "mediumint": [("-8388608", -8388608), ("8388607", 8388607)],
    "mediumint unsigned": [("16777215", 16777215)],
    "int": [("-2147483648", -2147483648), ("2147483647", 2147483647)],
    "int unsigned": [("4294967295", 4294967295)],
    "int(8) zerofill": [("42", 42)],
    "bigint": [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1)],
    "bigint unsigned": [("18446744073709551615", 2**64 - 1), ("0", 0)],
    "float": [("1.1", 1.100000023841858), ("-3.4e38", -3.3999999521443642e38),
    ("16777217", 16777216.0)],
    "float unsigned": [("1.1", 1.100000023841858), ("0", 0.0), ("3.4e38", 3.3999999521443642e38)],
    "double unsigned": [("0.1", 0.1), ("0", 0.0),
    ("1.7976931348623157e308", 1.7976931348623157e308)],
    "double": [("0.1", 0.1), ("-1.7976931348623157e308", -1.7976931348623157e308),
    ("5e-324", 5e-324)],
    "decimal(10,2)": [("-12345678.91", "-12345678.91"), ("0.05", "0.05"), ("-0.01", "-0.01")],
    "decimal(10,2) unsigned": [("99999999.99", "99999999.99"), ("0", "0.00"), ("0.01", "0.01")],
    "decimal(40,2) unsigned": [("0.05", "'0.05'"),
                               ("99999999999999999999999999999999999999.99",
                                "'99999999999999999999999999999999999999.99'")],
    "decimal(38,10)": [("-9999999999999999999999999999.0123456789",
    "-9999999999999999999999999999.0123456789")],
    "decimal(38,0)": [("99999999999999999999999999999999999999",
    "99999999999999999999999999999999999999")],
    "decimal(9,9)": [("0.000000001", "1E-9"), ("-0.999999999", "-0.999999999")],
    "decimal(65,30)": [("-12345678901234567890123456789012345.000000000000000000000000000001",
                        "'-12345678901234567890123456789012345.000000000000000000000000000001'"),
                       ("0", "'0.000000000000000000000000000000'"),
                       ("-0.5", "'-0.500000000000000000000000000000'")],
    "bit(1)": [("b'1'", True), ("b'0'", False)],
    "bit(12)": [("b'101010101010'", 0b101010101010)],
    "bit(64)": [("0xFFFFFFFFFFFFFFFF", 2**64 - 1)],
    "year": [("1901", 1901), ("2155", 2155), ("0", 0)],
    "date": [("'1000-01-01'", dt.date(1000, 1, 1)), ("'9999-12-31'", dt.date(9999, 12, 31)),
    ("'0000-00-00'", None),
             ("'2024-00-15'", None), ("'2024-02-29'", dt.date(2024, 2, 29))],
    "datetime": [("'1000-01-01 00:00:00'", dt.datetime(1000, 1, 1)),
    ("'0000-00-00 00:00:00'", None)],
    "datetime(1)": [("'2024-01-31 23:59:59.9'", dt.datetime(2024, 1, 31, 23, 59, 59, 900000))],
    "datetime(3)": [("'1969-12-31 23:59:59.999'", dt.datetime(1969, 12, 31, 23, 59, 59, 999000))],
    "datetime(6)": [("'9999-12-31 23:59:59.999999'",
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999))],
    "timestamp null": [("'2038-01-19 03:14:07'", dt.datetime(2038, 1, 19, 3, 14, 7, tzinfo=dt.UTC)),
    ("0", None)],
    "timestamp(6) null": [("'1970-01-01 00:00:01.000001'",
    dt.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=dt.UTC))],
    "time": [("'-838:59:59'", "'-838:59:59'"), ("'12:00:01'", "'12:00:01'"),
    ("'-00:00:01'", "'-00:00:01'")],
    "time(2)": [("'-00:00:00.01'", "'-00:00:00.01'"), ("'-01:00:00.50'", "'-01:00:00.50'")],
    "time(4)": [("'-12:34:56.7891'", "'-12:34:56.7891'"), ("'99:00:00.0001'", "'99:00:00.0001'")],
    "time(6)": [("'-838:59:58.999999'", "'-838:59:58.999999'"),
    ("'838:59:58.000001'", "'838:59:58.000001'")],
    "char(10)": [("'ab  '", "'ab'"), ("'zażółć'", "'zażółć'"), ("''", "''")],
    "char(100) character set utf8mb4": [("repeat('😀', 100)", "'" + "😀" * 100 + "'")],
    "varchar(20)": [("'a '", "'a '"), ("'😀'", "'😀'")],
    "varchar(1000)": [("repeat('x', 1000)", "'" + "x" * 1000 + "'")],
    "varchar(50) character set latin1": [("'äöü€ÿ'", "'äöü€ÿ'"),
    ("_latin1 0x818D8F909D", "'\x81\x8d\x8f\x90\x9d'")],
    "varchar(50) character set cp1251": [("'Привет'", "'Привет'")],
    "varchar(50) character set gbk": [("'中文'", "'中文'")],
    "varchar(50) character set utf16": [("'a😀'", "'a😀'")],
    "varchar(50) character set ucs2": [("'aż'", "'aż'")],
    "varchar(50) character set ascii": [("'plain'", "'plain'")],
    "text": [("repeat('y', 70)", "'" + "y" * 70 + "'")],
    "mediumtext": [("repeat('z', 70000)", "'" + "z" * 70000 + "'")],
    "tinytext": [("'tiny ü'", "'tiny ü'"), ("repeat('t', 255)", "'" + "t" * 255 + "'"),
    ("''", "''")],
    "longtext": [("'long 😀'", "'long 😀'"), ("repeat('w', 70000)", "'" + "w" * 70000 + "'")],
    "tinytext character set latin2": [("'łódź'", "'łódź'")],
    "binary(4)": [("x'0100'", b"\1\0\0\0"), ("x'00000000'", b"\0\0\0\0")],
    "varbinary(300)": [("x'00FF00'", b"\0\xff\0")],
    "blob": [("x'DEADBEEF00'", b"\xde\xad\xbe\xef\0"), ("''", b"")],
    "tinyblob": [("x'00FF'", b"\0\xff"), ("repeat(x'02', 255)", b"\2" * 255), ("''", b"")],
    "mediumblob": [("x'0300'", b"\3\0"), ("repeat(x'03', 70000)", b"\3" * 70000)],
    "longblob": [("repeat(x'01', 100000)", b"\1" * 100000)],
    "enum('a','it''s','ü')": [("'ü'", "'ü'"), ("'it''s'", "'it's'"), ("0", "''")],
    "enum('x','ż') character set latin2": [("'ż'", "'ż'")],
    "set('a','b','c')": [("'a,c'", "'a,c'"), ("''", "''")],
    "geometry": [("ST_GeomFromText('POINT(3 4)')", struct.pack("<BI2d", 1, 1, 3, 4)),
                 ("ST_GeomFromText('LINESTRING(1 2,3 4)')",
                 struct.pack("<BII4d", 1, 2, 2, 1, 2, 3, 4))],
    "linestring": [("ST_GeomFromText('LINESTRING(1 2,3 4,-5.5 6)')",
                    struct.pack("<BII6d", 1, 2, 3, 1, 2, 3, 4, -5.5, 6))],
    "polygon": [("ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
                 struct.pack("<BIII8d", 1, 3, 1, 4, 0, 0, 1, 0, 1, 1, 0, 0))],
    "multipoint": [("ST_GeomFromText('MULTIPOINT(1 2,3 4)')",
                    struct.pack("<BII" + 2 * "BI2d", 1, 4, 2, 1, 1, 1, 2, 1, 1, 3, 4))],
    "multilinestring": [("ST_GeomFromText('MULTILINESTRING((1 2,3 4))')",
                         struct.pack("<BIIBII4d", 1, 5, 1, 1, 2, 2, 1, 2, 3, 4))],
    "multipolygon": [("ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))')",
                      struct.pack("<BIIBIII8d", 1, 6, 1, 1, 3, 1, 4, 0, 0, 1, 0, 1, 1, 0, 0))],
    "geometrycollection": [("ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')",
                            struct.pack("<BIIBI2d", 1, 7, 1, 1, 1, 1, 2)),
                           ("ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')",
                           struct.pack("<BII", 1, 7, 0))],
}  # fmt: skip
MARIADB = {
    "json": [("""'{"b": 1, "a": [1,2]}'""", """'{"b": 1, "a": [1,2]}'""")],
    "uuid": [("'123e4567-e89b-12d3-a456-426655440000'", "'123e4567-e89b-12d3-a456-426655440000'"),
             ("'123e4567-e89b-12d3-a456-426655440100'", "'123e4567-e89b-12d3-a456-426655440100'")],
    "inet6": [("'::1'", "'::1'"), ("'::'", "'::'"), ("'::ffff:192.0.2.1'", "'::ffff:192.0.2.1'"),
              ("'2001:db8::ff00:42:8329'", "'2001:db8::ff00:42:8329'"),
              ("'1:0:0:2:0:0:0:3'", "'1:0:0:2::3'"),
              ("'1:0:2:3:4:5:6:7'", None), ("'::1.2.3.4'", "'::1.2.3.4'")],
    "point": [("ST_GeomFromText('POINT(1 2)', 4326)", struct.pack("<BI2d", 1, 1, 1, 2))],
    "inet4": [("'192.0.2.1'", "'192.0.2.1'"), ("'0.0.0.0'", "'0.0.0.0'")],
}  # fmt: skip
MYSQL = {
    # A server that knows the order of its axes, which is latitude and longitude, keeps the
    # longitude first.
    "point": [("ST_GeomFromText('POINT(1 2)', 4326)", struct.pack("<BI2d", 1, 1, 2, 1))],
    "vector(3)": [("STRING_TO_VECTOR('[1,2.5,-3]')", [1.0, 2.5, -3.0])],
}


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        yield made


def is_mariadb(database: SqlDatabase) -> bool:
    return database.server.flavour == "mariadb"


def expected(value: Any) -> Any:
    if isinstance(value, str):
        return value[1:-1] if value.startswith("'") else decimal.Decimal(value)
    return value


def test_log_and_snapshot_give_the_value_that_was_written(any_database: SqlDatabase) -> None:
    """Guards "snapshot == log": one decoder contract for the binlog's bytes and for the server's
    text."""
    cases = COMMON | (MARIADB if is_mariadb(any_database) else MYSQL)
    columns = ", ".join(
        f"c{i} {kind} {'' if 'null' in kind else 'null'}" for i, kind in enumerate(cases)
    )
    any_database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4 ROW_FORMAT=DYNAMIC"
    )
    with following(any_database, "t") as follower, any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        count = max(len(v) for v in cases.values())
        for row in range(count + 1):
            values = [v[row][0] if row < len(v) else "NULL" for v in cases.values()]
            cursor.execute(f"INSERT INTO t VALUES ({row}, {', '.join(values)})")
        log = follower.changes()["t"].drop(
            ["_sequence", "_op", "_committed_at", "_transaction", "_position"]
        )
        copy = follower.copy().sort_by("id")
        for i, (kind, values) in enumerate(cases.items()):
            logged, copied = (t.column(f"c{i}").to_pylist() for t in (log, copy))
            assert logged == copied, kind
            assert logged[len(values) :] == [None] * (count + 1 - len(values)), kind
            for (text, value), found in zip(values, logged, strict=False):
                if value is not None or "date" in kind or "timestamp" in kind:
                    given_value = expected(value)
                    is_number = isinstance(found, decimal.Decimal) and isinstance(given_value, int)
                    assert (int(found) if is_number else found) == given_value, (kind, text)
        assert log.schema.field("c0").type == copy.schema.field("c0").type


def test_invisible_and_generated_columns_are_the_same_by_log_and_by_copy(
    any_database: SqlDatabase,
) -> None:
    """Guards columns that `SELECT *` leaves out, and values that the server makes: stored and
    virtual."""
    any_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, hidden int INVISIBLE DEFAULT 7, n int,"
        " kept int AS (n * 2) STORED, made int AS (n * 3) VIRTUAL, last varchar(9))"
    )
    with following(any_database, "t") as follower:
        any_database.execute(
            "INSERT INTO t (id, n, last) VALUES (1, 5, 'a'), (2, NULL, 'b')",
            "INSERT INTO t (id, hidden, n, last) VALUES (3, 8, 9, 'c')",
            "UPDATE t SET n = 6, hidden = NULL WHERE id = 1",
        )
        log = follower.changes()["t"].to_pylist()
        copy = follower.copy().sort_by("id").to_pylist()
        last = {r["id"]: {c: r[c] for c in copy[0]} for r in log}
        assert list(last.values()) == copy
        assert copy[0] == {"id": 1, "hidden": None, "n": 6, "kept": 12, "made": 18, "last": "a"}
        assert copy[2]["hidden"] == 8


def test_a_form_that_is_not_known_is_reported_and_never_passed_over(
    mariadb_database: SqlDatabase,
) -> None:
    """Guards against a column that would be empty without a word: dates as MariaDB before 10.1
    stored them."""
    server = mariadb_database.server
    server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        mariadb_database.execute("CREATE TABLE t (id int PRIMARY KEY, at datetime)")
    finally:
        server.execute("SET GLOBAL mysql56_temporal_format = ON")
    with following(mariadb_database, "t") as follower:
        (table,) = follower.tables
        assert isinstance(table.column("at").type, Unsupported)
        known = replace(
            table,
            columns=(*table.supported, Column("at", Timestamp(0), "datetime", wire="datetime")),
        )
        mariadb_database.execute("INSERT INTO t VALUES (1, '2024-01-02 03:04:05')")
        (found,) = decode_all(follower.blocks(), [known])
        assert isinstance(found, Poison)
        assert (found.code, found.facts["column"]) == ("source:value-unsupported", "at")


def test_json_of_mysql_is_the_text_that_the_server_prints(request: pytest.FixtureRequest) -> None:
    """Guards the decoder of the binary form: the server's own text is the oracle."""
    documents = [
        "{}", "[]", "null", "true", "0", "-1", "32767", "65535", "4294967295", "2147483648",
        "18446744073709551615",
        "-9223372036854775808", "1.5", "1e300", "1.0", "123456789012345680000.0", "0.1", "-0.0",
        "1e14", "1e15", "123456789012345.6", "1234567890123456.5", "1e-14",
        "1e-15", "1e-16", "1.25e-15", "9.999999999999999e22", "5e-324", "1.7976931348623157e308",
        '""', '"a\\"b\\\\c\\n\\u0001"',
        '"😀 ü"', '[1, "two", 3.5, null, true, {"a": [ ]}]',
        '{"bb": 1, "a": 2, "ccc": {"x": [1,2,3]}}',
        json.dumps({f"key{i}": "v" * 300 for i in range(400)}),
        json.dumps(list(range(-200, 70000, 7))),
    ]  # fmt: skip
    expressions = [
        "CAST(CAST('2024-02-29' AS DATE) AS JSON)", "CAST(CAST('2024-02-29 12:34:56.789' AS "
                                                    "DATETIME(3)) AS JSON)",
        "CAST(CAST('-100:00:01.5' AS TIME(1)) AS JSON)",
        "CAST(CAST(-12.340 AS DECIMAL(10,3)) AS JSON)",
        "CAST(x'00FF' AS JSON)", "JSON_OBJECT('d', CAST(1 AS DECIMAL(40,20)), 'b', x'0102')",
    ]  # fmt: skip
    with fresh_sql_database(request.getfixturevalue("mysql")) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, j json)")
        with (
            following(database, "t") as follower,
            database.connect(charset="utf8mb4") as connection,
        ):
            cursor = connection.cursor()
            for document in documents:
                cursor.execute("INSERT INTO t (j) VALUES (%s)", (document,))
            for expression in expressions:
                cursor.execute(f"INSERT INTO t (j) VALUES ({expression})")
            logged = follower.changes()["t"].column("j").to_pylist()
            copied = follower.copy().sort_by("id").column("j").to_pylist()
    assert logged == copied
    assert json.loads(logged[documents.index('[1, "two", 3.5, null, true, {"a": [ ]}]')]) == [
        1,
        "two",
        3.5,
        None,
        True,
        {"a": []},
    ]


def test_zero_dates_by_policy(any_database: SqlDatabase) -> None:
    """Guards the choice null | text | fail, the same in log and snapshot; with null, a day that is
    merely wrong is no zero date."""
    any_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, d date, t timestamp(3) null, m datetime)"
    )
    insert = (
        "INSERT INTO t VALUES (1, '2024-00-00', 0, '0000-00-00'), (2, '2024-05-06', "
        "'2024-01-02 03:04:05.6', NULL)"
    )
    with any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        with following(any_database, "t", zero_dates="text") as follower:
            cursor.execute(insert)
            log = follower.changes()["t"].select(["id", "d", "t", "m"]).to_pylist()
            assert log == follower.copy().to_pylist()
            assert log[0] == {
                "id": 1,
                "d": "2024-00-00",
                "t": "0000-00-00 00:00:00.000",
                "m": "0000-00-00 00:00:00",
            }
            assert log[1]["t"] == "2024-01-02 03:04:05.600"
        cursor.execute("TRUNCATE TABLE t")
        with following(any_database, "t", zero_dates="fail") as follower:
            cursor.execute(insert)
            log = follower.changes()["t"]
            assert log.column("_faulty").to_pylist() == [bytes([0b1110]), None]
            copied = follower.copy()
            names = ["id", "d", "t", "m", "_faulty", "_fault_reason"]
            assert log.select(names).to_pylist() == copied.select(names).to_pylist()
            first, second = log.select(names).to_pylist()
            assert [first[n] for n in names[:4]] == [1, None, None, None]
            assert first["_fault_reason"].count("does not exist in the calendar") == 3
            assert second["d"] == dt.date(2024, 5, 6)
        cursor.execute("TRUNCATE TABLE t")
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        with following(any_database, "t", zero_dates="null") as follower:
            cursor.execute(insert)
            cursor.execute("INSERT INTO t VALUES (3, '2021-02-31', NULL, '0000-01-01 01:02:03')")
            log = follower.changes()["t"]
            assert log.column("_faulty").to_pylist() == [None, None, bytes([0b1010])]
            copied = follower.copy()
            assert log.select(names).to_pylist() == copied.select(names).to_pylist()
            assert [r["d"] for r in log.to_pylist()] == [None, dt.date(2024, 5, 6), None]


@pytest.mark.parametrize(("zero_dates", "names"), [("fail", ("t", "u")), ("null", ("t",))])
def test_a_zero_date_that_no_row_can_be_known_without_stops_its_table(
    any_database: SqlDatabase, zero_dates: str, names: tuple[str, ...]
) -> None:
    """Guards keys, and tables without one: a row whose key is not known can't wait, nor one that is
    known by all of its values. In a key it can't become NULL either: such a row would be doubled by
    each change."""
    any_database.execute(
        "CREATE TABLE t (d date PRIMARY KEY, v int)", "CREATE TABLE u (d date, v int)"
    )
    with any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        with following(any_database, *names, zero_dates=zero_dates) as follower:
            for name in names:
                cursor.execute(f"INSERT INTO {name} VALUES ('0000-00-00', 1)")
            decoded_parts = decode_all(follower.blocks(), follower.tables)
            assert len(decoded_parts) == len(names)
            for found in decoded_parts:
                assert isinstance(found, Poison)
                assert (found.code, found.facts["column"]) == ("source:value-unsupported", "d")
            with pytest.raises(ReplicationError) as caught:
                follower.copy()
            assert caught.value.code == "source:value-unsupported"


def test_rows_that_do_not_fit_are_marked_in_both_images_and_beside_a_truncation(
    any_database: SqlDatabase,
) -> None:
    """Guards updates to and from such a value, a real NULL, which is none, many rows, and a
    TRUNCATE in the same segment, whose row has no marks."""
    any_database.execute("CREATE TABLE t (id int PRIMARY KEY, d date, note text)")
    with any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        with following(any_database, "t", zero_dates="fail") as follower:
            cursor.execute(
                "INSERT INTO t VALUES (1, '2024-00-01', 'odd'), (2, NULL, 'none'), (3, "
                "'2024-01-01', 'fine')"
            )
            cursor.execute("UPDATE t SET d = '2024-02-02' WHERE id = 1")
            cursor.execute("UPDATE t SET d = '0000-00-00' WHERE id = 3")
            cursor.execute("TRUNCATE TABLE t")
            cursor.execute("INSERT INTO t VALUES (4, '2024-01-00', 'odd')")
            log = follower.changes()["t"].select(["_op", "id", "d", "note", "_faulty"]).to_pylist()
    assert [(r["_op"], r["id"], r["_faulty"]) for r in log] == [
        (0, 1, b"\x02"), (0, 2, None), (0, 3, None), (1, 1, None), (1, 3, b"\x02"), (3, None, None),
        (0, 4, b"\x02"),
    ]  # fmt: skip
    assert [r["d"] for r in log] == [
        None, None, dt.date(2024, 1, 1), dt.date(2024, 2, 2), None, None, None,
    ]  # fmt: skip
    assert [r["note"] for r in log] == ["odd", "none", "fine", "odd", "fine", None, "odd"]
