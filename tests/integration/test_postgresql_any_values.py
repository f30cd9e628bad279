"""Any value of any type of PostgreSQL: the copy and the log, in each of its forms, give the same
one."""

from __future__ import annotations

import datetime as dt
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal as Exact
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from replicators.connectors.log import DecodedTable, PassedOver
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Time,
    Timestamp,
)
from replicators.connectors.snapshot import Chunk
from replicators.sources.postgresql import sql, types
from replicators.sources.postgresql.columns import select_list
from replicators.sources.postgresql.connections import connection_string
from replicators.sources.postgresql.decode import decode
from replicators.sources.postgresql.snapshot import ChunkReader
from tests.integration.postgresql_source import describe, params_of
from tests.integration.postgresql_strategies import KINDS, TYPES, Kind
from tests.servers import Database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.oldest_postgresql(is_long=True),
]

PUBLICATION = SLOT = "anything"
FEW, MANY = 8, 200
FOUND = """
SELECT a.attnum - 1, coalesce(e.typname, t.typname)::text, t.typtype::text, e.typtype::text
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
WHERE a.attrelid = 't'::regclass AND a.attnum > 0 ORDER BY a.attnum
"""
LARGE = """
SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND attstorage IN ('x', 'm')
"""  # noqa: E501
Rows = list[dict[str, Any]]
Values = list[list[str | None]]


def known_here(database: Database) -> list[Kind]:
    """What this server can be asked for: the wheel's has neither extensions nor XML."""
    missing = set()
    for name in sorted(types.EXTENSION_TYPES):
        try:
            database.execute(f"CREATE EXTENSION {name}")
        except psycopg.errors.FeatureNotSupported:
            missing.add(name)
    try:
        database.execute("SELECT '<a/>'::xml")
    except psycopg.errors.FeatureNotSupported:
        missing.add("xml")
    for statement in TYPES:
        database.execute(statement)
    return [k for k in KINDS if k.name not in missing]


def make(database: Database, kinds: Sequence[Kind]) -> TableSchema:
    """A table `t` with a column for each; what is large stays out of its rows, and out of updates'
    new images."""
    columns = ", ".join(f"c{i} {kind.sql}" for i, kind in enumerate(kinds, 1))
    database.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, {columns})")
    (table,) = describe(database, "t")
    for (name,) in database.execute(LARGE):
        database.execute(f"ALTER TABLE t ALTER {name} SET STORAGE EXTERNAL")
    return table


def test_each_type_of_the_table_is_drawn(database: Database) -> None:
    """Guards the property itself: a type that the table gets and these strategies lack would be
    held by nothing."""
    assert {k.name for k in KINDS} - {""} == set(types.SCALARS)
    kinds = known_here(database)
    wires = {c.wire for c in make(database, kinds).columns}
    assert wires == types.BINARY_WIRES | {"as_text", "as_text[]"}
    found = database.execute(FOUND)[1:]
    assert [
        (kinds[n - 1].name, name) for n, name, *_ in found if kinds[n - 1].name not in ("", name)
    ] == []
    assert {kind for _, _, kind, _ in found} == {"b", "d", "e", "r", "m"}
    assert {of for *_, of in found} == {None, "b", "d", "e", "r", "m"}
    arrays = {kinds[n - 1].name for n, *_, of in found if of} | {
        k.name for k in KINDS if k not in kinds
    }
    assert arrays - {""} == set(types.SCALARS) - {"box"}


