"""Turns lanes into messages with their partitions. Tasks run this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files
from replicators.connectors.feed.messages import MESSAGES, Encoder
from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import Lane
from replicators.targets.kafka.partitions import partitions
from replicators.targets.kafka.quarantine import LIMIT, Sieve, Waiting
from replicators.targets.kafka.topics import Topic

ROUTED = MESSAGES.append(pa.field("partition", pa.int32(), nullable=False))


@dataclass(frozen=True, slots=True)
class Work:
    """Lanes to encode. `floor`: no message says an earlier commit time (seconds). `held`: keys
    whose messages wait in quarantine. `paths`: the files for the messages, one for each bucket of
    partitions. `aside`: the file for those that wait."""

    lanes: tuple[Lane, ...]
    encoder: Encoder
    topic: Topic
    floor: float
    held: frozenset[bytes] = frozenset()
    paths: tuple[str, ...] = ()
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """What a task made. `held`: all keys that it held back. `waiting`: how many messages wait.
    `truncated`: the sequence of the last TRUNCATE, or -1."""

    rows: int
    held: frozenset[bytes]
    waiting: int
    truncated: int


class Encoding:
    """The messages of a work, in order, with the partition of each. Those that wait are in the file
    `aside` once all were taken. `target:kafka-message-large`"""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._sieve = Sieve(work.topic.limit, work.held)
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        waiting = Waiting()
        for batch in _batches(self._work):
            for made in self._work.encoder.encode_slices(batch, self._work.floor):
                fit, apart = self._sieve.divide(made)
                waiting.add(apart)
                self._check()
                if fit.num_rows:
                    self.rows += fit.num_rows
                    yield routed(fit, self._work.topic.partitions)
        waiting.publish(self._work.aside)

    @property
    def made(self) -> Made:
        """What came of it, once all messages were taken."""
        sieve = self._sieve
        return Made(self.rows, frozenset(sieve.held), sieve.waiting, sieve.truncated)

    def _check(self) -> None:
        if self._sieve.waiting > LIMIT:
            work = self._work
            raise ReplicationError(
                "target:kafka-message-large",
                table=work.encoder.schema.id,
                topic=work.topic.name,
                limit=work.topic.limit,
            )


def _batches(work: Work) -> Iterator[pa.RecordBatch]:
    if not work.encoder.options.last_only:
        for lane in work.lanes:
            yield from lane.read()
        return
    schema = change_schema(work.encoder.schema)
    rows = pa.Table.from_batches([b for lane in work.lanes for b in lane.read()], schema)
    yield from rows.combine_chunks().to_batches()


def routed(made: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """A TRUNCATE goes to every partition, so that each reader sees it in its place."""
    place = partitions(made.column("key"), count)
    is_for_all = pc.equal(made.column("_op"), int(Op.TRUNCATE)).to_numpy(zero_copy_only=False)
    if is_for_all.any():
        times = np.where(is_for_all, count, 1)
        index = np.repeat(np.arange(made.num_rows), times)
        begins = np.repeat(np.cumsum(times) - times, times)
        place = np.where(is_for_all[index], np.arange(len(index)) - begins, place[index])
        made = made.take(pa.array(index))
    columns = [*made.columns, pa.array(place.astype(np.int32))]
    return pa.RecordBatch.from_arrays(columns, schema=ROUTED)


def write_messages(work: Work) -> Made:
    """Write the messages into files: one for each bucket of partitions, in order."""
    made = Encoding(work)
    with ExitStack() as stack:
        buckets = [stack.enter_context(_Bucket(path)) for path in work.paths]
        for batch in made:
            place = batch.column("partition").to_numpy() % len(buckets)
            order = np.argsort(place, kind="stable")
            ends = np.cumsum(np.bincount(place, minlength=len(buckets)))
            ordered = batch.take(pa.array(order))
            for bucket, begin, end in zip(buckets, np.append(0, ends[:-1]), ends, strict=True):
                bucket.add(ordered.slice(begin, end - begin))
    return made.made


class _Bucket(AbstractContextManager["_Bucket"]):
    """A file of messages. There is none where it gets none."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._sink: Any = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, made: pa.RecordBatch) -> None:
        """Write messages."""
        if not made.num_rows:
            return
        if self._writer is None:
            is_url = files.is_url(self._path)
            self._sink = pa.BufferOutputStream() if is_url else pa.OSFile(self._path, "wb")
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(self._sink, ROUTED, options=options)
        self._writer.write_batch(made)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is None:
            return
        self._writer.close()
        if files.is_url(self._path) and kind is None:
            files.write(self._path, self._sink.getvalue())
        else:
            self._sink.close()


def read_messages(paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The messages of a bucket's files, one file after the other."""
    for path in paths:
        if files.is_there(path):
            with files.open_file(path) as file, pa.ipc.open_stream(file) as opened:
                yield from opened


def works(whole: Work, folder: str, buckets: int, asides: Sequence[str]) -> list[Work]:
    """A work for each lane; one for all where the encoder needs whole transactions."""
    groups = [whole.lanes] if whole.encoder.options.last_only else [(x,) for x in whole.lanes]
    return [
        replace(
            whole,
            lanes=lanes,
            paths=tuple(f"{folder}/{number:06d}-{bucket}.arrow" for bucket in range(buckets)),
            aside=aside,
        )
        for number, (lanes, aside) in enumerate(zip(groups, asides, strict=False))
    ]
