"""What the data source plans, and what it refuses, against a server in this process. No Spark
session is needed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from replicators.spark import source as module
from replicators.spark.__main__ import pack
from replicators.spark.errors import ChangesError
from replicators.spark.options import parsed
from replicators.spark.rest import ChangeFile
from replicators.spark.source import Changes, ChangesStreamReader, ReplicatorSource, grouped

ID = "6d2c7f55-0000-4000-8000-000000000001"
LONG = {"type": "Int", "bits": 64, "signed": True}
TEXT = {"type": "String", "length": None}
OLD = [{"name": "id", "type": LONG}]
NEW = [*OLD, {"name": "note", "type": TEXT}]


def file(first: int, version: str = "v1", rows: int = 1) -> ChangeFile:
    return ChangeFile(first, first + rows - 1, rows, 10, 0, version, f"/log/{first}.parquet")


@dataclass
class Server:
    """What the server answers. `asked` holds the addresses, `busy` how often it is busy first."""

    url: str = ""
    generation: int = 1
    kept_after: int = 9
    until: int = 50
    files: list[ChangeFile] = field(default_factory=list)
    schemas: dict[str, Any] = field(default_factory=lambda: {"v1": OLD, "v2": NEW})
    newest: str = "v1"
    busy: int = 0
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if self.busy:
            self.busy -= 1
            return 503, {"message": "Busy."}
        if path == "/api/v1/replicators/":
            return 200, {"results": [{"id": ID, "name": "shop to lake"}], "next": None}
        if path != f"/api/v1/replicators/{ID}/tables/changes/":
            return 404, {"message": "There is nothing."}
        after, upto = int(query["after"]), int(query.get("upto", self.until))
        found = [f for f in self.files if f.last_sequence > after and f.first_sequence <= upto]
        found = found[: min(2, int(query["limit"]))]  # two a page
        return 200, {
            "generation": self.generation, "kept_after": self.kept_after, "until": self.until,
            "position": 3, "skipped_operations": [], "columns": self.schemas[self.newest],
            "key": ["id"], "after": found[-1].last_sequence if found else after,
            "schemas": {v: {"columns": c, "key": ["id"]} for v, c in self.schemas.items()},
            "files": [asdict(f) for f in found],
        }  # fmt: skip


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with three files."""
    made = Server(files=[file(10, rows=5), file(15, rows=5), file(20, rows=5)])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            address = urlsplit(self.path)
            query = {k: v[0] for k, v in parse_qs(address.query).items()}
            known = self.headers["Authorization"] == "Bearer secret-token"
            status, body = (
                made.answer(address.path, query) if known else (401, {"message": "No token."})
            )
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{http.server_address[1]}"
    yield made
    http.shutdown()
    http.server_close()


def source(server: Server, **options: str) -> ReplicatorSource:
    usual = {
        "url": server.url, "token": "secret-token", "replicator": "shop to lake",
        "table": "shop.orders", "pollSeconds": "0",
    }  # fmt: skip
    made = ReplicatorSource({**usual, **options})
    assert isinstance(pickle.loads(pickle.dumps(made)), ReplicatorSource)
    return made


def batch(server: Server, **options: str) -> list[tuple[int, int, list[int]]]:
    made = source(server, **options)
    shares = made.reader(made.schema()).partitions()
    return [(s.reading.after, s.reading.upto, [f.first_sequence for f in s.files]) for s in shares]


def stream(server: Server, **options: str) -> ChangesStreamReader:
    made = source(server, **options)
    return made.streamReader(made.schema())


def at(sequence: int, generation: int = 1) -> dict[str, int]:
    return {"generation": generation, "sequence": sequence}


def test_a_batch_reads_all_that_is_kept_over_all_pages(server: Server) -> None:
    assert batch(server) == [(9, 50, [10, 15]), (9, 50, [20])]
    assert source(server).schema().names[:2] == ["id", "_operation"]


def test_a_range_has_its_first_and_its_last_sequence(server: Server) -> None:
    """Guards both ends: `startingSequence` is read too."""
    assert batch(server, startingSequence="16", endingSequence="18") == [(15, 18, [15])]
    assert batch(server, startingSequence="latest") == []
    assert batch(server, startingSequence="19", endingSequence="18") == []
    with pytest.raises(ChangesError, match="only up to sequence 50 now"):
        batch(server, endingSequence="51")


