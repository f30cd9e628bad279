"""What the product decodes of mutated events, beside what a slow reader reads of the same bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from replicators.connectors.log import DecodedTable, LogDecoder
from replicators.connectors.model.types import Boolean
from replicators.sources.mysql.schemas import label_texts
from replicators.sources.mysql.tablemaps import ENUM, SET, STRING, parse_map
from replicators.sources.postgresql.relations import parse_relation
from tests.fuzz import slow_binlog, slow_pgoutput
from tests.fuzz.segments import messages_of

OPERATIONS = {"insert": 0, "update": 1, "delete": 2}


def compare(
    case: Any, segment: dict[str, Any], samples: list[bytes], decode: LogDecoder, *, is_binlog: bool
) -> int:
    """How many values were the same. AssertionError names the first that is not, with the event's
    bytes."""
    head = {"context": segment["context"], "tables": segment["tables"]}
    prefix = case.prefix.tobytes()
    count = 0
    for event in samples:
        raw = np.frombuffer(prefix + struct.pack("<I", len(event)) + event, np.uint8)
        decoded = [p for p in decode(head, raw, 1) if isinstance(p, DecodedTable)]
        # A text that is none, and a document that does not parse, are found behind the compiled
        # loops.
        for part in decoded:
            pairs = (
                _of_binlog(part, prefix, event, segment)
                if is_binlog
                else _of_pgoutput(part, prefix, event)
            )
            for name, ours, theirs in pairs:
                assert is_same(ours, theirs), (case.name, name, ours, theirs, event.hex())
                count += 1
    return count


def _of_binlog(
    part: DecodedTable, prefix: bytes, event: bytes, segment: dict[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    found = parse_map(messages_of(prefix)[1][:-4], segment["context"]["flavour"])
    charsets = {int(n): str(c) for n, c in segment["context"]["charsets"].items()}
    changes = part.changes.to_pylist()
    slow = list(slow_binlog.rows(event, found.columns))
    yield "rows", len(changes), len(slow)
    for ours, (operation, before, after) in zip(changes, slow, strict=True):
        yield "_op", ours["_op"], OPERATIONS[operation]
        marked = _marked(ours.get("_faulty"), part)
        for number, sent in enumerate(found.columns):
            if sent.name not in ours or (
                operation == "delete" and sent.name not in part.schema.key
            ):
                continue
            value = (before if operation == "delete" else after)[number]
            if isinstance(value, bytes):
                try:
                    value = _text(value, part, sent, charsets)
                except UnicodeDecodeError:
                    yield f"{sent.name} is marked", sent.name in marked, True
                    continue
            elif value is not None and isinstance(part.schema.column(sent.name).type, Boolean):
                value = bool(value)
            if sent.name in marked:
                is_known = value is not slow_binlog.Unknown
                yield f"{sent.name} is marked", True, False if is_known else value
                continue
            yield sent.name, ours[sent.name], value


def _marked(marks: bytes | None, part: DecodedTable) -> set[str]:
    """The columns of a row that are told to hold what does not fit."""
    columns = enumerate(part.schema.columns) if marks else ()
    return {c.name for i, c in columns if marks and marks[i >> 3] & 1 << (i & 7)}


def _text(value: bytes, part: DecodedTable, sent: Any, charsets: dict[int, str]) -> Any:
    """Text in its character set; only what needs none of the product's tables is known here."""
    wire = part.schema.column(sent.name).wire
    if sent.kind in (ENUM, SET):
        plain = dict(zip(sent.labels, label_texts(sent, charsets), strict=True))
        return (
            ",".join(plain[x] for x in value.split(b","))
            if value and sent.kind == SET
            else plain.get(value, "")
        )
    if wire == "bytes":
        return value.ljust(sent.meta, b"\0") if sent.kind == STRING else value
    if wire == "text:ascii":
        return "".join(chr(b) if b < 0x80 else "?" for b in value)
    return value.decode() if wire in ("text:utf8mb4", "text:utf8mb3") else slow_binlog.Unknown


def _of_pgoutput(part: DecodedTable, prefix: bytes, event: bytes) -> Iterator[tuple[str, Any, Any]]:
    relation = parse_relation(messages_of(prefix)[1])
    changes = part.changes.to_pylist()
    if event[:1] == b"T":
        return
    kind, before, after = slow_pgoutput.row(event, [c.oid for c in relation.columns])
    yield "rows", len(changes), 1
    ours = changes[0]
    yield "_op", ours["_op"], "IUD".index(kind)
    if ours.get("_faulty"):
        return
    for number, sent in enumerate(relation.columns):
        if sent.name not in ours or (kind == "D" and sent.name not in part.schema.key):
            continue
        yield sent.name, ours[sent.name], (before if after is None else after or [])[number]  # type: ignore[index]


def is_same(ours: Any, theirs: Any) -> bool:
    """Whether two values are one; where the slow reader knows none, anything is."""
    if theirs in (slow_binlog.Unknown, slow_pgoutput.Unknown):
        return True
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    if isinstance(theirs, Decimal) and isinstance(ours, str):
        return Decimal(ours) == theirs or (Decimal(ours).is_nan() and theirs.is_nan())
    if hasattr(ours, "tzinfo") and ours.tzinfo is not None:
        ours = ours.replace(tzinfo=None)
    return bool(ours == theirs)
