"""COPY in binary against a real server: blocks hold every row once, whatever their sizes, and a cut
is never an end."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from replicators.sources.postgresql import copying, pump
from replicators.sources.postgresql.connections import connect
from replicators.sources.postgresql.copying import Copying
from tests.integration.postgresql_source import params_of
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def texts(connection: psycopg.Connection[Any], query: str) -> list[bytes]:
    """The values of a query's only column, cut out of the blocks by their row places."""
    found = []
    for body, row_at in Copying(connection).blocks(query):
        data = body.tobytes()
        for start, end in zip(row_at[:-1].tolist(), row_at[1:].tolist(), strict=True):
            assert data[start : start + 2] == b"\x00\x01"
            size = int.from_bytes(data[start + 2 : start + 6], "big")
            assert start + 6 + size == end
            found.append(data[start + 6 : end])
    return found


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 100])
def test_blocks_hold_every_row_once_in_order(
    database: Database, monkeypatch: pytest.MonkeyPatch, rows: int, is_compiled: bool
) -> None:
    """Guards `copying.take` and `_take_plain` at the ends of blocks (a row that has no room is held
    for the next one): rows are as long as a block, longer, and short; 7 fill a block by number."""
    monkeypatch.setattr(copying, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(copying, "BLOCK_ROWS", 7)
    monkeypatch.setattr(copying, "load", lambda: is_compiled and pump.load())
    query = (
        "SELECT g || repeat('x', CASE g % 5 WHEN 0 THEN 5000 WHEN 1 THEN 990 ELSE g % 300 END)"
        f" FROM generate_series(1, {rows}) g"
    )
    expected = [r[0].encode() for r in database.execute(query)]
    with connect(params_of(database)) as connection:
        assert texts(connection, query) == expected
        assert texts(connection, "SELECT 'again'::text") == [b"again"]


def test_a_fault_of_the_server_in_the_middle_is_raised(database: Database) -> None:
    """Guards `Copying._end`: libpq ends the rows after a fault just as at the end of a table;
    without the look at the last result half a table would pass for all of it."""
    query = "SELECT (100000 / (50000 - g))::text FROM generate_series(1, 60000) g"
    with connect(params_of(database)) as connection, pytest.raises(psycopg.Error) as caught:
        texts(connection, query)
    assert caught.value.sqlstate == "22012"


def test_a_connection_cut_in_the_middle_is_no_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `Copying._end`: the server's process ends while most rows were not sent; what came
    must not pass for the table."""
    monkeypatch.setattr(copying, "BLOCK_ROWS", 1000)
    with connect(params_of(database)) as connection:
        pid = connection.info.backend_pid
        query = "SELECT repeat('x', 1000) FROM generate_series(1, 100000)"
        blocks = Copying(connection).blocks(query)
        _, row_at = next(blocks)
        assert len(row_at) == 1001
        database.execute("SELECT pg_terminate_backend(%s)", [pid])
        with pytest.raises(psycopg.Error):
            for _ in blocks:
                pass


def test_the_places_are_of_the_rows_only(database: Database) -> None:
    """Guards the head that `Copying._take_head` takes off and the trailer that `copying.take`
    leaves out: as bytes of a row, either would shift or end the values."""
    with connect(params_of(database)) as connection:
        ((body, row_at),) = list(Copying(connection).blocks("SELECT NULL::int, true"))
    assert row_at.tolist() == [0, 2 + 4 + 4 + 1]
    assert np.array_equal(body[:11], [0, 2, 255, 255, 255, 255, 0, 0, 0, 1, 1])
