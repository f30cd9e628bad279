"""Character sets of MySQL and MariaDB: the log's texts are those that the server itself
converts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.mysql_source import following
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SHORT_SETS = ["ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256",
    "cp1257", "cp850", "cp852",
              "cp866", "greek", "hebrew", "koi8r", "koi8u", "macroman"]  # fmt: skip
# What may stand before two bytes more, as hexadecimal digits, and at least how many characters
# these make.
LONG_SETS: dict[str, tuple[list[str], int]] = {
    "gb2312": ([""], 24_000), "gbk": ([""], 40_000), "big5": ([""], 30_000),
    "euckr": ([""], 40_000),
    "cp932": ([""], 40_000), "sjis": ([""], 40_000), "ujis": (["", "8f"], 34_000),
    "gb18030": (["", "8130", "8135", "8431", "9030", "e332", "fe39"], 48_000),
    "ucs2": (["", "d83d"], 63_000), "utf16": (["", "d83d"], 64_000),
    "utf16le": (["", "3dd8"], 64_000),
    "utf32": (["0000", "0001", "0010"], 190_000),
}  # fmt: skip
# Rows of codes that some sets take although they are no characters, alone and behind one: faults
# that are reported.
HALVES_OF_PAIRS = {*range(0xD8, 0xE0), *range(0x100, 0x200)}


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        yield made


def test_every_character_of_a_single_byte_set(any_database: SqlDatabase) -> None:
    """Guards our tables of characters against the server's own; fails where `DIFFERENCES` is
    switched off. MariaDB keeps bytes in a column of ASCII that are none, and shows them as question
    marks."""
    is_strict = any_database.server.flavour == "mysql"
    columns = ", ".join(f"{c} varchar(2) CHARACTER SET {c}" for c in SHORT_SETS)
    any_database.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")

    def values(number: int) -> str:
        code = f"0x{number:02x}"
        texts = [
            "NULL" if c == "ascii" and is_strict and number > 127 else f"_{c} {code}"
            for c in SHORT_SETS
        ]
        return f"({number}, {', '.join(texts)})"

    with following(any_database, "t") as follower:
        rows = ", ".join(values(n) for n in (*range(1, 256), 0xC3A9))
        any_database.execute(f"INSERT INTO t VALUES {rows}")
        log, copied = follower.changes()["t"], follower.copy()
    for charset in SHORT_SETS:
        assert rows_of(log, charset) == rows_of(copied, charset), charset
        assert log[charset].null_count == (129 if charset == "ascii" and is_strict else 0)


@pytest.mark.long_with("mysql")
@pytest.mark.parametrize("charset", LONG_SETS)
def test_every_code_of_a_set_of_several_bytes(any_database: SqlDatabase, charset: str) -> None:
    """Guards the places where a codec differs from the servers, and codes without a character,
    which these show as question marks; fails where `LONG_DIFFERENCES` or the search for such codes
    is switched off. A row holds all codes that begin alike and that the server takes."""
    if charset == "gb18030" and any_database.server.flavour == "mariadb":
        assert not any_database.execute(f"SHOW CHARACTER SET LIKE '{charset}'")
        return
    prefixes, least = LONG_SETS[charset]
    any_database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, c text CHARACTER SET {charset})",
        "CREATE TABLE bytes (v binary(1))",
        f"INSERT INTO bytes VALUES {', '.join(f'(0x{b:02x})' for b in range(256))}",
    )
    with following(any_database, "t") as follower, any_database.connect(charset="utf8mb4") as held:
        cursor = held.cursor()
        cursor.execute("SET sql_mode = ''")
        for number, prefix in enumerate(prefixes):
            code = f"CONCAT(x'{prefix}', first.v, second.v)"
            cursor.execute(
                f"INSERT INTO t SELECT {256 * number} + ORD(first.v),"
                f" CONVERT(GROUP_CONCAT({code} ORDER BY second.v SEPARATOR '') USING {charset})"
                f" FROM bytes first, bytes second WHERE CAST(CONVERT({code} USING {charset}) AS "
                f"BINARY) = {code}"
                " GROUP BY first.v"
            )
        log, copied = follower.changes()["t"], follower.copy()
        cursor.execute("SELECT id, CAST(CONVERT(c USING utf8mb4) AS BINARY) FROM t")
        shown = dict(cursor.fetchall())
    found = rows_of(log)
    assert found == rows_of(copied)
    reported = {number for number, text in found.items() if text is None}
    assert reported <= HALVES_OF_PAIRS
    if reported:
        marks = zip(log["id"].to_pylist(), log["_faulty"].to_pylist(), strict=True)
        assert {number for number, mark in marks if mark} == reported
    assert {n: t for n, t in found.items() if t is not None} == {
        n: raw.decode() for n, raw in shown.items() if n not in reported
    }
    assert sum(len(text or "") for text in found.values()) > least


def rows_of(table: Any, column: str = "c") -> dict[int, str | None]:
    """Texts by their keys."""
    return dict(zip(table["id"].to_pylist(), table[column].to_pylist(), strict=True))
