"""Spanner, as the tests' server plays it, as the target of tests. Rows are read from the server's
own store, by no code of the plugin."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Context
from decimal import Decimal as PyDecimal
from typing import Any

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)
from replicators.targets.spanner.naming import encoded
from tests.spanner_server import SpannerServer

_WIDE = Context(prec=80)
OF_MODES = {c.name: c.type for mode in Mode for c in extra_columns(mode)}
"""The types of the columns that modes add."""


def params_of(server: SpannerServer, database: str) -> dict[str, Any]:
    """The params of an empty database."""
    server.make(database)
    return {
        "project": "test-project",
        "instance": "main",
        "database": database,
        "endpoint": server.url,
    }


def neutral_rows(
    server: SpannerServer, database: str, schema: TableSchema, *, name: str = ""
) -> list[dict[str, Any]]:
    """All rows of a copy, with the mode's columns, in the values that a source has."""
    kinds = {**OF_MODES, **{c.name: c.type for c in schema.columns}}
    names = {encoded(n): n for n in kinds}
    found = []
    for row in server.rows(database, encoded(name or schema.id.name)):
        shown = {n: v for n, v in row.items() if n != "rpl_row_id"}
        found.append({names[n]: neutral(v, kinds[names[n]]) for n, v in shown.items()})
    return found


def neutral(value: Any, kind: LogicalType) -> Any:  # noqa: C901 - one line for each type
    """A stored value as its source has it."""
    if value is None:
        return None
    match kind:
        case Array(of=of):
            return [neutral(v, of) for v in json.loads(value)]
        case Boolean():
            return bool(value)
        case Int():
            return int(value)
        case Decimal(scale=scale):
            return PyDecimal(value).quantize(PyDecimal(1).scaleb(-scale), context=_WIDE)
        case Float():
            return float(value)
        case Bytes():
            return base64.b64decode(value)
        case Date():
            return dt.date.fromisoformat(value)
        case Timestamp(zone=zone):
            found = dt.datetime.fromisoformat(value[:26])
            return found.replace(tzinfo=dt.UTC) if zone else found
        case String():
            return str(value)
    return value
