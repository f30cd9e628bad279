"""Row filters: what is read, what fits a table, and which rows are kept (guards
`connectors.filters`, `filter_types`, `filter_arrow`)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.filters.arrow import matches
from replicators.connectors.filters.language import (
    And,
    Compare,
    Expression,
    FilterError,
    In,
    IsNull,
    Like,
    Not,
    Or,
    columns_of,
    parse,
)
from replicators.connectors.filters.types import bind
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    String,
    Timestamp,
    Uuid,
)

TABLE = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint"),
        Column("small", Int(16), "smallint"),
        Column("amount", Decimal(6, 2), "numeric(6,2)"),
        Column("weight", Float(64), "double precision"),
        Column("status", String(), "text"),
        Column("is paid", Boolean(), "boolean"),
        Column("day", Date(), "date"),
        Column("at", Timestamp(6, zone=True), "timestamptz"),
        Column("wall", Timestamp(6), "timestamp"),
        Column("uid", Uuid(), "uuid"),
        Column("body", Json(), "jsonb"),
        Column("raw", Bytes(), "bytea"),
    ),
    key=("id",),
)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("id = 1", Compare("id", "=", Number(1))),
        ("id!=-1.5", Compare("id", "<>", Number("-1.5"))),
        ("status = 'it''s'", Compare("status", "=", "it's")),
        ('"is paid" = true', Compare("is paid", "=", True)),
        ('"a""b" is null', IsNull('a"b')),
        ("id in (1, 2)", In("id", (Number(1), Number(2)))),
        ("status not like 'a%'", Not(Like("status", "a%"))),
        ("a is not null", Not(IsNull("a"))),
        ("not not a is null", IsNull("a")),
        ("id between 1 and 2",
        And((Compare("id", ">=", Number(1)), Compare("id", "<=", Number(2))))),
        ("a = 1 or b = 2 and c = 3",
        Or((Compare("a", "=", Number(1)),
        And((Compare("b", "=", Number(2)), Compare("c", "=", Number(3))))))),
        ("(a = 1 or b = 2) and not (c = 3)",
        And((Or((Compare("a", "=", Number(1)), Compare("b", "=", Number(2)))),
        Not(Compare("c", "=", Number(3)))))),
    ],
)  # fmt: skip
def test_a_filter_is_read_with_the_binding_of_sql(text: str, tree: Expression) -> None:
    """Guards `filters.parse`: with OR bound before AND, or a quote read wrongly, other rows would
    be copied than those asked for."""
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "empty"),
        ("id =", "ends where a number or a text"),
        ("id = NULL", "IS NULL"),
        ("id = other", "`other` (character 6)"),
        ("id = 1 id = 2", "AND, OR or the end"),
        ("1 = id", "the name of a column"),
        ("id = 1; DROP TABLE orders", "`; DROP TABLE orders`"),
        ("id = 1 -- all", "`-- all`"),
        ("lower(status) = 'a'", "`(` (character 6)"),
        ("status = 'open", "`'open`"),
        ("id = 12abc", "`12abc`"),
        ("(id = 1", "`)`"),
        ("id IN ()", "a number or a text"),
        ("NOT " * 3 + "(" * 50 + "id = 1" + ")" * 50, "brackets"),
        ("status = '" + "x" * 4000 + "'", "longer than 4000"),
    ],
)
def test_what_is_not_of_the_language_is_refused_and_the_place_shown(
    text: str, reported: str
) -> None:
    """Guards the parser: what it let through would be sent to the source as a part of a
    statement."""
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert reported in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("other = 1", "`other` is not there"),
        ("id = '1'", "wants a number"),
        ("status = 1", "wants a text"),
        ("status LIKE 'a\\'", "ends with a single"),
        ("id LIKE '1%'", "no text"),
        ('"is paid" > TRUE', "only = and <>"),
        ("day = '2026-13-01'", "a day such as"),
        ("wall = '2026-01-01 00:00Z'", "no time zone"),
        ("uid = 'x'", "no UUID"),
        ("body = '{}'", "only be asked for IS NULL"),
        ("raw = 'a'", "only be asked for IS NULL"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_its_column_is_refused(text: str, reported: str) -> None:
    """Guards `filter_types.bind`: what it lets through would be compared after a cast, by the
    source in one way and by us in another."""
    with pytest.raises(FilterError) as caught:
        bind(text, TABLE)
    assert reported in str(caught.value)


def test_values_get_the_columns_types() -> None:
    """Guards `filter_types.typed`: an instant compared in another zone, or a UUID in other letters,
    keeps other rows than the source's own filter."""
    bound = bind(
        "at > '2026-01-01 01:00+01:00' AND day = '2026-01-02' AND weight < 1.5 "
        "AND uid = 'A0000000-0000-0000-0000-000000000000'",
        TABLE,
    )
    assert isinstance(bound, And)
    assert [p.value for p in bound.parts if isinstance(p, Compare)] == [
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.date(2026, 1, 2),
        1.5,
        "a0000000-0000-0000-0000-000000000000",
    ]
    assert columns_of(bound) == {"at", "day", "weight", "uid"}


