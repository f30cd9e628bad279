"""Tables and queries of a database, through SQLAlchemy: their columns, and their rows as a file of
texts that Spark casts. Everything is read in a transaction that may not write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.addresses import Place, Url
from replicators.connectors.model.schema import Column, TableId
from replicators.connectors.model.types import (
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Timestamp,
    Uuid,
)
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.tasks import Tasks
from replicators.sources.compared.types import name_of, type_of_arrow

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from replicators.sources.compared.params import ComparedParams

ROWS_A_BATCH = 20_000
SAMPLE_ROWS = 200
CONNECT_SECONDS = 10
_UNBOUND = Decimal(38, 10)
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_ELSEWHERE = frozenset({"host", "hostaddr", "server", "service", "dsn", "odbc_connect",
                        "unix_socket", "socket"})  # fmt: skip
"""Options of drivers that lead to another place than the address names."""
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
_READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
}
"""How a transaction is kept from writing. Other kinds of databases have no such statement."""


# --- the address ------------------------------------------------------------------------------
def database_fault(text: str) -> str:
    """What is wrong with the address, as a sentence."""
    if not text:
        return ""
    try:
        url = Url.parse(text)
    except ValueError as err:
        return str(err)
    kind = _kind(url)
    is_file = not url.host and url.path.startswith("//")
    if kind == "sqlite":
        is_plain = is_file and not url.query
        return "" if is_plain else "needs an absolute path: sqlite:////folder/shop.db"
    if not {name.lower() for name, _ in url.query}.isdisjoint(_ELSEWHERE):
        return "must name the host before the path, and not in an option"
    if kind not in _PORTS and (url.host or is_file):
        return ""
    return "" if url.host and len(url.path) > 1 else "must name a host and a database"


def _kind(url: Url) -> str:
    """The kind of database: mssql of mssql+pyodbc."""
    return url.scheme.partition("+")[0]


def place(text: str) -> Place:
    """The file or the server that the address leads to."""
    url = Url.parse(text)
    if not url.host:
        return Place("file", unquote(url.path[1:]), "Database")
    port = url.port or _PORTS.get(_kind(url), 0)
    return Place("host", url.host, "Database", port, unquote(url.path[1:]))


def queries(text: str) -> Mapping[str, str]:
    """The queries by the names of their tables. ValueError."""
    found: dict[str, str] = {}
    for part in filter(str.strip, re.split(r";\s*(?=[^;:]+:)|;\s*$", text)):
        name, _, query = part.partition(":")
        if not name.strip() or not re.match(r"\s*(select|with|values|table)\b", query, re.I):
            raise ValueError("must look like `recent: SELECT id, name FROM people`")
        if name.strip() in found:
            raise ValueError(f"names {name.strip()} twice")
        found[name.strip()] = query.strip()
    return found


def queries_fault(text: str) -> str:
    """What is wrong with the queries, as a sentence."""
    try:
        queries(text)
    except ValueError as err:
        return str(err)
    return ""


# --- connections -------------------------------------------------------------------------------
@contextmanager
def connected(params: ComparedParams) -> Iterator[Connection]:
    """A connection that reads. `source:database-unreadable`."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError
    from sqlalchemy.pool import NullPool

    url = make_url(params.database)
    kind = url.get_backend_name()
    if kind == "sqlite" and not files.is_there(str(url.database)):
        raise ReplicationError("source:database-unreadable", reason="the file does not exist")
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    if params.password:
        url = url.set(password=params.password)
    timeout = {"connect_timeout": CONNECT_SECONDS} if kind in _PORTS else {}
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=timeout)
        connection = engine.connect()
    except NoSuchModuleError as err:
        reason = f"no package for databases of the kind {kind} is installed"
        raise ReplicationError("source:database-driver", reason=reason) from err
    except ImportError as err:
        reason = f"its driver, the Python package {err.name or ''}, is not installed"
        raise ReplicationError("source:database-driver", reason=reason) from err
    except SQLAlchemyError as err:
        reason = "it can't be reached, or refuses the login"
        raise ReplicationError("source:database-unreadable", reason=reason) from err
    try:
        if kind in _READ_ONLY:
            connection.execute(text(_READ_ONLY[kind]))
        yield connection
    finally:
        connection.close()  # what a query wrote where no statement forbids it is rolled back
        engine.dispose()


@contextmanager
def _asking(table: TableId) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as err:
        raise ReplicationError("source:query-refused", table=table) from err


# --- what is there -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a query: its columns, and the key that the database knows."""

    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()


def tables(params: ComparedParams) -> list[str]:
    """The names of the tables and views, and those of the queries."""
    from sqlalchemy import inspect

    with connected(params) as connection:
        inspector = inspect(connection)
        found = [*inspector.get_table_names(), *inspector.get_view_names()]
    return sorted({*found, *queries(params.queries)})


