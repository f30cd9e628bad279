"""The options of the data source, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from replicators.spark import errors
from replicators.spark.types import Names

TOKEN = "REPLICATOR_TOKEN"  # noqa: S105 (the variable's name)
EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True)
class Options:
    """What a notebook asks for. `start`, `end`: a sequence, "earliest", "latest", or empty for the
    default. `repr` does not show the token."""

    url: str
    token: str
    replicator: str
    schema: str
    table: str
    start: str
    end: str
    is_direct: bool
    stops_at_schema: bool
    stops_at_copy: bool
    names: Names
    poll_seconds: float

    def __repr__(self) -> str:
        return f"Options({self.url!r}, {self.replicator!r}, {self.called})"

    @property
    def called(self) -> str:
        """The table's name for people."""
        return f"{self.schema}.{self.table}"


def parsed(options: Mapping[str, str]) -> Options:
    """The options of a data frame. `ChangesError` says which one is missing or wrong."""
    schema, table = options.get("schema", ""), _needed(options, "table")
    if not schema:
        schema, dot, table = table.partition(".")
        if not dot:
            raise errors.option_invalid("table", schema, "`schema.name`")
    token = options.get("token") or os.environ.get(TOKEN, "")
    if not token:
        raise errors.option_missing("token")
    return Options(
        url=_needed(options, "url"),
        token=token,
        replicator=_needed(options, "replicator"),
        schema=schema,
        table=table,
        start=_sequence(options, "startingSequence", {EARLIEST, LATEST}),
        end=_sequence(options, "endingSequence", {LATEST}),
        is_direct=_one_of(options, "read", "download", "direct") == "direct",
        stops_at_schema=_one_of(options, "onSchemaChange", "stop", "byName") == "stop",
        stops_at_copy=_one_of(options, "onNewCopy", "stop", "continue") == "stop",
        names=Names(options.get("prefix", "_")),
        poll_seconds=_seconds(options, "pollSeconds", 1.0),
    )


def _needed(options: Mapping[str, str], name: str) -> str:
    found = options.get(name, "")
    if not found:
        raise errors.option_missing(name)
    return found


def _one_of(options: Mapping[str, str], name: str, default: str, other: str) -> str:
    value = options.get(name, default)
    for known in (default, other):
        if value.casefold() == known.casefold():
            return known
    raise errors.option_invalid(name, value, f"`{default}` or `{other}`")


def _sequence(options: Mapping[str, str], name: str, words: set[str]) -> str:
    value = options.get(name, "").strip().casefold()
    if not value or value in words or value.isdecimal():
        return value
    known = ", ".join(f"`{w}`" for w in sorted(words))
    raise errors.option_invalid(name, value, f"a sequence or {known}")


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    value = options.get(name, str(default))
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise errors.option_invalid(name, value, "a number of seconds")
    return seconds