def kept(text: str, **columns: list[Any]) -> list[bool]:
    schema = TABLE.arrow_schema()
    count = len(next(iter(columns.values())))
    rows = pa.table({f.name: pa.array(columns.get(f.name, [None] * count), f.type) for f in schema})
    return list(matches(bind(text, TABLE), rows).to_pylist())


def test_only_what_is_true_is_kept_and_null_is_unknown() -> None:
    """Guards SQL's three values: with two a NULL would be kept by NOT, or dropped by OR."""
    ids = [1, 2, None]
    assert kept("id = 1", id=ids) == [True, False, False]
    assert kept("NOT id = 1", id=ids) == [False, True, False]
    assert kept("id <> 1 OR id IS NULL", id=ids) == [False, True, True]
    assert kept("id NOT IN (1, 3)", id=ids) == [False, True, False]
    assert kept("NOT (id = 1 AND status = 'a')", id=ids, status=[None] * 3) == [False, True, False]
    assert kept("status NOT LIKE 'a%'", status=["ab", "b", None]) == [False, True, False]


@settings(max_examples=400, deadline=None)
@given(
    sign=st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    value=st.one_of(
        st.decimals(-20000, 20000, places=3, allow_nan=False),
        st.sampled_from(
            [Number(10) ** 30, -(Number(10) ** 30), Number("9999.99"), Number("-9999.994")]
        ),
    ),
    cells=st.lists(st.decimals(-9999, 9999, places=2, allow_nan=False), min_size=1, max_size=5),
)
def test_numbers_beyond_a_columns_digits_compare_exactly(
    sign: str, value: Number, cells: list[Number]
) -> None:
    """Guards the bounds of whole and decimal columns: a value cut to the column's digits would keep
    other rows."""
    test = {
        "=": lambda a: a == value, "<>": lambda a: a != value, "<": lambda a: a < value,
        "<=": lambda a: a <= value, ">": lambda a: a > value, ">=": lambda a: a >= value,
    }[sign]  # fmt: skip
    assert kept(f"amount {sign} {value:f}", amount=cells) == [test(a) for a in cells]
    whole = [int(c) for c in cells]
    assert kept(f"id {sign} {value:f}", id=whole) == [test(a) for a in whole]
    assert kept(f"small {sign} {value:f}", small=whole) == [test(a) for a in whole]


def test_texts_are_compared_byte_by_byte_and_patterns_by_character() -> None:
    """Guards `filter_arrow` for texts: by a collation, `A` would be `a`, and snapshot and log would
    keep different rows."""
    texts = ["a", "A", "a ", "ä", "a\nb", "a_b", "a%"]
    assert kept("status = 'a'", status=texts) == [True] + [False] * 6
    assert kept("status > 'b'", status=texts) == [t == "ä" for t in texts]
    assert kept("status LIKE '_'", status=texts) == [t in ("a", "A", "ä") for t in texts]
    assert kept("status LIKE 'a_b'", status=texts) == [t in ("a\nb", "a_b") for t in texts]
    assert kept("status LIKE 'a\\_b'", status=texts) == [t == "a_b" for t in texts]
    assert kept("status LIKE '%\\%'", status=texts) == [t == "a%" for t in texts]


@pytest.mark.parametrize(
    ("pattern", "value", "is_like"),
    [
        (r"%a\\b%", r"xa\by", True), (r"a\\b%", r"a\bz", True), (r"%\\", "x\\", True),
        (r"%a\bc", "abc", True),
        (r"%a\bc%", "xabcx", True), (r"%\a%", "bab", True), (r"100\\", "100\\", True),
        (r"%\%", "100%", True),
        (r"%\%", "100", False), (r"a\_c", "abc", False), (r"a\_.", "a_.", True),
        (r"a\_.", "a_x", False), (r"\%_", "%\n", True),
    ],
)  # fmt: skip
def test_an_escape_is_one_wherever_it_stands(pattern: str, value: str, is_like: bool) -> None:
    """Guards `filter_arrow._like`: Arrow takes `%a%` and the like for a search and the backslashes
    in it as they are, so that the log left rows out that the first copy had."""
    assert kept(f"status LIKE '{pattern}'", status=[value, None]) == [is_like, False]
    assert kept(f"status NOT LIKE '{pattern}'", status=[value, None]) == [not is_like, False]


@pytest.mark.parametrize("edge", [-(2**63), 2**63 - 1])
def test_the_ends_of_a_bigint_are_numbers_like_others(edge: int) -> None:
    """Guards `filter_arrow._exact`."""
    for sign, found in (
        ("=", True),
        ("<>", False),
        ("<=", True),
        (">=", True),
        ("<", False),
        (">", False),
    ):
        assert kept(f"id {sign} {edge}", id=[edge]) == [found]
    assert kept(f"id IN ({edge}, 1)", id=[edge, 2]) == [True, False]
