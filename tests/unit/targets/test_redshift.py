"""What Redshift as a target decides without a server: types, the codes of errors, names, params,
and files as COPY takes them."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from replicators.connectors.addresses import Place
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Decimal,
    Float,
    Int,
    Json,
    String,
    Time,
    Timestamp,
)
from replicators.connectors.params import InvalidParams
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.staged import staged_snapshot
from replicators.connectors.storage import Storage
from replicators.connectors.stores import Store
from replicators.connectors.target import FitKind
from replicators.targets.redshift import loading, naming, types
from replicators.targets.redshift.checks import RedshiftChecks
from replicators.targets.redshift.client import DIALECT
from replicators.targets.redshift.errors import code_of, plain, translate
from replicators.targets.redshift.params import LONGEST, RedshiftParams, places
from replicators.targets.redshift.reading import RedshiftRows
from replicators.targets.redshift.setup import setup
from replicators.targets.redshift.types import fit, shown

ARN = "arn:aws:iam::123456789012:role/replicator-copy"
PARAMS = RedshiftParams(
    host="x.redshift.amazonaws.com", database="d", user="me", staging="s3a://bucket/lake/",
    role=ARN, password="word",
)  # fmt: skip
KEYS = replace(PARAMS, role="", s3_access_key="AKIA", s3_secret_key="hidden")


@pytest.mark.parametrize(
    ("told", "ours"),
    [
        ("character varying(65535)", "VARCHAR(65535)"),
        ("numeric(20,0)", "DECIMAL(20,0)"),
        ("timestamp with time zone", "TIMESTAMPTZ"),
        ("timestamp without time zone", "TIMESTAMP"),
        ("time without time zone", "TIME"),
        ("binary varying(64000)", "VARBYTE(64000)"),
        ("varbyte", "VARBYTE(64000)"),
        ("double precision", "DOUBLE PRECISION"),
        ("super", "SUPER"),
    ],
)
def test_a_type_of_the_catalog_is_spelled_like_ours(told: str, ours: str) -> None:
    """Guards schema changes: a type that is read otherwise than it is written looks changed by
    hand."""
    assert shown(told) == ours


def test_types_that_do_not_fit_say_so() -> None:
    assert fit(Int(128)).kind is FitKind.UNSUPPORTED
    assert fit(Int(64, signed=False)).native == "DECIMAL(20,0)"
    assert fit(Int(32, signed=False)).native == "BIGINT"
    assert fit(Decimal(38, 37)).kind is FitKind.EXACT
    assert fit(Decimal(38, 38)).native == types.TEXT
    assert fit(Json()).kind is fit(Array(Float(64))).kind is FitKind.LOSSY
    assert fit(Array(Int(64))).kind is FitKind.WIDENED
    assert fit(Array(Int(128))).kind is FitKind.UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1023\nDETAIL:  Serializable isolation violation on table - 1", "target:conflict"),
        ("User arn:aws:redshift:x is not authorized to assume IAM Role y", "role"),
        ("S3ServiceException:Access Denied,Status 403,Error AccessDenied", "read"),
        ("S3ServiceException:x,Status 404,Error NoSuchBucket", "target:bucket-missing"),
        ("S3ServiceException:x,Status 403,Error InvalidAccessKeyId", "target:bucket-keys"),
        ("S3ServiceException:x,Status 301,Error PermanentRedirect", "region"),
        ("S3ServiceException:The specified key does not exist.,Status 404", "file"),
        ("Disk Full", "full"),
        ("Spectrum Scan Error", "value"),
        ("Load into table 'x' failed.  Check 'stl_load_errors'", "value"),
        ('password authentication failed for user "me"', "login"),
        ('database "d" does not exist', "database"),
        ("could not translate host name", "host"),
        ("server closed the connection unexpectedly", "lost"),
        ("something else", "refused"),
    ],
)
def test_each_error_has_a_code(text: str, code: str) -> None:
    wanted = code if ":" in code else f"target:redshift-{code}"
    assert code_of(psycopg.errors.InternalError_(text)) == wanted


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (psycopg.errors.InsufficientPrivilege, "right"),
        (psycopg.errors.DependentObjectsStillExist, "dependent"),
        (psycopg.errors.UndefinedTable, "target:table-missing"),
        (psycopg.errors.SerializationFailure, "target:conflict"),
        (psycopg.errors.StringDataRightTruncation, "value"),
        (psycopg.errors.QueryCanceled, "cancelled"),
    ],
)
def test_each_state_has_a_code(kind: type[psycopg.Error], code: str) -> None:
    assert code_of(kind("x")) == (code if ":" in code else f"target:redshift-{code}")


def test_a_copy_with_keys_reaches_no_error() -> None:
    """Guards the secret within the text of a COPY: a server's error may quote the statement."""
    text = loading.copy(("s", "t"), "s3://b/m", KEYS.authorization)
    assert "aws_secret_access_key=hidden" in text and text.endswith("FORMAT AS PARQUET MANIFEST")
    told = psycopg.errors.SyntaxError(f"syntax error near hidden\nLINE 1: {text}\n        ^")
    made = plain(told, KEYS.s3_secret_key)
    assert "hidden" not in str(made) and made.sqlstate == "42601"
    fault = translate(made, KEYS)
    assert isinstance(fault, ReplicationError)
    assert "hidden" not in str(fault.facts) and "hidden" not in repr(KEYS)


