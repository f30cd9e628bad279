"""The frame around every Spark task. It carries a `ReplicationError` to the driver, where Spark
would only hand over a text, and keeps a reused worker cheap. Knows one error code: that of a
worker's limit of memory."""

from __future__ import annotations

import base64
import gc
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError

Batches = Iterator[pa.RecordBatch]
LIMIT = "REPLICATOR_WORKER_BYTES"
"""The environment variable of a worker that says how much memory it may have; 0 or none: as much as
there is."""
_frozen_modules = 0
_MARK = re.compile(r"replication-error<([A-Za-z0-9+/=]+)>")


def relayed(job: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """`job` for `mapInArrow`; its `ReplicationError`s are marked for `from_tasks`."""

    def run(batches: Batches) -> Batches:
        try:
            yield from job(batches)
        except ReplicationError as err:
            raise RuntimeError(_marked(err)) from err
        except MemoryError as err:
            limit = int(os.environ.get(LIMIT, "0"))
            if not limit:
                raise
            limited = ReplicationError("run:task-memory", limit=f"{limit >> 20:,} MiB")
            raise RuntimeError(_marked(limited)) from err
        finally:
            freeze_modules()

    return run


def freeze_modules() -> None:
    """Exclude the objects of imported modules from garbage collection. Spark's worker collects
    garbage after each task, over all objects: 70 to 150 ms a task with pyarrow and numba, as much
    as a small task itself takes."""
    global _frozen_modules
    if len(sys.modules) != _frozen_modules:
        gc.collect()
        gc.freeze()
        _frozen_modules = len(sys.modules)


def _marked(err: ReplicationError) -> str:
    table = [err.table.schema, err.table.name] if err.table else None
    text = json.dumps({"code": err.code, "table": table, "facts": err.facts})
    return f"replication-error<{base64.b64encode(text.encode()).decode()}> {err.code}"


@contextmanager
def from_tasks() -> Iterator[None]:
    """Use it around the action that runs the tasks: it raises what `relayed` marked. Everything
    else passes as it is."""
    try:
        yield
    except ReplicationError:
        raise
    except Exception as err:
        found = _MARK.search(str(err))
        if found is None:
            raise
        reported = json.loads(base64.b64decode(found[1]))
        table = TableId(*reported["table"]) if reported["table"] else None
        raise ReplicationError(reported["code"], table=table, **reported["facts"]) from err
