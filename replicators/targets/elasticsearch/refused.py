"""The index of refused documents, `vehicles-g3-refused`. It has the document as text, the cluster's
reason, and the version. A refused document is tried again when a run begins, and is then removed
from here if the cluster takes it or has a newer one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from replicators.connectors.arrow.json_text import TEXT
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import RefusedRow
from replicators.targets.elasticsearch.bulk import (
    EXTERNAL_GTE,
    TOO_LARGE_KIND,
    UNSENT,
    WRONG,
    Bulk,
    Refused,
    lines_of,
)
from replicators.targets.elasticsearch.client import NOT_FOUND, Search
from replicators.targets.elasticsearch.documents import Writes
from replicators.targets.elasticsearch.errors import Answer, error_of

PAGE = 500
REASON_LENGTH = 500
WHY = {
    TOO_LARGE_KIND: "The document is larger than a request to the cluster may be.",
    UNSENT: "The change lacks values that the source did not send, and the index has lost the "
    "document that had them.",
}
_KEPT = {"index": False, "doc_values": False}
PROPERTIES: dict[str, Any] = {
    "id": {"type": "keyword"},
    "sequence": {"type": "long"},
    "error": {"type": "keyword"},
    "reason": {"type": "text"},
    "document": {"type": "keyword", **_KEPT},
}


def put_aside(bulk: Bulk, index: str, meta: dict[str, Any], refused: Sequence[Refused]) -> None:
    """Keep refused documents. What the index has of them is older, so it is removed."""
    if not refused:
        return
    body = {
        "settings": {"number_of_shards": 1},
        "mappings": {"dynamic": False, "_meta": meta, "properties": PROPERTIES},
    }
    bulk.search.ask(
        "PUT", f"/{index}", body, act="make an index", table=bulk.table, accepts=(WRONG,)
    )
    actions: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
    for one in refused:
        document = {
            "id": one.id,
            "sequence": one.version,
            "error": one.kind,
            "reason": one.reason,
            "document": one.body,
        }
        actions.append((_action("index", one.id, one.version), document))
    _send(bulk, index, actions)
    bulk.send(_deletions(refused))


def try_again(bulk: Bulk, index: str) -> tuple[int, int]:
    """Send the refused documents again. Returns how many the cluster takes or needs no more, and
    how many are left."""
    again = Bulk(bulk.search, bulk.table, bulk.alias, bulk.bytes_a_request, EXTERNAL_GTE)
    done = left = 0
    for found in _pages(bulk.search, index, bulk.table):
        stays = {f.id for f in found if f.kind in {TOO_LARGE_KIND, UNSENT}}
        known = [f for f in found if f.id not in stays]
        writes = Writes(
            pa.array([r.id for r in known], TEXT),
            np.array([r.version for r in known], np.int64),
            pa.array([r.body for r in known], TEXT),
        )
        still = {r.id for r in again.send(writes).refused} | stays
        still = _not_newer(again, [r for r in found if r.id in still])
        _send(
            bulk,
            index,
            [(_action("delete", r.id, r.version), None) for r in found if r.id not in still],
        )
        done += len(found) - len(still)
        left += len(still)
    return done, left


def _not_newer(again: Bulk, refused: Sequence[Refused]) -> set[str]:
    """The ids of those that the index has nothing newer of. A refused document leaves the version
    of its deletion, so another deletion of that version is accepted."""
    return {r.id for r in refused} - set(again.send(_deletions(refused)).newer)


def _deletions(refused: Sequence[Refused]) -> Writes:
    return Writes(
        pa.array([r.id for r in refused], TEXT),
        np.array([r.version for r in refused], np.int64),
        pa.nulls(len(refused), TEXT),
    )


def listed(search: Search, index: str, table: TableId, limit: int) -> list[RefusedRow]:
    """The first refused documents, for people."""
    found = chain.from_iterable(_pages(search, index, table))
    rows = [
        RefusedRow(_number(r), json.dumps({"_id": r.id}), _why(r)) for r in islice(found, limit)
    ]
    return sorted(rows, key=lambda r: r.number)


def _number(one: Refused) -> int:
    """Negative, and another one for each document and version."""
    text = f"{one.version} {one.id}".encode()
    return -1 - (int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 2)


def _why(one: Refused) -> str:
    """The cluster's reason, which may name a value of the row."""
    return WHY.get(one.kind, f"{one.kind}: {one.reason}")[:REASON_LENGTH]


def count(search: Search, index: str) -> int:
    """How many documents are kept aside."""
    answer = search.ask("GET", f"/{index}/_count", accepts=(NOT_FOUND,))
    return int(answer.content.get("count", 0))


def _pages(search: Search, index: str, table: TableId) -> Iterator[list[Refused]]:
    answer = search.ask("POST", f"/{index}/_refresh", accepts=(NOT_FOUND,))
    after: list[Any] | None = None
    while answer.status != NOT_FOUND:
        query: dict[str, Any] = {"size": PAGE, "sort": [{"id": "asc"}]}
        if after:
            query["search_after"] = after
        answer = search.ask("POST", f"/{index}/_search", query, act="search", table=table)
        hits = answer.content["hits"]["hits"]
        if not hits:
            return
        after = hits[-1]["sort"]
        sources = [h["_source"] for h in hits]
        yield [
            Refused(s["id"], s["sequence"], s["document"], s["error"], s["reason"]) for s in sources
        ]


def _action(name: str, id_: str, version: int) -> dict[str, Any]:
    return {name: {"_id": id_, "version": version, "version_type": EXTERNAL_GTE}}


def _send(
    bulk: Bulk, index: str, actions: Sequence[tuple[dict[str, Any], dict[str, Any] | None]]
) -> None:
    if not actions:
        return
    for begin in range(0, len(actions), PAGE):
        text = lines_of(actions[begin : begin + PAGE])
        answer = bulk.search.send("POST", f"/{index}/_bulk?filter_path=items.*.status", text)
        if answer.status >= 300:
            raise error_of(answer, "keep refused documents", bulk.table)
        worst = [next(iter(i.values()))["status"] for i in answer.content.get("items", ())]
        bad = [s for s in worst if s >= 300 and s not in {404, 409}]
        if bad:
            raise error_of(Answer(bad[0], answer.data), "keep refused documents", bulk.table)
