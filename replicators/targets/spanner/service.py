"""Calls of Spanner's service: sessions, reads, commits, statements. Errors are translated. A
transaction that the service aborts is tried again here; an outage is told to the engine soon."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
import pyarrow as pa
from google.api_core import exceptions as google
from google.api_core.client_info import ClientInfo
from google.api_core.client_options import ClientOptions
from google.api_core.retry import Retry, if_exception_type
from google.cloud.spanner_admin_database_v1 import DatabaseAdminClient
from google.cloud.spanner_admin_database_v1.services.database_admin.transports import (
    DatabaseAdminGrpcTransport,
)
from google.cloud.spanner_v1 import SpannerClient
from google.cloud.spanner_v1.services.spanner.transports import SpannerGrpcTransport
from google.cloud.spanner_v1.types import (
    BeginTransactionRequest,
    CommitRequest,
    CreateSessionRequest,
    ExecuteSqlRequest,
    KeySet,
    Mutation,
    ReadRequest,
    RollbackRequest,
    Session,
    TransactionOptions,
    TransactionSelector,
    Type,
    TypeCode,
)

from replicators.connectors.addresses import Url
from replicators.connectors.google import AGENT, credentials_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.keyed import CONFLICT
from replicators.targets.spanner import values
from replicators.targets.spanner.errors import FAULTS, LOST, translate
from replicators.targets.spanner.params import SpannerParams

T = TypeVar("T")
TRIES, OUTAGE_SECONDS, DDL_SECONDS = 12, 10.0, 600.0
ROWS_A_PAGE = 1 << 13
READ_WRITE = TransactionOptions(read_write=TransactionOptions.ReadWrite())
_LARGE = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


class Service:
    """One database. Thread safe. It connects when it is first asked."""

    def __init__(self, params: SpannerParams, *, seconds: float = OUTAGE_SECONDS) -> None:
        self._params, self._idle, self._lock = params, deque[str](), threading.Lock()
        self._clients: tuple[SpannerClient, DatabaseAdminClient] | None = None
        passing = if_exception_type(google.ServiceUnavailable)
        self._again: Any = {
            "retry": Retry(passing, initial=0.1, maximum=2.0, timeout=seconds),
            "timeout": max(seconds, 60.0),
        }

    def _opened(self) -> tuple[SpannerClient, DatabaseAdminClient]:
        with self._lock:
            if self._clients is None:
                self._clients = self._open()
            return self._clients

    def _open(self) -> tuple[SpannerClient, DatabaseAdminClient]:
        if self._params.is_emulated:
            url = Url.parse(self._params.endpoint)
            channel = grpc.insecure_channel(f"{url.host}:{url.port or 80}", options=_LARGE)
            return (
                SpannerClient(transport=SpannerGrpcTransport(channel=channel)),
                DatabaseAdminClient(transport=DatabaseAdminGrpcTransport(channel=channel)),
            )
        endpoint = self._params.endpoint.removeprefix("https://").rstrip("/")
        shared: Any = {
            "credentials": credentials_of(self._params.credentials, is_emulated=False),
            "client_options": ClientOptions(api_endpoint=endpoint or None),
            "client_info": ClientInfo(user_agent=AGENT),
        }
        return SpannerClient(**shared), DatabaseAdminClient(**shared)

    def close(self) -> None:
        """Give the sessions back, and end the connections."""
        with self._lock:
            clients, self._clients = self._clients, None
        if clients is None:
            return
        while self._idle:
            try:
                clients[0].delete_session(name=self._idle.pop(), retry=None, timeout=2.0)
            except FAULTS:
                self._idle.clear()
        for client in clients:
            client.transport.close()

    # Sessions

    @contextmanager
    def _session(self) -> Iterator[str]:
        """A session that no other thread has."""
        try:
            name = self._idle.pop()
        except IndexError:
            request = CreateSessionRequest(database=self._params.path, session=Session())
            name = self._opened()[0].create_session(request, **self._again).name
        try:
            yield name
        except BaseException as err:
            if not re.search(LOST, str(err), re.IGNORECASE):
                self._idle.append(name)
            raise
        self._idle.append(name)

    def _try(self, call: Callable[[str], T]) -> T:
        """The call's result. It is made again with another session where the service forgot this
        one, and in a new transaction where it aborted the last."""
        for attempt in range(TRIES):
            try:
                with self._session() as session:
                    return call(session)
            except google.Aborted as err:
                if attempt == TRIES - 1:
                    raise translate(err, self._params) from err
                time.sleep(min(1.0, 0.01 * 2**attempt) * random.uniform(0.5, 1.0))  # noqa: S311
            except FAULTS as err:
                if not re.search(LOST, str(err), re.IGNORECASE) or attempt == TRIES - 1:
                    raise translate(err, self._params) from err
        raise ReplicationError(CONFLICT)

    # Rows

    def read(
        self, table: str, columns: Sequence[str], keys: KeySet, kinds: Sequence[pa.DataType]
    ) -> pa.Table:
        """The rows with these keys, as they are now."""
        request = ReadRequest(table=table, columns=columns, key_set=keys)
        rows, _ = self._try(lambda session: self._read(request, session))
        return _table(rows, columns, kinds)

    def stream(
        self, table: str, columns: Sequence[str], keys: KeySet, kinds: Sequence[pa.DataType]
    ) -> Iterator[pa.Table]:
        """The same, some thousand rows at a time."""
        try:
            with self._session() as session:
                asked = ReadRequest(session=session, table=table, columns=columns, key_set=keys)
                found = self._opened()[0].streaming_read(asked, **self._again)
                for rows, _ in _pages(found):
                    yield _table(rows, columns, kinds)
        except FAULTS as err:
            raise translate(err, self._params) from err

    def ask(self, text: str, **params: str) -> list[list[Any]]:
        """The rows of a small query, as texts."""

        def call(session: str) -> list[list[Any]]:
            kinds = {name: Type(code=TypeCode.STRING) for name in params}
            request = ExecuteSqlRequest(session=session, sql=text, params=params, param_types=kinds)
            found = self._opened()[0].execute_streaming_sql(request, **self._again)
            return [[v.string_value for v in row] for row in _rows(found)[0]]

        return self._try(call)

    def _read(
        self, request: ReadRequest, session: str, selector: TransactionSelector | None = None
    ) -> tuple[list[list[Any]], bytes]:
        asked = ReadRequest(request)
        asked.session = session
        if selector is not None:
            asked.transaction = selector
        return _rows(self._opened()[0].streaming_read(asked, **self._again))

    def commit(
        self, mutations: Sequence[Mutation], expected: tuple[ReadRequest, list[list[str]]] | None
    ) -> None:
        """One commit. `expected`: what a read in the same transaction must find, else
        `target:conflict`."""
        self._try(lambda session: self._commit(session, mutations, expected))

    def _commit(
        self,
        session: str,
        mutations: Sequence[Mutation],
        expected: tuple[ReadRequest, list[list[str]]] | None,
    ) -> None:
        client = self._opened()[0]
        request = CommitRequest(session=session)
        if expected is None:
            request.single_use_transaction = READ_WRITE
        else:
            selector = TransactionSelector(begin=READ_WRITE)
            rows, begun = self._read(expected[0], session, selector)
            if [[v.string_value for v in row] for row in rows] != expected[1]:
                client.rollback(
                    RollbackRequest(session=session, transaction_id=begun), **self._again
                )
                raise ReplicationError(CONFLICT)
            request.transaction_id = begun
        pb = CommitRequest.pb(request)
        pb.mutations.extend(Mutation.pb(m) for m in mutations)
        client.commit(request, **self._again)

    def everywhere(self, text: str, native: str = "", value: pa.Array | None = None) -> None:
        """A partitioned statement: it changes every row, in as many commits as it takes. `value`
        is its `@value`."""

        def call(session: str) -> None:
            client = self._opened()[0]
            options = TransactionOptions(partitioned_dml=TransactionOptions.PartitionedDml())
            begin = BeginTransactionRequest(session=session, options=options)
            begun = client.begin_transaction(begin, **self._again).id
            selector = TransactionSelector(id=begun)
            request = ExecuteSqlRequest(session=session, sql=text, transaction=selector)
            if value is not None:
                cell = KeySet.pb(key_set(pa.table({"value": value}), 1)).keys[0].values[0]
                pb = ExecuteSqlRequest.pb(request)
                pb.params.fields["value"].CopyFrom(cell)
                pb.param_types["value"].code = getattr(TypeCode, native.partition("(")[0])
            list(client.execute_streaming_sql(request, retry=None, timeout=DDL_SECONDS * 6))

        self._try(call)

    def change(self, *statements: str) -> None:
        """Statements that change tables, one after the other."""
        try:
            done = self._opened()[1].update_database_ddl(
                database=self._params.path, statements=list(statements), **self._again
            )
            done.result(timeout=DDL_SECONDS)
        except FAULTS as err:
            raise translate(err, self._params) from err


def write(kind: str, table: str, columns: Sequence[str], rows: pa.Table) -> Mutation:
    """A mutation of this kind (its field's number is in `KINDS`) for all rows."""
    head = b"".join(
        values.field(tag, name.encode())
        for tag, name in ((b"\x0a", table), *((b"\x12", name) for name in columns))
    )
    made = Mutation()
    one = getattr(Mutation.pb(made), kind)
    one.MergeFromString(head + values.joined(values.lists(rows, tag=b"\x1a")))
    return made


def delete(table: str, keys: KeySet) -> Mutation:
    """A mutation that deletes."""
    return Mutation(delete=Mutation.Delete(table=table, key_set=keys))


def key_set(rows: pa.Table | None, width: int) -> KeySet:
    """The keys of rows; where a row has fewer columns than the key, all keys that begin so."""
    made = KeySet()
    pb = KeySet.pb(made)
    if rows is None:
        pb.all_ = True
    elif rows.num_columns == width:
        pb.MergeFromString(values.joined(values.lists(rows, tag=b"\x0a")))
    else:
        ends = [values.lists(rows, tag=tag) for tag in (b"\x0a", b"\x1a")]
        for first, last in zip(*(e.to_pylist() for e in ends), strict=True):
            pb.ranges.add().MergeFromString(first + last)
    return made


def _rows(found: Any) -> tuple[list[list[Any]], bytes]:
    """The rows of a stream of messages, and the transaction that the read began."""
    rows: list[list[Any]] = []
    begun = b""
    for more, transaction in _pages(found):
        rows += more
        begun = transaction or begun
    return rows, begun


def _pages(found: Any) -> Iterator[tuple[list[list[Any]], bytes]]:
    """The same by pages. A value may be cut at the end of a message."""
    cells: list[Any] = []
    begun, width, is_cut = b"", 0, False
    for message in found:
        pb = type(message).pb(message)
        if pb.HasField("metadata"):
            width = len(pb.metadata.row_type.fields)
            begun = pb.metadata.transaction.id or begun
        more = list(pb.values)
        if is_cut and more:
            _join(cells[-1], more.pop(0))
        cells += more
        is_cut = pb.chunked_value
        whole = (len(cells) - is_cut) // width if width else 0
        if whole >= ROWS_A_PAGE:
            yield _split(cells[: whole * width], width), begun
            cells = cells[whole * width :]
    yield _split(cells, width), begun


def _split(cells: list[Any], width: int) -> list[list[Any]]:
    return [cells[at : at + width] for at in range(0, len(cells), width or 1)]


def _join(first: Any, rest: Any) -> None:
    if first.WhichOneof("kind") == "list_value":
        items = list(rest.list_value.values)
        known = first.list_value.values
        if known and items and known[-1].WhichOneof("kind") in ("string_value", "list_value"):
            _join(known[-1], items.pop(0))
        known.extend(items)
    else:
        first.string_value += rest.string_value


def _table(rows: list[list[Any]], columns: Sequence[str], kinds: Sequence[pa.DataType]) -> pa.Table:
    found = zip(*rows, strict=True) if rows else ((),) * len(columns)
    arrays = [values.column_of(some, kind) for some, kind in zip(found, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, list(columns))
