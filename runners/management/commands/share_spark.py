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

from replicators.config import InvalidConfig, source_plugin, target_plugin
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.services import target_of
from runners.management.commands import run_replicator
from runners.supervision import starter
from runners.supervision.jobs import shares_spark


def _start_runs(folder: Path, lock: int) -> None:
    """Have the runs of this machine started as copies of one process."""
    packages: set[str] = set()
    modules: set[str] = set()
    with suppress(DatabaseError):  # runs import what is missing
        for replicator in Replicator.objects.live():
            with suppress(InvalidConfig, ReplicationError):  # for the run to report
                if shares_spark(replicator):
                    source_plugin(replicator.source_kind)
                    target = target_plugin(replicator.target_kind)
                    packages.add(f"replicators.sources.{replicator.source_kind}")
                    packages.add(f"replicators.targets.{replicator.target_kind}")
                    modules.update(target.modules(target_of(replicator)))
    connections.close_all()  # a copy opens its own
    found = [p for name in sorted(packages) for p in _package(name)]
    starter.begin(folder, found, sorted(modules), _run, lock)


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
