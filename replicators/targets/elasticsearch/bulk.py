"""Bulk requests. A document's version is the sequence of its change, so the cluster itself refuses
what is older than what it has (409); that is counted, and no fault. Documents that the cluster
can't take are returned with its reason. Documents that it is too busy for are sent again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.json_text import TEXT, concat, escaped
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.elasticsearch.client import TOO_LARGE, Search
from replicators.targets.elasticsearch.documents import Writes
from replicators.targets.elasticsearch.errors import BUSY, ClusterSaid, busy, error_of, is_block

CONFLICT, MISSING, WRONG = 409, 404, 400
EXTERNAL, EXTERNAL_GTE = "external", "external_gte"
TOO_LARGE_KIND, UNSENT = "too_large", "unsent"
"""Refused by us: a new try of the document alone would fail again."""
AT_ONCE = 2
"""So many requests of a task are on their way at once: the cluster writes each by one thread."""
ANSWER = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"


class Refused(NamedTuple):
    """A document that the cluster can't take."""

    id: str
    version: int
    body: str
    kind: str
    reason: str


@dataclass(slots=True)
class Sent:
    """What came of documents. `newer`: the ids of those that the cluster has the same or newer
    ones of."""

    written: int = 0
    refused: list[Refused] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)

    def add(self, other: Sent) -> None:
        """Count more of them."""
        self.written += other.written
        self.refused += other.refused
        self.newer += other.newer


@dataclass(frozen=True, slots=True)
class Bulk:
    """Sends documents of one table by an alias. `version_type`: whether a document of the same
    version is written again. No id comes twice within what is sent in one call: its requests may
    overtake each other."""

    search: Search
    table: TableId
    alias: str
    bytes_a_request: int
    version_type: str = EXTERNAL

    def send(self, writes: Writes) -> Sent:
        """Write documents; they are durable when this returns."""
        sent, parts = Sent(), list(self._requests(writes))
        if len(parts) < 2:
            for part, text in parts:
                sent.add(self._request(part, text))
            return sent
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for one in pool.map(lambda part: self._request(*part), parts):
                sent.add(one)
        return sent

    def _requests(self, writes: Writes) -> Iterator[tuple[Writes, memoryview]]:
        """The documents in requests of a moderate size, each with its text."""
        if not len(writes):
            return
        text = self._lines(writes)
        offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset :][: len(text) + 1]
        data = memoryview(text.buffers()[2])
        share = (offsets[1:] - offsets[0] - 1) // self.bytes_a_request
        edges = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), len(text)]
        for begin, end in zip(edges[:-1], edges[1:], strict=True):
            part = writes if end - begin == len(text) else writes.take(np.arange(begin, end))
            yield part, data[offsets[begin] : offsets[end]]

    def _lines(self, writes: Writes) -> pa.Array:
        """The lines of each document."""
        id_ = escaped(writes.id)
        version = pc.cast(pa.array(writes.version), TEXT)
        end = f',"version_type":"{self.version_type}"}}}}\n'
        tail = concat('":{"_id":"', id_, '","version":', version, end)
        is_gone = writes.body.is_null()
        body = concat("", pc.coalesce(writes.body, pa.scalar("", TEXT)), "\n")
        has_gone = pc.any(is_gone).as_py()
        head: Any = '{"index'
        if has_gone:
            head = pc.if_else(is_gone, pa.scalar('{"delete', TEXT), pa.scalar('{"index', TEXT))
            body = pc.if_else(is_gone, pa.scalar("", TEXT), body)
        return concat(head, tail, body)

    def _request(self, writes: Writes, text: memoryview) -> Sent:
        pause, tries, sent = self.search.pause(), 0, Sent()
        while True:
            again = self._once(writes, text, sent)
            if again is None:
                return sent
            if not pause.wait(tries):
                raise busy(429, pause.patience)
            tries += 1
            writes = writes.take(again)
            (_, text), *others = self._requests(writes)
            if others:
                sent.add(self.send(writes))
                return sent

    def _once(self, writes: Writes, text: memoryview, sent: Sent) -> Any:
        """Send a request and count what came of it. The rows that have to be sent again; None where
        there are none."""
        path = f"/{self.alias}/_bulk?require_alias=true&{ANSWER}"
        answer = self.search.send("POST", path, bytes(text))
        if answer.status == TOO_LARGE:
            self._halves(writes, sent)
            return None
        if answer.status >= 300:
            raise error_of(answer, "write documents", self.table)
        if b'"errors":false' in answer.data[:100]:
            sent.written += len(writes)
            return None
        return self._count(writes, answer.content.get("items", ()), sent)

    def _halves(self, writes: Writes, sent: Sent) -> None:
        if len(writes) == 1:
            reason = "the document is larger than a request may be; it is not kept here"
            id_, version = writes.id[0].as_py(), int(writes.version[0])
            sent.refused.append(Refused(id_, version, "", TOO_LARGE_KIND, reason))
            return
        middle = len(writes) // 2
        for part in (np.arange(middle), np.arange(middle, len(writes))):
            half = writes.take(part)
            for some, text in self._requests(half):
                sent.add(self._request(some, text))

    def _count(self, writes: Writes, items: Sequence[Any], sent: Sent) -> Any:
        """Only answers with faults come here."""
        results = [next(iter(item.values())) for item in items]
        status = np.fromiter((r["status"] for r in results), np.int64, len(results))
        is_gone = writes.body.is_null().to_numpy(zero_copy_only=False)
        is_fault = np.fromiter(("error" in r for r in results), np.bool_, len(results))
        sent.written += int((status < 300).sum())
        newer = np.flatnonzero(status == CONFLICT)
        sent.newer += writes.id.take(pa.array(newer)).to_pylist()
        again = []
        for row in np.flatnonzero(is_fault & (status != CONFLICT)).tolist():
            error = results[row]["error"]
            kind, reason = str(error.get("type", "")), str(error.get("reason", ""))
            if is_block(kind):
                raise ReplicationError("target:index-read-only", table=self.table) from ClusterSaid(
                    reason
                )
            if status[row] in BUSY:
                again.append(row)
            elif status[row] == MISSING:
                raise ReplicationError("target:table-missing", table=self.table) from ClusterSaid(
                    reason
                )
            elif status[row] == WRONG and not is_gone[row]:
                sent.refused.append(_refused(writes, row, kind, reason))
            else:
                raise ReplicationError(
                    "target:search-refused", table=self.table, act="write a document", reason=kind
                ) from ClusterSaid(reason)
        return np.array(again) if again else None


def _refused(writes: Writes, row: int, kind: str, reason: str) -> Refused:
    body = writes.body[row].as_py() or ""
    return Refused(writes.id[row].as_py(), int(writes.version[row]), body, kind, reason)


def lines_of(actions: Sequence[tuple[dict[str, Any], dict[str, Any] | None]]) -> bytes:
    """The text of a bulk request of a few documents."""
    found = []
    for action, document in actions:
        found.append(json.dumps(action))
        if document is not None:
            found.append(json.dumps(document))
    return ("\n".join(found) + "\n").encode()
