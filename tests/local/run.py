"""The process of a run without a JVM: `python -m tests.local.run <run>`, as `manage.py
run_replicator <run>` otherwise. The engine's parts are the product's own; tasks are threads of this
process. `TEST_RECONNECT_SECONDS` ("0.5 1.0") sets how long capture waits before each new try,
`TEST_BUCKET_SECONDS` how long the shortest bucket of a files target is, `TEST_MOST_CELLS` how many
values a commit by key takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django

from tests.local import duck
from tests.local.target import NAME, PLUGIN


@contextmanager
def _no_session(*_: Any, **__: Any) -> Iterator[None]:
    yield None


def main() -> None:
    """Set up what differs, and run."""
    django.setup()
    from replicators.connectors import registry
    from replicators.targets.files import params as files
    from runners.engine import run
    from runners.engine.capture import stream
    from runners.engine.tasks.local import LocalTasks
    from runners.management.commands.run_replicator import Command

    registry.targets()[NAME] = PLUGIN
    registry.targets()[duck.NAME] = duck.PLUGIN
    if seconds := os.environ.get("TEST_BUCKET_SECONDS"):
        files.LENGTHS["10 seconds"] = int(seconds)
    if cells := os.environ.get("TEST_MOST_CELLS"):
        from replicators.connectors.sql.keyed import KeyedClient

        KeyedClient.most_cells = int(cells)
    if waits := os.environ.get("TEST_RECONNECT_SECONDS"):
        stream.RECONNECT_SECONDS = tuple(map(float, waits.split()))
    run.opened_for = _no_session  # type: ignore[assignment]
    run.SparkTasks = lambda _, folder: LocalTasks(folder=folder)  # type: ignore[assignment, misc]
    Command().run_from_argv(["manage.py", "run_replicator", *sys.argv[1:]])


if __name__ == "__main__":
    main()
