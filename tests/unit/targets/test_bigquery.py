"""BigQuery's names, types, params, texts of scripts, error reasons and ids of jobs, without a
service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from google.api_core.exceptions import BadRequest, Conflict, Forbidden, NotFound, ServerError
from google.auth.exceptions import DefaultCredentialsError

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Unsupported,
    Uuid,
)
from replicators.connectors.params import InvalidParams, masked
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.message import Retry
from replicators.connectors.sql import trees
from replicators.connectors.sql.steps import Check, Statement
from replicators.targets.bigquery import dialect, layout, naming
from replicators.targets.bigquery.checks import BigQueryChecks
from replicators.targets.bigquery.client import _without_null_elements, field
from replicators.targets.bigquery.errors import REASONS, code_of, is_passing, translate
from replicators.targets.bigquery.jobs import Jobs, work_of
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.setup import setup
from replicators.targets.bigquery.types import fit, is_wider, shown

PARAMS = BigQueryParams(project="shop-project", endpoint="http://127.0.0.1:1")


def column(name: str, kind: LogicalType | None = None) -> Column:
    return Column(name, kind or Int(64), "x")


def schema_of(*columns: Column, key: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema(TableId("shop", "orders"), columns, key, key)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("id", "id"), ("Größe", "Gr__e"), ("a b", "a_b"), ("1st", "_1st"), ("", "_"),
        ("_PARTITIONTIME", "c_PARTITIONTIME"), ("_table_suffix", "c_table_suffix"),
        ("_row_hash", "_row_hash"), ("x" * 301, "x" * 300),
    ],
)  # fmt: skip
def test_a_columns_name_is_one_that_bigquery_takes(name: str, made: str) -> None:
    assert naming.column(name) == made


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("orders", "orders"), ("Größen 2024-01", "Größen 2024-01"), ("a.b`c", "a_b_c"),
        ("_staging_x", "t_staging_x"), ("_replicator_progress", "t_replicator_progress"),
    ],
)  # fmt: skip
def test_a_tables_name_keeps_letters_of_any_language(name: str, made: str) -> None:
    assert naming.table(name) == made
    assert len(naming.table("ä" * 2000).encode()) <= naming.LONGEST_TABLE_BYTES


def test_two_schemas_have_two_datasets_unless_one_is_named() -> None:
    assert naming.names(PARAMS, TableId("a-b", "t")) == ("shop-project", "a_b", "t")
    one = BigQueryParams(project="shop-project", dataset="copies")
    tables = [schema_of(column("id")), schema_of(column("id"))]
    other = TableSchema(TableId("other", "Orders"), tables[1].columns)
    with BigQueryChecks(one) as checks:
        assert [p.code for p in checks._shared([tables[0], other])] == ["target:name-shared"]


def test_columns_that_would_become_one_are_found_in_any_case() -> None:
    found = naming.shared(PARAMS, schema_of(column("a b"), column("A_b"), column("c")))
    assert found == [("A_b", "a b")]
    with_number = BigQueryParams(project="shop-project", sequence_column=True)
    assert naming.shared(with_number, schema_of(column("_Sequence_Num")))


def test_keys_are_renamed_with_their_columns() -> None:
    made = naming.renamed(schema_of(column("über"), key=("über",)))
    assert (made.key, made.primary_key, made.columns[0].name) == (("_ber",), ("_ber",), "_ber")


# --- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "native", "how"),
    [
        (Boolean(), "BOOL", "exact"), (Int(16), "INT64", "widened"), (Int(64), "INT64", "exact"),
        (Int(64, signed=False), "NUMERIC(20, 0)", "widened"),
        (Decimal(38, 9), "NUMERIC(38, 9)", "exact"), (Decimal(29, 0), "NUMERIC(29, 0)", "exact"),
        (Decimal(30, 0), "BIGNUMERIC(30, 0)", "exact"),
        (Decimal(12, 10), "BIGNUMERIC(12, 10)", "exact"),
        (Float(32), "FLOAT64", "widened"), (Float(64), "FLOAT64", "exact"),
        (String(), "STRING", "exact"), (Bytes(), "BYTES", "exact"), (Date(), "DATE", "exact"),
        (Time(), "TIME", "exact"), (Timestamp(zone=True), "TIMESTAMP", "exact"),
        (Timestamp(), "DATETIME", "exact"), (Json(), "STRING", "widened"),
        (Uuid(), "STRING", "widened"), (Enum(), "STRING", "widened"),
        (Array(Int(32)), "ARRAY<INT64>", "lossy"), (Unsupported("x"), "", "unsupported"),
        (Array(Unsupported("x")), "", "unsupported"), (Int(128), "", "unsupported"),
    ],
)  # fmt: skip
def test_every_neutral_type_has_a_fit(kind: LogicalType, native: str, how: str) -> None:
    assert (fit(kind).native, str(fit(kind).kind)) == (native, how)
    if how in {"lossy", "unsupported"}:
        assert fit(kind).reason


@pytest.mark.parametrize("kind", [Decimal(30, 20), Int(64), Float(64), Array(Decimal(10, 2))])
def test_a_load_jobs_field_reads_back_as_the_type_of_the_table(kind: LogicalType) -> None:
    made = field(column("x", kind))
    assert shown(made.field_type, made.mode, made.precision, made.scale) == fit(kind).native


@pytest.mark.parametrize(
    ("old", "new", "grows"),
    [
        ("numeric(10, 2)", "numeric(12, 2)", True), ("numeric(10, 2)", "numeric(10, 3)", False),
        ("numeric(10, 2)", "bignumeric(30, 20)", True), ("int64", "numeric(20, 0)", True),
        ("int64", "numeric(18, 0)", False), ("bignumeric(30, 20)", "numeric(38, 9)", False),
        ("int64", "string", False), ("string", "bytes", False),
    ],
)  # fmt: skip
def test_only_what_alter_column_takes_without_loss_is_wider(
    old: str, new: str, grows: bool
) -> None:
    assert is_wider(old, new) is grows


def test_null_elements_are_left_out_and_lists_keep_their_rows() -> None:
    values = [["a", None, "b"], None, [], [None], ["c"]]
    made = pa.record_batch({"x": pa.array(values, pa.list_(pa.string()))})
    for part in (made, made.slice(1)):
        found = _without_null_elements(part, made.schema).column(0).to_pylist()
        assert found == [["a", "b"], None, [], [], ["c"]][-len(found) :]


# --- params -------------------------------------------------------------------------------------

KEY = {
    "type": "service_account", "client_email": "a@b.iam.gserviceaccount.com", "private_key": "s3",
    "token_uri": "https://oauth2.googleapis.com/token",
}  # fmt: skip


@pytest.mark.parametrize(
    ("field_name", "value"),
    [
        ("project", "My Project"), ("dataset", "a-b"), ("location", "!"), ("labels", "Team=x"),
        ("credentials", "{}"), ("credentials", json.dumps({**KEY, "private_key": ""})),
        ("credentials", json.dumps({**KEY, "token_uri": "https://evil.example/token"})),
        ("credentials", json.dumps({**KEY, "token_uri": "https://evilgoogleapis.com/token"})),
        ("endpoint", "ftp://x"), ("endpoint", "https://u@host"), ("encryption_key", "key"),
    ],
)  # fmt: skip
def test_faulty_params_are_named_and_no_secret_is_repeated(field_name: str, value: str) -> None:
    """Guards the token address: a signed request of the account goes there."""
    with pytest.raises(InvalidParams) as caught:
        BigQueryParams(**{"project": "shop-project", field_name: value})
    assert list(caught.value.errors) == [field_name]
    assert "s3" not in str(caught.value)


def test_the_key_is_a_secret_and_setup_takes_no_shell_from_names() -> None:
    given = {"project": "shop-project", "credentials": json.dumps(KEY)}
    assert "s3" not in json.dumps(masked(BigQueryParams, given))
    assert "s3" not in repr(BigQueryParams(**given))
    text = "\n".join(s.sql for s in setup({"project": "x; rm -rf /", "dataset": "$(id)"}))
    assert "rm -rf" not in text and "$(id)" not in text


# --- statements ---------------------------------------------------------------------------------


def test_a_check_fails_the_script_with_its_code_and_all_is_one_transaction() -> None:
    table = trees.table(("p", "d", "t"))
    query = trees.select([trees.whole(1)], table.copy())
    steps = [Statement(trees.delete_all(table)), Check(query, "target:table-ahead")]
    text = dialect.transaction(steps)
    assert text.startswith("BEGIN TRANSACTION;\nDELETE FROM `p`.`d`.`t`")
    assert text.endswith("END IF;\nCOMMIT TRANSACTION;")
    failed = BadRequest("x", errors=[{"reason": "invalidQuery", "message": text}])
    assert code_of(failed) == "target:table-ahead"


def test_a_table_is_clustered_by_what_can_cluster_and_partitioned_where_asked() -> None:
    made = schema_of(column("a"), column("b", Bytes()), column("at", Timestamp()), key=("a", "b"))
    asked = BigQueryParams(project="shop-project", partition_column="AT", partition_unit="day")
    assert layout.clause(made, asked) == " PARTITION BY DATETIME_TRUNC(`at`, DAY) CLUSTER BY `a`"
    by_day = schema_of(column("at", Date()), key=())
    assert layout.clause(by_day, asked) == " PARTITION BY `at`"
    assert layout.clause(schema_of(column("b", Bytes()), key=("b",)), PARAMS) == ""
    hostile = dialect.options({"team": "o'x"}, "", expires_hours=3)
    assert "'o\\'x'" in hostile and "INTERVAL 3 HOUR" in hostile


# --- errors -------------------------------------------------------------------------------------


def told(reason: str, message: str = "", code: int = 400) -> BadRequest:
    error = BadRequest("x", errors=[{"reason": reason, "message": message}])
    error.code = code
    return error


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_has_a_code_with_whole_texts(reason: str) -> None:
    error = translate(told(reason), "shop-project")
    assert error.code == REASONS[reason].code
    full = ReplicationError(error.code, table=TableId("s", "t"), **error.facts)
    assert "(" not in full.message.title and "(table)" not in full.message.text


@pytest.mark.parametrize(
    ("error", "code", "again"),
    [
        (told("quotaExceeded", code=403), "target:bigquery-quota", False),
        (told("rateLimitExceeded", code=403), "target:bigquery-quota", True),
        (told("backendError"), "target:bigquery-backend", True),
        (told("accessDenied", code=403), "target:bigquery-denied", False),
        (told("invalidQuery", "Transaction is aborted due to concurrent update against table x"),
         "target:conflict", False),
        (told("invalidQuery", "Query exceeded limit for bytes billed: 1."),
         "target:bigquery-cost", False),
        (told("invalidQuery", "replicator: row missing"), "target:row-missing", False),
        (told("invalidQuery", "Unrecognized name: tags at [3:1]"), "target:column-missing", False),
        (Forbidden("x"), "target:bigquery-denied", False),
        (NotFound("x"), "target:table-missing", False),
        (Conflict("x"), "target:conflict", False),
        (ServerError("x"), "target:bigquery-backend", True),
        (DefaultCredentialsError("x"), "target:bigquery-credentials", False),
        (ConnectionResetError("x"), "target:unreachable", False),
        (ValueError("x"), "internal:unexpected", False),
    ],
)  # fmt: skip
def test_an_error_has_a_code_and_only_passing_ones_are_repeated(
    error: Exception, code: str, again: bool
) -> None:
    if isinstance(error, ServerError):
        error.code = 503
    assert code_of(error) == code
    assert is_passing(error) is again


def test_a_quota_is_waited_for_and_a_missing_right_is_named() -> None:
    assert ReplicationError("target:bigquery-quota").retry is Retry.AUTO
    error = Forbidden(
        "Access Denied: Permission bigquery.tables.create denied on dataset d",
        errors=[{"reason": "accessDenied", "message": ""}],
    )
    found = BigQueryChecks(PARAMS)._problem(error, "dataset `d`")
    assert found.code == "target:bigquery-right-missing"
    assert "bigquery.tables.create" in found.message.text


# --- jobs ---------------------------------------------------------------------------------------


class Service:
    """As much of Google's client as `Jobs` asks. `faults` come at the next requests, in order."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults = list(faults)
        self.jobs: dict[str, Any] = {}
        self.begun: list[str] = []

    def query(self, sql: str, *, job_id: str, **_: Any) -> Any:
        fault = self.faults.pop(0) if self.faults else None
        if job_id in self.jobs:
            raise Conflict("Already Exists")
        self.begun.append(job_id)
        failed = fault if isinstance(fault, BadRequest) else None
        self.jobs[job_id] = self._job(job_id, failed)
        if fault is not None and failed is None:
            raise fault
        return self.jobs[job_id]

    def _job(self, name: str, failed: Exception | None) -> Any:
        def result(**_: Any) -> None:
            if failed is not None:
                raise failed

        return SimpleNamespace(
            job_id=name, result=result, error_result={"reason": "x"} if failed else None,
            job_type="query", total_bytes_processed=0, done=lambda **_: True,
        )  # fmt: skip

    def get_job(self, name: str, **_: Any) -> Any:
        if name not in self.jobs:
            raise NotFound(name)
        return self.jobs[name]

    def list_jobs(self, *, min_creation_time: datetime, **_: Any) -> list[Any]:
        assert min_creation_time < datetime.now(UTC)
        return list(self.jobs.values())


