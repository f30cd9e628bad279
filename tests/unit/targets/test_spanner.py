"""What Spanner as a target decides without a server: types, names, params, the protocol's bytes,
the codes of errors. And what the tests' server refuses, so that tests against it can fail."""

from __future__ import annotations

import datetime as dt
import json
import math
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal as PyDecimal
from typing import Any

import grpc
import pyarrow as pa
import pytest
from google.api_core import exceptions as google
from google.cloud.spanner_v1.types import KeySet, Mutation
from google.protobuf.struct_pb2 import ListValue

from replicators.connectors.addresses import Place
from replicators.connectors.contract.source import code_of as raised
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Decimal,
    Float,
    Int,
    Json,
    String,
    Time,
    Timestamp,
    Unsupported,
)
from replicators.connectors.params import InvalidParams
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.image import Changed
from replicators.connectors.sql.keyed import PROGRESS_KEY, Guard
from replicators.connectors.sql.state import COLUMNS, PROGRESS
from replicators.connectors.target import FitKind
from replicators.targets.spanner import naming, types, values
from replicators.targets.spanner.checks import SpannerChecks
from replicators.targets.spanner.client import SpannerClient
from replicators.targets.spanner.errors import code_of, translate
from replicators.targets.spanner.params import NAME, SpannerParams, places
from replicators.targets.spanner.service import Service, key_set, write
from replicators.targets.spanner.setup import setup
from tests.spanner_server import SpannerServer
from tests.spanner_target import params_of

PARAMS = SpannerParams(project="my-project", instance="main", database="copies")
ORDERS = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
)


@pytest.mark.parametrize(
    ("kind", "native", "fit"),
    [
        (Int(16), "INT64", FitKind.WIDENED),
        (Int(64, signed=False), "NUMERIC", FitKind.WIDENED),
        (Decimal(38, 9), "NUMERIC", FitKind.EXACT),
        (Decimal(30, 10), "STRING(MAX)", FitKind.WIDENED),
        (Decimal(30, 0), "STRING(MAX)", FitKind.WIDENED),
        (Float(32), "FLOAT32", FitKind.EXACT),
        (Time(), "STRING(MAX)", FitKind.WIDENED),
        (Timestamp(zone=True), "TIMESTAMP", FitKind.EXACT),
        (Timestamp(), "TIMESTAMP", FitKind.WIDENED),
        (Json(), "STRING(MAX)", FitKind.WIDENED),
        (Array(Int(32)), "ARRAY<INT64>", FitKind.WIDENED),
        (Unsupported("point"), "", FitKind.UNSUPPORTED),
        (Array(Unsupported("point")), "", FitKind.UNSUPPORTED),
    ],
)
def test_a_type_that_loses_something_says_so(kind: Any, native: str, fit: FitKind) -> None:
    found = types.fit(kind)
    assert (found.native, found.kind) == (native, fit)


def test_a_name_with_an_underscore_first_is_told_from_one_that_looks_like_it() -> None:
    """Guards the names at the service: two columns must never become one."""
    names = [
        "_is_deleted", "rpl_is_deleted", "rplrpl_x", "id", "rplx", "_replicator_progress", "a b",
        "rplx_a_20_b", "Größe", "1st", "_a b", "a_20_b",
    ]  # fmt: skip
    there = [naming.encoded(n) for n in names]
    assert there[0] == "rpl_is_deleted" and there[3:5] == ["id", "rplx"]
    assert len(set(there)) == len(names) and all(NAME.fullmatch(n) for n in there)
    assert [naming.decoded(n) for n in there] == names
    assert naming.names(replace(PARAMS, table_names="{schema}_{table}"), ORDERS.id) == (
        "shop_orders",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"project": "My Project"},
        {"instance": "Main"},
        {"database": "a b"},
        {"table_names": "{schema}"},
        {"table_names": "{table}-x"},
        {"commit_column": "_at"},
        {"endpoint": "localhost:9010"},
        {"credentials": "{}"},
    ],
)
def test_a_wrong_field_is_told(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidParams) as caught:
        replace(PARAMS, **wrong)
    assert list(caught.value.errors) == list(wrong)


def test_the_form_leads_to_the_service_or_the_endpoint() -> None:
    assert places(PARAMS) == (Place("host", "spanner.googleapis.com", "API endpoint", 443, ""),)
    emulated = replace(PARAMS, endpoint="http://127.0.0.1:9010")
    assert places(emulated)[0].port == 9010 and emulated.is_emulated
    texts = json.dumps([repr(s) for s in setup({"project": "p; rm -rf /", "database": "d"})])
    assert "rm -rf" not in texts and "databases create d" in texts


