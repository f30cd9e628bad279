"""The lakehouse's SQL texts, compared with golden files; names are hostile on purpose."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from replicators.connectors.sql.merge.parts import ranges
from replicators.connectors.target import FoldedBatch, KeyRange
from replicators.targets.lakehouse import dialect, naming, statements
from replicators.targets.lakehouse.leftovers import folders_of

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "lakehouse"
TARGET = dialect.path(("lakehouse", "a.b", "or`der 🙂"))

SCHEMA = TableSchema(
    TableId("a.b", "or`der 🙂"),
    (
        Column("a`b", Int(64), "bigint", False, 1),
        Column("select", String(), "text", True, 2),
        Column("at's", Timestamp(zone=True), "timestamptz", True, 3),
        Column("clock", Time(), "time", True, 4),
        Column("_unsent_1", Array(String()), "text[]", True, 5),
        Column("x" * 64, Decimal(12, 2), "numeric(12,2)", True, 6),
    ),
    ("a`b",),
    ("a`b",),
)
RANGES = (KeyRange(1, 5), KeyRange(9, 9))
AT = datetime(2024, 1, 1, tzinfo=UTC)


def _batch(**flags: Any) -> FoldedBatch:
    return FoldedBatch(
        SCHEMA, sequence=7, rows=3, **{"paths": ("/tmp/x.parquet",), "ranges": RANGES, **flags}
    )


def _of(**flags: Any) -> str:
    return statements.statement(TARGET, _batch(**flags), "`b`")


def _ranges(batch: FoldedBatch) -> str:
    return ranges(dialect.SPARK, batch, "t")


CASES = {
    "create_iceberg": dialect.create(
        TARGET,
        SCHEMA,
        provider="iceberg",
        location="/w/it's",
        values={"format-version": "3", "a": "b\\c"},
    ),
    "create_delta": dialect.create(
        dialect.path(("delta", "/w/x")),
        SCHEMA,
        provider="delta",
        location="",
        values={"delta.x": "true"},
    ),
    "merge": _of(),
    "merge_unsent": _of(unsent=("select",)),
    "merge_origins": _of(unsent=("select", "clock"), has_origins=True),
    "append": _of(append_only=True),
    "replace": _of(truncate=True),
    "truncate": _of(truncate=True, paths=()),
    "touch": dialect.touch(TARGET),
    "replace_table": dialect.replace_table("delta.`/w/t`", "delta.`/w/s`", {"a": "b"}),
    "batch_ddl": statements.batch_ddl(_batch(unsent=("select",), has_origins=True)),
    "soft_delete": _of(mode=Mode.SOFT_DELETE, unsent=("select",)),
    "soft_delete_truncate": _of(
        mode=Mode.SOFT_DELETE,
        unsent=("select",),
        has_origins=True,
        truncate=True,
        truncated_at=AT,
    ),
    "soft_delete_no_rows": _of(mode=Mode.SOFT_DELETE, truncate=True, truncated_at=AT, paths=()),
    "history": _of(mode=Mode.HISTORY),
    "history_truncate": _of(
        mode=Mode.HISTORY, unsent=("clock",), has_origins=True, truncate=True, truncated_at=AT
    ),
    "history_no_rows": _of(mode=Mode.HISTORY, truncate=True, truncated_at=AT, paths=()),
    "multiset": _of(mode=Mode.MULTISET, paths=("a", "b"), keys=(b"\x00" * 16,)),
    "multiset_replace": _of(mode=Mode.MULTISET, truncate=True),
    "no_inserts": _of(no_inserts=True, unsent=("select",)),
    "no_inserts_origins": _of(no_inserts=True, unsent=("select",), has_origins=True),
    "no_inserts_soft": _of(
        no_inserts=True,
        mode=Mode.SOFT_DELETE,
        unsent=("select",),
        has_origins=True,
        truncate=True,
        truncated_at=AT,
    ),
    "append_log": _of(mode=Mode.APPEND),
    "missing": statements.missing(TARGET, _batch(unsent=("select",), has_origins=True), "`b`"),
    "evolve": "\n".join(
        (
            dialect.add_column(TARGET, SCHEMA.columns[0]),
            dialect.drop_column(TARGET, "a`b"),
            dialect.widen_column(TARGET, SCHEMA.columns[5]),
            dialect.set_properties(TARGET, {"k": "it's"}),
        )
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_sql_is_as_in_the_golden_file(case: str) -> None:
    """Guards every statement of `dialect` and `statements`, hostile names included: a change of the
    SQL that reaches a table is seen as a diff, never by the way."""
    path = GOLDEN / f"{case}.sql"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(CASES[case] + "\n", encoding="utf-8")
    assert CASES[case] + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Int(64), 5, "CAST(5 AS BIGINT)"),
        (Decimal(12, 2), PyDecimal("1E+3"), "CAST(1000 AS DECIMAL(12,2))"),
        (Float(64), float("nan"), "CAST('nan' AS DOUBLE)"),
        (String(), "it's \\ \n", "'it\\'s \\\\ \\n'"),
        (String(), "\x0001 ${x}", "'\\00001 ${x}'"),
        (Uuid(), "00000000-0000-0000-0000-000000000000", "'00000000-0000-0000-0000-000000000000'"),
        (Bytes(), b"\x00\xff", "X'00ff'"),
        (Date(), date(2024, 2, 29), "DATE '2024-02-29'"),
        (Time(), time(1, 2, 3), "'01:02:03.000000'"),
        (
            Timestamp(zone=True),
            datetime(2024, 1, 1, tzinfo=UTC),
            "TIMESTAMP '2024-01-01 00:00:00.000000Z'",
        ),
        (Timestamp(), datetime(2024, 1, 1), "TIMESTAMP_NTZ '2024-01-01 00:00:00.000000'"),  # noqa: DTZ001
    ],
)
def test_a_key_is_written_in_the_targets_type(kind: LogicalType, value: Any, expected: str) -> None:
    """Guards `dialect.literal` (CORRECTNESS 11): a literal of another type or with another escape
    does not equal the stored key, so its row is not found and inserted again."""
    assert dialect.literal(kind, value) == expected


def test_a_range_of_nulls_asks_for_nulls_and_a_key_without_literal_is_not_pruned() -> None:
    """Guards the ways out of `ranges`: BETWEEN NULLs holds for no row, and a key that
    can't be written must not prune at all."""
    assert "IS NULL" in _ranges(_batch(ranges=(KeyRange(None, None),)))
    assert _ranges(_batch(ranges=(KeyRange(object(), object()),))) == ""


