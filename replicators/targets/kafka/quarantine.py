"""Messages that are larger than their topic takes. Such a message waits here, and all later
messages of its key wait behind it, in order. Other keys go on. What waits is in Parquet files in
the replicator's folder (`Tasks.folder`), so a crash loses nothing. Once the topic takes all
messages of a key, they are sent.

| file | what |
|---|---|
| `changes-<after>-<lane>` | of a batch of changes: a batch that comes again replaces them |
| `snapshot-<lane>` | of a lane of the first copy |
| `kept-<number>` | what stayed when other keys were sent |
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Set
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.feed.messages import MESSAGES
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import BatchKind, ChangeBatch, RefusedRow

KEPT = MESSAGES.append(pa.field("size", pa.int64(), nullable=False))
OVERHEAD = 300
"""Bytes that a message may have beside key and value: headers and frame."""
LIMIT = 10_000
"""So many messages may wait. With more, the topic's limit is wrong for the table as a whole."""


def folder_of(root: str, table: TableId) -> str:
    """Where the messages of a table wait."""
    return f"{root.rstrip('/')}/kafka-quarantine/{quote(str(table), safe='')}"


def sizes(made: pa.RecordBatch) -> pa.Array:
    """The bytes of each message."""
    lengths = [pc.fill_null(pc.binary_length(made.column(n)), 0) for n in ("key", "value")]
    return pc.add(*(pc.add(one.cast(pa.int64()), OVERHEAD // 2) for one in lengths))


class Sieve:
    """Divides messages in order: what may be sent, and what has to wait. `held`: the keys that
    wait. A key whose message is too large is added. `truncated`: the last TRUNCATE's sequence."""

    def __init__(self, limit: int, held: Set[bytes]) -> None:
        self._limit = limit
        self.held = set(held)
        self.waiting = 0
        self.truncated = -1

    def divide(self, made: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """The messages to send, and those that wait (`KEPT`); None: none do."""
        size = sizes(made)
        large = pc.greater(size, self._limit)
        has_large = bool(pc.any(large).as_py())
        if has_large:
            self.held.update(made.column("key").filter(large).drop_null().to_pylist())
        self._notice(made)
        if not has_large and not self.held:
            return made, None
        keys = pa.array(sorted(self.held), pa.binary())
        waits = pc.or_(large, pc.is_in(made.column("key"), value_set=keys))
        if not pc.any(waits).as_py():
            return made, None
        columns = [*(made.column(n) for n in MESSAGES.names), size]
        apart = pa.RecordBatch.from_arrays(columns, schema=KEPT).filter(waits)
        self.waiting += apart.num_rows
        return made.filter(pc.invert(waits)), apart

    def _notice(self, made: pa.RecordBatch) -> None:
        found = made.filter(pc.equal(made.column("_op"), int(Op.TRUNCATE)))
        if found.num_rows:
            self.truncated = max(self.truncated, found.column("_sequence")[-1].as_py())


class Waiting:
    """Collects messages that wait, for one file. Nothing is written where there are none."""

    def __init__(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer: pq.ParquetWriter | None = None

    def add(self, apart: pa.RecordBatch | None) -> None:
        """Take messages of `KEPT`."""
        if apart is not None and apart.num_rows:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._sink, KEPT, compression="lz4")
            self._writer.write_batch(apart)

    def publish(self, path: str) -> None:
        """Write the file, if there is anything for it. It is durable when this returns."""
        if self._writer is not None:
            self._writer.close()
            files.make_durable_folder(path.rpartition("/")[0], "")
            files.publish(path, self._sink.getvalue())


class Quarantine:
    """What waits of one table. `needs`: the largest message of each key that waits. `looks` grows
    whenever something may have changed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.needs: dict[bytes | None, int] = {}
        self.messages = 0
        self.looks = 0
        self._is_swept = False
        self._look()

    @property
    def keys(self) -> frozenset[bytes]:
        """The keys that wait."""
        return frozenset(key for key in self.needs if key is not None)

    def start(self, batch: ChangeBatch) -> None:
        """Forget what an earlier try of the batch put here."""
        is_copy = batch.kind is BatchKind.SNAPSHOT
        if self._is_swept and not is_copy:
            return
        mine = {_name(self.path(batch, lane.number)) for lane in batch.lanes}
        first = f"changes-{batch.after:020d}"
        later = [p for p in self._paths() if not is_copy and _kind(p) == _CHANGES]
        gone = [p for p in later if _name(p) >= first]
        gone += [p for p in self._paths() if _name(p) in mine and p not in gone]
        if gone:
            files.remove_all(gone)
            self._look()
        self._is_swept = True

    def failed(self) -> None:
        """The batch comes again."""
        self._is_swept = False

    def path(self, batch: ChangeBatch, lane: int) -> str:
        """The file for what waits of a lane."""
        if batch.kind is BatchKind.SNAPSHOT:
            return f"{self.folder}/{_SNAPSHOT}{lane:08d}.parquet"
        return f"{self.folder}/{_CHANGES}{batch.after:020d}-{lane:06d}.parquet"

    def added(self, truncated: int) -> None:
        """Look again after a batch that has messages here. A TRUNCATE removed the rows that earlier
        messages are about."""
        if truncated >= 0 and self.messages:
            self._keep(lambda part: pc.greater(part.column("_sequence"), truncated))
        self._look()

    def has_ready(self, limit: int) -> bool:
        """Whether all messages of a key fit by now."""
        return any(size <= limit for size in self.needs.values())

    def ready(self, limit: int) -> Iterator[pa.RecordBatch]:
        """The messages of each key whose messages all fit, in order."""
        for part in self._parts():
            found = part.filter(self._fits(part, limit))
            if found.num_rows:
                yield found

    def sent(self, limit: int) -> None:
        """Those messages were sent: they go."""
        self._keep(lambda part: pc.invert(self._fits(part, limit)))
        self._look()

    def listed(self, limit: int, most: int) -> list[RefusedRow]:
        """The first messages, for people; `limit`: what the topic takes."""
        found: dict[int, RefusedRow] = {}
        for part in self._parts():
            columns = [part.column(n).to_pylist() for n in ("_sequence", "key", "size")]
            for sequence, key, size in zip(*columns, strict=True):
                if len(found) >= most:
                    return sorted(found.values(), key=lambda r: r.number)
                number = _number(sequence, key)
                found[number] = RefusedRow(number, _shown(key), _why(size, limit))
        return sorted(found.values(), key=lambda r: r.number)

    def clear(self) -> None:
        """Remove all."""
        if files.has_folder(self.folder):
            files.remove_folder(self.folder)
        self._look()

    def _fits(self, part: pa.RecordBatch, limit: int) -> pa.Array:
        stuck = [k for k, size in self.needs.items() if k is not None and size > limit]
        is_stuck = pc.is_in(part.column("key"), value_set=pa.array(stuck, pa.binary()))
        return pc.and_(pc.less_equal(part.column("size"), limit), pc.invert(is_stuck))

    def _keep(self, chosen: Callable[[pa.RecordBatch], pa.Array]) -> None:
        """Write what is chosen into one file, then remove the others. After a crash in between,
        some messages are here twice, in order."""
        old, rest = self._paths(), Waiting()
        for part in self._parts():
            rest.add(part.filter(chosen(part)))
        rest.publish(f"{self.folder}/{_KEPT}{uuid.uuid4().hex}.parquet")
        files.remove_all(old)

    def _look(self) -> None:
        self.needs, self.messages = {}, 0
        self.looks += 1
        for path in self._paths():
            found = files.read_table(path, columns=["key", "size"])
            self.messages += found.num_rows
            for key, size in zip(*(c.to_pylist() for c in found.columns), strict=True):
                self.needs[key] = max(size, self.needs.get(key, 0))

    def _paths(self) -> list[str]:
        """The files in the order of their messages: what was kept, the copy, the changes."""
        order = [_KEPT, _SNAPSHOT, _CHANGES]
        found = [path for path, _ in files.listed(self.folder)]
        known = [p for p in found if _name(p).startswith(tuple(order))]
        return sorted(known, key=lambda p: (order.index(_kind(p)), p))

    def _parts(self) -> Iterator[pa.RecordBatch]:
        for path in self._paths():
            with pq.ParquetFile(pa.BufferReader(files.read(path))) as opened:
                for group in range(opened.num_row_groups):
                    yield from opened.read_row_group(group).cast(KEPT).to_batches()


_KEPT, _SNAPSHOT, _CHANGES = "kept-", "snapshot-", "changes-"


def _number(sequence: int, key: bytes | None) -> int:
    """Negative, and another one for each message."""
    text = b"%d " % sequence + (key or b"")
    return -1 - (int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 2)


def _shown(key: bytes | None) -> str:
    """The message's key as a JSON object; one that is no JSON, as in Avro, by its hex digits."""
    try:
        return json.dumps({"key": json.loads(key) if key is not None else None})
    except ValueError:
        return json.dumps({"key": (key or b"").hex()})


def _why(size: int, limit: int) -> str:
    if size > limit:
        return f"The message has {size:,} bytes, and the topic takes {limit:,}."
    return "It waits behind another message of its key, so that their order stays."


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _kind(path: str) -> str:
    return _name(path).partition("-")[0] + "-"