def test_params_say_what_is_wrong() -> None:
    assert PARAMS.folder == "s3://bucket/lake"
    assert PARAMS.authorization == f"IAM_ROLE '{ARN}'"
    assert replace(PARAMS, role="default").authorization == "IAM_ROLE default"
    assert places(PARAMS) == (Place("host", "x.redshift.amazonaws.com", "Host", 5439, "d"),)
    near = replace(PARAMS, s3_endpoint="http://127.0.0.1:9000")
    assert places(near)[1:] == (Place("host", "127.0.0.1", "S3 endpoint", 9000),)
    for wrong in (
        {"role": ""},
        {"s3_access_key": "a"},
        {"s3_access_key": "a'", "s3_secret_key": "b"},
    ):
        with pytest.raises(InvalidParams):
            replace(PARAMS, **wrong)  # type: ignore[arg-type]
    found = setup({"user": "me", "schema": "s", "staging": "s3://b/x", "s3_secret_key": "hidden"})
    text = " ".join(s for step in found for s in step.statements)
    assert 'GRANT USAGE, CREATE ON SCHEMA "s" TO "me"' in text and "hidden" not in text


def test_names_are_the_sources_and_views_are_cut_by_bytes() -> None:
    assert naming.names(PARAMS, TableId("Shop", 'or"ders')) == ("Shop", 'or"ders')
    assert naming.quoted(("Shop", 'or"ders')) == '"Shop"."or""ders"'
    assert naming.view(PARAMS, ("s", "t")) is None
    long = naming.view(replace(PARAMS, current_views=True), ("s", "é" * LONGEST))
    assert long is not None and len(long[-1].encode()) <= LONGEST
    assert long[-1].endswith("é_current")


WIDE = TableSchema(
    TableId("s", "t"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("at", Timestamp(zone=True), "timestamptz", ordinal=2),
        Column("clock", Time(), "time", ordinal=3),
        Column("raw", Bytes(), "bytea", ordinal=4),
        Column("tags", Array(String()), "text[]", ordinal=5),
        Column("doc", Json(), "jsonb", ordinal=6),
    ),
    ("id",),
    ("id",),
)


def written(folder: Path, row: dict[str, Any]) -> tuple[str, int]:
    """The manifest of one row's file."""
    path = folder / "in.parquet"
    pq.write_table(pa.Table.from_pylist([row], WIDE.arrow_schema()), path)
    staged = staged_snapshot(WIDE, [str(path)], types.arrow)
    made = folder / "out"
    made.mkdir(exist_ok=True)
    return loading.upload(Storage(Store()), staged, str(made))


