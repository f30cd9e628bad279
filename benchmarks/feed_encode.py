"""Line `feed-encode`: changes into the messages of a feed, in one process, beside a call for each
row."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal as D
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from benchmarks import place
from benchmarks.report import Peer, Result
from replicators.connectors.feed.avro import warm
from replicators.connectors.feed.avro_schema import value_schema
from replicators.connectors.feed.messages import encoder
from replicators.connectors.feed.options import FeedOptions
from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Decimal,
    Int,
    LogicalType,
    String,
    Timestamp,
    Uuid,
)

ROWS = 200_000
ROUNDS = 5
KINDS: tuple[tuple[str, LogicalType], ...] = (
    ("id", Int(64)),
    ("name", String()),
    ("amount", Decimal(18, 4)),
    ("at", Timestamp(zone=True)),
    ("flag", Boolean()),
    ("reference", Uuid()),
    ("size", Int(32)),
)
SCHEMA = TableSchema(
    TableId("shop", "orders"), tuple(Column(n, k, "") for n, k in KINDS), ("id",), ("id",)
)


def measure(line: str) -> list[Result]:
    """Encode the same changes in each format, and the same rows one by one."""
    warm()
    batch = _batch()
    return [_json(line, batch), _avro(line, batch)]


def _json(line: str, batch: pa.RecordBatch) -> Result:
    rows = batch.select([n for n, _ in KINDS]).to_pylist()

    def one_by_one() -> list[bytes]:
        return [json.dumps(row, default=_plain).encode() for row in rows]

    rate, found = _rate(lambda: _values(batch, FeedOptions()))
    peer, want = _rate(one_by_one)
    checked = all(
        json.loads(a)["amount"] == json.loads(b)["amount"] and json.loads(a)["id"] == i
        for i, (a, b) in enumerate(zip(found, want, strict=True))
    )
    return _result(f"{line}-json", rate, "json.dumps, one row after the other", peer, checked)


def _avro(line: str, batch: pa.RecordBatch) -> Result:
    options = FeedOptions(format="avro")
    schema: Any = fastavro.parse_schema(json.loads(value_schema(SCHEMA, options)))
    rows = batch.select([n for n, _ in KINDS]).to_pylist()

    def one_by_one() -> list[bytes]:
        made = []
        for row in rows:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, row)
            made.append(out.getvalue())
        return made

    rate, found = _rate(lambda: _values(batch, options))
    peer, want = _rate(one_by_one)
    return _result(f"{line}-avro", rate, "fastavro, one row after the other", peer, found == want)


def _result(line: str, rate: float, name: str, peer: float, checked: bool) -> Result:
    return Result(
        line,
        "messages/s",
        round(rate),
        None,
        (Peer(name, round(peer)),),
        round(rate / peer, 1),
        checked=checked,
        note=f"{len(KINDS)} columns, key and value, the envelope none; one process, the median of "
        f"{ROUNDS}. The other makes the value only.",
    )


def _values(batch: pa.RecordBatch, options: FeedOptions) -> list[pa.Array]:
    made = encoder(SCHEMA, options).encode_slices(batch)
    return [part.column("value") for part in made]


def _rate(work: Callable[[], list[Any]]) -> tuple[float, list[bytes]]:
    """Messages a second, and the values."""
    rates = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        made = work()
        rates.append(ROWS / (time.monotonic() - began))
    if isinstance(made[0], pa.Array):
        made = [value for part in made for value in part.to_pylist()]
    return place.median(rates), made


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _batch() -> pa.RecordBatch:
    """Updates of as many rows, ten in each transaction."""
    numbers = np.arange(ROWS, dtype=np.int64)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = pa.array(numbers * 1000 + int(start.timestamp()) * 1_000_000)
    times = times.cast(pa.timestamp("us", tz="UTC"))
    columns = {
        "_sequence": pa.array(numbers),
        "_op": pa.array(np.full(ROWS, int(Op.UPDATE), np.int8)),
        "_committed_at": times,
        "_transaction": pa.array(numbers // 10),
        "_position": pa.array(numbers),
        "_unchanged": pa.nulls(ROWS, pa.binary()),
        "id": pa.array(numbers),
        "name": pa.array([f"customer {n}" for n in range(ROWS)]),
        "amount": pa.array([D(n).scaleb(-4) for n in range(ROWS)], pa.decimal128(18, 4)),
        "at": times,
        "flag": pa.array(numbers % 3 == 0),
        "reference": pa.array([f"6f1c0c1e-4f8f-4e0a-9d3a-{n:012d}" for n in range(ROWS)]),
        "size": pa.array((numbers % 1000).astype(np.int32)),
    }
    schema = change_schema(SCHEMA)
    none = pa.nulls(ROWS, schema.field("_before").type)
    return pa.RecordBatch.from_arrays([*columns.values(), none], schema=schema)
