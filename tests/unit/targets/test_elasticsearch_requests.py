"""What the client makes of a cluster that does not answer, or answers half."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from demo.postgres import free_port
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.elasticsearch.bulk import Bulk
from replicators.targets.elasticsearch.client import Search
from replicators.targets.elasticsearch.documents import Partial, Writes
from replicators.targets.elasticsearch.params import ElasticsearchParams
from replicators.targets.elasticsearch.unsent import complete

TABLE = TableId("shop", "items")
WRITES = Writes(
    pa.array(["1", "2"], pa.large_string()),
    np.array([5, 6]),
    pa.array(['{"id":1}', '{"id":2}'], pa.large_string()),
)
DONE: dict[str, Any] = {"errors": False, "items": [{"index": {"status": 200}}] * 2}
ONE_DONE = {**DONE, "items": DONE["items"][:1]}
OLD = {"errors": True, "items": [{"index": {"status": 409, "error": {"type": "conflict"}}}] * 2}
AWAY = {"error": {"type": "no_shard_available_action_exception", "reason": "no shard"}}
NONE = {"error": {"type": "index_not_found_exception", "reason": "no such index"}}


@contextmanager
def answering(*answers: Any, port: int = 0) -> Iterator[tuple[str, list[str]]]:
    """A cluster that gives these answers in turn, the last one for ever, and what it was asked.
    None: the connection is closed; bytes are sent as they are."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append(self.path.partition("?")[0])
            if isinstance(answer, bytes):
                self.wfile.write(answer)
            elif answer is not None:
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        do_PUT = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


def bulk_at(address: str, **more: Any) -> Bulk:
    return Bulk(Search(ElasticsearchParams(address=address), **more), TABLE, "items", 1 << 20)


@pytest.mark.parametrize("cut", [None, b"HTTP/1.1 200 OK\r\ncon", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_request_whose_answer_is_lost_is_sent_again(cut: bytes | None) -> None:
    """Guards an answer that breaks off: fails where it counts as written, or ends the run. What the
    cluster has from the first time is counted."""
    with answering(cut, OLD) as (address, asked):
        sent = bulk_at(address).send(WRITES)
    assert (sent.written, sent.newer, sent.refused) == (0, ["1", "2"], [])
    assert asked == ["/items/_bulk"] * 2
    with answering(cut, {"docs": []}) as (address, asked):
        answer = Search(ElasticsearchParams(address=address)).ask("POST", "/_mget", {})
    assert (answer.content, asked) == ({"docs": []}, ["/_mget"] * 2)


def test_what_may_not_come_twice_is_asked_once() -> None:
    """Guards requests without a version: a second PUT of an index would say that it is there."""
    with answering(None) as (address, asked):
        search = Search(ElasticsearchParams(address=address))
        with pytest.raises(ReplicationError) as found:
            search.ask("PUT", "/items-g1", {})
    assert (found.value.code, asked) == ("target:unreachable", ["/items-g1"])


def test_a_node_that_is_away_is_waited_for_and_only_so_long() -> None:
    """Guards `Search.send`: a refused connection is tried again until the patience is over."""
    port = free_port()
    with pytest.raises(ReplicationError) as found:
        bulk_at(f"http://127.0.0.1:{port}", patience=0.25).send(WRITES)
    assert found.value.code == "target:unreachable"
    search = Search(ElasticsearchParams(address=f"http://127.0.0.1:{port}"))
    told: list[int] = []
    asking = Thread(target=lambda: told.append(search.send("PUT", "/x", b"{}").status))
    asking.start()
    with answering(DONE, port=port):
        asking.join(30)
    assert told == [200]


def test_documents_of_a_shard_that_is_away_are_not_lost() -> None:
    """Guards `_mget` right after the start of a node: fails where a document that can't be read yet
    counts as gone, and is deleted."""
    found = {"found": True, "_index": "items", "_id": "1", "_version": 3, "_source": {"note": "a"}}
    partial = Partial(WRITES.take(np.array([0])), pa.array(["1"], pa.large_string()), (("note",),))
    with answering({"docs": [AWAY, AWAY]}, {"docs": [found, NONE]}, ONE_DONE) as (address, asked):
        sent = complete(bulk_at(address), "items-refused", partial)
    assert asked == ["/_mget", "/_mget", "/items/_bulk"] and sent.refused == []
