"""A server before the search server, which refuses requests as a test wants, and may speak TLS."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

from tests.search_server import SearchServer

Refuse = Callable[[str, Message, bytes], int | None]
"""The status for a request with this path, headers and body; None: it goes on to the server."""


@contextmanager
def before(
    server: SearchServer, refuse: Refuse, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """The address of such a server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status = refuse(self.path, self.headers, data)
            if status is not None:
                self.answer(status, b"{}")
                return
            kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            got = urllib3.request(self.command, server.url + self.path, body=data, headers=kind)
            self.answer(got.status, got.data)

        do_GET = do_POST = do_PUT = do_DELETE = forward

        def answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    class Proxy(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that does not trust the certificate goes away: that is what tests want."""

        def finish_request(self, request: Any, client_address: Any) -> None:
            if tls is not None:
                request = tls.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)

    with Proxy(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            scheme = "https" if tls else "http"
            yield f"{scheme}://127.0.0.1:{proxy.server_port}"
        finally:
            proxy.shutdown()
            thread.join()
