"""A small Spanner in this process, for tests: the protocol's own messages over gRPC, and rows in
SQLite. It refuses what Spanner's documents say that it refuses. It is no emulator: it knows the
statements that this program sends, and it was never compared with the real service."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import re
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import grpc
import pyarrow as pa
import pyarrow.compute as pc
from google.cloud.spanner_admin_database_v1.types import UpdateDatabaseDdlRequest
from google.cloud.spanner_v1.types import (
    BeginTransactionRequest,
    CommitRequest,
    CommitResponse,
    CreateSessionRequest,
    DeleteSessionRequest,
    ExecuteSqlRequest,
    Mutation,
    PartialResultSet,
    ReadRequest,
    ResultSetMetadata,
    ResultSetStats,
    RollbackRequest,
    Session,
    StructType,
    Transaction,
    Type,
    TypeCode,
)
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import ListValue, Value

MOST_MUTATIONS, MOST_BYTES, MOST_CELL, MOST_KEY = 80_000, 100 << 20, 10 << 20, 8192
MOST_TEXT = 2_621_440
COMMIT_TIME = "spanner.commit_timestamp()"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_COLUMN = re.compile(
    r"`(?P<name>[^`]+)` (?P<type>[A-Z0-9]+(?:\((?:MAX|\d+)\)|<[A-Z0-9]+(?:\((?:MAX|\d+)\))?>)?)"
    r"(?P<must> NOT NULL)?(?P<time> OPTIONS \(allow_commit_timestamp = true\))?"
)
_CREATE = re.compile(
    r"CREATE TABLE (?P<exists>IF NOT EXISTS )?`(?P<name>[^`]+)` \((?P<body>.*)\) "
    r"PRIMARY KEY \((?P<key>[^)]*)\)",
    re.DOTALL,
)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_CHECK = re.compile(r"CONSTRAINT `(?P<name>[^`]+)` CHECK \((?P<of>.*)\)")
_KINDS = ("BOOL", "INT64", "FLOAT32", "FLOAT64", "NUMERIC", "STRING", "BYTES", "DATE", "TIMESTAMP",
          "JSON", "ARRAY")  # fmt: skip
_STORED = {"BOOL": "INTEGER", "INT64": "INTEGER", "FLOAT32": "", "FLOAT64": ""}
Code = grpc.StatusCode


class Refused(Exception):
    """What the service answers instead."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class _Column:
    type: str
    must: bool = False
    is_time: bool = False

    @cached_property
    def kind(self) -> str:
        return re.split(r"[(<]", self.type)[0]

    @cached_property
    def most(self) -> int:
        """The longest text or bytes."""
        limit = re.search(r"\((\d+)\)", self.type)
        return int(limit[1]) if limit else MOST_TEXT if self.kind == "STRING" else MOST_CELL


@dataclass
class _Table:
    columns: dict[str, _Column]
    key: list[str]
    checks: list[str]


@dataclass
class _Work:
    """An open transaction, and what it read: the commit looks again."""

    reads: list[tuple[ReadRequest, bytes]] = field(default_factory=list)


def _encoded(value: Any, column: _Column) -> Value:
    """A stored value as the protocol has it."""
    if value is None:
        return Value(null_value=0)
    if column.kind == "ARRAY":
        item = _Column(column.type[6:-1])
        return Value(list_value=ListValue(values=[_encoded(v, item) for v in json.loads(value)]))
    if column.kind == "BOOL":
        return Value(bool_value=bool(value))
    if column.kind.startswith("FLOAT") and not isinstance(value, str):
        return Value(number_value=value)
    return Value(string_value=str(value))


