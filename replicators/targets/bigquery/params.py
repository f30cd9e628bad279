"""The settings of a BigQuery target. Parsing only; nothing is opened here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.addresses import Place, Url
from replicators.connectors.google import account_key, api_endpoint, endpoint_fault, key_fault
from replicators.connectors.params import InvalidParams, param
from replicators.connectors.view_fields import current_views, view_suffix

MERGE_SECONDS = 90.0
"""The time between two merges of a table: 960 a day, below the service's 1,500 load jobs."""
ENDPOINT = "https://bigquery.googleapis.com"
DEFAULT_SCOPES = ("https://www.googleapis.com/auth/bigquery",)
_PROJECT = re.compile(r"([a-z0-9][a-z0-9.-]{0,80}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_DATASET = re.compile(r"[A-Za-z0-9_]{1,1024}")
_LOCATION = re.compile(r"[A-Za-z]{2,}[A-Za-z0-9-]{0,40}")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_KEY = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")


@dataclass(frozen=True, slots=True)
class BigQueryParams:
    """The project and dataset, how to sign in, and how tables are made."""

    project: str = param(
        "Project",
        help="The Google Cloud project that holds the tables, by its id",
        addresses=True,
    )
    jobs_project: str = param(
        "Project for the jobs",
        help="The project that runs and pays for load jobs and queries; empty: that of the tables",
        default="",
        addresses=True,
        is_movable=True,
    )
    dataset: str = param(
        "Dataset",
        help="Where the tables appear; empty: one dataset for each schema of the source",
        default="",
    )
    location: str = param(
        "Location",
        help="Where new datasets are made, for example EU or europe-west3. A dataset that exists "
        "must lie there.",
        default="US",
    )
    credentials: str = account_key()
    endpoint: str = api_endpoint()
    existing_tables: str = param(
        "Tables that exist already",
        help="refuse: a table that somebody else made stops the copy. replace: the copy takes its "
        "place, and its rows are lost.",
        default="refuse",
        choices=("refuse", "replace"),
        is_movable=True,
    )
    partition_column: str = param(
        "Partition by column",
        help="A date or timestamp column. Each table that has such a column is partitioned by it "
        "when it is copied; empty: no partitions",
        default="",
        is_movable=True,
    )
    partition_unit: str = param(
        "Partition unit", default="month", choices=("day", "month", "year"), is_movable=True
    )
    sequence_column: bool = param(
        "Add the column _sequence_num",
        help="Each row then says with which batch of changes it came",
        default=False,
    )
    keep_staging: bool = param(
        "Keep the last batch",
        help="The changes of the last merge stay readable in _staging_<table>",
        default=False,
    )
    labels: str = param(
        "Labels",
        help="Put on tables and jobs, for the bill: team=shop, env=prod",
        default="",
        is_movable=True,
    )
    maximum_bytes_billed: int = param(
        "Most bytes billed a merge",
        help="A merge that would read more fails before it costs anything; 0: no limit",
        default=0,
        minimum=0,
    )
    encryption_key: str = param(
        "Encryption key",
        help="A key of Cloud KMS for the tables: "
        "projects/.../locations/.../keyRings/.../cryptoKeys/...",
        default="",
        is_movable=True,
    )
    current_views: bool = current_views()
    view_suffix: str = view_suffix()

    def __post_init__(self) -> None:
        found = {
            "project": _fault(_PROJECT, self.project, "must be a project id, not its name"),
            "jobs_project": _fault(
                _PROJECT, self.jobs_project, "must be a project id, not its name"
            ),
            "dataset": _fault(
                _DATASET, self.dataset, "may have letters, digits and underscores only"
            ),
            "location": _fault(_LOCATION, self.location, "must be a region, EU or US"),
            "credentials": key_fault(self.credentials),
            "endpoint": endpoint_fault(self.endpoint, "bigquery-abc.p.googleapis.com"),
            "partition_column": _fault(
                _COLUMN, self.partition_column, "must be the name of a column in BigQuery"
            ),
            "labels": _labels_fault(self.labels),
            "encryption_key": _fault(_KEY, self.encryption_key, "must be the key's full name"),
        }
        errors = {name: text for name, text in found.items() if text}
        if not self.location:
            errors["location"] = "is required"
        if errors:
            raise InvalidParams(errors)

    @property
    def is_emulated(self) -> bool:
        """Whether the endpoint is an emulator's, which takes no credentials."""
        return self.endpoint.startswith("http://")

    @property
    def payer(self) -> str:
        """The project that runs the jobs."""
        return self.jobs_project or self.project

    @property
    def label_values(self) -> dict[str, str]:
        """The labels by name."""
        return dict(_pairs(self.labels))


def _fault(pattern: re.Pattern[str], text: str, otherwise: str) -> str:
    return otherwise if text and not pattern.fullmatch(text) else ""


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    split = [p.partition("=") for p in parts]
    return [(name.strip(), value.strip()) for name, _, value in split]


def _labels_fault(text: str) -> str:
    for name, value in _pairs(text):
        if not _LABEL.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
            return "must look like team=shop, env=prod, in lower case"
    return ""


def places(params: BigQueryParams) -> tuple[Place, ...]:
    """The service, or the private endpoint."""
    url = Url.parse(params.endpoint or ENDPOINT)
    port = url.port or (80 if url.scheme == "http" else 443)
    return (Place("host", url.host, "API endpoint", port, ""),)
