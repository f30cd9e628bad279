"""The command of a process that holds a lease: a run, or a verification."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from runners.engine.processes import LEASE

EXIT_UNEXPECTED = 1


class LeasedCommand(BaseCommand):
    """`work` does what the process is for, and returns its exit code."""

    requires_system_checks: Any = ()
    """None: checks would import every page, and the supervisor's process has passed them."""

    def run_from_argv(self, argv: list[str]) -> None:
        """Exit at once with the code: a thread that hangs must not keep an ended process alive."""
        try:
            super().run_from_argv(argv)
        except SystemExit as err:
            code = err.code if isinstance(err.code, int) else EXIT_UNEXPECTED
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def handle(self, *args: Any, **options: Any) -> None:
        """Take the lease out of the environment, which hides it from Spark's processes, and work
        to the end."""
        sys.exit(self.work(os.environ.pop(LEASE, ""), options))

    def work(self, lease: str, options: dict[str, Any]) -> int:
        """Work to the end; the lease is empty where none was given."""
        raise NotImplementedError
