"""A private search server (OpenSearch) of one node without security, for the tests."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import urllib3

from demo.embedded import EmbeddedServer
from demo.postgres import HOST, free_port
from setup import machine

ROOT = Path(__file__).resolve().parents[1]
JARS = ROOT / "var" / "opensearch"
MEMORY = "512m"


class SearchServerError(RuntimeError):
    """The server is not set up, or did not start. The text ends with its log."""


@dataclass
class SearchServer(EmbeddedServer):
    """One server. With a folder, its data and its port outlive the process."""

    label = "opensearch"
    title = "The search server"
    start_seconds = 60.0
    error = SearchServerError

    @property
    def url(self) -> str:
        """The address of its REST interface."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        if not any(JARS.glob("opensearch-2*.jar")):
            raise SearchServerError(f"{JARS} is missing: `make setup-tests` installs it.")
        return super().start()

    def ask(self, method: str, path: str, body: Any = None, *, must: bool = True) -> Any:
        """A request as any client makes it; the answer, parsed. `must`: it has to succeed."""
        found = urllib3.request(method, f"{self.url}{path}", json=body, timeout=30.0)
        if must:
            assert found.status < 300, found.data
        return found.json()

    def _command(self) -> Sequence[str]:
        (self.home / "config").mkdir(exist_ok=True)
        return [
            _java(), f"-Xms{MEMORY}", f"-Xmx{MEMORY}", "-XX:+UseSerialGC",
            "-cp", f"{JARS}/*", "org.codehaus.janino.SimpleCompiler",
            str(Path(__file__).with_name("SearchServer.java")), "SearchServer",
            str(self.home), str(self.port), str(free_port()),
        ]  # fmt: skip

    def _environment(self) -> Mapping[str, str]:
        return dict(os.environ)

    def _answers(self) -> bool:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            answer = urllib3.request(
                "GET", f"{self.url}/_cluster/health", timeout=2.0, retries=False
            )
            return answer.status == 200
        return False


def _java() -> str:
    home = machine.java_home()
    return str(home / "bin" / "java") if home else "java"
