"""Real logs of all three servers, kept as small files: `python -m tests.fuzz record`. A segment is
what decoding is given."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import zstandard

from tests.fuzz.segments import framed, messages_of
from tests.mysql_servers import SqlDatabase

FOLDER = Path(__file__).parent / "recorded"
# Values that make an event large only make it slow.
MOST_CHARS = 60
COLUMNS_A_TABLE = 9
HEADER, CRC = 19, 4
BEGINS = frozenset({33, 34, 42})
SMALL = {23: 166, 24: 167, 25: 168, 30: 169, 31: 170, 32: 171}
LARGE = ("repeat", "1e131071", "9" * 38)


def as_segment(context: Mapping[str, Any], tables: Sequence[Any], body: bytes) -> dict[str, Any]:
    """A segment as it is kept."""
    return {
        "context": dict(context),
        "tables": [t.to_json() for t in tables],
        "body": base64.b64encode(body).decode(),
    }


def body_of(segment: Mapping[str, Any]) -> np.ndarray:
    """Its bytes."""
    return np.frombuffer(base64.b64decode(segment["body"]), np.uint8)


def write(name: str, segments: Sequence[Mapping[str, Any]]) -> None:
    """Keep segments."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(segments, sort_keys=True) + "\n")


def read(name: str) -> list[dict[str, Any]]:
    """The segments kept under a name."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def of_mysql(database: SqlDatabase) -> list[dict[str, Any]]:
    """One segment with rows of every type, of MariaDB or MySQL: inserts, updates, key changes,
    deletes, a truncate."""
    from tests.integration.mysql_source import following, runs
    from tests.integration.test_mysql_values import COMMON, MARIADB, MYSQL

    more = {**MYSQL, "json": [("'[1, {\"a\": 2.5}]'", None)]}
    cases = COMMON | (MARIADB if database.server.flavour == "mariadb" else more)
    columns = ", ".join(
        f"c{i} {kind} {'' if 'null' in kind else 'null'}" for i, kind in enumerate(cases)
    )
    small = {
        n: v
        for n, v in enumerate(cases.values())
        if len(v[0][0]) < MOST_CHARS and "repeat" not in v[0][0]
    }
    database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4 ROW_FORMAT=DYNAMIC",
        "CREATE TABLE plain (id int PRIMARY KEY, v varchar(300), n bigint)",
        "CREATE TABLE keyless (v varchar(20), at datetime(3), n decimal(12,4))",
    )
    with following(database, "t", "plain", "keyless") as follower, database.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        names = ", ".join(f"c{n}" for n in small)
        values = ", ".join(v[0][0] for v in small.values())
        for i in range(3):
            cursor.execute(f"INSERT INTO t (id, {names}) VALUES ({i}, {values})")
        cursor.execute("INSERT INTO plain VALUES (1, 'a', 2), (2, repeat('b', 300), NULL)")
        cursor.execute("INSERT INTO keyless VALUES ('x', now(3), 1.5), (NULL, NULL, -9999.0001)")
        cursor.execute("UPDATE t SET id = id + 10, c0 = 1")
        cursor.execute("UPDATE plain SET v = 'c'")
        cursor.execute("UPDATE keyless SET v = 'y'")
        cursor.execute("DELETE FROM t WHERE id = 11")
        cursor.execute("DELETE FROM keyless WHERE n < 0")
        cursor.execute("TRUNCATE TABLE plain")
        ((context, body),) = runs(follower.blocks())
        return [as_segment(context, follower.tables, body.tobytes())]


def of_postgresql(database: Any) -> list[dict[str, Any]]:
    """Two segments with rows of every type, in binary and in text."""
    from replicators.connectors.model.schema import TableId, TableSelection
    from replicators.connectors.postgres.connections import SETTINGS
    from replicators.sources.postgresql.catalog import PostgresqlCatalog
    from replicators.sources.postgresql.params import PostgresqlParams
    from tests.integration.test_postgresql_values import EDGES, TEXT_ONLY

    pinned = {**SETTINGS, "search_path": "public", "synchronous_commit": "on"}
    options = " ".join(f"-c {k}={v}" for k, v in pinned.items())
    found = []
    with psycopg.connect(database.dsn, autocommit=True, options=options) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'very \"happy\"')")
        connection.execute("CREATE DOMAIN price AS numeric(8,2)")
        for is_binary in (True, False):
            form = "b" if is_binary else "t"
            kinds = [n for n in EDGES if not (is_binary and n in TEXT_ONLY)]
            groups = [kinds[i : i + COLUMNS_A_TABLE] for i in range(0, len(kinds), COLUMNS_A_TABLE)]
            names = [f"{form}{n}" for n in range(len(groups))]
            for name, group in zip(names, groups, strict=True):
                columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(group))
                connection.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})")
            connection.execute(f"ALTER TABLE {names[0]} REPLICA IDENTITY FULL")
            connection.execute(f"CREATE PUBLICATION {form} FOR TABLE {', '.join(names)}")
            connection.execute(f"SELECT pg_create_logical_replication_slot('{form}', 'pgoutput')")
            for name, group in zip(names, groups, strict=True):
                for row in range(4):
                    values = [_literal(EDGES[kind][0], kind, row) for kind in group]
                    connection.execute(f"INSERT INTO {name} VALUES ({row}, {', '.join(values)})")
                connection.execute(f"UPDATE {name} SET id = id + 10 WHERE id < 2")
                connection.execute(f"UPDATE {name} SET c0 = c0")
                connection.execute(f"DELETE FROM {name} WHERE id > 2")
            rows = connection.execute(
                "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL, "
                "'proto_version', '1',"
                " 'publication_names', %s, 'binary', %s)",
                (form, form, str(is_binary).lower()),
            ).fetchall()
            connection.execute(f"SELECT pg_drop_replication_slot('{form}')")
            with PostgresqlCatalog(PostgresqlParams(**database.params)) as catalog:
                schemas = catalog.describe([TableSelection(TableId("public", n)) for n in names])
            context = {"relations": {}, "transaction": None, "binary": is_binary}
            body = b"".join(struct.pack("<I", len(data)) + data for (data,) in rows)
            found.append(as_segment(context, list(schemas.values()), body))
    return found


def _literal(literals: Sequence[str], kind: str, row: int) -> str:
    fitting = [x for x in literals if not any(word in x for word in LARGE)]
    text = fitting[row % len(fitting)] if fitting else "NULL"
    return f"({text})::{kind}"


def compressed(segment: Mapping[str, Any], body: np.ndarray) -> np.ndarray:
    """A binlog's segment as a server writes it that compresses: MySQL whole transactions, MariaDB
    each event of rows."""
    events = messages_of(body.tobytes())
    is_mariadb = segment["context"]["flavour"] == "mariadb"
    if is_mariadb:
        events = [_small_rows(e) if e[4] in SMALL else e for e in events]
        return np.frombuffer(b"".join(framed(e) for e in events), np.uint8)
    found: list[bytes] = []
    inside: list[bytes] = []
    for event in [*events, b""]:
        if event and event[4] not in BEGINS:
            inside.append(_resealed(event[:HEADER], event[HEADER:-CRC], has_checksum=False))
            continue
        if inside:
            found.append(_payload(found[-1][:HEADER], b"".join(inside)))
            inside = []
        found += [event] if event else []
    return np.frombuffer(b"".join(framed(e) for e in found), np.uint8)


def _resealed(
    head: bytes, body: bytes, *, has_checksum: bool = True, kind: int | None = None
) -> bytes:
    """An event with its own length, and checksum."""
    made = bytearray(head)
    made[9:13] = struct.pack("<I", HEADER + len(body) + CRC * has_checksum)
    made[4] = kind or made[4]
    whole = bytes(made) + body
    return whole + struct.pack("<I", zlib.crc32(whole)) * has_checksum


def _payload(head: bytes, plain: bytes) -> bytes:
    packed = zstandard.ZstdCompressor().compress(plain)

    def number(value: int) -> bytes:
        return bytes([value]) if value < 251 else b"\xfd" + value.to_bytes(3, "little")

    fields = ((2, 0), (3, len(plain)), (1, len(packed)))
    parts = [bytes([k]) + number(len(number(v))) + number(v) for k, v in fields]
    return _resealed(head, b"".join(parts) + b"\0" + packed, kind=40)


def _small_rows(event: bytes) -> bytes:
    """Only where the columns' number takes one byte."""
    kind = event[4]
    at = HEADER + 8 + (2 if kind >= 30 else 0)
    width = (event[at] + 7) // 8
    at += 1 + width * (2 if kind in (24, 31) else 1)
    rest = event[at:-CRC]
    made = bytes([0x80 | 4]) + len(rest).to_bytes(4, "big") + zlib.compress(rest)
    return _resealed(event[:HEADER], event[HEADER:at] + made, kind=SMALL[kind])


def main() -> None:
    """Record anew, from servers that are started for it."""
    from demo.postgres import EmbeddedPostgres
    from tests.mysql_servers import MariadbServer, MysqlServer, fresh_sql_database
    from tests.servers import fresh_database

    for kind in (MariadbServer, MysqlServer):
        with kind() as server, fresh_sql_database(server) as database:
            write(server.flavour, of_mysql(database))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres())
        write("postgresql", of_postgresql(stack.enter_context(fresh_database(server))))