def test_rows_are_the_protocols_bytes() -> None:
    """Guards the encoding by hand: Google's own classes read every type of it, and NULL."""
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)
    rows = pa.table(
        {
            "flag": pa.array([True, None]),
            "n": pa.array([-(2**63), None], pa.int64()),
            "ratio": pa.array([-0.0, math.inf]),
            "small": pa.array([0.5, math.nan], pa.float32()),
            "amount": pa.array([PyDecimal("-0.000000001"), None], pa.decimal128(38, 9)),
            "text": pa.array(["x" * 300, ""], pa.string()),
            "raw": pa.array([b"\x00\xff", None], pa.binary()),
            "day": pa.array([dt.date(1, 1, 1), None]),
            "at": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
            "some": pa.array([["a", None, ""], None], pa.list_(pa.string())),
            "none": pa.array([[], [None]], pa.list_(pa.float64())),
        }
    )
    made = write("insert_or_update", "t", rows.column_names, rows)
    pb = Mutation.pb(made).insert_or_update
    assert (pb.table, list(pb.columns)) == ("t", rows.column_names)
    first, second = (list(row.values) for row in pb.values)
    assert first[0].bool_value and first[1].string_value == str(-(2**63))
    assert math.copysign(1, first[2].number_value) == -1 and second[2].string_value == "Infinity"
    assert first[3].number_value == 0.5 and second[3].string_value == "NaN"
    assert first[4].string_value == "-0.000000001"
    assert first[5].string_value == "x" * 300 and first[6].string_value == "AP8="
    assert second[5].WhichOneof("kind") == "string_value"
    assert first[7].string_value == "0001-01-01"
    assert first[8].string_value == "1969-12-31T23:59:59.999999Z"
    assert [v.WhichOneof("kind") for v in first[9].list_value.values] == [
        "string_value", "null_value", "string_value",
    ]  # fmt: skip
    assert first[10].WhichOneof("kind") == "list_value" and not first[10].list_value.values
    for at in (0, 1, 4, 6, 7, 8, 9):
        assert second[at].WhichOneof("kind") == "null_value"
    for at, field in enumerate(rows.schema):
        back = values.column_of([row.values[at] for row in pb.values], field.type)
        assert str(back.to_pylist()) == str(rows.column(at).to_pylist())


def test_keys_are_whole_or_the_beginning_of_a_key() -> None:
    keys = pa.table({"a": [1, 2], "b": ["x", None]})
    whole, begun = KeySet.pb(key_set(keys, 2)), KeySet.pb(key_set(keys, 3))
    assert len(whole.keys) == 2 and whole.keys[1].values[1].WhichOneof("kind") == "null_value"
    assert not begun.keys and begun.ranges[0].start_closed == begun.ranges[0].end_closed
    assert isinstance(begun.ranges[1].start_closed, ListValue)
    assert KeySet.pb(key_set(None, 2)).all_


@pytest.mark.parametrize(
    ("err", "code"),
    [
        (google.Aborted("x"), "target:conflict"),
        (google.ServiceUnavailable("x"), "target:spanner-unreachable"),
        (google.DeadlineExceeded("x"), "target:spanner-unreachable"),
        (google.RetryError("x", google.ServiceUnavailable("y")), "target:spanner-unreachable"),
        (google.PermissionDenied("x"), "target:spanner-right"),
        (google.Unauthenticated("x"), "target:spanner-credentials"),
        (google.ResourceExhausted("x"), "target:spanner-quota"),
        (google.NotFound("Instance not found: i"), "target:spanner-database"),
        (google.NotFound("Database not found: d"), "target:spanner-database"),
        (google.NotFound("Table not found: t"), "target:table-missing"),
        (google.InvalidArgument("contains too many mutations"), "target:spanner-limit"),
        (google.FailedPrecondition("must not be NULL"), "target:spanner-refused"),
        (OSError("x"), "target:spanner-unreachable"),
    ],
)
def test_a_fault_has_a_code_and_keeps_the_services_words_to_itself(err: Any, code: str) -> None:
    assert code_of(err) == code
    found = translate(err, PARAMS)
    assert found.code == code and str(err) not in f"{found.facts}"


@pytest.fixture
def params(spanner: SpannerServer, request: pytest.FixtureRequest) -> SpannerParams:
    """An empty database of this test's own."""
    return SpannerParams(**params_of(spanner, f"u{abs(hash(request.node.nodeid)) % 10**9}"))


