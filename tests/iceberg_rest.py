"""An Iceberg REST catalog for the tests: Iceberg's own server, which checks nobody, behind a gate
that gives out tokens, refuses whoever has none, and loses answers where a test says."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import pyspark

from demo.embedded import EmbeddedServer
from demo.postgres import HOST
from replicators.targets.lakehouse.servers import DELEGATION
from replicators.targets.lakehouse.stores import s3
from setup import machine
from setup.steps import JARS, REST_CATALOG
from tests.refusing import body_of
from tests.signatures import Signer
from tests.stores import RIGHTS, Keys, ObjectStore

CLIENT, SECRET, SCOPE, WAREHOUSE = "keeper", "s3cret:of the keeper", "lake:all", "main"
FOREVER = "a-token-without-end"
TOKENS = "/idp/token"
AGAIN = "/credentials"
"""What follows a table's path where a client asks for other keys."""
_COMMIT = re.compile(r"/v1/main/namespaces/[^/]+/tables/[^/]+$")
_HADOOP = (
    "hadoop-client-api", "hadoop-client-runtime", "jcl-over-slf4j", "httpclient-4", "httpcore-4",
)  # fmt: skip
_PASSED = ("Content-Type", "Accept")
LOST = {"cut": 0, "unavailable": 503, "timeout": 504, "error": 500}
"""How an answer gets lost: its connection is cut, or a proxy says something instead."""


class RestCatalogError(RuntimeError):
    """The server is not set up, or did not start. The text ends with its log."""


@dataclass
class RestCatalogServer(EmbeddedServer):
    """Iceberg's REST catalog over a SQLite catalog in its folder. `hadoop`: settings of Hadoop's
    file system, such as a store's."""

    hadoop: Mapping[str, str] = field(default_factory=dict)
    default: str = ""
    """The folder of tables that name none; empty: one in its own folder."""

    label = "iceberg-rest"
    title = "The Iceberg REST catalog"
    start_seconds = 60.0
    error = RestCatalogError

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        if not any(REST_CATALOG.glob("iceberg-open-api*.jar")):
            raise RestCatalogError(f"{REST_CATALOG} is missing: `make setup-tests` installs it.")
        return super().start()

    def _command(self) -> Sequence[str]:
        lines = [f"<property><name>{n}</name><value>{v}</value></property>"
            for n, v in self.hadoop.items()]  # fmt: skip
        text = f"<configuration>{''.join(lines)}</configuration>"
        (self.home / "core-site.xml").write_text(text)
        spark = Path(pyspark.__file__).parent / "jars"
        own = [str(p) for name in _HADOOP for p in spark.glob(f"{name}*.jar")]
        store = [str(p) for name in s3.JARS for p in JARS.glob(f"{name}*.jar")]
        # Iceberg's tests bring a class of Hadoop's own: the true one comes first
        first = store if self.hadoop else []
        places = [str(self.home), *first, f"{REST_CATALOG}/*", *own]
        return [
            _java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", ":".join(places), "org.apache.iceberg.rest.RESTCatalogServer",
        ]  # fmt: skip

    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "CATALOG_URI": f"jdbc:sqlite:{self.home}/catalog.db",
            "CATALOG_WAREHOUSE": self.default or str(self.home / "default"),
            "CATALOG_REST_PORT": str(self.port),
        }

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), closing_connection(self.port) as connection:
            connection.request("GET", "/v1/config")
            return connection.getresponse().status == 200
        return False


def hadoop_on(store: ObjectStore, keys: Keys) -> dict[str, str]:
    """Hadoop's settings for a store, as somebody who runs the server writes them."""
    provider = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    return {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": store.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": keys.access,
        "fs.s3a.secret.key": keys.secret,
        "fs.s3a.aws.credentials.provider": provider,
    }


@contextmanager
def closing_connection(port: int) -> Iterator[http.client.HTTPConnection]:
    """A connection to a server here."""
    connection = http.client.HTTPConnection(HOST, port, timeout=60.0)
    try:
        yield connection
    finally:
        connection.close()


