"""The process that keeps the Spark which runs of this machine share. The worker for runs starts and
watches it; people never start it."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connections

from replicators.models import Replicator
from runners.management.commands import run_replicator
from runners.supervision import starter


def _start_runs(folder: Path, lock: int) -> None:
    """Have the runs of this machine started as copies of one process."""
    kinds: list[tuple[str, str]] = []
    with suppress(DatabaseError):  # runs import what is missing
        kinds += Replicator.objects.live().values_list("source_kind", "target_kind").distinct()
    connections.close_all()  # a copy opens its own
    names = {f"replicators.sources.{source}" for source, _ in kinds}
    names |= {f"replicators.targets.{target}" for _, target in kinds}
    starter.begin(folder, [p for name in sorted(names) for p in _package(name)], _run, lock)


def _package(name: str) -> list[ModuleType]:
    """The plugin's package; none for a plugin from elsewhere."""
    with suppress(ImportError):
        return [importlib.import_module(name)]
    return []


def _run(run_id: str) -> None:
    run_replicator.Command().run_from_argv(["manage.py", "run_replicator", run_id])


class Command(BaseCommand):
    """Exit codes: 0 nobody needed it any more, 1 Spark could not start or ended."""

    help = "Keeps the Spark that runs share (internal: started by the worker for runs)."
    requires_system_checks: Any = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Keep it to the end, and exit at once: a thread of a client must not keep it alive."""
        from runners.engine.tasks.sharing.keeper import keep

        code = keep(settings.RUNNER, beside=_start_runs)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
