"""The process of a verification, with the comparison replaced at its one seam."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from runners.engine.processes import LEASE
from runners.engine.verify.report import Report
from runners.management.commands import verify_replicator
from runners.management.commands.verify_replicator import Renewal
from runners.models import LogLine
from runners.verifications import Verification
from runners.verifying.record import Record
from runners.verifying.services import verification_start
from tests.app.factories import SECRET
from tests.app.verified import AT, DIFFERENT, begun, table_report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("readable")]

Compared = Callable[[Record], Report]


@pytest.fixture
def waiting(replicator: Replicator) -> Verification:
    row = verification_start(replicator=replicator, actor=None)
    row.lease, row.lease_until = "lease", timezone.now()
    row.save()
    return row


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command with this comparison; returns its exit code."""

    def call(row: Verification, compared: Compared, lease: str = "lease") -> int:
        monkeypatch.setattr(verify_replicator, "_compared", lambda *given: compared(given[-1]))
        monkeypatch.setattr(verify_replicator.signal, "signal", lambda *_: None)
        monkeypatch.setenv(LEASE, lease)
        with pytest.raises(SystemExit) as caught:
            call_command("verify_replicator", str(row.pk))
        row.refresh_from_db()
        return int(caught.value.code or 0)

    return call


def test_it_ends_with_the_report(waiting: Verification, verify: Any) -> None:
    def compared(record: Record) -> Report:
        waiting.refresh_from_db()
        assert (waiting.state, waiting.pid is not None) == ("running", True)
        table = table_report(record.options().tables[1], DIFFERENT)
        record.table_done(table)
        return Report(AT, AT, (table,))

    assert verify(waiting, compared) == 0
    assert (waiting.state, waiting.outcome) == ("done", "different")
    assert "The verification has ended." in LogLine.objects.values_list("text", flat=True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReplicationError("source:unreachable", host="h", port="1"), "source:unreachable"),
        (ValueError(f"password={SECRET}"), "internal:unexpected"),
    ],
)
def test_an_error_is_recorded_and_logged_without_secrets(
    waiting: Verification, verify: Any, error: Exception, code: str
) -> None:
    def compared(_: Record) -> Report:
        raise error

    assert verify(waiting, compared) == 0
    assert (waiting.state, waiting.error_code) == ("failed", code)
    assert not [t for t in LogLine.objects.values_list("text", flat=True) if SECRET in t]


def test_another_process_lease_starts_nothing(waiting: Verification, verify: Any) -> None:
    assert verify(waiting, lambda _: pytest.fail("it compares"), lease="another") == 3
    assert waiting.state == "waiting"


def test_one_that_was_replaced_leaves_the_row_alone(waiting: Verification, verify: Any) -> None:
    def compared(record: Record) -> Report:
        Verification.objects.update(lease="another")
        return Report(AT, AT, ())

    assert verify(waiting, compared) == 0
    assert (waiting.state, waiting.lease) == ("running", "another")


@pytest.mark.parametrize("lost", ["lease", "silence"])
def test_a_process_that_lost_its_lease_or_is_silent_ends_itself(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Guards the lease: two processes would compare the same tables, and a stuck one would look
    alive for ever."""
    row, record = begun(replicator)
    killed = threading.Event()
    monkeypatch.setattr(verify_replicator, "kill_own_group", killed.set)
    monkeypatch.setattr(verify_replicator, "RENEW_SECONDS", 0.01)
    if lost == "lease":
        Verification.objects.update(lease="another")
    record.heard_at = time.monotonic() - (100 if lost == "silence" else 0)
    renewal = Renewal(record, lease_seconds=60, silent_seconds=50)
    assert killed.wait(timeout=10)
    renewal.close()
    row.refresh_from_db()
    assert row.error_code == ("verify:stuck" if lost == "silence" else "")
