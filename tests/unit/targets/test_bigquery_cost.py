"""What a merge into BigQuery uses: each load job, the bytes read, and whether anything of the table
was left out."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Bytes, Int
from replicators.connectors.params import InvalidParams
from replicators.connectors.target import Accuracy, Estimate, FoldedBatch, KeyRange, MergeCost
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.cost import (
    ESTIMATE_SECONDS,
    Estimates,
    Used,
    cost_of,
    is_pruned,
)
from replicators.targets.bigquery.jobs import Jobs
from replicators.targets.bigquery.naming import names
from replicators.targets.bigquery.params import BigQueryParams

SCHEMA = TableSchema(
    TableId("shop", "orders"), (Column("id", Int(64), "bigint", False, 1),), ("id",)
)
BATCH = FoldedBatch(SCHEMA, (), 7, 3, ranges=(KeyRange(1, 9),))


def test_ranges_of_a_clustered_key_prune() -> None:
    assert is_pruned(BATCH)
    assert not is_pruned(replace(BATCH, ranges=()))
    by_bytes = replace(SCHEMA, columns=(Column("id", Bytes(), "bytea", False, 1),))
    assert not is_pruned(replace(BATCH, schema=by_bytes)), "bytes can't cluster a table"


@pytest.mark.parametrize(
    "change", [{"mode": Mode.APPEND}, {"append_only": True}, {"truncate": True}, {"rows": 0}]
)
def test_what_needs_no_look_at_the_table_is_not_warned_of(change: dict[str, Any]) -> None:
    assert is_pruned(replace(BATCH, ranges=(), **change))


def test_an_emulator_reports_no_bytes_so_none_are_shown() -> None:
    assert cost_of(Used(1, 0), BATCH) == MergeCost(1, None, is_pruned=True)


class Job:
    """A job that ends as told."""

    error_result: Any = None

    def __init__(self, kind: str, read: int = 0, fault: Exception | None = None) -> None:
        self.job_type, self.total_bytes_processed, self._fault = kind, read, fault
        self.error_result = {"reason": "backendError"} if fault else None

    def result(self, **_: Any) -> None:
        if self._fault:
            raise self._fault


def test_every_attempt_of_a_load_job_is_counted_and_the_bytes_of_queries_are_added_up() -> None:
    """Guards `Jobs.work`: failed load jobs count at Google too."""
    loads = [Job("load", fault=ServiceUnavailable("busy")), Job("load")]
    client: Any = SimpleNamespace(
        load_table_from_uri=lambda *_, **__: loads.pop(0),
        query=lambda *_, **__: Job("query", 40),
        list_jobs=lambda **_: [],
    )
    jobs = Jobs(client, BigQueryParams("shop-copies"))
    jobs.waits = lambda _: None
    config: Any = None
    with jobs.work("replicator_x_", "1_7") as used:
        jobs.load_urls(["gs://b/f"], "p.d.t", config, "batch")
        jobs.query("SELECT 1", "merge")
        jobs.query("SELECT 2", "more")
    assert used == Used(loads=2, bytes_read=80)
    jobs.query("SELECT 3", "outside")


class Answers:
    """A client that answers dry runs in the form of BigQuery's REST reference, and keeps what it
    was asked."""

    def __init__(self, statistics: dict[str, Any] | None) -> None:
        self._statistics = statistics
        self.asked: list[bool] = []

    def query(self, _sql: str, *, job_config: Any, **_: Any) -> Any:
        self.asked.append(bool(job_config.dry_run))
        if not job_config.dry_run:
            return Job("query", 40)
        if self._statistics is None:
            raise ServiceUnavailable("busy")
        told = {"statistics": {"query": self._statistics}}
        return SimpleNamespace(to_api_repr=lambda: told)

    def list_jobs(self, **_: Any) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [
        (
            {"totalBytesProcessed": "1200", "totalBytesProcessedAccuracy": "PRECISE"},
            Estimate(1200, Accuracy.EXACT),
        ),
        (
            {"totalBytesProcessed": "1200", "totalBytesProcessedAccuracy": "UPPER_BOUND"},
            Estimate(1200, Accuracy.AT_MOST),
        ),
        (
            {"totalBytesProcessed": "0", "totalBytesProcessedAccuracy": "LOWER_BOUND"},
            Estimate(0, Accuracy.AT_LEAST),
        ),
        ({"totalBytesProcessed": "7"}, Estimate(7, Accuracy.UNKNOWN)),
        ({}, None),
        (None, None),
    ],
)
def test_a_script_is_estimated_by_a_dry_run_before_it_runs(
    statistics: dict[str, Any] | None, expected: Estimate | None
) -> None:
    """Guards `Jobs.estimate`: asked once a piece of work, and no fault of it stops the work. The
    bytes of the dry run are not counted as read."""
    client: Any = Answers(statistics)
    jobs = Jobs(client, BigQueryParams("shop-copies"))
    with jobs.work("replicator_x_", "1_7") as used:
        jobs.estimate("SELECT 1")
        assert client.asked == [], "nobody asked for it"
        used.wants_estimate = True
        jobs.estimate("MERGE")
        jobs.query("MERGE", "merge")
        jobs.estimate("MERGE")
    assert client.asked == [True, False]
    assert (used.bytes_read, used.estimate) == (40, expected)
    assert cost_of(used, BATCH).estimate == expected


def test_a_table_is_estimated_again_after_an_hour() -> None:
    now = [0.0]
    estimates = Estimates(lambda: now[0])
    other = TableId("shop", "lines")
    assert estimates.is_due(SCHEMA.id)
    estimates.made(SCHEMA.id)
    assert not estimates.is_due(SCHEMA.id) and estimates.is_due(other)
    now[0] = ESTIMATE_SECONDS + 1
    assert estimates.is_due(SCHEMA.id)


def test_an_emulator_is_not_asked_for_an_estimate() -> None:
    """Guards that a script isn't run twice by an emulator that does not know dry runs."""
    client: Any = Answers({"totalBytesProcessed": "7"})
    jobs = Jobs(client, BigQueryParams("shop-copies", endpoint="http://127.0.0.1:9"))
    with jobs.work("replicator_x_", "1_7") as used:
        used.wants_estimate = True
        jobs.estimate("MERGE")
    assert client.asked == [] and used.estimate is None


def test_another_project_may_run_and_pay_for_the_jobs() -> None:
    """Guards `BigQueryParams.payer`: the tables stay in their own project."""
    other = BigQueryParams(
        "shop-copies", jobs_project="shop-bills", endpoint="http://127.0.0.1:9", dataset="shop"
    )
    with closing(open_client(other)) as client:
        assert client.project == "shop-bills"
    assert names(other, SCHEMA.id) == ("shop-copies", "shop", "orders")
    with pytest.raises(InvalidParams, match="project id"):
        BigQueryParams("shop-copies", jobs_project="Shop bills")
