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
from replicators.connectors.target import FoldedBatch, KeyRange, MergeCost
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.cost import Used, cost_of, is_pruned
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
