"""Old versions are removed now and then: soon enough for the promised history, not with each
compaction."""

from __future__ import annotations

import pytest

from replicators.connectors.params import parse
from replicators.targets.lakehouse.expiry import Expiry, retention
from replicators.targets.lakehouse.params import LakehouseParams


def test_it_is_due_once_a_quarter_of_the_history_for_each_table() -> None:
    """Guards `Expiry.is_due` (CORRECTNESS 32): with every compaction it would look at all files of
    a table, and never, old versions would pile up."""
    now = [0.0]
    values = {"warehouse": "/w", "format": "delta", "history_minutes": 60}
    expiry = Expiry(parse(LakehouseParams, values), lambda: now[0])
    assert expiry.is_due(("shop", "orders"))
    assert not expiry.is_due(("shop", "orders"))
    assert expiry.is_due(("shop", "customers"))
    now[0] = 899.0
    assert not expiry.is_due(("shop", "orders"))
    now[0] = 900.0
    assert expiry.is_due(("shop", "orders"))
    assert not expiry.is_due(("shop", "orders"))


def test_without_history_it_is_always_due() -> None:
    """Guards `Expiry` where no history is promised: versions that nobody may read are not kept
    until some time has passed."""
    values = {"warehouse": "/w", "format": "delta", "history_minutes": 0}
    expiry = Expiry(parse(LakehouseParams, values), lambda: 5.0)
    assert all(expiry.is_due(("shop", "orders")) for _ in range(3))


@pytest.mark.parametrize(("minutes", "days"), [(0, 1), (30, 1), (1440, 1), (1441, 2), (43200, 30)])
def test_a_delta_log_is_kept_as_long_as_the_history(minutes: int, days: int) -> None:
    """Were it kept for a day, as it was, versions of a longer history could not be opened: their
    log is gone."""
    values = {"warehouse": "/w", "format": "delta", "history_minutes": minutes}
    kept = retention(parse(LakehouseParams, values))
    assert set(kept.values()) == {f"interval {days} days"} and len(kept) == 2


def test_a_delta_log_is_kept_as_long_as_single_versions_are() -> None:
    """A version whose log was cleaned up can't be opened, though its files were spared. Files are
    not kept longer by that."""
    values = {"warehouse": "/w", "format": "delta", "history_minutes": 30}
    kept = retention(parse(LakehouseParams, values), 32 * 3600.0)
    assert kept == {
        "delta.logRetentionDuration": "interval 2 days",
        "delta.deletedFileRetentionDuration": "interval 1 days",
    }