class Lender:
    """Lends keys of a store for single folders. They may do there what the documentation asks for,
    and nothing elsewhere. Those of a folder are lent to all who ask for `seconds`; twice as long
    after they were made, they open nothing any more."""

    def __init__(self, store: ObjectStore, by: Keys, seconds: float) -> None:
        self.seconds = seconds
        self.ended = 0
        self._store = store
        self._by = by
        self._lent: dict[str, tuple[Keys, float]] = {}
        self._former: list[tuple[Keys, float]] = []
        self._lock = threading.Lock()

    def lend(self, location: str) -> dict[str, str]:
        """Keys for a folder, as a catalog says them."""
        now = time.time()
        with self._lock:
            while self._former and self._former[0][1] < now:
                self._store.end(self._former.pop(0)[0], self._by)
                self.ended += 1
            keys, ends = self._lent.get(location, (None, 0.0))
            if keys is None or ends - self.seconds < now:
                if keys is not None:
                    self._former.append((keys, ends))
                below = location.partition("://")[2].partition("/")[2]
                keys = self._store.session(*RIGHTS, by=self._by, below=below)
                ends = now + 2 * self.seconds
                self._lent[location] = (keys, ends)
        return {
            "s3.access-key-id": keys.access,
            "s3.secret-access-key": keys.secret,
            "s3.session-token": keys.token,
            "s3.session-token-expires-at-ms": str(int(1000 * ends)),
        }


