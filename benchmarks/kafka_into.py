"""Line `kafka-backlog`: 1.6 million row changes of PostgreSQL wait in the change log. The line
measures from the begin of the delivery until Kafka has acknowledged every message, in JSON and
ordered by key. The broker, the tasks and the JVM share the machine's cores. The peer is Debezium's
embedded engine on the same changes."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks import place
from benchmarks.capture import Taken
from benchmarks.changes import SERVER
from benchmarks.debezium import MARKS, debezium, for_postgresql
from benchmarks.report import Result
from benchmarks.resources import Cpu, turn
from benchmarks.sinks import deliver, session
from benchmarks.workload import TABLE, Workload
from demo.postgres import EmbeddedPostgres
from replicators.connectors import registry
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.writer import KafkaSink
from runners.engine.tasks.on_spark import SparkTasks
from tests.kafka_servers import KafkaBroker

PARTITIONS = 4
PLUGIN = registry.targets()["kafka"]


def measure(line: str) -> list[Result]:
    """Ours, then the peer on the same changes."""
    with (
        place.folder(line) as folder,
        EmbeddedPostgres(fsync=False, options=SERVER) as server,
        KafkaBroker() as broker,
    ):
        load = Workload(server, 1).prepare()
        server.execute(MARKS)
        with debezium(for_postgresql(load.params, folder), folder, server.execute) as peer:
            load.change()
            seconds, taken, checked, spent = _ours(folder, broker, load)
            told = peer.ask(events=load.changes)
    rate = load.changes / seconds
    whole = load.changes / (seconds + taken)
    ratio = round(rate / told.rate, 1) if told.rate else None
    note = (
        f"The median of {place.ROUNDS}: from the change log to the last acknowledgement, into "
        f"{PARTITIONS} partitions (wanted: 150,000 a second). CPU seconds of a round: {spent}. "
        f"With reading PostgreSQL's log and decoding before it: {whole:,.0f} a second. Debezium "
        "reads that log too, and its events are counted and thrown away: sent to the broker, it "
        "would be slower."
    )
    return [
        Result(
            line, "messages/s", round(rate), 5,
            (told.peer(told.rate and round(told.rate)),), ratio, checked=checked, note=note,
        )
    ]  # fmt: skip


def _ours(folder: Path, broker: KafkaBroker, load: Workload) -> tuple[float, float, bool, str]:
    """The median of our seconds, those before it from PostgreSQL's log into change files, whether
    the messages are right, and what the CPU time of the last round went into."""
    seconds, is_right, spent = [], True, ""
    params = KafkaParams(broker.address, partitions=PARTITIONS)
    with session(folder, PLUGIN, params) as spark:
        taken = Taken(load.stream("ours_0"), folder / "taken", spark).run()
        tasks = SparkTasks(spark, str(folder / "target"))
        with turn():
            for number in range(place.ROUNDS + 1):  # the first one warms up
                prefixed = KafkaParams(
                    broker.address, topic_prefix=f"r{number}.", partitions=PARTITIONS
                )
                cpu, began = Cpu(), time.monotonic()
                sent = deliver(KafkaSink(prefixed, tasks), load, taken)
                seconds.append(time.monotonic() - began)
                spent = cpu.said()
                place.logger.info("delivered %d in %.1f s: %s", sent, seconds[-1], spent)
        is_right = _is_right(broker.address, f"r{place.ROUNDS}.{TABLE.schema}.{TABLE.name}", sent)
    return place.median(seconds[1:]), taken.seconds, is_right, spent


def _is_right(address: str, topic: str, wanted: int) -> bool:
    """Whether the topic has so many messages, and each partition has them in order."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench"})
    try:
        places = [TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(p, timeout=30)[1] for p in places]
        consumer.assign(places)
        found: list[list[int]] = [[] for _ in places]
        end = time.monotonic() + 120
        while sum(map(len, found)) < sum(ends) and time.monotonic() < end:
            for m in consumer.consume(50_000, 0.2):
                found[m.partition() or 0].append(int(dict(m.headers() or [])["sequence"] or 0))
    finally:
        consumer.close()
    ascends = all(bool((np.diff(part) > 0).all()) for part in found)
    return sum(map(len, found)) == wanted and ascends
