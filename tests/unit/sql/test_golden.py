"""The statements of every mode in every dialect, compared with golden files; names are hostile on
purpose."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    String,
    Time,
    Timestamp,
)
from replicators.connectors.sql import merge, tables, trees
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.steps import Check, Statement, Step
from replicators.connectors.target import FoldedBatch, KeyRange
from tests.sql_dialects import DIALECTS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "sql"
TARGET = trees.table(("a-b", 'or`der"] 🙂'))
STAGED = trees.table(("a-b", "b"))
SCHEMA = TableSchema(
    TableId("a-b", "order"),
    (
        Column('a`"]', Int(64), "bigint", False, 1),
        Column("select", String(), "text", True, 2),
        Column("at's", Timestamp(zone=True), "timestamptz", True, 3),
        Column("clock", Time(), "time", True, 4),
        Column("_unsent_1", Decimal(12, 2), "numeric(12,2)", True, 5),
    ),
    ('a`"]', "at's"),
    ('a`"]',),
)
AT = datetime(2024, 1, 1, tzinfo=UTC)
UNSENT: dict[str, Any] = {"unsent": ("select", "clock")}
MOVED: dict[str, Any] = {**UNSENT, "has_origins": True}
EMPTIED: dict[str, Any] = {"truncate": True, "truncated_at": AT}
NO_ROWS: dict[str, Any] = {"paths": ()}
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "mirror": {
        "all sent": {},
        "unsent": UNSENT,
        "from other keys": MOVED,
        "keys listed": {"keys": (1, 5)},
        "truncate": {**UNSENT, **EMPTIED},
        "truncate alone": {**EMPTIED, **NO_ROWS},
        "nothing": NO_ROWS,
        "inserts only": {"append_only": True},
    },
    "soft_delete": {
        "unsent": UNSENT,
        "from other keys, truncate": {**MOVED, **EMPTIED},
        "truncate alone": {**EMPTIED, **NO_ROWS},
    },
    "history": {
        "all sent": {},
        "from other keys, truncate": {**MOVED, **EMPTIED},
        "truncate alone": {**EMPTIED, **NO_ROWS},
    },
    "append": {"all": {}},
    "messages": {"all": {}},
    "multiset": {
        "listed": {"keys": (b"\x00\xff",)},
        "of two files": {"paths": ("1", "2")},
        "truncate": EMPTIED,
    },
    "no_inserts": {
        "unsent": {**UNSENT, "no_inserts": True},
        "from other keys": {**MOVED, "no_inserts": True},
        "soft": {**UNSENT, "no_inserts": True, "mode": Mode.SOFT_DELETE},
        "soft, from other keys, truncate": {
            **MOVED,
            **EMPTIED,
            "no_inserts": True,
            "mode": Mode.SOFT_DELETE,
        },
    },
}
MODES = {mode.value: mode for mode in Mode}


def batch(name: str, flags: dict[str, Any]) -> FoldedBatch:
    usual = {"paths": ("x",), "ranges": (KeyRange(1, 5), KeyRange(9, 9))}
    mode = MODES.get(name, Mode.MIRROR)
    return FoldedBatch(SCHEMA, sequence=7, rows=3, **{**usual, "mode": mode, **flags})


def steps(dialect: SqlDialect, name: str, flags: dict[str, Any]) -> tuple[Step, ...]:
    return merge.steps(dialect, TARGET, STAGED, batch(name, flags))


def shown(dialect: SqlDialect, step: Step) -> str:
    if isinstance(step, Check):
        return f"-- {step.code} if there is a row\n{dialect.sql(step.query)}"
    return dialect.sql(step.tree)


def _of_mode(dialect: SqlDialect, name: str) -> str:
    found = []
    for case, flags in CASES[name].items():
        found += [f"-- {case}", *(shown(dialect, s) for s in steps(dialect, name, flags)), ""]
    return "\n".join(found)


def _of_tables(dialect: SqlDialect) -> str:
    wide = Column("select", Decimal(20, 2), "", True, 2)
    made = [
        tables.create(dialect, TARGET, SCHEMA.columns, if_absent=True),
        tables.add_column(dialect, TARGET, wide),
        tables.drop_column(TARGET, "select"),
        tables.rename_column(TARGET, "select", "from"),
        tables.widen_column(dialect, TARGET, wide),
        tables.rename(TARGET, STAGED),
        tables.truncate(TARGET),
        tables.drop(TARGET),
        tables.fill_column(dialect, TARGET, SCHEMA.columns[1], "it's \\ \n 🙂"),
        *(
            tables.fill_column(dialect, TARGET, Column("select", kind, ""), value)
            for kind, value in (
                (Boolean(), True),
                (Int(64), -5),
                (Decimal(12, 2), PyDecimal("1E+3")),
                (Float(64), 0.1),
                (Bytes(), b"\x00\xff"),
                (Date(), date(2024, 2, 29)),
                (Time(), time(1, 2, 3)),
                (Timestamp(), datetime(2024, 1, 1)),  # noqa: DTZ001
                (Timestamp(zone=True), AT),
                (String(), None),
            )
        ),
    ]
    return "\n".join(map(dialect.sql, made)) + "\n"


TEXTS = [(name, part) for name in DIALECTS for part in [*CASES, "tables"]]


@pytest.mark.parametrize(("name", "part"), TEXTS)
def test_sql_is_as_in_the_golden_file(name: str, part: str) -> None:
    """Guards the text that reaches a table: a change of it is seen as a diff, never by the way. A
    construct that sqlglot knows the dialect to lack fails here too."""
    dialect = DIALECTS[name]
    text = _of_tables(dialect) if part == "tables" else _of_mode(dialect, part)
    path = GOLDEN / name / f"{part}.sql"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


LACKS = {
    "bigquery": ("OVERWRITE",),
    "postgres": ("OVERWRITE",),
    "postgres14": ("OVERWRITE", "MERGE", "ANY_VALUE"),
    "mysql": ("OVERWRITE", "MERGE", "TRUNCATE", "DISTINCT FROM"),
    "snowflake": ("OVERWRITE", "BY SOURCE", "TRUNCATE"),
    "redshift": ("OVERWRITE", "MERGE", "TRUNCATE", "DISTINCT FROM", "GENERATE_SERIES"),
    "tsql": ("OVERWRITE", "TRUE", "FALSE", "IS NOT DISTINCT FROM", "ANY_VALUE"),
}


@pytest.mark.parametrize("name", LACKS)
def test_no_merge_uses_what_the_dialect_lacks(name: str) -> None:
    """sqlglot leaves some constructs out, or writes them although the dialect lacks them, without
    a word: a MERGE for Snowflake loses its BY SOURCE, and so would keep rows that a TRUNCATE
    removed."""
    dialect = DIALECTS[name]
    for part in CASES:
        for word in LACKS[name]:
            assert word not in _of_mode(dialect, part), part


@pytest.mark.parametrize("name", DIALECTS)
def test_every_statement_is_read_again_as_it_was_written(name: str) -> None:
    """Guards the text that is no tree, such as literals, types and functions: a missing bracket or
    quote would not be seen in a golden file."""
    dialect = DIALECTS[name]
    for part, cases in CASES.items():
        for flags in cases.values():
            for step in steps(dialect, part, flags):
                tree = step.tree if isinstance(step, Statement) else step.query
                read = sqlglot.parse_one(dialect.sql(tree), read=dialect.name)
                assert type(read) is type(tree)


def test_a_batch_is_one_statement_where_each_is_a_commit() -> None:
    """A lakehouse commit carries the token: a batch of two commits would be half applied after a
    crash between them."""
    for part, cases in CASES.items():
        for case, flags in cases.items():
            made = steps(DIALECTS["spark"], part, flags)
            assert [type(s) for s in made] == [Statement], (part, case)


def test_a_row_that_is_missing_is_noticed_in_every_dialect() -> None:
    """Where no expression can fail, a check has to come before anything changes. Otherwise an
    update that lacks values would write NULL."""
    for name, dialect in DIALECTS.items():
        for part in ("mirror", "soft_delete", "history"):
            first, *_ = steps(dialect, part, MOVED)
            if dialect.fail is None:
                assert isinstance(first, Check) and first.code == "target:row-missing", name
            else:
                assert isinstance(first, Statement)
                assert "row missing" in dialect.sql(first.tree)
