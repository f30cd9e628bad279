"""The whole path on Spark's own cluster manager, with an executor in another network namespace: as
on another machine, its 127.0.0.1 is not ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from demo.postgres import EmbeddedPostgres, free_port
from runners.engine.processes import end_session
from tests.harness import ROOT, Traffic, until
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]

HERE, THERE, NETWORK = "10.213.7.1", "10.213.7.2", "10.213.7.0/30"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextmanager
def namespace(name: str) -> Iterator[None]:
    """A network namespace that reaches this machine at `HERE` only."""
    ip("netns", "add", name)
    try:
        ip("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        ip("addr", "add", f"{HERE}/30", "dev", f"{name}a")
        ip("link", "set", f"{name}a", "up")
        ip("-n", name, "addr", "add", f"{THERE}/30", "dev", f"{name}b")
        ip("-n", name, "link", "set", f"{name}b", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], check=False, capture_output=True)
        ip("netns", "del", name)


@contextmanager
def started(command: list[str], log: Path, said: str) -> Iterator[None]:
    """A process of Spark's cluster manager, which has said that it is ready."""
    home = Path(pyspark.__file__).parent
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    try:
        until(lambda: said in log.read_text(), lambda: log.read_text()[-3000:], 60)
        yield
    finally:
        end_session(process.pid)
        process.wait(10)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Starts a master here and a worker there: the master's URL."""
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces")
    with ExitStack() as opened:
        name = f"rs{os.getpid()}"
        opened.enter_context(namespace(name))
        java = str(Path(pyspark.__file__).parent / "bin" / "spark-class")

        def start() -> str:
            port = free_port(HERE)
            url = f"spark://{HERE}:{port}"
            base = "org.apache.spark.deploy"
            master = [java, f"{base}.master.Master", "--host", HERE, "--port", str(port)]
            opened.enter_context(
                started([*master, "--webui-port", "0"], tmp_path / "master.log", "New state: ALIVE")
            )
            worker = ["ip", "netns", "exec", name, java, f"{base}.worker.Worker", "--host", THERE]
            sizes = ["--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
            opened.enter_context(
                started(
                    [*worker, *sizes, "--webui-port", "0", url],
                    tmp_path / "worker.log",
                    "Successfully registered",
                )
            )
            return url

        yield start


def test_an_executor_elsewhere_copies_and_merges(
    world_maker: MakeWorld, cluster: Callable[[], str], tmp_path: Path
) -> None:
    """Guards DESIGN 7.5: an address of this machine's loopback in what a task gets (the driver's,
    the block manager's, the source's) leads an executor to itself."""
    with EmbeddedPostgres(fsync=False, options={"listen_addresses": f"127.0.0.1,{HERE}"}) as server:
        with open(server.data_dir / "pg_hba.conf", "a") as rules:
            rules.write(f"host all all {NETWORK} scram-sha-256\n")
            rules.write(f"host replication all {NETWORK} scram-sha-256\n")
        server.execute("SELECT pg_reload_conf()")
        environment = {
            "REPLICATOR_SPARK_MASTER": cluster(),
            "REPLICATOR_SPARK_DRIVER_HOST": HERE,
            "REPLICATOR_SPARK_EXECUTOR_CORES": "2",
            "REPLICATOR_SPARK_EXECUTOR_COUNT": "1",
            "REPLICATOR_SPARK_EXECUTOR_MEMORY": "768m",
        }
        with world_maker(server=server, source={"host": HERE}, environment=environment) as world:
            traffic = Traffic(world.database)
            world.start()
            world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
            traffic.write(20)
            world.assert_equal()
            (job,) = (tmp_path / "work").glob("app-*")
            assert [p.name for p in job.iterdir()] == ["0"], "one executor of two cores"
            assert world.stop() == 0
