"""The recipes of `docs/spark-source.md`, as written: one Spark session reads the change log of a
small run over REST."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connections

from replicators.sources.memory.database import delete, insert, update
from replicators.tokens import token_create
from runners.engine.store.protocol import MemoryStore
from runners.engine.tasks.local import LocalTasks
from runners.models import Table
from runners.store.django import DjangoStore
from runners.store.mapping import table_values
from tests.app.factories import make_replicator, make_run, make_user
from tests.local.polled import NOTES, PolledWorld, note

pytestmark = [pytest.mark.spark, pytest.mark.django_db, pytest.mark.timeout(180), pytest.mark.long]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark-source.md"


def recipes() -> str:
    """The page's code."""
    return "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S))


class World:
    """A small run, and its change log in the program's own database."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "runners.engine.run.SparkTasks", lambda _, folder: LocalTasks(folder=folder)
        )
        self.polled = PolledWorld(folder, "spark-source")
        self.polled.store = MemoryStore([NOTES])
        self.replicator = make_replicator(tables=[{"schema": NOTES.schema, "name": NOTES.name}])
        run = make_run(self.replicator)
        self.store = DjangoStore(run.pk, run.lease)
        self.user = make_user("notebook", "editor")

    def change(self, round_: int) -> None:
        """Changes of every kind, copied by a run of their own; then what it remembers."""
        base = 1000 * round_
        running = self.polled.start()
        running.until(self.polled.is_replicating)
        held = self.polled.database
        held.commit(insert(NOTES, note(base)))
        held.commit(update(NOTES, note(base), note(base, "changed")))
        held.commit(update(NOTES, note(base, "changed"), note(base + 1, "moved")))
        held.commit(delete(NOTES, note(round_)), insert(NOTES, note(base + 2)))
        running.until(lambda: self.polled.copied(NOTES) == self.polled.there(NOTES))
        running.stop()
        self._remember(self.polled.store)

    def _remember(self, held: MemoryStore) -> None:
        known = {s.number for s in self.store.segments()}
        memory = held.memory()
        assert memory.position is not None
        for segment in held.segments():
            if segment.number not in known:
                listed = held.change_files(NOTES, after=0, upto=1 << 62)
                files = [f for f in listed if f.segment == segment.number]
                self.store.record_segment(segment, memory.position, files)
        row = held.table(NOTES)
        names = ("generation", "schema", "merged_sequence", "snapshot_position", "is_snapshot_done")
        values = table_values({n: getattr(row, n) for n in names})
        mine = Table.objects.filter(replicator=self.replicator, name=NOTES.name)
        assert mine.update(state=row.state, **values) == 1


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.fixture
def server(world: World) -> Iterator[str]:
    """The program's web part, one request after the other, in the test's own transaction."""
    http = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=_Quiet)
    held = connections["default"]
    held.inc_thread_sharing()

    def serve() -> None:
        connections["default"] = held
        http.serve_forever(0.05)

    thread = Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join(20)
    http.server_close()
    held.dec_thread_sharing()


def test_the_recipes_do_what_they_say(
    spark: Any, world: World, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the page, and a restart from the checkpoint: nothing is doubled, nothing left out."""
    world.change(1)
    monkeypatch.setenv("REPLICATOR_URL", server)
    monkeypatch.setenv("REPLICATOR_TOKEN", token_create(user=world.user, name="notebook")[1])
    code: dict[str, Any] = {"spark": spark}
    exec(recipes(), code)  # noqa: S102 (our own page)
    counted = {r["_operation"]: r["count"] for r in code["by_operation"].collect()}
    assert counted == {"insert": 2, "update": 2, "delete": 1}

    rows = code["changes"].orderBy("_sequence").collect()
    olds = [r["_before"] and r["_before"]["id"] for r in rows]
    assert olds == [None, None, 1000, 1, None]
    seen = [(r["_operation"], r["id"], r["note"]) for r in rows]
    assert seen == [
        ("insert", 1000, "as it was"),
        ("update", 1000, "changed"),
        ("update", 1001, "moved"),
        ("delete", 1, None),
        ("insert", 1002, "as it was"),
    ]
    numbers = [r["_sequence"] for r in rows]
    assert numbers == sorted(set(numbers))
    between = code["changes_between"](numbers[1], numbers[3]).collect()
    assert sorted(r["_sequence"] for r in between) == numbers[1:4]

    folder = str(tmp_path / "lake")
    code["append_changes"](folder)
    written = spark.read.parquet(f"{folder}/changes")
    assert sorted(r["_sequence"] for r in written.collect()) == numbers
    code["append_changes"](folder)
    world.change(2)
    code["append_changes"](folder)
    found = Counter(r["_sequence"] for r in spark.read.parquet(f"{folder}/changes").collect())
    everything = spark.read.format("replicator").options(**code["options"]).load()
    assert found == Counter(r["_sequence"] for r in everything.collect())
    assert len(found) == 10 and set(found.values()) == {1}

    direct = spark.read.format("replicator").options(**code["options"]).option("read", "direct")
    assert sorted(map(str, direct.load().collect())) == sorted(map(str, everything.collect()))
    kept = code["present_rows"](everything.where("id IN (2, 1002, 2002)"), "id").collect()
    assert sorted(tuple(r) for r in kept) == [(1002, "as it was"), (2002, "as it was")]

    world.store.forget([s.number for s in world.store.segments()])
    with pytest.raises(Exception, match="no longer has the changes"):
        code["changes_between"](numbers[0], numbers[1]).collect()
