"""A server in front of a store that refuses some requests, as a store does whose user lacks a
right. It is a process of its own: some clients hold Python's lock while they read."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_ASKED = "/_refuse"
_OWN = {"connection", "transfer-encoding", "expect", "content-length"}


@dataclass(frozen=True, slots=True)
class Refusing:
    """Where it listens."""

    url: str

    def refuse(self, pattern: str = "", status: int = 403, said: str = "") -> None:
        """From now on, refuse requests whose "METHOD path" has the pattern; empty: none."""
        body = json.dumps({"pattern": pattern, "status": status, "said": said}).encode()
        request = urllib.request.Request(self.url + _ASKED, body)
        urllib.request.urlopen(request, timeout=10).close()


def body_of(handler: BaseHTTPRequestHandler) -> bytes:
    """The body of a request, also of one in chunks."""
    size = int(handler.headers.get("Content-Length") or 0)
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(size)
    found = b""
    while size := int(handler.rfile.readline().split(b";")[0], 16):
        found += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return found


@contextmanager
def refusing(backend: str) -> Iterator[Refusing]:
    """The server before `backend`, on a port of its own. It refuses nothing yet."""
    command = [sys.executable, "-m", "tests.refusing", backend]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Refusing(process.stdout.readline().strip())
        finally:
            process.terminate()
            process.wait(20)


class _Server(ThreadingHTTPServer):
    backend = ""
    refused: dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _go(self) -> None:
        body = body_of(self)
        if self.path == _ASKED:
            self.server.refused = json.loads(body)
            self._say(200, {}, b"")
            return
        refused = self.server.refused
        if refused.get("pattern") and re.search(refused["pattern"], f"{self.command} {self.path}"):
            kind = {"Content-Type": "application/json"}
            self._say(refused["status"], kind, refused["said"].encode())
            return
        target = urlsplit(self.server.backend)
        made = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=60)
        with closing(made) as connection:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _OWN}
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            self._say(answer.status, dict(answer.getheaders()), answer.read())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = _go  # noqa: N815 - http.server's names

    def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        size = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        for name, value in {**headers, "Content-Length": size}.items():
            if name.lower() not in _OWN or name == "Content-Length":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


if __name__ == "__main__":
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.backend, server.refused = sys.argv[1], {}
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
