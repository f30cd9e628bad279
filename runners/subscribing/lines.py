"""Answers as JSON lines, as Arrow, and as server-sent events. Rows become text by column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.json_text import TEXT, concat, or_null, quoted, value
from replicators.connectors.feed.messages import encoder
from replicators.connectors.feed.options import MESSAGE, FeedOptions
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.model.types import Int, Timestamp
from runners.subscribing.changes import TableNews
from runners.subscribing.checkpoints import Place, checkpoint_text

OPERATIONS = tuple(op.name.lower() for op in sorted(Op))
"""The names of the numbers in `_op`."""
_NAMES = pa.array(OPERATIONS, TEXT)


def options_of(record: str) -> FeedOptions:
    """How changes look in lines. A line says itself that a row was deleted, so there are no
    tombstones."""
    return FeedOptions(record=record, tombstones=False, truncates=MESSAGE)


def change_lines(
    schema: TableSchema, batch: pa.RecordBatch, table: TableId, options: FeedOptions
) -> pa.Array:
    """A line of JSON, without its end, for each change. A changed key gives two."""
    made = encoder(schema, options).encode(batch)
    head = {"type": "change", "schema": table.schema, "table": table.name}
    texts = {
        "operation": quoted(_NAMES.take(made.column("_op"))),
        "sequence": value(made.column("_sequence"), Int(64)),
        "committed_at": value(made.column("_committed_at"), Timestamp(zone=True)),
        "transaction": value(made.column("_transaction"), Int(64)),
        "key": or_null(_text(made.column("key"))),
        "value": or_null(_text(made.column("value"))),
    }
    pieces: list[Any] = [json.dumps(head, ensure_ascii=False)[:-1]]
    for name, text in texts.items():
        pieces += [f',"{name}":', text]
    return concat(*pieces, "}")


def _text(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()).cast(TEXT)


def _json(**words: Any) -> bytes:
    return json.dumps(words, ensure_ascii=False).encode() + b"\n"


def table_lines(news: TableNews, options: FeedOptions) -> Iterator[bytes]:
    """The lines of one table: its changes, then how far it is resolved, or why it can't be read
    on."""
    for schema, batch in news.rows:
        yield joined(change_lines(schema, batch, news.name, options))
    yield from notes(news)


def joined(lines: pa.Array) -> bytes:
    """The lines, each with its end."""
    text = concat(lines, "\n")
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset :]
    if not len(text):
        return b""
    return bytes(text.buffers()[2].slice(offsets[0], offsets[len(text)] - offsets[0]))


def notes(news: TableNews) -> Iterator[bytes]:
    """The lines that follow a table's changes."""
    here = {"schema": news.name.schema, "table": news.name.name}
    if news.problem:
        shown = news.message.message
        text = f"{shown.text} {shown.suggestion}"
        yield _json(type="snapshot_needed", **here, code=news.problem, message=text)
    elif news.resolved_at:
        yield _json(type="resolved", **here, resolved_at=iso(news.resolved_at))


def iso(at: float) -> str:
    """A time in UTC."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def checkpoint_of(found: Iterable[TableNews], places: dict[int, Place]) -> str:
    """The checkpoint after an answer. A table that can't be read on keeps its place."""
    return checkpoint_text({**places, **{n.table.pk: n.place for n in found}})


def end_line(checkpoint: str, *, has_more: bool) -> bytes:
    """The last line of an answer."""
    return _json(type="checkpoint", checkpoint=checkpoint, has_more=has_more)


def snapshot_line(table: TableId, checkpoint: str) -> bytes:
    """The first line of a snapshot."""
    return _json(type="snapshot", schema=table.schema, table=table.name, checkpoint=checkpoint)


def arrow_schema(schema: TableSchema) -> pa.Schema:
    """The columns of an answer in Arrow."""
    image = list(schema.arrow_schema())
    return pa.schema(
        [
            pa.field("_operation", pa.string(), nullable=False),
            pa.field("_sequence", pa.int64(), nullable=False),
            pa.field("_committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("_transaction", pa.int64(), nullable=False),
            pa.field("_unsent", pa.list_(pa.string())),
            *image,
            pa.field("_before", pa.struct(image if schema.full_before else [
                f for f in image if f.name in schema.key
            ])),
        ]
    )  # fmt: skip


def arrow_rows(schema: TableSchema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Changes in the form of `arrow_schema`."""
    wanted = arrow_schema(schema)
    names = _NAMES.cast(pa.string()).take(batch.column("_op"))
    columns = []
    for field in wanted:
        if field.name == "_operation":
            columns.append(names)
        elif field.name == "_unsent":
            columns.append(_unsent(batch.column("_unchanged"), schema))
        elif field.name == "_before" and "_before" not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(batch.column(field.name))
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _unsent(bits: pa.Array, schema: TableSchema) -> pa.Array:
    """The names of the columns whose bit is set; NULL for none. There are few different patterns of
    bits."""
    coded = pc.dictionary_encode(bits)
    named = [_set(pattern, schema) for pattern in coded.dictionary.to_pylist()]
    return pa.array(named, pa.list_(pa.string())).take(coded.indices)


def _set(bits: bytes, schema: TableSchema) -> list[str]:
    """The columns whose bit is set."""
    known = 8 * len(bits)
    columns = enumerate(schema.columns[:known])
    return [c.name for i, c in columns if bits[i >> 3] >> (i & 7) & 1]


def arrow_stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """An Arrow IPC stream, in blocks."""
    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class _Sink:
    """Holds what was written until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._blocks: list[bytes] = []

    def write(self, data: Any) -> int:
        self._blocks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""

    def taken(self) -> bytes:
        """What was written since the last time."""
        blocks, self._blocks = self._blocks, []
        return b"".join(blocks)


def event(line: bytes, checkpoint: str = "") -> bytes:
    """A line as a server-sent event. A browser sends the checkpoint of the last event again when it
    comes back."""
    kind = json.loads(line)["type"] if line[:9] == b'{"type": ' else "change"
    head = f"event: {kind}\n" + (f"id: {checkpoint}\n" if checkpoint else "")
    return head.encode() + b"data: " + line.rstrip(b"\n") + b"\n\n"
