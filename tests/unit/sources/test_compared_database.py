"""Tables and queries of a database, read without Spark."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy.dialects import registry

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.model.types import Bytes, Decimal, Int, String, Timestamp
from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.compared.arrivals import arrivals
from replicators.sources.compared.catalog import ComparedCatalog
from replicators.sources.compared.checks import ComparedChecks
from replicators.sources.compared.database import Extract, database_fault, extracted, queries
from replicators.sources.compared.params import ComparedParams, places
from runners.engine.tasks.local import LocalTasks

PEOPLE, RECENT = TableId("delivered", "people"), TableId("delivered", "recent")


@pytest.fixture
def params(tmp_path: Path) -> ComparedParams:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as made:
        made.execute(
            "CREATE TABLE people (id bigint PRIMARY KEY, name varchar(40), price numeric(9,2), "
            "at datetime, raw blob)"
        )
        rows = [(n, f"name {n}", 1.5, "2026-01-01 10:00:00", b"\x00\x01") for n in range(1, 6)]
        made.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
        made.execute("INSERT INTO people (id) VALUES (6)")
    made.close()
    (tmp_path / "state").mkdir()
    given = {
        "database": f"sqlite:///{path}",
        "state": str(tmp_path / "state"),
        "schedule": "* * * * *",
        "keys": "recent: id",
        "queries": "recent: SELECT id, name FROM people WHERE id > 4 AND name <> ':x'",
    }
    return parse(ComparedParams, given)


def test_tables_and_queries_are_listed_with_columns_and_keys(params: ComparedParams) -> None:
    """Guards the catalog: the database's own key where none is named, and a query's columns from
    its first rows."""
    with ComparedCatalog(params) as catalog:
        assert [t.id for t in catalog.list_tables()] == [PEOPLE, RECENT]
        found = catalog.describe([TableSelection(PEOPLE), TableSelection(RECENT)])
    kinds = {c.name: c.type for c in found[PEOPLE].columns}
    assert found[PEOPLE].key == ("id",)
    assert kinds == {
        "id": Int(64), "name": String(), "price": Decimal(9, 2), "at": Timestamp(6, False),
        "raw": Bytes(),
    }  # fmt: skip
    assert {c.name: c.type for c in found[RECENT].columns} == {"id": Int(64), "name": String()}
    with ComparedChecks(params) as checks:
        assert checks.connection() == []
        assert checks.tables([TableSelection(PEOPLE), TableSelection(RECENT)]) == []


def test_rows_are_written_as_texts_and_bytes(params: ComparedParams, tmp_path: Path) -> None:
    columns = ("id", "name", "price", "at", "raw")
    what = Extract(PEOPLE, f"{tmp_path}/rows.parquet", columns, frozenset({"raw"}))
    assert extracted(LocalTasks(), params, what) == 6
    rows = pq.read_table(what.path).to_pylist()
    assert rows[0] == {
        "id": "1", "name": "name 1", "price": "1.5", "at": "2026-01-01 10:00:00",
        "raw": b"\x00\x01",
    }  # fmt: skip
    assert rows[5] == {"id": "6", "name": None, "price": None, "at": None, "raw": None}
    query = Extract(RECENT, f"{tmp_path}/query.parquet", ("id", "name"), frozenset())
    assert extracted(LocalTasks(), params, query) == 1
    gone = Extract(RECENT, f"{tmp_path}/gone.parquet", ("id", "price"), frozenset())
    with pytest.raises(ReplicationError, match="column-missing"):
        extracted(LocalTasks(), params, gone)


def test_a_delivery_is_named_by_the_schedule(params: ComparedParams) -> None:
    """Guards repeats: a run that starts again within the same minute has the same delivery."""
    first = arrivals(params)
    assert {a.table for a in first} == {"people", "recent"}
    assert all(a.mark == a.delivery and a.delivery.endswith(":00") for a in first)


def test_a_query_that_writes_is_refused(params: ComparedParams, tmp_path: Path) -> None:
    """Guards the reading transaction, beside the check of the text."""
    with pytest.raises(ValueError, match="must look like"):
        queries("bad: DELETE FROM people")
    found = queries("a: SELECT ';' AS x; b: WITH q AS (SELECT 1 AS y) SELECT y FROM q;")
    assert found == {"a": "SELECT ';' AS x", "b": "WITH q AS (SELECT 1 AS y) SELECT y FROM q"}


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("sqlite:///shop.db", "absolute path"),
        ("postgresql:///db", "host and a database"),
        ("postgresql://user@host/db", ""),
        ("oracle+oracledb://user@host:1521/?service_name=x", ""),
        ("mssql+pyodbc://user@host/db?driver=FreeTDS", ""),
        ("mssql+pyodbc:///?odbc_connect=x", "not in an option"),
        ("mysql://user@host/db?unix_socket=/tmp/s", "not in an option"),
        ("duckdb:////data/shop.db", ""),
        ("duckdb://", "host and a database"),
    ],
)
def test_an_address_is_checked(address: str, part: str) -> None:
    fault = database_fault(address)
    assert part in fault if part else fault == ""


def test_files_or_a_database_and_then_a_schedule(params: ComparedParams) -> None:
    for given in (
        {"state": "/s"},
        {"files": "/in/{table}.csv"},
        {"state": "/s", "files": "/in/{table}.csv", "database": "sqlite:////a.db"},
        {"state": "/s", "database": "sqlite:////a.db"},
    ):
        with pytest.raises(InvalidParams):
            parse(ComparedParams, given)
    assert [p.kind for p in places(params)] == ["file", "folder"]


def test_a_database_that_is_not_there_is_said(params: ComparedParams, tmp_path: Path) -> None:
    (tmp_path / "shop.db").unlink()
    with pytest.raises(ReplicationError, match="database-unreadable"):
        arrivals(params)


def test_any_database_that_sqlalchemy_knows_is_read(params: ComparedParams, tmp_path: Path) -> None:
    """Guards the way of databases that this program has no word of: their tables, types and keys
    come from SQLAlchemy alone. What a query writes is not kept."""
    registry.register("lite", "tests.unit.sources.lite_dialect", "LiteDialect")
    other = replace(params, database=params.database.replace("sqlite:", "lite:"))
    with ComparedCatalog(other) as catalog:
        (people,) = catalog.describe([TableSelection(PEOPLE)]).values()
    assert [c.name for c in people.columns] == ["id", "name", "price", "at", "raw"]
    path = str(tmp_path / "rows.parquet")
    what = Extract(PEOPLE, path, ("id", "name"), frozenset())
    assert extracted(LocalTasks(), other, what) == 6
    assert pq.read_table(path).column("name").to_pylist()[:2] == ["name 1", "name 2"]
    assert [(p.kind, p.port) for p in places(other)][0] == ("file", 0)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nothing://host/db", "databases of the kind nothing"),
        ("mssql+pymssql://host/db", "the Python package pymssql"),
    ],
)
def test_a_driver_that_is_missing_is_named(params: ComparedParams, address: str, said: str) -> None:
    """Guards the sentence: nobody can mend "it can't be reached" where a package is missing."""
    with pytest.raises(ReplicationError) as caught:
        arrivals(replace(params, database=address))
    assert caught.value.code == "source:database-driver"
    assert said in caught.value.message.text
