"""The tests' servers that play Redshift and Spanner, in a process of their own: the core that they
need is not the product's. `python -m benchmarks.played redshift POSTGRESQL_PORT S3_ENDPOINT` or
`... spanner`.

It writes its port as a line of JSON, and then answers a request in each line:
`{"make": database}`, `{"sums": database}` and `{"has": [database, key]}`, for Spanner only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from benchmarks.copied import sums
from benchmarks.place import ROOT
from replicators.connectors.sql.keyed import JOURNAL
from replicators.targets.spanner.naming import encoded
from tests.redshift_server import LOADER, ROLE, RedshiftServer
from tests.spanner_server import SpannerServer
from tests.stores import ObjectStore

ROWS = pa.schema(
    {
        "id": pa.int64(), "customer": pa.int64(), "status": pa.string(),
        "amount": pa.decimal128(20, 2), "note": pa.string(), "at": pa.timestamp("us", "UTC"),
        "ok": pa.bool_(),
    }
)  # fmt: skip


class Played:
    """The parent's side of the process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._answer())

    def ask(self, **request: Any) -> Any:
        """The answer to a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The server's process ended; see its log above.")
        return json.loads(line)


@contextmanager
def played(*what: str) -> Iterator[Played]:
    """A server, until the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.played", *what], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Played(process)
    finally:
        process.kill()
        process.wait()


def _row(found: dict[str, Any]) -> dict[str, Any]:
    """A row as Spanner's store has it, in Arrow's values."""
    amount, at = found["amount"], found["at"]
    return {
        **found,
        "amount": None if amount is None else Decimal(amount),
        "at": None if at is None else datetime.fromisoformat(at[:26] + "+00:00"),
        "ok": None if found["ok"] is None else bool(found["ok"]),
    }


def _answered(server: SpannerServer, asked: dict[str, Any]) -> Any:
    if "make" in asked:
        server.make(asked["make"])
        return True
    if "has" in asked:
        database, key = asked["has"]
        tables, journal = server.database(database).tables, encoded(JOURNAL[-1])
        if "events" not in tables or not server.rows(database, "events", id=key):
            return False
        # A merge over the journal is whole when the journal is empty.
        return journal not in tables or not server.rows(database, journal)
    rows = [_row(r) for r in server.rows(asked["sums"], "events")]
    return sums(pa.Table.from_pylist(rows, ROWS))


def main() -> None:
    """Serve until the standard input ends."""
    if sys.argv[1] == "redshift":
        postgres: Any = SimpleNamespace(port=int(sys.argv[2]))
        roles = {ROLE: LOADER, "default": LOADER}
        with RedshiftServer(postgres, ObjectStore(sys.argv[3]), roles) as redshift:
            print(redshift.port, flush=True)
            sys.stdin.read()
        return
    server = SpannerServer().start()
    print(server.url.rpartition(":")[2], flush=True)
    for line in sys.stdin:
        print(json.dumps(_answered(server, json.loads(line))), flush=True)
    server.stop()


if __name__ == "__main__":
    main()