@pytest.fixture
def client(params: SpannerParams) -> Iterator[SpannerClient]:
    """A client with the table `orders`."""
    with closing(SpannerClient(params)) as made:
        made.make(("orders",), ORDERS, job="x")
        yield made


def rows_of(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of `orders`."""
    return pa.Table.from_pylist(
        [{"id": n, "note": note} for n, note in rows],
        pa.schema([("id", pa.int64()), ("note", pa.string())]),
    )


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE TABLE `_x` (`id` INT64) PRIMARY KEY (`id`)", "target:spanner-refused"),
        ("CREATE TABLE `x` (`id` BIGINT) PRIMARY KEY (`id`)", "target:spanner-refused"),
        ("CREATE TABLE `x` (`id` STRING) PRIMARY KEY (`id`)", "target:spanner-refused"),
        ("CREATE TABLE `ORDERS` (`id` INT64) PRIMARY KEY (`id`)", "target:spanner-refused"),
        ("CREATE TABLE `x` (`id` ARRAY<INT64>) PRIMARY KEY (`id`)", "target:spanner-refused"),
        ("ALTER TABLE `orders` DROP COLUMN `id`", "target:spanner-refused"),
        ("ALTER TABLE `orders` RENAME COLUMN `note` TO `n`", "target:spanner-refused"),
        ("ALTER TABLE `nowhere` DROP COLUMN `id`", "target:table-missing"),
    ],
)
def test_the_tests_server_refuses_statements_that_spanner_has_not(
    client: SpannerClient, statement: str, code: str
) -> None:
    assert raised(lambda: client.service.change(statement)) == code


def test_the_tests_server_refuses_rows_that_spanner_refuses(client: SpannerClient) -> None:
    """Guards the tests themselves: types, limits and names are looked at, and a refused commit
    leaves nothing."""

    def code(rows: pa.Table, table: str = "orders") -> str:
        made = write("insert_or_update", table, rows.column_names, rows)
        return raised(lambda: client.service.commit([made], None))

    assert code(rows_of((1, "a")), "nowhere") == "target:table-missing"
    assert code(pa.table({"id": [1], "nobody": ["x"]})) == "target:column-missing"
    assert code(pa.table({"id": ["one"]})) == "target:spanner-refused"
    assert code(pa.table({"id": [1], "note": [1.5]})) == "target:spanner-refused"
    assert code(rows_of((1, "x" * 2_621_441))) == "target:spanner-limit"
    assert code(rows_of(*((n, "x") for n in range(40_001)))) == "target:spanner-limit"
    assert client.read(("orders",), ORDERS.columns, None).num_rows == 0


def test_a_commit_that_is_guarded_is_made_only_while_nobody_else_wrote(
    client: SpannerClient, spanner: SpannerServer
) -> None:
    """Guards the fence of every merge, and that an aborted transaction is tried again."""
    client.define((PROGRESS,), COLUMNS, PROGRESS_KEY)
    one = Changed(("orders",), rows_of((1, "a")), rows_of().select(["id"]))
    wrong = Guard((PROGRESS,), "orders", "x")
    assert raised(lambda: client.write([one], wrong)) == "target:conflict"
    assert client.read(("orders",), ORDERS.columns, None).num_rows == 0
    spanner.faults.append(("Commit", grpc.StatusCode.ABORTED, "Transaction was aborted."))
    client.write([one], replace(wrong, commit=""))
    assert client.read(("orders",), ORDERS.columns, None) == one.rows
    spanner.forget_sessions()
    assert client.read(("orders",), ORDERS.columns, None).num_rows == 1


def test_a_copy_fills_its_commits(spanner: SpannerServer, params: SpannerParams) -> None:
    """Guards `KeyedClient.put`: a copy's commits have as many values as the service takes, with
    those of the column that tells the time; a merge leaves room for indexes."""
    most = SpannerClient.most_cells_of_copy // 3
    with closing(SpannerClient(replace(params, commit_column="committed"))) as client:
        client.make(("orders",), ORDERS, job="x")
        client.table(("orders",))
        spanner.calls.clear()
        client.put(("orders",), [rows_of(*((n, "x") for n in range(most)))])
        assert spanner.calls.count("Commit") == 1
        client.put(("orders",), [rows_of(*((n, "y") for n in range(most + 1)))])
        assert spanner.calls.count("Commit") == 3
        assert client.read(("orders",), ORDERS.columns[:1], None).num_rows == most + 1
        assert client.most_cells * 4 == client.most_cells_of_copy


def test_commits_of_a_copy_are_under_way_side_by_side(
    spanner: SpannerServer, params: SpannerParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `KeyedClient.put`: each commit waits here until another one is under way. The fault of
    one is the caller's, and a part that empties its table is written before the next one begins."""
    with closing(SpannerClient(params)) as client:
        client.make(("orders",), ORDERS, job="x")
        both, inner = threading.Barrier(2, timeout=20), client.write

        def write(changes: Any, guard: Any) -> None:
            both.wait()
            inner(changes, guard)

        monkeypatch.setattr(client, "write", write)
        client.put(("orders",), [rows_of((1, "x")), rows_of((2, "y"))])
        assert len(spanner.rows(params.database, "orders")) == 2
        monkeypatch.setattr(client, "write", inner)
        with pytest.raises(ReplicationError):
            client.put(("orders",), [rows_of((3, "z")), pa.table({"nothing": [1]})])
        gone = pa.table({})
        emptied = Changed(("orders",), rows_of(), gone, is_emptied=True)
        for _ in client._beside([emptied, Changed(("orders",), rows_of((4, "a")), gone)], None):
            pass
        assert [r["id"] for r in spanner.rows(params.database, "orders")] == [4]


def test_a_row_says_when_it_was_committed(spanner: SpannerServer, params: SpannerParams) -> None:
    """Guards the commit timestamp: it is the service's own, and changes with each write."""
    with closing(SpannerClient(replace(params, commit_column="committed"))) as client:
        client.make(("orders",), ORDERS, job="x")
        found = client.table(("orders",))
        assert found is not None and set(found.columns) == {"id", "note"}
        times = []
        for note in ("a", "b"):
            client.put(("orders",), [rows_of((1, note))])
            (row,) = spanner.rows(params.database, "orders")
            times.append(row["committed"])
        assert times[0] < times[1] and row["note"] == "b"


def test_what_can_not_be_copied_is_told_before(params: SpannerParams) -> None:
    """Guards the assessment: names, keys and the commit timestamp's column."""
    odd = replace(
        ORDERS,
        id=TableId("shop", "straße"),
        columns=(
            *ORDERS.columns,
            Column("a b", String(), "text"),
            Column("ß" * 40, String(), "text"),
            Column("Note", String(), "text"),
            Column("tags", Array(String()), "text[]", nullable=False),
        ),
        key=("tags",),
    )
    with SpannerChecks(replace(params, commit_column="Note")) as checks:
        assert checks.connection() == []
        found = [(p.code, dict(p.facts).get("made", "")) for p in checks.tables([odd], "r1")]
    assert found == [
        ("target:spanner-renamed", "rplx_stra_df_e"),
        ("target:spanner-renamed", "rplx_a_20_b"),
        ("target:spanner-name", ""),
        ("target:column-case", ""),
        ("target:spanner-column", ""),
        ("target:spanner-key", ""),
    ]


def test_a_table_of_somebody_elses_is_told_before(client: SpannerClient) -> None:
    """Guards the assessment: a copy would be refused hours later."""
    with SpannerChecks(client.params) as checks:
        assert [p.code for p in checks.tables([ORDERS], "r1")] == ["target:table-taken"]
        other = replace(ORDERS, id=TableId("shop", "others"))
        assert checks.tables([other], "r1") == []


def test_the_test_of_the_connection_names_the_fault(
    spanner: SpannerServer, params: SpannerParams
) -> None:
    """Guards *Test connection*: database, rights and quota, in words of ours."""

    def codes(**changed: str) -> list[str]:
        with SpannerChecks(replace(params, **changed)) as checks:
            return [p.code for p in checks.connection()]

    assert codes() == []
    assert codes(database="nowhere") == ["target:spanner-database"]
    for status, code in (
        (grpc.StatusCode.PERMISSION_DENIED, "target:spanner-right"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "target:spanner-quota"),
        (grpc.StatusCode.UNAUTHENTICATED, "target:spanner-credentials"),
    ):
        spanner.faults.append(("CreateSession", status, "refused"))
        assert codes() == [code]


def test_an_outage_is_told_after_some_tries(spanner: SpannerServer, params: SpannerParams) -> None:
    """Guards the retry: one that passes is not told, and one that lasts is told soon."""
    spanner.faults.append(("CreateSession", grpc.StatusCode.UNAVAILABLE, "down"))
    with closing(Service(params)) as service:
        assert service.ask("SELECT 'x' AS A") == [["x"]]
    dead = replace(params, endpoint="http://127.0.0.1:1")
    with closing(Service(dead, seconds=0.2)) as service:
        assert raised(lambda: service.ask("SELECT 1")) == "target:spanner-unreachable"
