"""The process of a run, with the engine's loop replaced at its one seam."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from runners.engine.processes import LEASE
from runners.engine.store.protocol import chosen
from runners.management.commands import run_replicator
from runners.models import LogLine, Run
from runners.selectors import replicator_status
from runners.states import RunState
from tests.app.factories import SECRET, make_run

ROOT = Path(__file__).parents[2]


def test_the_web_process_never_imports_spark_nor_what_writes_sql() -> None:
    code = (
        "import django, sys; django.setup(); import replicators.project.urls, runners.tasks; "
        "import replicators.project.wsgi; from replicators.connectors import registry; "
        "registry.sources(); registry.targets(); "
        "assert not {'pyspark', 'sqlglot'} & set(sys.modules)"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
        "SECRET_KEY": "x",
        "REPLICATOR_SECRET_KEY": "x",
        "DATABASE_URL": "sqlite://:memory:",
        "PATH": "",
    }
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment)


@pytest.mark.django_db(transaction=True)
class TestCommand:
    """What it tells the supervisor."""

    @pytest.fixture
    def run(self, replicator: Replicator) -> Run:
        return make_run(replicator)

    def _call(self, run: Run, monkeypatch: pytest.MonkeyPatch, loop: Any) -> int:
        import runners.engine.run

        monkeypatch.setattr(runners.engine.run, "run_engine", loop)
        monkeypatch.setattr(run_replicator.signal, "signal", lambda *_: None)
        monkeypatch.setenv(LEASE, run.lease)
        with pytest.raises(SystemExit) as caught:
            call_command("run_replicator", str(run.pk))
        run.refresh_from_db()
        return int(caught.value.code or 0)

    def test_it_runs_the_job_with_the_replicators_options(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Replicator.objects.update(options={"seal_seconds": 3, "keep_hours": 2})
        seen: dict[str, Any] = {}

        def loop(
            job: Any, store: Any, settings: Any, stop: threading.Event, *, is_shared: bool
        ) -> None:
            seen.update(job=job, store=store, settings=settings, state=Run.objects.get().state)

        assert self._call(run, monkeypatch, loop) == 0
        job = seen["job"]
        assert (job.replicator, job.slot) == (str(run.replicator_id), run.replicator.slot_name)
        assert job.source_params.password == SECRET
        assert SECRET not in repr(job)
        assert {t.id for t in chosen(seen["store"])} == {
            TableId("shop", "orders"),
            TableId("shop", "customers"),
        }
        assert (seen["settings"].seal_seconds, seen["settings"].keep_seconds) == (3.0, 7200.0)
        assert seen["state"] == RunState.RUNNING
        assert run.step == "done"
        assert run.pid

    def test_an_error_is_stored_before_it_leaves(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def loop(*_: Any, **__: Any) -> None:
            try:
                raise OSError(f"server said {SECRET}")
            except OSError as err:
                raise ReplicationError("source:unreachable", host="h", port=1) from err

        assert self._call(run, monkeypatch, loop) == 3
        assert (run.error_code, run.error_facts) == (
            "source:unreachable",
            {"host": "h", "port": "1"},
        )
        texts = " ".join(LogLine.objects.values_list("text", flat=True))
        assert "OSError" in texts
        assert SECRET not in texts

    def test_what_it_does_not_know_is_unexpected(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def loop(*_: Any, **__: Any) -> None:
            raise RuntimeError("boom")

        assert self._call(run, monkeypatch, loop) == 1
        assert run.error_facts == {"name_of_error": "RuntimeError"}

    def test_without_the_lease_it_does_nothing(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run.lease = "another"
        assert self._call(run, monkeypatch, lambda *_: pytest.fail("it ran")) == 3
        assert run.pid is None

    def test_a_stop_asked_before_the_start_is_obeyed(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Run.objects.update(state=RunState.STOPPING, is_stop_asked=True)
        assert self._call(run, monkeypatch, lambda *_: pytest.fail("it ran")) == 0


@pytest.mark.django_db
def test_the_status_answer_has_the_form_that_was_promised(replicator: Replicator) -> None:
    assert replicator_status(replicator) == {
        "id": str(replicator.pk),
        "name": "shop to lakehouse",
        "state": "paused",
        "desired_state": "paused",
        "lag_seconds": None,
        "next_delivery_at": None,
        "consistent_at": None,
        "error": None,
        "retention": {
            "is_short": False, "log_hours_left": None, "source_hours_left": None, "warn_hours": 6.0,
            "action": "warn", "gives_up_hours": 0.0,
        },
        "copy": {
            "tables": 2, "tables_done": 0, "rows": 0, "rows_expected": None, "percent": None,
            "rows_per_second": None, "seconds_left": None,
        },
        "tables": [
            {
                "schema": "shop", "table": name, "state": "paused", "rows_snapshotted": 0,
                "snapshot_percent": 0, "inserts": 0, "updates": 0, "deletes": 0,
                "lag_seconds": None, "error": None,
            }
            for name in ("customers", "orders")
        ],
    }  # fmt: skip


@pytest.mark.django_db
def test_an_error_of_a_table_is_shown_with_what_to_do(replicator: Replicator) -> None:
    replicator.table_rows.filter(name="orders").update(
        state="failing", error_code="target:table-missing", error_facts={"table": "shop.orders"}
    )
    (error,) = [t["error"] for t in replicator_status(replicator)["tables"] if t["error"]]
    assert error["message"] == "The target table of `shop.orders` was dropped or renamed."
    assert error["suggestion"].startswith("Re-sync the table.")
