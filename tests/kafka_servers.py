"""Kafka brokers and a schema registry for the tests, each a local process with a folder and ports
of its own."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fastavro
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.embedded import EmbeddedServer
from demo.postgres import HOST, free_port
from setup.machine import java_home
from setup.steps import APICURIO, KAFKA
from tests.demos import until

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k")
_NUMBERS = itertools.count(1)


class KafkaError(RuntimeError):
    """The broker or the registry did not start. The text ends with its log."""


def _java() -> str:
    home = java_home()
    return str(home / "bin" / "java") if home else "java"


@dataclass
class KafkaBroker(EmbeddedServer):
    """One node that is broker and controller. `options` are settings of `server.properties`.

    `quorum`: the ports of the controllers of all nodes, by node; empty: this node is alone.
    """

    node: int = 1
    quorum: Mapping[int, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    label = "kafka"
    title = "Kafka"
    start_seconds = 60.0
    error = KafkaError

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    def _command(self) -> Sequence[str]:
        if not self.quorum:
            self.quorum = {self.node: free_port()}
        settings = self.home / "server.properties"
        settings.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        start = [_java(), "-Xmx320m", *_JAVA, "-cp", f"{KAFKA}/*"]
        if (self.home / "data" / "meta.properties").exists():
            return [*start, "kafka.Kafka", str(settings)]
        form = " ".join([*start, "kafka.tools.StorageTool", "format", "-t", CLUSTER])
        run = " ".join([*start, "kafka.Kafka"])
        return ["sh", "-c", f"set -f; {form} -c {settings} && exec {run} {settings}"]

    def _settings(self) -> dict[str, str]:
        several = str(min(3, len(self.quorum)))
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node),
            "controller.quorum.voters": ",".join(
                f"{node}@{HOST}:{port}" for node, port in self.quorum.items()
            ),
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{HOST}:{self.quorum[self.node]}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.home / "data"),
            "num.partitions": "3",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": several,
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": several,
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.retention.ms": "-1",
            **self.options,
        }

    def _answers(self) -> bool:
        return self.members() > 0

    def members(self) -> int:
        """How many brokers this one knows; 0 where it does not answer."""
        asked: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.address,
            "log_level": 0,
        }
        with contextlib.suppress(KafkaException):
            return len(AdminClient(asked).list_topics(timeout=1.0).brokers)
        return 0


@contextmanager
def kafka_cluster(nodes: int = 3, **options: str) -> Iterator[list[KafkaBroker]]:
    """Several nodes of one cluster. The first half that starts waits for the others."""
    quorum = {node: free_port() for node in range(1, nodes + 1)}
    brokers = [
        KafkaBroker(port=free_port(), node=n, quorum=quorum, options=options) for n in quorum
    ]
    try:
        with ThreadPoolExecutor(nodes) as pool:
            list(pool.map(lambda broker: broker.start(), brokers))
        until(lambda: brokers[0].members() == nodes, "the brokers do not all answer", 60.0)
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()
            broker.close()


@dataclass
class SchemaRegistry(EmbeddedServer):
    """Apicurio Registry, in memory."""

    _schemas: dict[int, Any] = field(default_factory=dict, init=False, repr=False)

    label = "registry"
    title = "The schema registry"
    start_seconds = 90.0
    error = KafkaError

    @property
    def url(self) -> str:
        """The address of the API that Confluent's clients speak."""
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def _command(self) -> Sequence[str]:
        jar = next(APICURIO.glob("*-runner.jar"))
        where = [f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={self.port}"]
        return [_java(), "-Xmx320m", *_JAVA, *where, "-jar", str(jar)]

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "QUARKUS_LOG_LEVEL": "WARN"}

    def decoded(self, data: bytes) -> Any:
        """A key or a value, by the schema that the registry has for its number."""
        zero, number = struct.unpack(">bI", data[:5])
        assert zero == 0
        return fastavro.schemaless_reader(io.BytesIO(data[5:]), self._schema(number), None)

    def _schema(self, number: int) -> Any:
        if number not in self._schemas:
            with urllib.request.urlopen(f"{self.url}/schemas/ids/{number}", timeout=10) as answer:
                schema = json.loads(json.load(answer)["schema"])
            self._schemas[number] = fastavro.parse_schema(schema)
        return self._schemas[number]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, urllib.error.URLError):
            asked = urllib.request.urlopen(f"{self.url}/subjects", timeout=2.0)
            with asked as answer:
                return bool(answer.status == 200)
        return False


def fresh_prefix() -> str:
    """A prefix of topics and subjects that no other test has."""
    return f"t{os.getpid()}-{next(_NUMBERS)}."
