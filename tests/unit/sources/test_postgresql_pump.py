"""The compiled loop that reads PostgreSQL's stream, before there is a connection."""

from __future__ import annotations

import numpy as np

from replicators.sources.postgresql import pump
from replicators.sources.postgresql.blocks import BlockCutter
from replicators.sources.postgresql.offsets import Identity


def test_it_is_compiled_for_what_it_gets() -> None:
    """Guards `warm`: each run compiled the loop for itself, for seconds of CPU and 35 MB that runs
    on the shared Spark have together. A call with other types would compile it again."""
    pump.warm()
    before = list(pump.run.signatures)
    assert before, "psycopg's libpq is not found"
    cutter = BlockCutter(0, Identity("1", 1), is_binary=True)
    cell, head = np.zeros(1, np.int64), np.zeros(32, np.uint8)
    no_connection = 0
    assert pump.run(no_connection, cutter.state, cutter.buffer, cell, head) == pump.ENDED
    assert pump.run.signatures == before
