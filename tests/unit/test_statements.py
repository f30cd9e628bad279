"""Statements are read, and errors point at the wrong character. Knows no database."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafts.statements.errors import StatementError
from drafts.statements.parser import parse
from drafts.statements.tree import Alter, Create, DropCdc, Named

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "statements.txt"

CHANGEFEEDS = [
    "CREATE CHANGEFEED f FOR TABLE tweets INTO 'kafka://host:port' WITH envelope='none'",
    "CREATE CHANGEFEED f FOR TABLE tweets VALUES FROM (1) TO (2) INTO 'kafka://host:9092'",
    "CREATE CHANGEFEED f FOR TABLE tweets PARTITION north_america INTO 'kafka://host:9092'",
    "CREATE CHANGEFEED f FOR DATABASE db INTO 'kafka://host:9092'",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'kafka://host:9092?kafka_topic_prefix=shop_'",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'kafka://host:9092?schema_topic=schemas'",
    "CREATE CHANGEFEED f FOR TABLE t INTO "
    "'kafka://host:9092?confluent_schema_registry=http://registry:8081' WITH format='avro'",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'experimental-sql:///'",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'kafka:/' WITH envelope='key_only', format='json'",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'kafka:/' WITH envelope='diff', cursor=1525676700",
    "CREATE CHANGEFEED feed_vehicles FOR TABLE movr.vehicles INTO 'kafka:/...'",
    "CREATE CHANGEFEED feed_analytics FOR DATABASE movr.rides INTO 'kafka:/' WITH\n"
    "  format='avro',\n  confluent_schema_registry='http://registry:8081'",
    "PAUSE CHANGEFEED f",
    "RESUME CHANGEFEED f",
    "DROP CHANGEFEED f",
    "SHOW CREATE CHANGEFEED f",
    "ALTER CHANGEFEED f INTO 'kafka://other:9092'",
    "ALTER CHANGEFEED f SET envelope='diff'",
    "ALTER CHANGEFEED f SET cursor='2018-05-06 07:06:00'",
]
"""Every statement of seed 003, with a name in place of `<name>`, and one for each sink and option
that it describes."""
CDC = [
    "CREATE CDC\n       FOR ns.table1\n       INTO kafka\n       WITH topic = 'x';",
    "DROP CDC FOR ns.table1;",
    "CREATE CDC FOR my_database.my_table\n           INTO KAFKA\n"
    "           WITH cluster_address = 'http://localhost:9092',\n"
    "                topic = 'my_table_topic',\n                record = AFTER;",
    "CREATE CDC FOR my_database.my_table\n           INTO ELASTICSEARCH\n"
    "           WITH cluster_address = 'http://localhost:9200',\n"
    "                index = 'my_table_index';",
]
"""Every statement of seed 004."""
WRONG = [
    "",
    "  \n",
    "CREAT CHANGEFEED f FOR TABLE t INTO 'files:/x'",
    "CREATE CHANGEFED f FOR TABLE t INTO 'files:/x'",
    "CREATE CHANGEFEED FOR TABLE t INTO 'files:/x'",
    "CREATE CHANGEFEED <name> FOR TABLE t INTO 'files:/x'",
    "CREATE CHANGEFEED f TABLE t INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR t INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t,\n  INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t. INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE a.b.c.d INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t VALUES (1) INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t VALUES FROM (1) INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t VALUES FROM 1 TO 2 INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t VALUES FROM (a) TO (b) INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t MODE append MODE append INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t",
    "CREATE CHANGEFEED f FOR TABLE t INTO files:/x",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x",
    "CREATE CHANGEFEED f FOR TABLE t INTO ‘files:/x’",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x' WITH",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x' WITH format=",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x' WITH format=json, format=json",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x' WITH format json",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x' format=json",
    "CREATE CHANGEFEED f FOR TABLE t FROM SOURCE INTO 'files:/x'",
    "CREATE CHANGEFEED f FOR TABLE t INTO 'files:/x'; DROP CHANGEFEED f",
    "CREATE CDC FOR t INTO 'kafka://h'",
    "CREATE CDC t INTO KAFKA",
    "PAUSE CHANGEFEED",
    "PAUSE CDC FOR t",
    "SHOW CHANGEFEED f",
    "SHOW CREATE f",
    "ALTER CHANGEFEED f",
    "ALTER CHANGEFEED f SET",
    "ALTER CHANGEFEED f WITH format='json'",
    "DROP CDC shop.orders",
    "CREATE CHANGEFEED f FOR TABLE t FROM SOURCE 'postgresql://u:hunter2@h/db' INTO nothing",
    "ALTER CHANGEFEED f SET password='hunter2' format='json'",
    "SHOW\n\tCHANGEFEEDS %",
    "SHOW CHANGEFEEDS " + "-" * 200 + "\n" + "x" * 150 + " y",
]


@pytest.mark.parametrize("text", CHANGEFEEDS + CDC)
def test_each_statement_of_the_seeds_is_read(text: str) -> None:
    """Guards the grammar of both dialects: nothing of the statement is left over."""
    found = parse(text)
    assert found.text == text
    if isinstance(found, Create):
        assert found.watched and found.into.value
        assert found.is_cdc == (" CDC" in text[:12])


def test_what_a_statement_says_is_kept() -> None:
    """Guards the tree: names, ranges, options and their places."""
    found = parse(
        "create changefeed \"my feed\" for table shop.orders values from (1, 'a') to (2, 'b'), "
        "database x -- a comment\n from source 'shop' into 'files:/it''s' with resolved, a=-1.5"
    )
    assert isinstance(found, Create) and found.name is not None and found.source is not None
    orders, database = found.watched
    assert (found.name.value, found.source.value) == ("my feed", "shop")
    assert str(orders.name) == "shop.orders" and database.is_database
    assert [t.value for t in orders.low] == ["1", "a"] and found.into.value == "files:/it's"
    assert [(s.name, s.text) for s in found.settings] == [("resolved", "true"), ("a", "-1.5")]
    assert found.text[found.into.inside(9)] == "'"
    assert found.text[found.into.inside(10)] == "s"
    assert isinstance(parse("DROP CDC FOR a.b INTO kafka"), DropCdc)
    assert isinstance(parse("ALTER CHANGEFEED a SET b=1"), Alter)
    assert isinstance(parse("PAUSE CHANGEFEED a-b"), Named)


def test_errors_are_the_golden_ones() -> None:
    """Guards the texts and the places of errors. `UPDATE_GOLDEN=1` writes them again."""
    found = []
    for text in WRONG:
        with pytest.raises(StatementError) as error:
            parse(text)
        found.append(str(error.value))
        assert "hunter2" not in str(error.value)
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    shown = "\n\n".join(found) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(shown)
    assert shown == GOLDEN.read_text()


_PARTS = st.sampled_from(
    ["CREATE", "CHANGEFEED", "CDC", "FOR", "TABLE", "DATABASE", "INTO", "WITH", "FROM", "SOURCE",
     "VALUES", "TO", "(", ")", ",", ".", "=", ";", "'x'", '"n"', "1", "name", "SHOW", "ALTER",
     "SET", "DROP", "'", "--", "\n", "\x00", "é", "PARTITION"]
)  # fmt: skip


def error_of(text: str) -> StatementError | None:
    try:
        parse(text)
    except StatementError as error:
        return error
    return None


@settings(max_examples=500, deadline=None)
@given(st.lists(_PARTS, max_size=30).map(" ".join) | st.text(max_size=80))
def test_any_text_is_a_statement_or_an_error_with_a_place(text: str) -> None:
    """Guards `parse` against whatever is sent: it never raises anything else."""
    found = error_of(text)
    if found is not None:
        assert 0 <= found.at <= len(text)
        line, caret = found.shown.split("\n")[-2:]
        assert caret.endswith("^") and len(caret) - 1 <= len(line)


def test_a_long_text_is_read_in_time() -> None:
    """Guards the patterns: none takes the square of a text's length."""
    for text in ("a" * 199_000, "SHOW " + "password" * 20_000, "'" * 199_999, "://@:" * 39_000):
        with pytest.raises(StatementError):
            parse(text)
