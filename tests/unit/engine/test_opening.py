"""What is imported beforehand is there, and what can't be imported ends nothing."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from replicators.connectors import registry
from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.params import LakehouseParams
from runners.engine.tasks import worker
from runners.engine.tasks.opening import workers_conf
from runners.engine.tasks.spark import _lent


@pytest.mark.parametrize(
    ("source", "target", "count"),
    [("mysql", "lakehouse", 6), ("postgresql", "lakehouse", 6), ("postgresql", "files", 7)],
)
def test_the_modules_of_the_tasks_are_named_rightly(source: str, target: str, count: int) -> None:
    """A name that is wrong would be passed over in silence."""
    conf = workers_conf(registry.sources()[source], registry.targets()[target])
    names = conf[f"spark.executorEnv.{worker.MODULES}"].split(",")
    assert len(names) == count
    for name in (*names, conf["spark.python.daemon.module"]):
        importlib.import_module(name)


@pytest.mark.parametrize("form", ["iceberg", "delta", "rest"])
def test_so_are_those_of_the_writer(form: str) -> None:
    """Guards `PLUGIN.modules` of the lakehouse: `load_all` passes over a name that can't be
    imported, so a wrong one would only show as a slower start."""
    given = {"format": form, "catalog_uri": "sqlite:////lake/c.db"}
    if form == "rest":
        given = {"catalog": "rest", "catalog_uri": "https://lake.example"}
    params = LakehouseParams(warehouse="/lake", **given)  # type: ignore[arg-type]
    for name in PLUGIN.modules(params):
        importlib.import_module(name)


def test_a_module_that_is_not_there_keeps_no_worker_from_its_work() -> None:
    """The daemon would end, and Spark with it."""
    worker.load_all(["no.such.module", "runners.engine.fold.mirror"])
    assert "runners.engine.fold.mirror" in sys.modules
    worker.load_all([""])


def test_the_variables_of_a_jvm_are_not_kept_by_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards the secrets of a catalog: a process that is started later must not have them."""
    monkeypatch.setenv("REPLICATOR_TEST_OLD", "before")
    with _lent({"REPLICATOR_TEST": "1", "REPLICATOR_TEST_OLD": "2"}):
        assert (os.environ["REPLICATOR_TEST"], os.environ["REPLICATOR_TEST_OLD"]) == ("1", "2")
    assert "REPLICATOR_TEST" not in os.environ
    assert os.environ["REPLICATOR_TEST_OLD"] == "before"
