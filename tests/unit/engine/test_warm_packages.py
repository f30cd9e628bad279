"""What is compiled at set-up: a fault of another package's source stops nothing, one of ours
does."""

from __future__ import annotations

import pytest

from runners.engine.tasks.warm import _warm_module


def test_a_module_of_another_package_may_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    _warm_module("acme_clock.decode")
    reported = capsys.readouterr().err
    assert reported.startswith("acme_clock.decode is not compiled beforehand: ModuleNotFoundError")


def test_a_module_of_ours_may_not() -> None:
    with pytest.raises(ModuleNotFoundError):
        _warm_module("replicators.sources.that_is_missing.decode")