def test_a_position_that_was_pruned_is_an_error(server: Server) -> None:
    """Guards a hole that nobody sees, at a query's start and in a stream that was away."""
    server.kept_after = 14
    with pytest.raises(ChangesError, match=r"no longer has the changes after sequence 11"):
        batch(server, startingSequence="12")
    with pytest.raises(ChangesError, match=r"no longer has.*new checkpoint"):
        stream(server).partitions(at(10), at(50))
    assert batch(server, startingSequence="15")


def test_a_stream_begins_now_and_goes_on_as_changes_come(server: Server) -> None:
    reader = stream(server)
    start = reader.initialOffset()
    assert (start, reader.latestOffset()) == (at(50), at(50))
    server.until = 70
    server.files.append(file(60))
    assert reader.latestOffset() == at(70)
    (share,) = reader.partitions(start, at(70))
    assert [f.first_sequence for f in share.files] == [60]
    assert reader.partitions(at(70), at(70)) == []


def test_a_stream_until_now_asks_for_its_end_first(server: Server) -> None:
    """Guards `Trigger.AvailableNow`: the log grows between the two questions, and an end before the
    beginning stopped the query."""
    reader = stream(server)
    end = reader.latestOffset()
    server.until = 60
    assert reader.initialOffset() == end


def test_an_idle_stream_writes_few_batches_but_does_not_stay_behind(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stream(server, startingSequence="earliest")
    assert reader.initialOffset() == at(9)
    assert reader.latestOffset() == at(50)
    server.until = 60
    assert reader.latestOffset() == at(50)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    assert reader.latestOffset() == at(60)


def test_the_server_is_asked_once_in_a_while(server: Server) -> None:
    """Guards `pollSeconds`: Spark asks a hundred times a second."""
    reader = stream(server, pollSeconds="3600")
    asked = len(server.asked)
    assert [reader.latestOffset() for _ in range(50)] == [at(50)] * 50
    assert len(server.asked) == asked + 1


def test_a_stream_never_goes_back(server: Server) -> None:
    """Guards changes that would come twice: the log of a failing table may be read less far than
    it was."""
    reader = stream(server, startingSequence="earliest")
    reader.initialOffset()
    reader.latestOffset()
    server.until = 20
    assert reader.latestOffset() == at(50)
    again = stream(server)
    with pytest.raises(ChangesError, match="only up to sequence 20 now"):
        again.partitions(at(50), again.latestOffset())


def test_a_table_that_was_copied_afresh_stops_the_stream(server: Server) -> None:
    """Guards the hole between two copies."""
    server.generation = 2
    with pytest.raises(ChangesError, match=r"copied afresh \(copy 1 before, copy 2 now\)"):
        stream(server).partitions(at(12), at(50, 2))
    with pytest.raises(ChangesError, match="copied afresh"):
        stream(server).partitions(at(12), at(50))  # a batch that is planned again
    assert stream(server, onNewCopy="continue").partitions(at(12), at(50, 2))
    assert stream(server).partitions(at(12, 0), at(50, 2)), "it began before the first copy"


def test_columns_that_came_after_the_frame_stop_it(server: Server) -> None:
    """Guards values that would be left out unseen. Files from before are read by name."""
    reader = stream(server)
    goes_on = stream(server, onSchemaChange="byName")
    by_hand = source(server)
    chosen = by_hand.streamReader(source(server).schema())
    server.until = 70
    server.files.append(file(60, "v2"))
    with pytest.raises(ChangesError, match="note is new.*same checkpoint"):
        reader.partitions(at(50), at(70))
    assert goes_on.partitions(at(50), at(70))
    assert chosen.partitions(at(50), at(70)), "columns that a person chose are theirs"
    server.newest = "v2"
    assert stream(server).partitions(at(9), at(70))


def test_a_type_that_changed_is_named(server: Server) -> None:
    reader = stream(server)
    server.until = 70
    server.schemas["v3"] = [{"name": "id", "type": TEXT}]
    server.files.append(file(60, "v3"))
    with pytest.raises(ChangesError, match="id is string now"):
        reader.partitions(at(50), at(70))


def test_names_of_the_table_and_of_the_source_may_not_meet(server: Server) -> None:
    server.schemas["v1"] = [*OLD, {"name": "_Operation", "type": TEXT}]
    with pytest.raises(ChangesError, match="_Operation"):
        source(server).schema()
    names = source(server, prefix="change_").schema().names
    assert names[:3] == ["id", "_Operation", "change_operation"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"table": ""}, "`table` is missing"),
        ({"table": "orders"}, "`schema.name`"),
        ({"url": ""}, "`url` is missing"),
        ({"token": ""}, "`token` is missing"),
        ({"read": "both"}, "`download` or `direct`"),
        ({"startingSequence": "-1"}, "`earliest`, `latest`"),
        ({"endingSequence": "earliest"}, "a sequence or `latest`"),
        ({"onNewCopy": "perhaps"}, "`stop` or `continue`"),
        ({"pollSeconds": "often"}, "a number of seconds"),
    ],
)
def test_an_option_that_is_wrong_is_named(
    server: Server, options: dict[str, str], text: str
) -> None:
    with pytest.raises(ChangesError, match=text):
        source(server, **options)


