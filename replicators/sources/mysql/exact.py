"""A table's rows as they were at one place of the log, for copies that can't converge (CORRECTNESS
19): those of tables without a key, and those that keep every change.

A Spark task can't share another session's read view. So one session reads the whole table into
files on this machine, and the tasks read those files. MariaDB tells the log place of a read view.
MySQL does not: the table is locked while the view is opened. If the lock is not granted in time,
the copy is refused; it never continues without the lock.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pymysql

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk
from replicators.sources.mysql.columns import select_list, to_batch
from replicators.sources.mysql.connections import (
    Connection,
    Server,
    connect,
    log_end,
    query,
    server_of,
)
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.filters import filtered, where
from replicators.sources.mysql.offsets import Coordinates
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.results import ResultRows

LOCK_SECONDS = 10
FILE_BYTES = 128 << 20
SCHEME = "file:"
BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT"


class ExactSnapshot:
    """One table's read view, opened at once. Its rows go into files when they are requested."""

    def __init__(self, params: MysqlParams, table: TableSchema) -> None:
        self.params = params
        self.table = table
        self._folder: Path | None = None
        connection = connect(params)
        try:
            server = server_of(connection)
            query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.start = (
                _mariadb_place(connection, server)
                if server.is_mariadb
                else _locked_place(connection, server, params, table)
            )
        except (pymysql.Error, OSError) as err:
            connection.close()
            raise translate(err, params, table=table.id) from err
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def chunks(self) -> list[Chunk]:
        """Read the table into files of about 128 MB, one chunk per file, then release the view."""
        self._folder = Path(tempfile.mkdtemp(prefix="replicator-view-"))
        text = f"SELECT {select_list(self.table)} FROM {sql.table(self.table.id)}"  # noqa: S608 - all quoted
        text += filtered("", where(self.table))
        try:
            rows = (to_batch(block, self.table) for block in ResultRows(self._connection, text))
            files = list(_written(rows, self.table.arrow_schema(), self._folder))
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params, table=self.table.id) from err
        finally:
            self._connection.close()
        return [
            Chunk(self.table.id, number, f"{SCHEME}{path}", count)
            for number, (path, count) in enumerate(files)
        ]

    def close(self) -> None:
        """Release the view and delete its files; safe to repeat."""
        if self._connection.open:
            self._connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def read_file(text: str) -> Iterator[pa.RecordBatch]:
    """The batches of a chunk's file."""
    with pa.memory_map(text.removeprefix(SCHEME)) as source, pa.ipc.open_file(source) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _written(
    rows: Iterator[pa.RecordBatch], schema: pa.Schema, folder: Path
) -> Iterator[tuple[Path, int]]:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    batch: pa.RecordBatch | None = next(rows, pa.RecordBatch.from_pylist([], schema=schema))
    number = 0
    while batch is not None:
        path, count, size = folder / f"{number:06d}.arrow", 0, 0
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, schema, options=options) as writer,
        ):
            while batch is not None and size < FILE_BYTES:
                writer.write_batch(batch)
                count, size = count + batch.num_rows, size + batch.nbytes
                batch = next(rows, None)
        yield path, count
        number += 1


def begin_snapshot(connection: Connection) -> tuple[str, int]:
    """Begin a read view at a MariaDB server. Returns the file and offset of the log up to which it
    holds everything."""
    query(connection, BEGIN)
    status = dict(query(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
    found = {name.lower(): str(value) for name, value in status.items()}
    file = found.get("binlog_snapshot_file", "")
    if not file:
        raise _no_log()
    return file, int(found["binlog_snapshot_position"])


def _mariadb_place(connection: Connection, server: Server) -> Coordinates:
    """Open a read view. Returns its place in the log, which the server tells; no lock is needed."""
    file, offset = begin_snapshot(connection)
    gtids = query(connection, "SELECT BINLOG_GTID_POS(%s, %s)", file, offset)[0][0]
    return Coordinates(server.flavour, server.identity, file, offset, str(gtids or ""))


def _locked_place(
    connection: Connection, server: Server, params: MysqlParams, table: TableSchema
) -> Coordinates:
    """Open a read view while nobody can write to the table: every earlier writer has committed,
    also in the log."""
    with connect(params) as holder:
        query(holder, f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        try:
            query(holder, f"LOCK TABLES {sql.table(table.id)} READ")
        except pymysql.err.OperationalError as err:
            if err.args[0] not in {1044, 1142, 1205}:
                raise
            raise ReplicationError("source:lock-refused", table=table.id) from err
        query(connection, BEGIN)
        end = log_end(holder, server)
        query(holder, "UNLOCK TABLES")
    if end is None:
        raise _no_log()
    return end


def _no_log() -> ReplicationError:
    return ReplicationError(
        "source:setting", setting="log_bin", value="OFF", wanted="ON", statement="log_bin = ON"
    )
