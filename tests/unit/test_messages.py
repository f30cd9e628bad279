"""Texts of codes: found wherever an error is made, brought by plugins, each code once."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicators.connectors import registry
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.lookup import UNKNOWN, is_known, message_of
from replicators.connectors.problems.message import Message, Retry, of_table
from replicators.connectors.problems.messages import MESSAGES

ROOT = Path(__file__).resolve().parents[2]
MANY = {
    # Said by the engine with the role put before it.
    "source:driver-missing",
    "source:timeout",
    "target:driver-missing",
    # Said by the lakehouse only, so far; none of them is its own.
    "target:column-case",
    "target:folder-made",
    "target:name-shared",
    "target:not-writable",
    "target:place-unusable",
    "target:progress-taken",
    "target:storage-full",
}
"""Codes of no single plugin that not two modules write out."""


def users() -> Iterator[tuple[str, str]]:
    """Code and plugin's folder (empty: none) of every place where a code is written out."""
    code = re.compile(r'"((?:source|target):[a-z0-9-]+)"')
    for app in ("replicators", "runners", "assessments", "drafts"):
        for path in (ROOT / app).rglob("*.py"):
            if path.name == "messages.py":
                continue
            name = path.relative_to(ROOT).as_posix()
            found = re.match(r"replicators/((?:sources|targets)/[a-z]+)/", name)
            for written in code.findall(path.read_text()):
                yield written, found[1] if found else ""


def test_a_code_of_one_plugin_lies_in_its_folder() -> None:
    """And a code that others use too does not."""
    places: dict[str, set[str]] = {}
    for code, plugin in users():
        places.setdefault(code, set()).add(plugin)
    owners = {c: f"sources/{n}" for n, p in registry.sources().items() for c in p.messages}
    owners |= {c: f"targets/{n}" for n, p in registry.targets().items() for c in p.messages}
    assert {c: places.get(c) for c, p in owners.items() if places.get(c) != {p}} == {}
    alone = {c for c, p in places.items() if c in MESSAGES and len(p) == 1 and "" not in p} - MANY
    assert alone == set()


PROGRAM = """
import sys
from replicators.connectors.problems.errors import ReplicationError
err = ReplicationError("source:wal-level", value="replica")
print(err)
drivers = {"psycopg", "pymysql", "pyspark", "pyiceberg", "deltalake", "numba", "django"}
print(sorted(drivers & {name.partition(".")[0] for name in sys.modules}))
"""


def test_a_new_process_knows_a_plugins_texts_without_a_driver() -> None:
    """Errors are made in Spark tasks, whose processes have imported nothing before."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    text = (
        "source:wal-level: The server's `wal_level` is `replica`; following changes needs "
        "`logical`."
    )
    assert done.stdout.splitlines() == [text, "[]"]


def test_an_error_of_a_plugin_survives_the_way_out_of_a_task() -> None:
    err = ReplicationError(
        "source:cascade", table=TableId("a", "b"), constraint="c", rule="CASCADE"
    )
    again = pickle.loads(pickle.dumps(err))
    assert (again.code, again.table, again.facts) == (err.code, err.table, err.facts)
    assert str(again) == str(err) and "`a.b`" in str(again)


def test_a_code_that_no_plugin_has_any_more_can_be_read() -> None:
    """What is stored outlives the plugin that told it."""
    assert not is_known("source:of-{a}-plugin-that-left")
    message = message_of("source:of-{a}-plugin-that-left")
    assert "`source:of-{a}-plugin-that-left`" in message.text
    assert message.render({"x": "1"}).suggestion == MESSAGES[UNKNOWN].suggestion
    assert message.retry is Retry.AUTO


def test_an_error_without_a_text_is_not_raised() -> None:
    with pytest.raises(KeyError, match="no message for error code 'source:never-written'"):
        ReplicationError("source:never-written")


WHOLE = Message("Title", "Text.", "Do it.")


@pytest.mark.parametrize(
    ("own", "reported"),
    [
        ({"source:unreachable": WHOLE}, "'source:unreachable' is taken by the program"),
        ({"source:wal-level": WHOLE}, "'source:wal-level' is taken by postgresql"),
        ({"target:clock": WHOLE}, "'target:clock' does not look like `source:some-words`"),
        ({"source:Clock Stopped": WHOLE}, "does not look like"),
        ({"source:clock": Message("", "Text.", "")}, "'source:clock' has no title and no sugg"),
        ({"source:clock": of_table("Title", "", "Do it.")}, "'source:clock' has no text"),
    ],
)
def test_a_code_taken_twice_or_without_a_text_is_refused(
    own: dict[str, Message], reported: str
) -> None:
    taken = dict.fromkeys(MESSAGES, "the program itself") | {"source:wal-level": "postgresql"}
    with pytest.raises(LookupError, match=reported):
        registry.check_messages("source", "clock", own, taken)


def test_codes_of_a_sound_plugin_are_taken_then() -> None:
    taken: dict[str, str] = {}
    registry.check_messages("source", "clock", {"source:clock-stopped": WHOLE}, taken)
    assert taken == {"source:clock-stopped": "clock"}
