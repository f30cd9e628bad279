"""The table that the lines `snapshot` and `snapshot-mysql` copy, on each server, and the address
for each reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import place
from demo.postgres import EmbeddedPostgres
from replicators.connectors import registry
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.params import parse
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MysqlServer

TABLE = TableId("bench", "events")
STEP = 10_000
POSTGRESQL_TABLE = """
CREATE SCHEMA bench;
CREATE TABLE bench.events (
    id bigint PRIMARY KEY, customer int, status text, amount numeric(12, 2), note text,
    at timestamptz, ok boolean);
"""
POSTGRESQL_ROWS = """
INSERT INTO bench.events
SELECT k, k % 5000, 'shipped', (k * 37 % 100000) / 100.0, 'note ' || k || ' for this row',
       timestamptz '2025-01-01 00:00Z' + k * interval '1 second', k % 3 = 0
FROM generate_series(1, {rows}) k;
"""
POSTGRESQL_SUMS = """
SELECT count(*), sum(id), sum(customer), sum(ok::int), count(*) FILTER (WHERE status = 'shipped'),
       sum(regexp_replace(note, '[^0-9]', '', 'g')::bigint), sum(length(note)),
       (sum(amount) * 100)::bigint, sum(extract(epoch FROM at))::bigint,
       sum(id % 1000 * (customer + ok::int)), sum(id % 1000 * (amount * 100)::bigint),
       sum(id % 1000 * regexp_replace(note, '[^0-9]', '', 'g')::bigint), sum(id % 1000 * extract(epoch FROM at)::bigint)
FROM bench.events
"""  # noqa: E501
MYSQL = """
CREATE TABLE bench.events (
    id bigint PRIMARY KEY, customer int, status varchar(20), amount decimal(12, 2), note varchar(80),
    at timestamp, ok tinyint(1))
"""  # noqa: E501
MYSQL_ROWS = """
INSERT INTO bench.events WITH RECURSIVE g AS (SELECT {0} k UNION ALL SELECT k + 1 FROM g WHERE k < {1})
SELECT k, k % 5000, 'shipped', (k * 37 % 100000) / 100.0, concat('note ', k, ' for this row'),
       from_unixtime(1735689600 + k), k % 3 = 0 FROM g
"""  # noqa: E501
MYSQL_SUMS = """
SELECT count(*), sum(id), sum(customer), sum(ok), sum(status = 'shipped'),
       sum(cast(regexp_replace(note, '[^0-9]', '') AS signed)), sum(length(note)),
       sum(amount) * 100, sum(unix_timestamp(at)),
       sum(id % 1000 * (customer + ok)), sum(id % 1000 * amount * 100),
       sum(id % 1000 * cast(regexp_replace(note, '[^0-9]', '') AS signed)), sum(id % 1000 * unix_timestamp(at))
FROM bench.events
"""  # noqa: E501


def sums(table: pa.Table) -> tuple[int, ...]:
    """Checksums of a table: its rows, each column, and each column combined with the key, so that a
    value in a wrong row shows. The servers' statements above compute the same. Cents and seconds
    become whole numbers, so the types that a reader chose do not matter."""
    ids, ok, notes = (table.column(n) for n in ("id", "ok", "note"))
    customer, ok = table.column("customer").cast("int64"), ok.cast("int64")
    amount, at = table.column("amount"), table.column("at")
    cents = pc.cast(pc.round(pc.multiply(amount.cast("float64"), 100.0)), "int64")
    at = at.cast(pa.timestamp("us", at.type.tz)).cast("int64")
    seconds = pc.divide(at, 1_000_000)
    digits = pc.cast(pc.replace_substring_regex(notes, "[^0-9]", ""), "int64")
    whole = ids.cast("int64")
    part = pc.subtract(whole, pc.multiply(pc.divide(whole, 1000), 1000))
    shipped = pc.equal(table.column("status"), "shipped").cast("int64")
    singles = (whole, customer, ok, shipped, digits, pc.utf8_length(notes), cents, seconds)
    pairs = [pc.multiply(part, v) for v in (pc.add(customer, ok), cents, digits, seconds)]
    return table.num_rows, *(int(pc.sum(v).as_py() or 0) for v in (*singles, *pairs))


@dataclass(frozen=True, slots=True)
class Copied:
    """A server with the table: our plugin and its params; the addresses for Spark's JDBC, dlt and
    the programs; the sums of the table's columns."""

    source: Any
    params: Any
    jdbc: str
    jdbc_properties: dict[str, str]
    driver_jar: str
    url: str
    program_url: str
    connectorx: dict[str, Any]
    sums: Callable[[], tuple[int, ...]]

    def describe(self) -> TableSchema:
        """The table's schema."""
        with self.source.catalog(self.params) as catalog:
            (schema,) = catalog.describe([TableSelection(TABLE)]).values()
        return schema  # type: ignore[no-any-return]


@contextmanager
def postgresql(rows: int, server: EmbeddedPostgres | None = None) -> Iterator[Copied]:
    """The table on PostgreSQL: on this server, or on one of its own."""
    with nullcontext(server) if server else EmbeddedPostgres(fsync=False) as server:
        server.execute(POSTGRESQL_TABLE + POSTGRESQL_ROWS.format(rows=rows))
        server.execute("VACUUM ANALYZE")
        params = place.source_params(server)
        where = f"{params.host}:{params.port}/{params.database}"
        login = f"{params.user}:{params.password}@" if params.password else f"{params.user}@"
        yield Copied(
            place.SOURCE,
            params,
            f"jdbc:postgresql://{where}",
            {"user": params.user, "password": params.password, "driver": "org.postgresql.Driver"},
            "postgresql",
            f"postgresql://{login}{where}",
            f"postgresql://{login}{where}?sslmode=disable",
            {},
            lambda: tuple(int(v) for v in server.execute(POSTGRESQL_SUMS)[0]),
        )


@contextmanager
def mysql(rows: int) -> Iterator[Copied]:
    """The table on MySQL."""
    options = {"innodb-buffer-pool-size": "1G", "max-binlog-size": "1G"}
    with MysqlServer(options=options) as server:
        server.execute("CREATE DATABASE bench", MYSQL)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET cte_max_recursion_depth = {10 * STEP}")
            for first in range(1, rows, STEP):
                cursor.execute(MYSQL_ROWS.format(first, min(rows, first + STEP - 1)))
        server.execute("ANALYZE TABLE bench.events")
        source = registry.sources()["mysql"]
        values = {"host": HOST, "port": server.port, "user": ADMIN, "password": PASSWORD}
        login = f"{ADMIN}:{PASSWORD.replace('%', '%25')}@{HOST}:{server.port}/bench"
        yield Copied(
            source,
            parse(source.params, values),
            f"jdbc:mysql://{HOST}:{server.port}/bench?useCursorFetch=true&useServerPrepStmts=true",
            {"user": ADMIN, "password": PASSWORD, "driver": "com.mysql.cj.jdbc.Driver"},
            "mysql-connector-j",
            f"mysql+pymysql://{login}",
            f"mysql://{login}",
            {"conn": f"mysql://{login}"},
            lambda: tuple(int(v) for v in server.execute(MYSQL_SUMS)[0]),
        )