class Gate:
    """Forwards to the server at `port` what a known token asks for. Tokens live `seconds`; those
    who know `CLIENT` and `SECRET` get them at `TOKENS` or from the catalog itself. The warehouse
    `WAREHOUSE` is the only one, and all paths have its name, as with servers of several.

    `forbidden`: patterns of "METHOD path" that nobody may do. `counts`: what was given, refused,
    lent and lost. `signer`: in place of tokens, each request must have this signature. `lender`:
    who asks for keys with a table gets them from it. `is_open`: nobody needs a token."""

    def __init__(
        self,
        port: int,
        seconds: float = 3600.0,
        signer: Signer | None = None,
        lender: Lender | None = None,
        *,
        is_open: bool = False,
    ) -> None:
        self.backend = port
        self.signer = signer
        self.lender = lender
        self.is_open = is_open
        self.seconds = seconds
        self.forbidden: list[str] = []
        self.places: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._lost: dict[str, str] = {}
        self._tokens: dict[str, float] = {FOREVER: float("inf")}
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where people reach the catalog."""
        return f"http://{HOST}:{self._server.server_port}"

    def fields(self, **more: str) -> dict[str, str]:
        """What a form says of it, with user and password."""
        return {
            "catalog": "rest",
            "catalog_uri": self.url,
            "catalog_user": CLIENT,
            "catalog_password": SECRET,
            "catalog_token_uri": f"{self.url}{TOKENS}",
            "catalog_scope": SCOPE,
            "catalog_warehouse": WAREHOUSE,
            **more,
        }

    def lose(self, table: str, how: str) -> None:
        """The next commit to the table is done, and its answer gets lost in this way of `LOST`."""
        with self._lock:
            self._lost[table] = how

    def loss(self, method: str, path: str) -> str:
        """How the answer to this request gets lost; empty: it doesn't."""
        if method != "POST" or not _COMMIT.fullmatch(path):
            return ""
        with self._lock:
            return self._lost.pop(path.rpartition("/")[2], "")

    def token(self, asked: Mapping[str, str]) -> str | None:
        """A new token, if those who ask know the secret and say what they want it for."""
        wanted = {"grant_type": "client_credentials", "client_id": CLIENT,
            "client_secret": SECRET, "scope": SCOPE}  # fmt: skip
        if any(asked.get(name) != value for name, value in wanted.items()):
            return None
        made = secrets.token_urlsafe(16)
        with self._lock:
            self._tokens[made] = time.monotonic() + self.seconds
        return made

    def knows(self, header: str) -> bool:
        """Whether the header has a token that still lives."""
        with self._lock:
            return self._tokens.get(header.removeprefix("Bearer "), 0.0) > time.monotonic()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, gate: Gate) -> None:
        super().__init__((HOST, 0), _Handler)
        self.gate = gate


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def gate(self) -> Gate:
        """Whose requests these are."""
        server: Any = self.server
        gate: Gate = server.gate
        return gate

    def _say(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _fail(self, status: int, kind: str, message: str) -> None:
        self.gate.counts[kind] += 1
        error = {"message": message, "type": kind, "code": status}
        self._say(status, json.dumps({"error": error}).encode())

    def _token(self, body: bytes) -> None:
        asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        made = self.gate.token(asked)
        if made is None:
            self.gate.counts["refused"] += 1
            self._say(401, json.dumps({"error": "invalid_client"}).encode())
            return
        self.gate.counts["given"] += 1
        found = {"access_token": made, "token_type": "bearer", "expires_in": self.gate.seconds}
        self._say(200, json.dumps({**found, "expires_in": int(self.gate.seconds)}).encode())

    def _go(self) -> None:
        body = body_of(self)
        place = urlsplit(self.path)
        if place.path in {TOKENS, "/v1/oauth/tokens"}:
            self._token(body)
        elif refused := self._refused(body):
            self._fail(*refused)
        elif place.path == "/v1/config":
            self._config(parse_qs(place.query).get("warehouse", [""])[0])
        elif not place.path.startswith(f"/v1/{WAREHOUSE}/"):
            self._fail(404, "NotFoundException", "no such path")
        elif any(re.search(p, f"{self.command} {place.path}") for p in self.gate.forbidden):
            self._fail(403, "ForbiddenException", "no right to do this")
        elif place.path in self.gate.places:
            self._lend_again(self.gate.places[place.path])
        else:
            self._forward(place.path, body)

    def _refused(self, body: bytes) -> tuple[int, str, str] | None:
        """What is wrong with who asks."""
        if signer := self.gate.signer:
            fault = signer.fault(self.command, self.path, self.headers, body)
            if not fault:
                self.gate.counts["signed"] += 1
            said = f"The request signature we calculated does not match: {fault}"
            return (403, "InvalidSignatureException", said) if fault else None
        if self.gate.is_open or self.gate.knows(self.headers.get("Authorization") or ""):
            return None
        return 401, "NotAuthorizedException", "no token, or one that has expired"

    def _config(self, warehouse: str) -> None:
        if warehouse != WAREHOUSE:
            self._fail(404, "NoSuchWarehouseException", f"no warehouse {warehouse!r}")
            return
        with closing_connection(self.gate.backend) as connection:
            connection.request("GET", "/v1/config")
            said: dict[str, Any] = json.loads(connection.getresponse().read())
        said["overrides"] = {**(said.get("overrides") or {}), "prefix": WAREHOUSE}
        self._say(200, json.dumps(said).encode())

    def _forward(self, path: str, body: bytes) -> None:
        loss = self.gate.loss(self.command, path)
        headers = {n: v for n in _PASSED if (v := self.headers.get(n))}
        with closing_connection(self.gate.backend) as connection:
            plain = self.path.replace(f"/v1/{WAREHOUSE}/", "/v1/", 1)
            connection.request(self.command, plain, body or None, headers)
            answer = connection.getresponse()
            said = answer.read()
        if not loss:
            self._say(answer.status, self._with_keys(said) if answer.status == 200 else said)
            return
        self.gate.counts[f"lost {answer.status}"] += 1
        if LOST[loss]:
            self._say(LOST[loss], b"a proxy's page", "text/plain")
        self.close_connection = True

    def _with_keys(self, said: bytes) -> bytes:
        """An answer with a table's metadata, and the keys that those who ask for them get."""
        lender = self.gate.lender
        asked = self.headers.get(DELEGATION) == "vended-credentials"
        if lender is None or not asked or b'"table-uuid"' not in said:
            return said
        table: dict[str, Any] = json.loads(said)
        place = table["metadata"]["location"]
        table["storage-credentials"] = [{"prefix": place, "config": lender.lend(place)}]
        self.gate.counts["lent"] += 1
        if self.command == "GET":
            again = f"{urlsplit(self.path).path}{AGAIN}"
            self.gate.places[again] = place
            own = {"client.refresh-credentials-endpoint": again}
            table["config"] = {**(table.get("config") or {}), **own}
        return json.dumps(table).encode()

    def _lend_again(self, place: str) -> None:
        assert self.gate.lender is not None
        self.gate.counts["lent again"] += 1
        found = [{"prefix": place, "config": self.gate.lender.lend(place)}]
        self._say(200, json.dumps({"storage-credentials": found}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _go  # noqa: N815 - http.server's names

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


def _java() -> str:
    home = machine.java_home()
    return str(home / "bin" / "java") if home else "java"
