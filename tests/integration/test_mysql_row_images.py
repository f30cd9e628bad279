"""Rows that the log has only in part (CORRECTNESS 25): each stops its own table, and no value is
made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from replicators.connectors.log import DecodedTable, Poison
from tests.integration.mysql_source import Follower, decode_all, following
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(params=["mariadb", "mysql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """A database on each of the servers, with a table `t` that stays whole and a table `notes` with
    a blob."""
    with fresh_sql_database(request.getfixturevalue(request.param)) as made:
        made.execute(
            "CREATE TABLE t (id int PRIMARY KEY)",
            "CREATE TABLE notes (id int PRIMARY KEY, n int unsigned, note text)",
            "INSERT INTO notes VALUES (1, 4000000000, 'as it was'), (2, 2, NULL)",
        )
        yield made


def outcome(follower: Follower) -> dict[str, list[int] | str]:
    """By table: the ids of its rows, or the code of what stopped it."""
    return outcome_of(decode_all(follower.blocks(), follower.tables))


def outcome_of(parts: Sequence[DecodedTable | Poison]) -> dict[str, list[int] | str]:
    """The same of decoded parts."""
    found: dict[str, list[int] | str] = {}
    for part in parts:
        if isinstance(part, Poison):
            found[part.table.name] = part.code
            continue
        known = found.setdefault(part.schema.id.name, [])
        if isinstance(known, list):
            known += part.changes["id"].to_pylist()
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE notes SET n = 5 WHERE id = 1",
        "UPDATE notes SET note = 'as it is' WHERE id = 1",
        "INSERT INTO notes (id, n) VALUES (3, 3)",
        "DELETE FROM notes WHERE id = 1",
    ],
)
def test_a_row_without_its_blobs_stops_its_table(any_database: SqlDatabase, statement: str) -> None:
    """Guards NOBLOB of a session: a text that was left out is not NULL."""
    with following(any_database, "t", "notes") as follower, any_database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET SESSION binlog_row_image = 'NOBLOB'")
        cursor.execute(statement)
        cursor.execute("INSERT INTO t VALUES (1)")
        assert outcome(follower) == {"t": [1], "notes": "source:row-image"}


def test_rows_without_names_stop_their_table_until_names_come_again(
    any_database: SqlDatabase,
) -> None:
    """Guards columns being known by names: with the metadata left out, and there again, in one
    table's rows."""
    with following(any_database, "t", "notes") as follower:
        try:
            any_database.execute(
                "SET GLOBAL binlog_row_metadata = 'MINIMAL'", "UPDATE notes SET n = 5 WHERE id = 1"
            )
        finally:
            any_database.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
        any_database.execute("INSERT INTO t VALUES (1)")
        assert outcome(follower) == {"t": [1], "notes": "source:row-metadata"}
        any_database.execute("UPDATE notes SET n = 4100000000 WHERE id = 1")
        (row,) = follower.changes()["notes"].to_pylist()
        assert (row["n"], row["note"]) == (4_100_000_000, "as it was")


@pytest.mark.parametrize("compression", ["OFF", "ON"])
def test_a_part_of_a_document_stops_the_table_it_belongs_to(
    mysql: SqlServer, compression: str
) -> None:
    """Guards MySQL's PARTIAL_JSON of a session, also within a compressed transaction, where rows of
    tables that nobody chose come along: only the document's own table is unsure."""
    document = '{"a": "a text that is long enough to be left out", "b": 1}'
    with fresh_sql_database(mysql) as database:
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY)",
            *[f"CREATE TABLE {name} (id int PRIMARY KEY, doc json)" for name in ("j", "other")],
            *[f"INSERT INTO {name} VALUES (1, '{document}')" for name in ("j", "other")],
        )
        with (
            following(database, "t", "j") as follower,
            database.connect(autocommit=False) as connection,
        ):
            cursor = connection.cursor()
            cursor.execute("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
            cursor.execute(f"SET SESSION binlog_transaction_compression = {compression}")
            found = []
            for n, name in enumerate(("other", "j")):
                cursor.execute(f"INSERT INTO t VALUES ({n})")
                cursor.execute(f"UPDATE {name} SET doc = JSON_SET(doc, '$.b', 5)")
                connection.commit()
                found.append(outcome(follower))
        assert found == [{"t": [0]}, {"t": [1], "j": "source:row-image"}]
