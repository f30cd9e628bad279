"""A first copy that the run's tasks write straight into its table, each portion in a transaction of
its own.

Beside the table lies one of records: which transaction wrote a portion, and how many rows. A later
try of a portion first deletes the rows that the earlier one's transaction wrote (by `xmin`, which
every row has). The record with the number -1 names who may write: each transaction looks at it and
keeps it from being changed meanwhile.
"""

# ruff: noqa: S608 - names are quoted, and values are parameters

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import psycopg
import pyarrow as pa
from psycopg.errors import SerializationFailure

from replicators.connectors.postgres import sql
from replicators.targets.postgresql import copying
from replicators.targets.postgresql.connections import Connection, connect
from replicators.targets.postgresql.encoding import Field
from replicators.targets.postgresql.enums import add_further
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.params import PostgresqlTargetParams

Names = tuple[str, ...]
_HOLDER = -1


def records_of(names: Names) -> Names:
    """The table of records of a table."""
    return (*names[:-1], f"{names[-1]}_portions")


def _path(names: Names) -> str:
    return ".".join(sql.name(part) for part in names)


@dataclass(frozen=True, slots=True)
class Portions:
    """See `target.DirectCopy`. `holder`: whoever has this name may write."""

    params: PostgresqlTargetParams
    names: Names
    fields: tuple[Field, ...]
    holder: str = field(default_factory=lambda: uuid.uuid4().hex)

    def take_over(self) -> None:
        """Become the one that may write. It waits for portions that are being written."""
        with self._transaction(looks=False) as connection:
            records = _path(records_of(self.names))
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {records}"
                " (number int PRIMARY KEY, writer xid, rows bigint, holder text)".encode()
            )
            connection.execute(
                f"INSERT INTO {records} (number, holder) VALUES (%s, %s)"
                " ON CONFLICT (number) DO UPDATE SET holder = EXCLUDED.holder".encode(),
                [_HOLDER, self.holder],
            )

    def write(self, number: int, rows: Iterator[pa.Table]) -> int:
        """Write a portion's rows, in place of those of an earlier try."""
        with self._transaction() as connection:
            records = _path(records_of(self.names))
            self._forget(connection, f"number = {int(number)}")
            connection.execute(
                f"INSERT INTO {records} (number, writer)"
                " VALUES (%s, pg_current_xact_id()::xid)".encode(),
                [number],
            )
            batches = (batch for table in rows for batch in table.to_batches())
            written = copying.copy(
                connection,
                _path(self.names),
                self.fields,
                batches,
                add_labels=partial(add_further, self.params),
            )
            connection.execute(
                f"UPDATE {records} SET rows = %s WHERE number = %s".encode(), [written, number]
            )
            return written

    def _forget(self, connection: Connection, which: str) -> None:
        """Delete records, and the rows of their portions."""
        records = _path(records_of(self.names))
        found = connection.execute(
            f"DELETE FROM {records} WHERE number >= 0 AND {which} RETURNING writer::text".encode()
        ).fetchall()
        writers = [writer for (writer,) in found]
        if writers:
            connection.execute(
                f"DELETE FROM {_path(self.names)} WHERE xmin::text = ANY (%s)".encode(), [writers]
            )

    def rows(self) -> Mapping[int, int]:
        """The portions that were committed, with their numbers of rows."""
        with self._transaction() as connection:
            text = f"SELECT number, rows FROM {_path(records_of(self.names))} WHERE number >= 0"
            return dict(connection.execute(text.encode()).fetchall())

    def remove(self, keys: pa.Table) -> int:
        """Delete the rows with these keys."""
        fields = [f for f in self.fields if f.name in keys.column_names]
        with self._transaction() as connection:
            made = ", ".join(f"{sql.name(f.name)} {f.native}" for f in fields)
            text = f"CREATE TEMPORARY TABLE replicator_keys ({made}) ON COMMIT DROP"
            connection.execute(text.encode())
            copying.copy(connection, "pg_temp.replicator_keys", fields, keys.to_batches())
            same = " AND ".join(f"t.{sql.name(f.name)} = k.{sql.name(f.name)}" for f in fields)
            text = f"DELETE FROM {_path(self.names)} t USING pg_temp.replicator_keys k WHERE {same}"
            return connection.execute(text.encode()).rowcount

    def keep(self, numbers: Sequence[int]) -> None:
        """Delete the rows of all other portions."""
        listed = ", ".join(str(int(n)) for n in numbers)
        with self._transaction(looks=False) as connection:
            self._forget(connection, f"number NOT IN ({listed})" if listed else "true")

    @contextmanager
    def _transaction(self, *, looks: bool = True) -> Iterator[Connection]:
        """A transaction on a connection of its own. `target:conflict` where another process goes on
        with this copy."""
        connection = connect(self.params)
        try:
            with connection.transaction():
                if looks:
                    self._look(connection)
                yield connection
        except psycopg.Error as err:
            raise translate(err, self.params) from err
        finally:
            connection.close()

    def _look(self, connection: Connection) -> None:
        text = (
            f"SELECT holder FROM {_path(records_of(self.names))} WHERE number = {_HOLDER} FOR SHARE"
        )
        row = connection.execute(text.encode()).fetchone()
        if row is None or row[0] != self.holder:
            raise SerializationFailure("another process goes on with this copy")