def jobs_of(service: Service) -> Jobs:
    made = Jobs(service, PARAMS)  # type: ignore[arg-type]
    made.waits = lambda _: None
    return made


def test_an_id_says_what_the_job_is_for() -> None:
    """Guards the ids: another replicator, table, generation, sequence or attempt has another."""
    service = Service()
    jobs = jobs_of(service)
    of = work_of("r1", ("p", "d", "t"))
    assert of not in {work_of("r2", ("p", "d", "t")), work_of("r1", ("p", "d", "u"))}
    with jobs.work(of, "2_77"):
        jobs.query("SELECT 1", "replicator_ab_merge_5")
    assert service.begun == [f"{of}2_77_ab_merge_5_1"]


def test_a_lost_answer_leads_to_the_same_job() -> None:
    service = Service(ServerError("lost"))
    with jobs_of(service).work("w_", "1"):
        jobs_of(service).query("SELECT 1", "a")
    assert len(service.begun) == 1


def gone(method: str) -> NotFound:
    """What a request that is answered 404 raises."""
    return NotFound("gone", response=SimpleNamespace(request=SimpleNamespace(method=method)))


def test_an_upload_that_the_service_does_not_know_any_more_begins_again() -> None:
    """Guards `_is_upload_gone`: the answer to the last piece was lost, and the piece comes again.
    The table would count as missing and need a fresh copy."""
    service = Service(gone("PUT"))
    jobs_of(service).query("an upload", "a")
    assert len(service.begun) == 1
    with pytest.raises(ReplicationError) as caught:
        jobs_of(Service(gone("POST"))).query("an upload", "a")
    assert caught.value.code == "target:table-missing"


def test_a_job_that_failed_for_a_passing_reason_gets_the_next_number() -> None:
    service = Service(told("backendError"), told("jobRateLimitExceeded"))
    jobs_of(service).query("SELECT 1", "a")
    assert [name[-1] for name in service.begun] == ["1", "2", "3"]


def test_a_job_that_failed_for_good_is_not_repeated() -> None:
    service = Service(told("invalidQuery", "no"))
    with pytest.raises(ReplicationError) as caught:
        jobs_of(service).query("SELECT 1", "a")
    assert (caught.value.code, len(service.begun)) == ("target:bigquery-refused", 1)


def test_jobs_that_an_earlier_process_left_running_are_awaited() -> None:
    """Guards `settle`: a process was killed while its script ran on. Until that ends, the token is
    not known."""
    service, ended = Service(), []
    for name in ("w_1_old", "other_1"):
        job = service._job(name, None)
        job.result = lambda name=name, **_: ended.append(name)
        service.jobs[name] = job
    jobs = jobs_of(service)
    with jobs.work("w_", "2"):
        assert ended == ["w_1_old"]
    with jobs.work("w_", "3"):
        assert ended == ["w_1_old"]
