"""A server that plays Google's service of tokens, and keys of service accounts for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def key(token_uri: str = "https://oauth2.googleapis.com/token") -> str:  # noqa: S107 - an address
    """The content of a key file."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    names = {
        "type": "service_account",
        "client_email": "me@example.org",
        "client_id": "1",
        "private_key_id": "2",
        "project_id": "p",
    }
    return json.dumps({**names, "private_key": text, "token_uri": token_uri})


class Tokens(HTTPServer):
    """`answer`: what it says to everybody. `asked`: how often."""

    asked = 0
    answer: tuple[int, dict[str, Any]] = (
        200,
        {"access_token": "t", "expires_in": 3600, "token_type": "Bearer"},
    )

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}/token"


class _Handler(BaseHTTPRequestHandler):
    server: Tokens

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        status, said = self.server.answer
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def google_tokens() -> Iterator[Tokens]:
    """The server, in this process."""
    with Tokens(("127.0.0.1", 0), _Handler) as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        made.shutdown()
