"""The client of a schema registry: numbers are asked for once, and each refusal has its error."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from replicators.connectors.feed.described import schema_message
from replicators.connectors.feed.options import FeedOptions
from replicators.connectors.feed.registry import Registry, ids_of, subjects_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.message import Retry, Scope
from tests.unit.feed.test_messages import table


class Server(ThreadingHTTPServer):
    """A registry that accepts everything, until it is told a status to answer with."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.status = 200
        self.asked: list[tuple[str, str, Any]] = []
        self.logins: list[str | None] = []
        self.body: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/apis/ccompat/v7/"


class Answers(BaseHTTPRequestHandler):
    """Answers of the server."""

    server: Server

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        self.server.asked.append((self.command, self.path, body))
        self.server.logins.append(self.headers.get("Authorization"))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        number = {"id": len(self.server.asked)}
        sent = ["a-key"] if self.command == "GET" else number
        self.wfile.write(self.server.body or json.dumps(sent).encode())

    do_GET = do_PUT = do_POST  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_schemas_are_registered_once_under_the_topics_names(server: Server) -> None:
    """Guards the subjects, the bodies and the cache of numbers."""
    registry = Registry(server.url)
    options = FeedOptions(format="avro")
    first = ids_of(registry, table(full=True), options, "shop/orders")
    assert first == ids_of(registry, table(full=True), options, "shop/orders")
    paths = [(method, path) for method, path, _ in server.asked]
    root = "/apis/ccompat/v7/subjects"
    assert paths == [
        ("POST", f"{root}/shop%2Forders-key/versions"),
        ("POST", f"{root}/shop%2Forders-value/versions"),
    ]
    assert [json.loads(body["schema"])["name"] for _, _, body in server.asked] == ["Key", "Value"]
    assert (first.key, first.value) == (1, 2)
    registry.require("a-value", "FULL")
    assert server.asked[-1] == (
        "PUT", "/apis/ccompat/v7/config/a-value", {"compatibility": "FULL"}
    )  # fmt: skip
    assert registry.subjects() == ["a-key"]


def test_a_shared_topic_has_subjects_for_each_table() -> None:
    """Guards that two tables in one topic do not refuse each other's schemas."""
    options = FeedOptions("diff", format="avro")
    found = subjects_of("all", table(full=True), options, is_shared=True)
    assert found == ("all-s.t.Key", "all-s.t.Envelope")


def test_the_login_is_sent_and_never_shown(server: Server) -> None:
    """Guards both kinds of logins, and secrets in texts."""
    for registry in (
        Registry(server.url, user="ann", password="s3cret"),
        Registry(server.url, token="s3cret"),
    ):
        server.status = 200
        registry.subjects()
        assert "s3cret" not in repr(registry)
        server.status = 401
        with pytest.raises(ReplicationError) as found:
            registry.subjects()
        assert found.value.code == "target:registry-login-refused"
        assert "s3cret" not in str(found.value)
    assert server.logins[0] == "Basic YW5uOnMzY3JldA=="
    assert server.logins[2] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("status", "code", "retry", "scope"),
    [
        (503, "unreachable", Retry.AUTO, Scope.RUN),
        (429, "unreachable", Retry.AUTO, Scope.RUN),
        (403, "login-refused", Retry.AFTER_FIX, Scope.RUN),
        (409, "incompatible", Retry.AFTER_FIX, Scope.TABLE),
        (422, "schema", Retry.AFTER_FIX, Scope.TABLE),
        (404, "answer", Retry.AFTER_FIX, Scope.RUN),
        (302, "answer", Retry.AFTER_FIX, Scope.RUN),
    ],
)
def test_each_refusal_has_its_error(
    server: Server, status: int, code: str, retry: Retry, scope: Scope
) -> None:
    """Guards who tries again and what stops; a refused schema is asked for again."""
    server.status = status
    registry = Registry(server.url)
    for _ in range(2):
        with pytest.raises(ReplicationError) as found:
            ids_of(registry, table(full=True), FeedOptions(format="avro"), "t")
        assert found.value.code == f"target:registry-{code}"
        assert (found.value.retry, found.value.scope) == (retry, scope)
        assert "(" + "subject" + ")" not in found.value.message.text
    assert len(server.asked) == 2
    assert pickle.loads(pickle.dumps(found.value)).code == found.value.code


def test_what_is_no_registry_is_named(server: Server) -> None:
    """Guards answers that are not JSON, and a server that is not there."""
    server.body = b"<html>"
    registry = Registry(server.url)
    with pytest.raises(ReplicationError, match="target:registry-answer"):
        registry.register("s", "{}")
    with pytest.raises(ReplicationError, match="target:registry-unreachable"):
        Registry("http://127.0.0.1:1/").subjects()
    with pytest.raises(ReplicationError, match="target:registry-answer"):
        Registry("127.0.0.1/no-scheme").subjects()
    tls = Registry(server.url.replace("http:", "https:"))
    with pytest.raises(ReplicationError, match="target:registry-tls"):
        tls.subjects()


def test_a_schema_is_described() -> None:
    """Guards the messages of the topic of schemas."""
    key, value = schema_message(
        table(full=True), FeedOptions(format="avro"), topic="shop.t", after=5
    )
    assert json.loads(key) == ["s", "t"]
    found = json.loads(value)
    assert found["columns"][0] == {
        "name": "id",
        "type": {"type": "Int", "bits": 64, "signed": True},
        "native": "int8",
        "nullable": True,
    }
    assert (found["topic"], found["after"], found["key"]) == ("shop.t", 5, ["id", "part"])
    assert found["value_schema"]["name"] == "Value"
    assert found["key_schema"]["name"] == "Key"
    _, plain = schema_message(table(full=True), FeedOptions(), topic="t", after=0)
    assert "value_schema" not in json.loads(plain)
