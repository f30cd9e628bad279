"""A run of a replicator that was built in the browser, in a process of its own, without a JVM where
another program is not asked for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runners.engine.processes import LEASE, end_session
from tests.e2e.conftest import Web
from tests.forking import forks
from tests.harness import FAST

_RUN = """
from datetime import timedelta
from django.utils import timezone
from replicators.models import Replicator
from runners.models import Run
Run.objects.filter(replicator__name="{name}").delete()
Run.objects.create(pk="{pk}", replicator=Replicator.objects.get(name="{name}"), lease="{lease}",
                   lease_until=timezone.now() + timedelta(seconds=120))
"""


LOCAL = ("-m", "tests.local.run")
PRODUCT = ("manage.py", "run_replicator")
"""The program itself, with its own Spark."""


@contextmanager
def running(web: Web, folder: Path, name: str, program: Sequence[str] = LOCAL) -> Iterator[None]:
    """The replicator of that name runs; it is killed with SIGKILL at the end."""
    pk, lease = uuid.uuid4(), uuid.uuid4().hex
    web.shell(_RUN.format(pk=pk, lease=lease, name=name))
    environment = {
        **web.environment, **FAST, LEASE: lease, "REPLICATOR_LOG_URL": str(folder / "log"),
    }  # fmt: skip
    output = folder / f"{pk}.log"
    process = forks().start([*program, str(pk)], environment, output)
    try:
        yield
        assert process.poll() is None, output.read_text()[-3000:]
    finally:
        process.kill()
        process.wait(10)
        end_session(process.pid)
