"""The engine copies from a source into a target that it never heard of: snapshot, then changes, on
local tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

from replicators.connectors import registry
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from runners.engine import run
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore, TableState
from runners.engine.tasks.local import LocalTasks
from tests.dummies.found import dummies
from tests.harness import until

STRIKES = TableId("hall", "strikes")
SECONDS = 60.0


@pytest.fixture(autouse=True)
def _dummies() -> Iterator[None]:
    with dummies():
        yield


def minutes(sheet: Path) -> list[int]:
    """What is on paper, as far as its last whole line."""
    whole = sheet.read_text().rpartition("\n")[0] if sheet.exists() else ""
    rows = [line for line in whole.split("\n") if line]
    return [int(row.partition("'minute': ")[2].partition(",")[0]) for row in rows]


def test_a_run_copies_from_one_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards that only protocols tell the engine what to do: no name and no field of a known
    plugin."""
    source, target = registry.sources()["clock"], registry.targets()["paper"]
    clock = {"now": 1_000}
    for name in ("poll", "snapshot", "control"):
        module = import_module(f"replicators.sources.clock.{name}")
        monkeypatch.setattr(module, "minute_now", lambda: clock["now"])
    monkeypatch.setattr(run, "opened_for", lambda *_, **__: nullcontext())
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    job = Job(
        replicator="6d2c7f55-0000-4000-8000-000000000001",
        name="hours on paper",
        slot="hours",
        source=source,
        source_params=parse(source.params, {"place": "hall"}),
        target=target,
        target_params=parse(target.params, {"drawer": str(tmp_path / "drawer")}),
    )
    settings = RunnerSettings(
        log_url=str(tmp_path / "log"), seal_seconds=0.1, merge_seconds=0.1, disk_reserve_bytes=1
    )
    store, stop = MemoryStore([STRIKES]), threading.Event()
    failed: list[Exception] = []

    def go() -> None:
        try:
            run.run_engine(job, store, settings, stop)
        except Exception as err:  # noqa: BLE001 - reported by the test
            failed.append(err)

    thread = threading.Thread(target=go)
    thread.start()
    sheet = tmp_path / "drawer" / "hall.strikes.1.txt"

    def said() -> str:
        return f"{minutes(sheet)} {failed} {store.tables()}"

    try:
        until(lambda: failed or len(minutes(sheet)) == 60, said, SECONDS)
        clock["now"] = 1_003
        until(lambda: failed or len(minutes(sheet)) >= 63, said, SECONDS)
    finally:
        stop.set()
        thread.join(SECONDS)
    assert failed == [] and not thread.is_alive()
    assert minutes(sheet) == list(range(941, 1_004))
    assert [row.state for row in store.tables()] == [TableState.REPLICATING]