@pytest.mark.parametrize("name", ["a/b", "..", "_hidden", ".dot", "é 🙂", "a%b", "a:b", "a~b"])
def test_folders_hold_only_plain_characters_and_never_collide(name: str) -> None:
    """Guards `naming.folder`: two tables in one folder would overwrite each other, and a name with
    `..` or `_` in front would lead out of the warehouse or be hidden."""
    made = naming.folder(name)
    assert made.replace("~", "").replace("-", "").replace("_", "").isalnum()
    assert made[0] not in "._"
    assert made != naming.folder(name + "x")


def test_no_two_names_share_a_folder_or_a_staging_table() -> None:
    """Guards the ends of codes in `naming.folder` and the length in `naming.staging_names`: a code
    that swallows the letter behind it, or names that run together, would let two tables be written
    into one place."""
    names = ["a b", "a\u020b", "éa", "\u0e9a", "_d", "\u05fd", "/0", "\u02f0", "a\tb", "a\u009b"]
    names += ["\u1f642", "\U0001f642", "~", "~7e", "u0041", "\u0041"]
    assert len({naming.folder(n) for n in names}) == len(names)


def test_the_folder_of_a_long_name_is_one_that_file_systems_take() -> None:
    """MySQL's names have up to 64 characters, each of which may become eight: the table's copy
    failed as soon as it began. Names stay apart, and generations of one table are found
    together."""
    for text in ("\N{CJK UNIFIED IDEOGRAPH-8868}" * 64, "\N{GRINNING FACE}" * 64):
        live = [naming.folder(text[:-1] + end) for end in ("", "a", "b", "__1", "__x")]
        staged = [naming.folder(naming.staging_names((text, text), "r1", n)[1]) for n in (1, 20)]
        assert len({*live, *staged}) == len(live) + len(staged)
        assert max(len(n) for n in (*live, *staged)) < 200
        assert folders_of([*live, *staged], (text, text), "r1") == staged
    pairs = [("a", "b__c"), ("a__b", "c"), ("a_", "_b__c"), ("1_a", "b__c")]
    assert len({naming.staging_names(p, "r1", 1) for p in pairs}) == len(pairs)


def test_a_missing_rows_time_of_day_is_asked_for_as_the_batch_has_it() -> None:
    """Arrow can't read the target's text as a time of day, so the row's values would not be read at
    the source."""
    schema = replace(SCHEMA, key=("clock", "a`b"))
    batch = replace(_batch(unsent=("select",)), schema=schema)
    text = statements.missing(TARGET, batch, "`b`")
    assert text.startswith("SELECT `_replicator_key_0` AS `clock`, `b`.`a``b` FROM (SELECT")
    assert "`clock` AS `_replicator_key_0` FROM `b`) AS `b` WHERE" in text


def test_few_keys_are_listed_instead_of_their_ranges() -> None:
    """Guards the IN list of `ranges`: with ranges, Spark would compile another program for
    each merge."""
    text = _ranges(_batch(keys=(1, 5)))
    assert text == "`t`.`a``b` IN (CAST(1 AS BIGINT), CAST(5 AS BIGINT))"


def test_halved_ranges_hold_for_the_same_values_as_all_of_them_one_by_one() -> None:
    """Guards `ranges` (CORRECTNESS 11), evaluated by a real SQL engine: a value that halving
    loses is a key that the MERGE does not find."""
    import sqlite3

    thirty = tuple(KeyRange(n * 10, n * 10 + n % 4) for n in range(32))
    text = _ranges(_batch(ranges=thirty)).replace("CAST(", "(").replace(" AS BIGINT", "")
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE t (`a``b` INTEGER)")
    made.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(-5, 340)])
    found = {r for (r,) in made.execute(f"SELECT * FROM t WHERE {text}")}  # noqa: S608 - our own text
    assert found == {n for r in thirty for n in range(r.low, r.high + 1)}
