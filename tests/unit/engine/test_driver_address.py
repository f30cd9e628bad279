"""Under which address Spark's executors find a run."""

from __future__ import annotations

import pytest

from runners.engine.settings import RunnerSettings
from runners.engine.tasks.spark import driver_address

HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"
HERE = {HOST: "127.0.0.1", BIND: "127.0.0.1"}


@pytest.mark.parametrize(
    ("master", "host", "bind", "wanted"),
    [
        ("local[2]", "", "", HERE),
        ("local-cluster[2,1,1024]", "", "", HERE),
        ("spark://master:7077", "", "", {}),
        ("spark://master:7077", "runner.lan", "", {HOST: "runner.lan"}),
        ("spark://master:7077", "runner.lan", "0.0.0.0", {HOST: "runner.lan", BIND: "0.0.0.0"}),
        ("local[2]", "runner.lan", "", {HOST: "runner.lan"}),
    ],
)
def test_executors_elsewhere_are_not_sent_to_their_own_machine(
    master: str, host: str, bind: str, wanted: dict[str, str]
) -> None:
    """Guards `driver_address`: it was 127.0.0.1 always, where an executor of another machine finds
    itself."""
    settings = RunnerSettings(
        spark_master=master, spark_driver_host=host, spark_driver_bind_address=bind
    )
    assert driver_address(settings) == wanted
