"""Under which address Spark's executors find a run, and what they get."""

from __future__ import annotations

import pytest

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.spark import chosen_conf, driver_address, executor_conf

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


def test_executors_get_what_was_chosen() -> None:
    """Guards `executor_conf`: Spark's own cluster manager gives a run all cores of the cluster,
    whatever the number of executors says."""
    chosen = {
        "spark_executor_memory": "2g",
        "spark_executor_cores": 2,
        "spark_executor_count": 3,
    }
    plain = {
        "spark.executor.memory": "2g",
        "spark.executor.cores": "2",
        "spark.executor.instances": "3",
    }
    own = RunnerSettings(spark_master="spark://m:7077", **chosen)  # type: ignore[arg-type]
    assert executor_conf(own) == {**plain, "spark.cores.max": "6"}
    yarn = RunnerSettings(spark_master="yarn", **chosen)  # type: ignore[arg-type]
    assert executor_conf(yarn) == plain
    assert executor_conf(RunnerSettings()) == {}


def test_any_setting_may_be_chosen() -> None:
    """Guards `chosen_conf`."""
    text = " spark.a.b=1;spark.c = x=y ; "
    assert chosen_conf(text) == {"spark.a.b": "1", "spark.c": "x=y"}
    assert chosen_conf("") == {}


@pytest.mark.parametrize("text", ["spark.a", "a=1", "=1"])
def test_what_is_no_setting_is_named_without_its_value(text: str) -> None:
    """Guards `chosen_conf`: a value that is a secret by mistake must not get into a message."""
    with pytest.raises(ReplicationError, match="run:spark-conf") as caught:
        chosen_conf(text)
    assert caught.value.facts == {"part": text.partition("=")[0]}