def test_what_the_server_refuses_is_passed_on(server: Server) -> None:
    with pytest.raises(ChangesError, match=r"answered 401: No token\. Set the option `token`"):
        source(server, token="wrong").schema()
    with pytest.raises(ChangesError, match="no replicator called 'other'"):
        source(server, replicator="other").schema()
    with pytest.raises(ChangesError, match="answered 404"):
        source(server, replicator=ID.replace("1", "2")).schema()
    server.schemas["v1"] = []
    with pytest.raises(ChangesError, match="was not copied"):
        source(server).schema()


def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    # Only this module's `time`: other threads of the process go on sleeping.
    monkeypatch.setattr("replicators.spark.rest.time", SimpleNamespace(sleep=waits.append))
    server.busy = 2
    assert source(server, replicator=ID).schema().names
    assert len(waits) == 2
    server.busy = 9
    with pytest.raises(ChangesError, match="answered 503: Busy"):
        source(server, replicator=ID).schema()
    server.url = "http://127.0.0.1:9"
    with pytest.raises(ChangesError, match=r"127\.0\.0\.1:9 did not answer"):
        source(server).schema()


def test_the_token_is_not_shown(server: Server) -> None:
    made = source(server)
    changes = made._changes(made.schema())
    assert "secret-token" not in f"{changes!r} {parsed(made.options)!r} {vars(changes)!r}"
    assert isinstance(pickle.loads(pickle.dumps(changes)), Changes)


def test_files_are_shared_out_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards bounds of a task: rows, bytes and the number of files of one request."""
    files = [file(n) for n in range(10, 22)]
    assert [len(s) for s in grouped(files)] == [12]
    monkeypatch.setattr(module, "FILES_A_TASK", 5)
    assert [len(s) for s in grouped(files)] == [5, 5, 2]
    monkeypatch.setattr(module, "ROWS_A_TASK", 2)
    assert [len(s) for s in grouped(files)] == [2] * 6
    monkeypatch.setattr(module, "BYTES_A_TASK", 1)
    shares = grouped([*files, replace(files[0], first_sequence=30)])
    assert [f.first_sequence for s in shares for f in s] == [*range(10, 22), 30]
    assert len(shares) == 13


def test_a_notebook_needs_the_folder_alone(tmp_path: Path) -> None:
    """Guards the module's imports: elsewhere there is neither Django nor any other part of the
    program."""
    pack(str(tmp_path / "source.zip"))
    code = (
        "import sys; sys.path.insert(0, 'source.zip')\n"
        "from replicators.spark import ReplicatorSource\n"
        "import replicators.spark.source as s\n"
        "assert 'source.zip' in s.__file__, s.__file__\n"
        "own = {m for m in sys.modules if m.startswith('replicators.')}\n"
        "assert all(m.startswith('replicators.spark') for m in own), own\n"
        "assert 'django' not in sys.modules and ReplicatorSource.name() == 'replicator'"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