def _decoded(value: Value, column: _Column, name: str) -> Any:
    """A value of a mutation as it is stored; refused where it is of another type."""
    which = value.WhichOneof("kind")
    if which == "null_value":
        if column.must:
            raise Refused(Code.FAILED_PRECONDITION, f"{name} must not be NULL in table.")
        return None
    kind = column.kind
    if which == "string_value" and (stored := _STORES.get(kind)):
        try:
            return stored(value.string_value, column, name)
        except ValueError as err:
            raise _bad(column, name) from err
    if kind == "ARRAY" and which == "list_value":
        item = _Column(column.type[6:-1])
        return json.dumps([_decoded(v, item, name) for v in value.list_value.values])
    if kind == "BOOL" and which == "bool_value":
        return int(value.bool_value)
    if kind.startswith("FLOAT"):
        if which == "number_value":
            return value.number_value
        if which == "string_value" and value.string_value in ("NaN", "Infinity", "-Infinity"):
            return value.string_value
    raise _bad(column, name)


def _bad(column: _Column, name: str) -> Refused:
    return Refused(Code.FAILED_PRECONDITION, f"Invalid value for column {name}: {column.type}")


def _int(text: str, column: _Column, name: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise _bad(column, name)
    return number


def _numeric(text: str, column: _Column, name: str) -> str:
    whole, _, rest = text.lstrip("-").partition(".")
    if not (whole + rest).isdigit() or len(whole) > 29 or len(rest.rstrip("0")) > 9:
        raise _bad(column, name)
    return text


def _date(text: str, column: _Column, name: str) -> str:
    return dt.date.fromisoformat(text).isoformat()


def _timestamp(text: str, column: _Column, name: str) -> str:
    if not _TIMESTAMP.fullmatch(text):
        raise _bad(column, name)
    dt.datetime.fromisoformat(text[:19])
    return text[:19] + "." + text[20:-1].ljust(9, "0") + "Z"


def _text(text: str, column: _Column, name: str) -> str:
    size = len(base64.b64decode(text, validate=True) if column.kind == "BYTES" else text)
    if size > column.most or len(text) > MOST_CELL * 4 // 3 + 4:
        raise Refused(
            Code.FAILED_PRECONDITION, f"New value exceeds the maximum size limit for {name}"
        )
    return text


_STORES = {
    "INT64": _int, "NUMERIC": _numeric, "DATE": _date, "TIMESTAMP": _timestamp, "STRING": _text,
    "BYTES": _text, "JSON": _text,
}  # fmt: skip
"""How a text is stored, by the column's kind."""


class _Database:
    """Tables by name, and their rows."""

    def __init__(self) -> None:
        self.tables: dict[str, _Table] = {}
        self.rows = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.rows.execute("ATTACH ':memory:' AS INFORMATION_SCHEMA")
        self.rows.execute(
            "CREATE TABLE INFORMATION_SCHEMA.COLUMNS (TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME,"
            " COLUMN_NAME, ORDINAL_POSITION, SPANNER_TYPE)"
        )
        self.rows.execute(
            "CREATE TABLE INFORMATION_SCHEMA.TABLE_CONSTRAINTS (TABLE_SCHEMA, TABLE_NAME,"
            " CONSTRAINT_NAME, CONSTRAINT_TYPE)"
        )
        self.rows.execute(
            "CREATE TABLE INFORMATION_SCHEMA.INDEX_COLUMNS (TABLE_SCHEMA, TABLE_NAME,"
            " INDEX_TYPE, COLUMN_NAME, ORDINAL_POSITION)"
        )
        self.rows.create_function("STARTS_WITH", 2, lambda text, head: text.startswith(head))

    def table(self, name: str) -> _Table:
        found = self.tables.get(name)
        if found is None:
            raise Refused(Code.NOT_FOUND, f"Table not found: {name}")
        return found

    # Statements that change tables

    def change(self, text: str) -> None:  # noqa: C901 - one branch for each statement
        """One statement; refused where Spanner's grammar or its rules are not kept."""
        if made := _CREATE.fullmatch(text.strip()):
            if made["exists"] and made["name"] in self.tables:
                return
            self._create(made["name"], made["body"], re.findall(r"`([^`]+)`", made["key"]))
        elif found := re.fullmatch(r"DROP TABLE (IF EXISTS )?`([^`]+)`", text):
            if not found[1] or found[2] in self.tables:
                self.table(found[2])
                self.rows.execute(f"DROP TABLE `{found[2]}`")
                del self.tables[found[2]]
        elif found := re.fullmatch(r"RENAME TABLE (.*)", text):
            self._rename(re.findall(r"`([^`]+)` TO `([^`]+)`", found[1]))
        elif found := re.fullmatch(r"ALTER TABLE `([^`]+)` ADD COLUMN (.*)", text):
            name, column = self._column(found[2])
            table = self.table(found[1])
            self._free(name, table.columns)
            if column.must:
                raise Refused(Code.INVALID_ARGUMENT, "Cannot add NOT NULL column")
            table.columns[name] = column
            kind = _STORED.get(column.kind, "TEXT")
            self.rows.execute(f"ALTER TABLE `{found[1]}` ADD COLUMN `{name}` {kind}")
        elif found := re.fullmatch(r"ALTER TABLE `([^`]+)` DROP COLUMN `([^`]+)`", text):
            table = self.table(found[1])
            if found[2] not in table.columns:
                raise Refused(Code.NOT_FOUND, f"Column not found: {found[2]}")
            if found[2] in table.key:
                raise Refused(Code.INVALID_ARGUMENT, f"Cannot drop key column {found[2]}")
            del table.columns[found[2]]
            self.rows.execute(f"ALTER TABLE `{found[1]}` DROP COLUMN `{found[2]}`")
        else:
            raise Refused(Code.INVALID_ARGUMENT, f"Error parsing Spanner DDL statement: {text}")
        self._describe()

    def _column(self, text: str) -> tuple[str, _Column]:
        found = _COLUMN.fullmatch(text.strip())
        if not found or re.split(r"[(<]", found["type"])[0] not in _KINDS:
            raise Refused(Code.INVALID_ARGUMENT, f"Error parsing Spanner DDL statement: {text}")
        column = _Column(found["type"], bool(found["must"]), bool(found["time"]))
        if column.is_time and column.kind != "TIMESTAMP":
            raise Refused(Code.INVALID_ARGUMENT, "allow_commit_timestamp is for TIMESTAMP only")
        if column.kind in ("STRING", "BYTES") and "(" not in column.type:
            raise Refused(Code.INVALID_ARGUMENT, f"{column.kind} needs a length")
        return found["name"], column

    def _create(self, name: str, body: str, key: list[str]) -> None:
        self._free(name, self.tables)
        columns: dict[str, _Column] = {}
        checks = []
        for part in re.split(r",\n", body):
            if check := _CHECK.fullmatch(part.strip()):
                if not any(f"`{c}`" in check["of"] for c in columns):
                    raise Refused(Code.INVALID_ARGUMENT, "A check must name a column")
                checks.append(check["name"])
                continue
            column, kind = self._column(part)
            self._free(column, columns)
            columns[column] = kind
        for one in key:
            if one not in columns or columns[one].kind in ("JSON", "ARRAY"):
                raise Refused(Code.INVALID_ARGUMENT, f"Column {one} can't be part of a key")
        taken = {c for t in self.tables.values() for c in t.checks}
        if taken & set(checks):
            raise Refused(Code.FAILED_PRECONDITION, "Duplicate name in schema")
        defined = [f"`{n}` {_STORED.get(c.kind, 'TEXT')}" for n, c in columns.items()]
        self.rows.execute(f"CREATE TABLE `{name}` ({', '.join(defined)})")
        quoted = ", ".join(f"`{k}`" for k in key)
        self.rows.execute(f"CREATE UNIQUE INDEX `{uuid.uuid4().hex}` ON `{name}` ({quoted})")
        self.tables[name] = _Table(columns, key, checks)

    def _free(self, name: str, taken: Any) -> None:
        if not _NAME.fullmatch(name):
            raise Refused(Code.INVALID_ARGUMENT, f"Invalid name: {name}")
        if name.lower() in {n.lower() for n in taken}:
            raise Refused(Code.FAILED_PRECONDITION, f"Duplicate name in schema: {name}")

    def _rename(self, pairs: Sequence[tuple[str, str]]) -> None:
        for old, new in pairs:
            found = self.table(old)
            self._free(new, self.tables)
            del self.tables[old]
            self.tables[new] = found
            self.rows.execute(f"ALTER TABLE `{old}` RENAME TO `{new}`")

    def _describe(self) -> None:
        schema = "INFORMATION_SCHEMA"
        for name in ("COLUMNS", "TABLE_CONSTRAINTS", "INDEX_COLUMNS"):
            self.rows.execute(f"DELETE FROM {schema}.{name}")
        put = self.rows.execute
        for name, table in self.tables.items():
            for at, (column, kind) in enumerate(table.columns.items(), 1):
                row = ("", "", name, column, at, kind.type)
                put(f"INSERT INTO {schema}.COLUMNS VALUES (?, ?, ?, ?, ?, ?)", row)
            for check in table.checks:
                of_check = ("", name, check, "CHECK")
                put(f"INSERT INTO {schema}.TABLE_CONSTRAINTS VALUES (?, ?, ?, ?)", of_check)
            for at, column in enumerate(table.key, 1):
                of_key = ("", name, "PRIMARY_KEY", column, at)
                put(f"INSERT INTO {schema}.INDEX_COLUMNS VALUES (?, ?, ?, ?, ?)", of_key)

    # Rows

    def read(self, request: ReadRequest) -> list[tuple[Any, ...]]:
        """The rows in order of the key."""
        table = self.table(request.table)
        for name in request.columns:
            if name not in table.columns:
                raise Refused(Code.NOT_FOUND, f"Column not found: {name}")
        shown = ", ".join(f"`{c}`" for c in request.columns)
        order = ", ".join(f"`{c}`" for c in table.key)
        found: dict[int, tuple[Any, ...]] = {}
        for where, values in self._wanted(table, request.key_set):
            text = f"SELECT rowid, {shown} FROM `{request.table}` WHERE {where} ORDER BY {order}"
            found |= {r[0]: r[1:] for r in self.rows.execute(text, values)}
        limit = int(request.limit) or len(found)
        return list(found.values())[:limit]

    def _wanted(self, table: _Table, keys: Any) -> Iterator[tuple[str, list[Any]]]:
        pb = type(keys).pb(keys)
        if pb.all_:
            yield "1", []
        for key in pb.keys:
            if len(key.values) != len(table.key):
                raise Refused(Code.INVALID_ARGUMENT, "Wrong number of key parts")
            yield self._prefix(table, key)
        for one in pb.ranges:
            parts = [self._bound(table, one, side) for side in ("start", "end")]
            yield " AND ".join(p[0] for p in parts), [v for p in parts for v in p[1]]

    def _key(self, table: _Table, key: ListValue) -> list[Any]:
        columns = [table.columns[n] for n in table.key]
        return [_decoded(v, c, n) for v, c, n in zip(key.values, columns, table.key, strict=False)]

    def _prefix(self, table: _Table, key: ListValue) -> tuple[str, list[Any]]:
        values = self._key(table, key)
        named = table.key[: len(values)]
        return " AND ".join(f"`{n}` IS ?" for n in named) or "1", values

    def _bound(self, table: _Table, one: Any, side: str) -> tuple[str, list[Any]]:
        """One end of a range: NULL is before every value, and a prefix covers its keys."""
        name = one.WhichOneof(f"{side}_key_type")
        if name is None:
            raise Refused(Code.INVALID_ARGUMENT, f"A key range needs its {side}")
        values = self._key(table, getattr(one, name))
        sign = ">" if side == "start" else "<"
        either, bound = [], []
        for at in range(len(values)):
            same = [f"`{n}` IS ?" for n in table.key[:at]]
            one_more = f"`{table.key[at]}`"
            if values[at] is None:
                beyond = f"{one_more} IS NOT NULL" if sign == ">" else "0"
                extra = []
            else:
                null = f" OR {one_more} IS NULL" if sign == "<" else ""
                beyond, extra = f"({one_more} {sign} ?{null})", [values[at]]
            either.append(" AND ".join([*same, beyond]))
            bound += [*values[:at], *extra]
        if name.endswith("closed"):
            where, more = self._prefix(table, getattr(one, name))
            either.append(where)
            bound += more
        return "(" + (" OR ".join(f"({e})" for e in either) or "0") + ")", bound

    def write(self, mutations: Sequence[Mutation], now: str) -> None:
        """All mutations, or none."""
        pbs = [Mutation.pb(m) for m in mutations]
        if sum(pb.ByteSize() for pb in pbs) > MOST_BYTES:
            raise Refused(Code.INVALID_ARGUMENT, "The transaction exceeds the maximum size")
        count = 0
        self.rows.execute("BEGIN")
        try:
            for pb in pbs:
                which = pb.WhichOneof("operation")
                if which == "delete":
                    count += self._delete(pb.delete)
                else:
                    one = getattr(pb, which)
                    count += len(one.columns) * len(one.values)
                    if count <= MOST_MUTATIONS:
                        self._put(which, one, now)
            if count > MOST_MUTATIONS:
                raise Refused(Code.INVALID_ARGUMENT, "The transaction contains too many mutations.")
        except BaseException:
            self.rows.execute("ROLLBACK")
            raise
        self.rows.execute("COMMIT")

    def _delete(self, one: Any) -> int:
        from google.cloud.spanner_v1.types import KeySet

        table = self.table(one.table)
        wanted = list(self._wanted(table, KeySet(one.key_set)))
        for where, values in wanted:
            self.rows.execute(f"DELETE FROM `{one.table}` WHERE {where}", values)
        return len(wanted)

    def _put(self, which: str, one: Any, now: str) -> None:  # noqa: C901 - one for each refusal
        table = self.table(one.table)
        columns = []
        for name in one.columns:
            if name not in table.columns:
                raise Refused(Code.NOT_FOUND, f"Column not found in table {one.table}: {name}")
            columns.append(table.columns[name])
        lacking = [n for n in table.key if n not in one.columns]
        if lacking:
            raise Refused(Code.FAILED_PRECONDITION, f"{lacking[0]} must be in the mutation")
        rows = [row.values for row in one.values]
        names, width = list(one.columns), len(one.columns)
        if any(len(row) != width for row in rows):
            raise Refused(Code.INVALID_ARGUMENT, "Wrong number of values")
        cells = [
            _column_values(values, c, n, now)
            for values, c, n in zip(zip(*rows, strict=True), columns, names, strict=False)
        ]
        places = [names.index(n) for n in table.key]
        of_texts = [cells[p] for p in places if columns[p].kind not in ("INT64", "BOOL", "DATE")]
        for key in zip(*of_texts, strict=True):
            if sum(len(str(k).encode()) for k in key) > MOST_KEY:
                raise Refused(Code.INVALID_ARGUMENT, "Key exceeds the maximum size limit: 8192")
        if which != "update":
            for name, column in table.columns.items():
                if column.must and name not in names:
                    raise Refused(Code.FAILED_PRECONDITION, f"{name} must be specified")
        self._store(which, one.table, names, cells, places)

    def _store(
        self, which: str, table: str, names: list[str], cells: list[list[Any]], places: list[int]
    ) -> None:
        """Put decoded columns into a table. `places`: where the key's columns are among them."""
        put, key = ", ".join(f"`{n}`" for n in names), [names[p] for p in places]
        insert = f"INSERT INTO `{table}` ({put}) VALUES ({', '.join('?' * len(names))})"
        where = " AND ".join(f"`{n}` IS ?" for n in key)
        has_null = any(None in cells[p] for p in places)  # SQLite's index takes them as different
        if which in ("insert_or_update", "replace") and not has_null:
            others = [n for n in names if n not in key]
            same = ", ".join(f"`{n}` = excluded.`{n}`" for n in others)
            on = f" ON CONFLICT ({', '.join(f'`{n}`' for n in key)}) DO "
            insert += on + (f"UPDATE SET {same}" if same else "NOTHING")
            if which == "replace":
                keys = zip(*(cells[p] for p in places), strict=True)
                self.rows.executemany(f"DELETE FROM `{table}` WHERE {where}", keys)
            self.rows.executemany(insert, zip(*cells, strict=True))
            return
        update = f"UPDATE `{table}` SET {', '.join(f'`{n}` = ?' for n in names)} WHERE {where}"
        for row in zip(*cells, strict=True):
            found = [row[p] for p in places]
            if which in ("update", "insert_or_update"):
                if self.rows.execute(update, [*row, *found]).rowcount:
                    continue
                if which == "update":
                    raise Refused(Code.NOT_FOUND, f"Row {found} in table {table} is missing.")
            elif which == "replace":
                self.rows.execute(f"DELETE FROM `{table}` WHERE {where}", found)
            elif self.rows.execute(f"SELECT 1 FROM `{table}` WHERE {where}", found).fetchone():
                raise Refused(Code.ALREADY_EXISTS, f"Row {found} in {table} already exists")
            self.rows.execute(insert, row)


def _column_values(values: Sequence[Value], column: _Column, name: str, now: str) -> list[Any]:
    """A column's values as they are stored."""
    texts = [v.string_value for v in values]
    if column.is_time and texts.count(COMMIT_TIME) == len(texts):
        return [now] * len(texts)
    if column.is_time:
        return [now if v.string_value == COMMIT_TIME else _decoded(v, column, name) for v in values]
    whole = _WHOLE.get(column.kind)
    if whole is None or ("" in texts and {v.WhichOneof("kind") for v in values} != _TEXTS):
        return [_decoded(v, column, name) for v in values]
    return whole(texts, column, name)


def _ints(texts: list[str], column: _Column, name: str) -> list[Any]:
    try:
        found = list(map(int, texts))
    except ValueError as err:
        raise _bad(column, name) from err
    if min(found) < -(2**63) or max(found) >= 2**63:
        raise _bad(column, name)
    return found


def _strings(texts: list[str], column: _Column, name: str) -> list[Any]:
    _text(max(texts, key=len), column, name)
    return list(texts)


def _each(texts: list[str], column: _Column, name: str) -> list[Any]:
    stored = _STORES[column.kind]
    try:
        return [stored(text, column, name) for text in texts]
    except ValueError as err:
        raise _bad(column, name) from err


def _numerics(texts: list[str], column: _Column, name: str) -> list[Any]:
    is_plain = pc.all(pc.match_substring_regex(pa.array(texts), _PLAIN_NUMERIC)).as_py()
    return texts if is_plain else _each(texts, column, name)


def _timestamps(texts: list[str], column: _Column, name: str) -> list[Any]:
    """Those with microseconds at once."""
    found = pa.array(texts)
    if not pc.all(pc.match_substring_regex(found, _PLAIN_TIME)).as_py():
        return _each(texts, column, name)
    try:
        found.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid as err:
        raise _bad(column, name) from err
    return pc.utf8_replace_slice(found, 26, 27, "000Z").to_pylist()  # type: ignore[no-any-return]


_WHOLE = {
    "INT64": _ints, "STRING": _strings, "NUMERIC": _numerics, "TIMESTAMP": _timestamps,
    "DATE": _each,
}  # fmt: skip
"""How a column of texts is stored at once, by its kind."""
_TEXTS = {"string_value"}
_PLAIN_NUMERIC = r"^-?\d{1,29}(\.\d{0,9})?$"
_PLAIN_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"


class SpannerServer:
    """The server. `make` makes an empty database. `faults` are raised by the next calls of these
    names, one each."""

    def __init__(self) -> None:
        self._databases: dict[str, _Database] = {}
        self._sessions: dict[str, _Database] = {}
        self._open: dict[bytes, _Work] = {}
        self._lock = threading.RLock()
        self.faults: list[tuple[str, grpc.StatusCode, str]] = []
        self.calls: list[str] = []
        self._server = grpc.server(
            futures.ThreadPoolExecutor(16),
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )
        of_rows: dict[str, tuple[Callable[[Any], Any], Any, bool]] = {
            "CreateSession": (self._create_session, CreateSessionRequest, False),
            "DeleteSession": (self._delete_session, DeleteSessionRequest, False),
            "BeginTransaction": (self._begin, BeginTransactionRequest, False),
            "Commit": (self._commit, CommitRequest, False),
            "Rollback": (self._rollback, RollbackRequest, False),
            "StreamingRead": (self._read, ReadRequest, True),
            "ExecuteStreamingSql": (self._query, ExecuteSqlRequest, True),
        }
        of_tables: dict[str, tuple[Callable[[Any], Any], Any, bool]] = {
            "UpdateDatabaseDdl": (self._ddl, UpdateDatabaseDdlRequest, False),
        }
        for service, methods in (
            ("google.spanner.v1.Spanner", of_rows),
            ("google.spanner.admin.database.v1.DatabaseAdmin", of_tables),
        ):
            handlers = {name: self._handler(name, *made) for name, made in methods.items()}
            found = grpc.method_handlers_generic_handler(service, handlers)
            self._server.add_generic_rpc_handlers((found,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def _handler(
        self, name: str, method: Callable[[Any], Any], kind: Any, is_stream: bool
    ) -> grpc.RpcMethodHandler:
        def serialized(message: Any) -> bytes:
            if hasattr(message, "SerializeToString"):
                return bytes(message.SerializeToString())
            return bytes(type(message).serialize(message))

        def called(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                with self._lock:
                    self.calls.append(name)
                    fault = next((f for f in self.faults if f[0] == name), None)
                    if fault is not None:
                        self.faults.remove(fault)
                        raise Refused(*fault[1:])
                    answer = method(request)
                    return list(answer) if is_stream else answer
            except Refused as err:
                context.abort(err.code, str(err))
            except sqlite3.Error as err:
                context.abort(Code.INVALID_ARGUMENT, f"Syntax error: {err}")

        def streamed(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            yield from called(request, context)

        make = (
            grpc.unary_stream_rpc_method_handler
            if is_stream
            else grpc.unary_unary_rpc_method_handler
        )
        return make(streamed if is_stream else called, kind.deserialize, serialized)

    def start(self) -> Self:
        """Answer from now on."""
        self._server.start()
        return self

    def stop(self) -> None:
        """Answer no more."""
        self._server.stop(None)

    @property
    def url(self) -> str:
        """Its address, as the target's params have it."""
        return f"http://127.0.0.1:{self.port}"

    def make(self, name: str, instance: str = "main", project: str = "test-project") -> None:
        """Make an empty database."""
        path = f"projects/{project}/instances/{instance}/databases/{name}"
        self._databases[path] = _Database()

    def database(self, name: str) -> _Database:
        """A database, for tests that look into it."""
        return next(d for path, d in self._databases.items() if path.endswith(f"/{name}"))

    def rows(self, database: str, table: str, **where: Any) -> list[dict[str, Any]]:
        """A table's rows with these values, as they are stored."""
        shown = " AND ".join(f"`{name}` = ?" for name in where) or "1"
        with self._lock:
            text = f"SELECT * FROM `{table}` WHERE {shown}"
            found = self.database(database).rows.execute(text, list(where.values()))
            names = [d[0] for d in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]

    # The protocol

    def _database(self, path: str) -> _Database:
        found = self._databases.get(path)
        if found is None:
            raise Refused(Code.NOT_FOUND, f"Database not found: {path}")
        return found

    def _of(self, session: str) -> _Database:
        found = self._sessions.get(session)
        if found is None:
            raise Refused(Code.NOT_FOUND, f"Session not found: {session}")
        return found

    def _create_session(self, request: CreateSessionRequest) -> Session:
        name = f"{request.database}/sessions/{uuid.uuid4().hex}"
        self._sessions[name] = self._database(request.database)
        return Session(name=name)

    def _delete_session(self, request: DeleteSessionRequest) -> empty_pb2.Empty:
        self._sessions.pop(request.name, None)
        return empty_pb2.Empty()

    def forget_sessions(self) -> None:
        """As the service does with sessions that nobody used for an hour."""
        self._sessions.clear()

    def _begin(self, request: BeginTransactionRequest) -> Transaction:
        self._of(request.session)
        return self._begun()

    def _begun(self) -> Transaction:
        made = uuid.uuid4().bytes
        self._open[made] = _Work()
        return Transaction(id=made)

    def _rollback(self, request: RollbackRequest) -> empty_pb2.Empty:
        self._open.pop(request.transaction_id, None)
        return empty_pb2.Empty()

    def _commit(self, request: CommitRequest) -> CommitResponse:
        database = self._of(request.session)
        if request.transaction_id:
            work = self._open.pop(request.transaction_id, None)
            if work is None:
                raise Refused(Code.NOT_FOUND, "Transaction not found")
            for read, digest in work.reads:
                if _digest(database.read(read)) != digest:
                    raise Refused(Code.ABORTED, "Transaction was aborted.")
        now = dt.datetime.now(dt.UTC)
        database.write(request.mutations, now.strftime("%Y-%m-%dT%H:%M:%S.%f000Z"))
        return CommitResponse(commit_timestamp=now)

    def _read(self, request: ReadRequest) -> Iterator[PartialResultSet]:
        database = self._of(request.session)
        begun = self._selected(request.transaction)
        rows = database.read(request)
        if begun is not None:
            self._open[begun].reads.append((request, _digest(rows)))
        columns = [database.table(request.table).columns[n] for n in request.columns]
        values = [_encoded(v, c) for row in rows for v, c in zip(row, columns, strict=True)]
        yield from _parts(list(request.columns), columns, values, begun or b"")

    def _selected(self, selector: Any) -> bytes | None:
        """The read-write transaction that a read is a part of."""
        if selector.id:
            if selector.id not in self._open:
                raise Refused(Code.NOT_FOUND, "Transaction not found")
            return bytes(selector.id)
        return bytes(self._begun().id) if "begin" in selector else None

    def _query(self, request: ExecuteSqlRequest) -> Iterator[PartialResultSet]:
        database = self._of(request.session)
        params = {k: _plain(v) for k, v in (request.params or {}).items()}
        found = database.rows.execute(request.sql, params)
        if found.description is None:
            stats = ResultSetStats(row_count_lower_bound=found.rowcount)
            yield PartialResultSet(metadata=ResultSetMetadata(), stats=stats)
            return
        names = [d[0] for d in found.description]
        values = [
            Value(null_value=0) if v is None else Value(string_value=str(v))
            for row in found
            for v in row
        ]
        yield from _parts(names, [_Column("STRING(MAX)")] * len(names), values, b"")

    def _ddl(self, request: UpdateDatabaseDdlRequest) -> operations_pb2.Operation:
        database = self._database(request.database)
        done = operations_pb2.Operation(name=f"{request.database}/operations/x", done=True)
        for text in request.statements:
            database.change(text)
        done.response.Pack(empty_pb2.Empty())
        return done


def _plain(value: Any) -> Any:
    return value


def _digest(rows: Any) -> bytes:
    return hashlib.sha256(repr(rows).encode()).digest()


def _parts(
    names: Sequence[str], columns: Sequence[_Column], values: Sequence[Value], begun: bytes
) -> Iterator[PartialResultSet]:
    """The answer in several messages. A text may be cut at the end of one."""
    kinds = [Type(code=getattr(TypeCode, c.kind)) for c in columns]
    fields = [StructType.Field(name=n, type_=k) for n, k in zip(names, kinds, strict=True)]
    meta = ResultSetMetadata(
        row_type=StructType(fields=fields), transaction=Transaction(id=begun) if begun else None
    )
    pb = PartialResultSet.pb(PartialResultSet(metadata=meta))
    size = 0
    for value in values:
        if size > 50_000 and value.WhichOneof("kind") == "string_value":
            text = value.string_value
            half = len(text) // 2
            pb.values.add(string_value=text[:half])
            pb.chunked_value = True
            yield PartialResultSet.wrap(pb)
            pb = PartialResultSet.pb(PartialResultSet())
            pb.values.add(string_value=text[half:])
            size = 0
        else:
            pb.values.add().CopyFrom(value)
        size += value.ByteSize()
    yield PartialResultSet.wrap(pb)
