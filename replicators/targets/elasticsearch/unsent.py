"""Completes documents whose change lacks values. They are read from the document that is in the
index, in one request for many.

This is right although requests are repeated: a batch with such changes is written in order, by one
task. So the index has the last document before the change, or a later one. In the second case the
cluster refuses what we send as old.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors.arrow.json_text import TEXT
from replicators.targets.elasticsearch.bulk import TOO_LARGE_KIND, UNSENT, Bulk, Refused, Sent
from replicators.targets.elasticsearch.documents import Partial, Writes
from replicators.targets.elasticsearch.errors import ClusterSaid, busy

DOCUMENTS = 500
NO_INDEX = "index_not_found_exception"
"""What the cluster says where no document was refused yet."""


class Raw(str):
    """The text of a number, as the document has it."""

    __slots__ = ()


def complete(bulk: Bulk, refused: str, partial: Partial) -> Sent:
    """Write documents with the values that their changes lack."""
    sent = Sent()
    for begin in range(0, len(partial.writes), DOCUMENTS):
        rows = range(begin, min(begin + DOCUMENTS, len(partial.writes)))
        _some(bulk, refused, partial, rows, sent)
    return sent


def _some(bulk: Bulk, refused: str, partial: Partial, rows: range, sent: Sent) -> None:
    some = partial.writes.take(np.array(rows))
    origins = partial.origin.take(pa.array(rows)).to_pylist()
    found = _documents(bulk, refused, origins)
    bodies: list[str | None] = []
    for number, row in enumerate(rows):
        known = _newest(found, origins[number], int(some.version[number]))
        bodies.append(
            None if known is None else _merged(some.body[number].as_py(), known, partial.lacks[row])
        )
    has = np.array([b is not None for b in bodies], bool)
    whole = Writes(some.id, some.version, pa.array(bodies, TEXT))
    sent.add(bulk.send(whole.take(np.flatnonzero(has))))
    lost = np.flatnonzero(~has)
    tried = bulk.send(whole.take(lost))
    newer = set(tried.newer)
    for row in lost.tolist():
        id_ = some.id[row].as_py()
        if id_ not in newer:
            lacks = ", ".join(partial.lacks[rows[row]])
            reason = f"the index has no document with the values that were not sent: {lacks}"
            body = some.body[row].as_py()
            sent.refused.append(Refused(id_, int(some.version[row]), body, UNSENT, reason))


def _newest(
    found: dict[str, list[tuple[int, dict[str, Any]]]], id_: str, version: int
) -> dict[str, Any] | None:
    """The newest document of an id that is not newer than the change."""
    known = [d for d in found.get(id_, ()) if d[0] <= version]
    return max(known, key=lambda d: d[0])[1] if known else None


def _documents(
    bulk: Bulk, refused: str, origins: list[str]
) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """The documents of ids with their versions, also those that were put aside."""
    asked = [{"_index": place, "_id": i} for i in origins for place in (bulk.alias, refused)]
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for one in _read(bulk, asked):
        if not one.get("found"):
            continue
        source = one["_source"]
        if one["_index"] == refused:
            if source["error"] in {TOO_LARGE_KIND, UNSENT}:
                continue
            source = json.loads(source["document"], parse_float=Raw)
        found.setdefault(one["_id"], []).append((one["_version"], source))
    return found


def _read(bulk: Bulk, asked: list[dict[str, str]]) -> list[dict[str, Any]]:
    """What the cluster has of documents. A shard that is not there, as right after the start of a
    node, is waited for: its documents are not lost."""
    pause, tries = bulk.search.pause(), 0
    while True:
        answer = bulk.search.ask(
            "POST", "/_mget", {"docs": asked}, act="read documents", table=bulk.table
        )
        docs: list[dict[str, Any]] = json.loads(answer.data, parse_float=Raw)["docs"]
        away = [d["error"] for d in docs if "error" in d and d["error"].get("type") != NO_INDEX]
        if not away:
            return docs
        if not pause.wait(tries):
            raise busy(503, pause.patience) from ClusterSaid(str(away[0]))
        tries += 1


def _merged(body: str, known: dict[str, Any], lacks: tuple[str, ...]) -> str:
    parts = [f"{json.dumps(n, ensure_ascii=False)}:{_text(known[n])}" for n in lacks if n in known]
    if not parts:
        return body
    comma = "" if body == "{}" else ","
    return f"{body[:-1]}{comma}{','.join(parts)}}}"


def _text(value: Any) -> str:
    """JSON text, with numbers as they were."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(_pairs(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _pairs(value: dict[str, Any]) -> Iterator[str]:
    for name, one in value.items():
        yield f"{json.dumps(name, ensure_ascii=False)}:{_text(one)}"