def relation(params: ComparedParams, table: str) -> Relation | None:
    """The columns of a table or query; None where there is none of that name."""
    from sqlalchemy import inspect, text

    named = queries(params.queries)
    with connected(params) as connection, _asking(TableId(params.schema_name, table)):
        if table in named:
            result = connection.execute(text(named[table].replace(":", r"\:")))
            rows = result.fetchmany(SAMPLE_ROWS)
            names = list(result.keys())
            return Relation(tuple(_sampled(n, [r[i] for r in rows]) for i, n in enumerate(names)))
        inspector = inspect(connection)
        if not inspector.has_table(table):
            return None
        columns = inspector.get_columns(table)
        key = inspector.get_pk_constraint(table)["constrained_columns"]
        kinds = [(str(c["name"]), _declared(c["type"]), str(c["type"])) for c in columns]
    return Relation(tuple(Column(n, kind, native) for n, kind, native in kinds), tuple(key))


def _sampled(name: str, values: list[Any]) -> Column:
    """A column of a query, from its first values."""
    try:
        kind = type_of_arrow(pa.array(values).type)
    except (pa.ArrowException, TypeError):
        kind = String()
    kind = _UNBOUND if isinstance(kind, Decimal) else kind
    return Column(name, kind, name_of(kind))


def _declared(kind: Any) -> LogicalType:
    from sqlalchemy import types as sql

    if isinstance(kind, sql.Numeric) and not isinstance(kind, sql.Float):
        precision, scale = kind.precision, kind.scale
        return Decimal(precision, scale or 0) if precision and precision <= 38 else _UNBOUND
    if isinstance(kind, sql.DateTime):
        return Timestamp(6, bool(kind.timezone))
    known: tuple[tuple[Any, LogicalType], ...] = (
        (sql.Boolean, Boolean()),
        (sql.BigInteger, Int(64)),
        (sql.SmallInteger, Int(16)),
        (sql.Integer, Int(32)),
        (sql.Float, Float(64)),
        (sql.Date, Date()),
        (sql.LargeBinary, Bytes()),
        (sql.Uuid, Uuid()),
        (sql.JSON, Json()),
    )
    return next((neutral for sort, neutral in known if isinstance(kind, sort)), String())


# --- rows --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Extract:
    """What a task reads: a table or query, into a file. `binary` names the columns of raw bytes."""

    table: TableId
    path: str
    columns: tuple[str, ...]
    binary: frozenset[str]


def extracted(tasks: Tasks, params: ComparedParams, what: Extract) -> int:
    """Have a task write the rows to a file; returns their number. The rows go through memory in
    batches."""
    (rows,) = tasks.map(partial(_extract, params=params), [what])
    return rows


def arrow_of(what: Extract) -> pa.Schema:
    """The columns of the file: texts, and bytes as they are."""
    kinds = {n: pa.binary() if n in what.binary else pa.string() for n in what.columns}
    return pa.schema(list(kinds.items()))


def _extract(what: Extract, params: ComparedParams) -> int:
    from sqlalchemy import column, select, table, text

    named, rows = queries(params.queries), 0
    name = what.table.name
    query: Any = (
        text(named[name].replace(":", r"\:"))
        if name in named
        else select(*(column(n) for n in what.columns)).select_from(table(name))
    )
    whole = pa.BufferOutputStream()
    sink: Any = whole if files.is_url(what.path) else what.path
    schema = arrow_of(what)
    with connected(params) as connection, _asking(what.table):
        result = connection.execution_options(yield_per=ROWS_A_BATCH).execute(query)
        places = {n: at for at, n in enumerate(result.keys())}
        _require(what, places)
        with pq.ParquetWriter(sink, schema, compression="zstd", compression_level=1) as writer:
            for part in result.partitions():
                columns = list(zip(*part, strict=True))
                arrays = [_array(columns[places[f.name]], f.type) for f in schema]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                rows += len(part)
    if files.is_url(what.path):
        files.write(what.path, whole.getvalue())
    return rows


def _require(what: Extract, present: Iterable[str]) -> None:
    missing = [n for n in what.columns if n not in present]
    if missing:
        raise ReplicationError(
            "source:delivery-column-missing",
            table=what.table,
            delivery="of now",
            columns=", ".join(f"`{n}`" for n in missing),
            present=", ".join(present),
        )


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if kind == pa.binary():
        return pa.array([None if v is None else bytes(v) for v in values], kind)
    return pa.array([None if v is None else _text(v) for v in values], kind)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return (
            value.isoformat(sep=" ") if value.tzinfo is None else value.astimezone(UTC).isoformat()
        )
    if isinstance(value, dict | list):
        return json.dumps(value)
    return value if isinstance(value, str) else str(value)