def test_files_leave_nothing_to_guess(tmp_path: Path) -> None:
    """Guards what COPY is given: it reads no moments with a zone, no times of day, no bytes and no
    documents from Parquet. The manifest says the length of each file, which Redshift wants."""
    row = {
        "id": 1,
        "at": dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC),
        "clock": dt.time(23, 59, 59, 7),
        "raw": b"\x00\xff",
        "tags": ["a", None],
        "doc": '{"a": 1}',
    }
    url, count = written(tmp_path, row)
    manifest = json.loads(Path(url).read_text())
    (entry,) = manifest["entries"]
    assert count == 1 and entry["meta"]["content_length"] == Path(entry["url"]).stat().st_size
    made = pq.read_table(entry["url"])
    assert made.schema.field("at").type == pa.timestamp("us")
    assert made.to_pylist() == [
        {
            "id": 1,
            "at": dt.datetime(1969, 12, 31, 23),
            "clock": "23:59:59.000007",
            "raw": "00ff",
            "tags": '["a", null]',
            "doc": '{"a": 1}',
        }
    ]
    first = loading.first(("x",), WIDE.columns)
    assert '"at" TIMESTAMP,' in first and '"raw" VARCHAR(65535)' in first
    into = loading.converted(("s", "t"), ("x",), WIDE.columns)
    assert "\"at\" AT TIME ZONE 'UTC'" in into and 'JSON_PARSE("doc")' in into
    assert not loading.needs_first(WIDE.columns[:1]) and loading.needs_first(WIDE.columns)


def test_a_value_that_is_too_long_is_told_by_its_column(tmp_path: Path) -> None:
    """Guards against a COPY that fails without naming what to mend."""
    empty = dict.fromkeys(["at", "clock", "raw", "tags", "doc"])
    with pytest.raises(ReplicationError) as err:
        written(tmp_path, {**empty, "id": 1, "raw": b"x" * 40_000})
    assert err.value.code == "target:redshift-long"
    assert err.value.facts["column"] == "raw" and err.value.facts["size"] == "80000"


def test_texts_with_blanks_at_their_end_stay_apart() -> None:
    """Guards keys: for Redshift 'a' equals 'a ', and a text is not ordered by bytes then."""
    key = Column("k", String(), "text", nullable=False)
    left, right = exp.column("k", "a", quoted=True), exp.column("k", "b", quoted=True)
    text = DIALECT.sql(DIALECT.same(left, right, key))
    assert text == '"a"."k" = "b"."k" AND OCTET_LENGTH("a"."k") = OCTET_LENGTH("b"."k")'
    assert not DIALECT.orders(key) and DIALECT.orders(Column("n", Int(64), "bigint"))
    rows = RedshiftRows(PARAMS, ("s", "t"), replace(WIDE, columns=(key,), key=("k",)), None)  # type: ignore[arg-type]
    assert rows.exact(key) == 'TO_HEX(CAST("k" AS VARBYTE))'
    assert rows.literal(key, "a ") == "'6120'"


def test_a_default_of_a_document_is_no_text() -> None:
    """Guards `fill_column`: CAST('{}' AS SUPER) would be a text inside of a SUPER."""
    literal = DIALECT.literals.literal
    assert literal(Column("a", Json(), "json"), '{"a": 1}', "SUPER") == "JSON_PARSE('{\"a\": 1}')"
    assert literal(Column("a", String(), "text"), "a\\b", types.TEXT) == "'a\\\\b'"


def test_names_and_columns_are_looked_at_before() -> None:
    """Guards the first copy, which would fail at its end."""

    def codes(table: TableSchema) -> list[str]:
        with RedshiftChecks(PARAMS) as checks:
            return [p.code for p in checks.named(table, checks.place(table.id))]

    def named(schema: str, name: str) -> TableSchema:
        return replace(WIDE, id=TableId(schema, name))

    assert codes(WIDE) == []
    assert (
        codes(named("pg_x", "t")) == codes(named("s", "_replicator_x")) == ["target:name-reserved"]
    )
    assert codes(named("s", "é" * 64)) == ["target:redshift-name"]
    many = tuple(Column(f"c{n}", Int(64), "bigint", ordinal=n) for n in range(1581))
    assert codes(replace(WIDE, columns=many)) == ["target:redshift-columns"]
