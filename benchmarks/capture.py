"""Lines `capture` and `capture-decode`: our log reader and capture; the peer is pg_recvlogical,
which writes a file."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import place
from benchmarks.copied import sums
from benchmarks.report import Peer, Result
from benchmarks.resources import turn
from benchmarks.workload import STEP, Stream, Workload, expected
from demo.postgres import EmbeddedPostgres
from runners.engine.capture.reader import Capture
from runners.engine.changelog.segments import ChangeLog, read_segment
from runners.engine.decode.job import decode_segment, decode_segments, task_for
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, SegmentRow
from runners.engine.tasks.on_spark import SparkTasks

DECODE_SEGMENTS = 8
COLUMNS = ["id", "customer", "status", "amount", "note", "at", "ok"]
SERVER = {"shared_buffers": "512MB", "max_wal_size": "8GB", "autovacuum": "off"}


class Watched:
    """A log reader that notes when it has returned a message beyond the marker."""

    def __init__(self, reader: Any, marker: int) -> None:
        self._reader = reader
        self._marker = marker
        self.done = threading.Event()

    def read(self, **values: Any) -> Any:
        """The next block."""
        block = self._reader.read(**values)
        if block is not None and block.position.ordinal > self._marker:
            self.done.set()
        return block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class Taken:
    """One capture of all changes: its seconds, its segments and, where `spark` is given, its change
    files."""

    def __init__(self, stream: Stream, folder: Path, spark: Any = None) -> None:
        self._stream = stream
        self._spark = spark
        self._store = MemoryStore([t.id for t in stream.tables])
        self._settings = place.settings(folder)
        self._log = ChangeLog(str(folder / "log"), stream.slot, "bench")
        self._sealed: list[SegmentRow] = []
        self._wake = threading.Condition()
        self._is_over = False
        self._failure: Exception | None = None
        self.files: list[ChangeFileRow] = []
        self.seconds = 0.0
        self.segments: list[SegmentRow] = []

    def run(self) -> Taken:
        """Capture until the marker is passed and everything is sealed (and decoded). A failure is
        raised: it must not count as a time."""
        stream = self._stream
        reader = Watched(stream.source.log.reader(stream.params, stream.slot), stream.marker)
        decoder = threading.Thread(target=self._decode_all)
        began = time.monotonic()
        reader.start(stream.start, stream.tables)
        capture = Capture(
            reader, self._log, self._store, self._settings,
            describe=lambda: stream.tables, next_number=1, on_seal=self._take,
        )  # fmt: skip
        thread = threading.Thread(target=capture.run)
        thread.start()
        decoder.start()
        while not reader.done.wait(0.5) and (capture.fault or self._failure) is None:
            pass
        capture.stop()
        thread.join()
        captured = time.monotonic() - began
        self._take(None)
        decoder.join()
        self.seconds = time.monotonic() - began
        reader.close()
        if fault := capture.fault or self._failure:
            raise fault
        self.segments = self._store.segments()
        place.logger.info("ours: captured after %.2f s, all after %.2f s", captured, self.seconds)
        return self

    def _take(self, row: SegmentRow | None) -> None:
        with self._wake:
            if row is None:
                self._is_over = True
            else:
                self._sealed.append(row)
            self._wake.notify()

    def _decode_all(self) -> None:
        try:
            self._decode()
        except Exception as err:  # noqa: BLE001 (raised by `run`)
            self._failure = err

    def _decode(self) -> None:
        """Decode as the run's loop does: the sealed segments, up to eight in a job."""
        while self._spark is not None:
            with self._wake:
                self._wake.wait_for(lambda: self._sealed or self._is_over)
                rows, self._sealed = self._sealed[:DECODE_SEGMENTS], self._sealed[DECODE_SEGMENTS:]
            if not rows:
                return
            tasks = [task_for(r, self._log.change_prefix(r.number)) for r in rows]
            done = decode_segments(SparkTasks(self._spark), tasks, self._stream.source.log.decoder)
            self.files += done.files
            self._store.record_decoded([r.number for r in rows], done.files)

    def paths(self) -> list[str]:
        """The change files; written now where the capture decoded nothing."""
        if self._spark is not None:
            return [f.path for f in self.files]
        found: list[str] = []
        for row in self.segments:
            task = task_for(row, self._log.change_prefix(row.number))
            found += [
                f["path"] for f in decode_segment(task, self._stream.source.log.decoder)["files"]
            ]
        return found

    @property
    def bytes(self) -> int:
        """Bytes of the segments' messages."""
        return sum(len(read_segment(s.path, s.crc32, s.number)[1]) for s in self.segments)


