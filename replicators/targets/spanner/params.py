"""Parameters of a Spanner target, as a person fills them in. Nothing is opened here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.addresses import Place, Url
from replicators.connectors.google import account_key, api_endpoint, endpoint_fault, key_fault
from replicators.connectors.params import InvalidParams, param

MERGE_SECONDS = 10.0
"""The time between two merges of a table: each is a commit, and reads nothing where it need not."""
ENDPOINT = "https://spanner.googleapis.com"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
"""A name of a table or a column, as Spanner takes it."""
_PROJECT = re.compile(r"([a-z0-9][a-z0-9.-]{0,80}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_INSTANCE = re.compile(r"[a-z][a-z0-9-]{0,62}[a-z0-9]")
_DATABASE = re.compile(r"[a-z][a-z0-9_-]{0,28}[a-z0-9]")
_RULE = re.compile(r"(?:[A-Za-z0-9_]|\{schema\}|\{table\})+")


@dataclass(frozen=True, slots=True)
class SpannerParams:
    """A database in the GoogleSQL dialect, and how to sign in."""

    project: str = param("Project", help="The Google Cloud project, by its id", addresses=True)
    instance: str = param("Instance", help="The instance's id", addresses=True)
    database: str = param(
        "Database",
        help="The database that holds the copies. It exists, and has the GoogleSQL dialect.",
    )
    credentials: str = account_key()
    endpoint: str = api_endpoint()
    table_names: str = param(
        "Names of the tables",
        help="{schema} and {table} stand for the source's names.",
        default="{table}",
    )
    commit_column: str = param(
        "Commit timestamp column",
        help="A column with this name says when Spanner committed each row last; empty: none",
        default="",
    )

    def __post_init__(self) -> None:
        found = {
            "project": _fault(_PROJECT, self.project, "must be a project id, not its name"),
            "instance": _fault(_INSTANCE, self.instance, "must be an instance id"),
            "database": _fault(_DATABASE, self.database, "must be a database id"),
            "credentials": key_fault(self.credentials),
            "endpoint": endpoint_fault(self.endpoint, "spanner.europe-west3.rep.googleapis.com"),
            "table_names": _rule_fault(self.table_names),
            "commit_column": _fault(
                NAME, self.commit_column or "a", "must begin with a letter; letters, digits and _"
            ),
        }
        errors = {name: fault for name, fault in found.items() if fault}
        if errors:
            raise InvalidParams(errors)

    @property
    def is_emulated(self) -> bool:
        """Whether an emulator plays the service."""
        return self.endpoint.startswith("http://")

    @property
    def path(self) -> str:
        """The database's full name."""
        return f"projects/{self.project}/instances/{self.instance}/databases/{self.database}"


def _fault(pattern: re.Pattern[str], text: str, otherwise: str) -> str:
    return "" if pattern.fullmatch(text) else otherwise


def _rule_fault(text: str) -> str:
    if not _RULE.fullmatch(text):
        return "may have letters, digits, _, {schema} and {table}"
    return "" if "{table}" in text else "must have {table}"


def places(params: SpannerParams) -> tuple[Place, ...]:
    """The service, or the private endpoint."""
    url = Url.parse(params.endpoint or ENDPOINT)
    port = url.port or (80 if url.scheme == "http" else 443)
    return (Place("host", url.host, "API endpoint", port, ""),)