class Server:
    """One table of a PostgreSQL, by all ways in which its rows can be read."""

    def __init__(self, database: Database, is_array: bool, is_binary: bool) -> None:
        params = params_of(database)
        drawn = known_here(database)
        columns = make(database, drawn).columns[1:]
        self.is_binary = is_binary
        self.kinds = [
            kind
            for kind, column in zip(drawn, columns, strict=True)
            if column.wire.endswith("[]") is is_array
            and (column.wire in types.BINARY_WIRES) is is_binary
        ]
        make(database, self.kinds)
        database.execute(
            f"ALTER TABLE t REPLICA IDENTITY FULL; CREATE PUBLICATION {PUBLICATION} FOR TABLE t"
        )
        database.execute(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
        (self.table,) = describe(database, "t")
        self.names = [c.name for c in self.table.columns]
        self.params = params
        more = {"autocommit": True, "prepare_threshold": None}
        self.connection = psycopg.connect(connection_string(params), **more)
        self.holder = psycopg.connect(connection_string(params), **more)

    def write(self, rows: Values) -> None:
        """These rows and no others, then each of them once more as it is."""
        places = ", ".join(["%s"] * len(self.names))
        with self.connection.transaction():
            self.connection.execute("TRUNCATE public.t")
            self.connection.cursor().executemany(
                f"INSERT INTO public.t VALUES ({places})", [[i, *row] for i, row in enumerate(rows)]
            )
        self.connection.execute("UPDATE public.t SET id = id")

    def copied(self) -> Rows:
        """As the snapshot's reader has them."""
        with self.holder.transaction():
            self.holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            ((token,),) = self.holder.execute("SELECT pg_export_snapshot()").fetchall()
            chunk = Chunk(
                self.table.id,
                0,
                f"SELECT {select_list(self.table)} FROM ONLY {sql.table(self.table.id)}",
                1,
            )
            batches = list(ChunkReader(self.params, token)(chunk, self.table))
        return sorted(
            (row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"]
        )

    def logged(self) -> Iterator[tuple[str, Rows]]:
        """The images that the log has, by what they are and by its form."""
        for form in ["binary", "text"] if self.is_binary else ["text"]:
            verb = "peek" if form == "binary" else "get"
            parts = self.connection.execute(
                f"SELECT data FROM pg_logical_slot_{verb}_binary_changes(%s, NULL, NULL, "
                "'proto_version', '1',"
                " 'publication_names', %s, 'binary', %s)",
                (SLOT, PUBLICATION, str(form == "binary").lower()),
            ).fetchall()
            body = b"".join(struct.pack("<I", len(data)) + data for (data,) in parts)
            context = {"relations": {}, "transaction": None, "binary": form == "binary"}
            head = {"context": context, "tables": [self.table.to_json()]}
            (found,) = [p for p in decode(head, body, 1) if not isinstance(p, PassedOver)]
            assert isinstance(found, DecodedTable), found
            images = defaultdict(list)
            for row in found.changes.to_pylist():
                images[row["_op"]].append(row)
            assert list(images) == [3, 0, 1]
            yield f"inserted, {form}", images[0]
            yield f"updated, {form}", images[1]
            if found.schema.full_before:
                yield f"before, {form}", [row["_before"] for row in images[1]]

    def printed(self) -> list[list[bytes | None]]:
        """As the server itself writes them."""
        listed = sql.names(self.names)
        result = self.connection.pgconn.exec_(f"SELECT {listed} FROM public.t ORDER BY id".encode())
        return [
            [result.get_value(r, c) for c in range(len(self.names))] for r in range(result.ntuples)
        ]

    def close(self) -> None:
        self.connection.close()
        self.holder.close()


@pytest.fixture(
    params=[(a, b) for a in (False, True) for b in (True, False)],
    ids=lambda p: f"{'arrays' if p[0] else 'plain'} {'binary' if p[1] else 'text'}",
)
def server(request: pytest.FixtureRequest, database: Database) -> Iterator[Server]:
    made = Server(database, *request.param)
    yield made
    made.close()


PRINTED: dict[type, Callable[[str], Any]] = {
    Boolean: lambda text: text == "t",
    Int: int,
    Decimal: Exact,
    Float: float,
    Bytes: lambda text: bytes.fromhex(text[2:]),
    Date: dt.date.fromisoformat,
    Time: dt.time.fromisoformat,
    Timestamp: dt.datetime.fromisoformat,
}
"""What PostgreSQL's text of a value stands for, by its type; other values are their text."""


def read(column: Column, printed: bytes | None) -> Any:
    """The value, but for a zone: a moment is reported in UTC."""
    if printed is None:
        return None
    value = PRINTED.get(type(column.type), str)(printed.decode())
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return float(np.float32(printed.decode())) if column.type == Float(32) else value


def differing(server: Server, expected: Rows, found: Rows) -> list[str]:
    """What differs, as it is spelled: -0.0 is not 0.0, and NaN is NaN."""
    kinds = ["int", *(k.sql for k in server.kinds)]
    assert len(expected) == len(found)
    return [
        f"row {i}: {kind}: {str(one[name])[:200]!r} is {str(other[name])[:200]!r}"
        for i, (one, other) in enumerate(zip(expected, found, strict=True))
        for name, kind in zip(server.names, kinds, strict=True)
        if repr(one[name]) != repr(other[name])
    ]


def rows_of(server: Server) -> st.SearchStrategy[Values]:
    cells = [st.none() | k.values for k in server.kinds]
    return st.lists(st.tuples(*cells).map(list), min_size=1, max_size=3)


def hold(server: Server, rows: Values) -> None:
    server.write(rows)
    copied = server.copied()
    for name, images in server.logged():
        assert (name, differing(server, copied, images)) == (name, [])
    for i, printed in enumerate(server.printed()):
        for column, value in zip(server.table.columns, printed, strict=True):
            if not column.wire.endswith("[]"):
                found = copied[i][column.name]
                found = found.replace(tzinfo=None) if isinstance(found, dt.datetime) else found
                assert repr(found) == repr(read(column, value)), column


def hold_marked(server: Server, rows: Values) -> None:
    server.write(rows)
    copied = server.copied()
    marks = [(row["_faulty"], row["_fault_reason"]) for row in copied]
    assert any(faulty for faulty, _ in marks)
    for name, images in server.logged():
        assert (name, differing(server, copied, images)) == (name, [])
        if not name.startswith("before"):
            assert [(row["_faulty"], row["_fault_reason"]) for row in images] == marks, name


def run(check: Callable[[st.DataObject], None], examples: int) -> None:
    """What differs is named by its row and column: nothing is made smaller to find it."""
    drawn = settings(
        max_examples=examples, deadline=None, derandomize=examples == FEW, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip
    drawn(given(st.data())(check))()


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_any_value_is_the_same_by_copy_and_by_log(server: Server, examples: int) -> None:
    """Guards "snapshot == log" for values that nobody thought of, in all images of the log and both
    of its forms, and both against the server's own text; fails where a value is asked for in
    another form than the one in which the log has it."""

    def check(data: st.DataObject) -> None:
        hold(server, data.draw(rows_of(server)))

    def check_marked(data: st.DataObject) -> None:
        rows = data.draw(rows_of(server))
        for at in data.draw(st.lists(st.sampled_from(odd), min_size=1, max_size=3)):
            data.draw(st.sampled_from(rows))[at] = data.draw(
                st.sampled_from(server.kinds[at].unsupported)
            )
        hold_marked(server, rows)

    run(check, examples)
    if odd := [i for i, kind in enumerate(server.kinds) if kind.unsupported]:
        run(check_marked, examples)