def is_right(paths: list[str], load: Workload) -> bool:
    """Whether the change files hold exactly the changes made, including the last small transaction,
    in the order of the transactions. Images are compared by the sums of each column, alone and
    combined with the key."""
    columns = ["_sequence", "_op", "_before", *COLUMNS]
    parts = [pq.read_table(p, columns=columns) for p in paths]
    changes = pa.concat_tables(parts).sort_by("_sequence")
    changes = changes.filter(pc.not_equal(changes.column("id"), -1))
    ops, ids, numbers = (changes.column(c).to_numpy() for c in ("_op", "id", "_sequence"))
    counts, total = expected(load)
    before = changes.filter(pc.equal(changes.column("_op"), 1)).column("_before")
    images = changes.filter(pc.less(changes.column("_op"), 2)).select(COLUMNS)
    words = images.column("status").to_numpy(zero_copy_only=False)
    is_told = bool((words == np.where(ops[ops < 2] == 0, "shipped", "returned")).all())
    found = tuple(int((ops == op).sum()) for op in range(3)), sums(images)
    transactions = ops.astype(np.int64) * (load.inserts + 1) + (ids - 1) // STEP
    is_ordered = bool((np.diff(transactions) >= 0).all() and (np.diff(numbers) > 0).all())
    right = found == (counts, total) and is_told and is_ordered and before.null_count == 0
    if not right:
        place.logger.error("found %s, expected %s", found, (counts, total))
    return right


def measure(line: str) -> list[Result]:
    """Rounds of the peer and of ours, alternating. The first pair warms up and does not count."""
    spark_of = place.spark if line == "capture-decode" else _no_spark
    with place.folder(line) as folder, EmbeddedPostgres(fsync=False, options=SERVER) as server:
        load = Workload(server, place.ROUNDS + 1).make()
        target = place.target_params(folder)
        ours, theirs, peak, checked = [], [], 0.0, True
        with spark_of(folder, target) as spark:
            for number in range(place.ROUNDS + 1):
                out = folder / f"peer_{number}"
                received = load.receive(number, out)
                size = out.stat().st_size
                out.unlink()
                with turn():
                    taken = Taken(load.stream(f"ours_{number}"), folder / str(number), spark).run()
                checked = checked and is_right(taken.paths(), load)
                place.logger.info("theirs %.2f s for %d MiB", received.seconds, size >> 20)
                checked = checked and abs(taken.bytes / size - 1) < 0.1
                ours.append(taken.seconds)
                theirs.append(received.seconds)
                peak = max(peak, received.memory_gib)
                _remove(folder / str(number))
    mine, peer = (load.changes / place.median(v[1:]) for v in (ours, theirs))
    ratio = place.median([t / o for o, t in zip(ours[1:], theirs[1:], strict=True)])
    return [
        Result(
            line,
            "row changes/s",
            round(mine),
            0.9 if line == "capture" else 0.75,
            (Peer("pg_recvlogical", round(peer), peak),),
            round(ratio, 3),
            checked=checked,
            note=_note(line, ours[1:], theirs[1:]),
        )
    ]


def _note(line: str, ours: list[float], theirs: list[float]) -> str:
    shown = [", ".join(f"{v:.2f}" for v in values) for values in (ours, theirs)]
    text = (
        f"seconds a round: ours {shown[0]}; pg_recvlogical {shown[1]}. Both wait for the "
        "server's decoding process"
    )
    if line == "capture":
        return text + ", which is one core."
    return text + ", which is one core; decoding has what is left of two."


def _no_spark(*_: Any) -> Any:
    from contextlib import nullcontext

    return nullcontext()


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
