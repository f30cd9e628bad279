"""What README says works is run by a Python that has requirements.txt and nothing else: a runtime
package that only the tests' environment has is found here."""

from __future__ import annotations

import ast
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from setup.machine import ROOT
from setup.steps import RUNTIME
from tests.demos import Demo, closed_demo, until
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(500)]
PYTHON = RUNTIME / "bin" / "python"
ELSEWHERE = {"demo/bigquery_mended.py"}
"""Programs of an environment of their own (`setup/bqemulator.txt`)."""
FOLDERS = ("replicators", "runners", "assessments", "drafts", "setup", "demo")
LEVEL_SECONDS = 300.0
ROWS = [(1, "one"), (2, "two, later"), (4, "four")]


def imported(file: Path) -> set[str]:
    """The top-level packages that a file imports, also inside functions; not those for type
    checkers."""
    tree = ast.parse(file.read_text())
    skipped = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.unparse(test.test)
        for node in ast.walk(test)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_each_imported_package_is_in_requirements() -> None:
    """Guards `requirements.txt`: `deltalake` once stood in requirements-dev.txt alone, and Delta
    worked in tests only."""
    found = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    files = [
        file
        for file in found
        if file.parent.name != "contract"  # Suites for tests.
        and str(file.relative_to(ROOT)) not in ELSEWHERE
    ]
    names = sorted({name for file in files for name in imported(file)})
    assert {"deltalake", "pyspark", "pyiceberg", "django"} <= set(names)
    code = (
        "import importlib.util, sys; "
        "print([n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
    )
    said = subprocess.run(
        [str(PYTHON), "-c", code, *names], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Demo, dict[str, Any]]]:
    """The demo, run by the Python that has requirements.txt alone; its own replicator is paused."""
    folder = tmp_path_factory.mktemp("runtime") / "run"
    with closed_demo(folder, python=str(PYTHON)) as made:
        reported = made.start()
        call(reported, "POST", f"replicators/{reported['replicator_id']}/pause/")
        yield made, reported


def call(reported: dict[str, Any], method: str, path: str, body: Any = None) -> Any:
    """One request to REST; its answer."""
    request = urllib.request.Request(
        f"{reported['url']}/api/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Token {reported['token']}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as err:
        raise AssertionError(f"{method} {path}: {err.code} {err.read().decode()}") from err


def deploy(
    reported: dict[str, Any], name: str, source: dict[str, Any], target: dict[str, Any]
) -> str:
    """A tested, started replicator of the one table `things`; its id."""
    kind, schema, params = source["kind"], source["schema"], source["params"]
    for end, kind_of, params_of in (("source", kind, params), ("target", "lakehouse", target)):
        tested = call(
            reported,
            "POST",
            "connections/test/",
            {"role": end, "kind": kind_of, "params": params_of},
        )
        assert tested["ok"], tested["problems"]
    made = call(
        reported,
        "POST",
        "replicators/",
        {
            "name": name,
            "source_kind": kind,
            "source_params": params,
            "target_kind": "lakehouse",
            "target_params": target,
            "tables": [{"schema": schema, "name": "things", "columns": []}],
        },
    )
    return str(made["id"])


def replicating(reported: dict[str, Any], replicator: str) -> Callable[[], bool]:
    """Whether its table is copied and followed."""

    def holds() -> bool:
        status = call(reported, "GET", f"replicators/{replicator}/status/")
        states = [table["state"] for table in status["tables"]]
        return states == ["replicating"]

    return holds


def equal(
    read: Callable[[], list[tuple[Any, ...]]], reported: dict[str, Any], replicator: str
) -> None:
    """The target has `ROWS`."""

    def why() -> str:
        return json.dumps(call(reported, "GET", f"replicators/{replicator}/status/"))

    until(lambda: sorted(read()) == ROWS, lambda: f"{read()}: {why()}", LEVEL_SECONDS)


STATEMENTS = (
    "UPDATE things SET name = 'two, later' WHERE id = 2",
    "DELETE FROM things WHERE id = 3",
    "INSERT INTO things VALUES (4, 'four')",
)


@pytest.mark.long
def test_postgresql_into_delta(
    demo: tuple[Demo, dict[str, Any]], database: Database, tmp_path: Path
) -> None:
    """Guards Delta's runtime packages: test, assessment, deploy, first copy and merges work without
    the tests' environment."""
    from deltalake import QueryBuilder

    _, reported = demo
    database.execute("CREATE TABLE things (id int PRIMARY KEY, name text)")
    database.execute("INSERT INTO things VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    target = {"format": "delta", "warehouse": str(tmp_path / "delta"), "namespace": "here"}
    source = {"kind": "postgresql", "schema": "public", "params": database.params}
    made = deploy(reported, "things to Delta", source, target)
    until(replicating(reported, made), "the copy is followed", LEVEL_SECONDS)
    for statement in STATEMENTS:
        database.execute(statement)

    def read() -> list[tuple[Any, ...]]:
        from deltalake import DeltaTable

        table = DeltaTable(str(tmp_path / "delta" / "here" / "things"))
        found = QueryBuilder().register("t", table).execute("SELECT id, name FROM t")
        return [tuple(row.values()) for batch in found for row in arrow_rows(batch)]

    equal(read, reported, made)
    call(reported, "POST", f"replicators/{made}/pause/")


def arrow_rows(batch: Any) -> list[dict[str, Any]]:
    """A batch of any Arrow library as rows."""
    import pyarrow as pa

    return list(pa.record_batch(batch).to_pylist())


@pytest.mark.long
def test_mysql_into_iceberg(
    demo: tuple[Demo, dict[str, Any]], mysql: SqlServer, tmp_path: Path
) -> None:
    """As above, for the other log and the other format."""
    from pyiceberg.catalog.sql import SqlCatalog

    _, reported = demo
    with fresh_sql_database(mysql) as database:
        database.execute(
            "CREATE TABLE things (id int PRIMARY KEY, name varchar(40))",
            "INSERT INTO things VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        )
        uri = f"sqlite:///{tmp_path / 'catalog.db'}"
        target = {"warehouse": str(tmp_path / "iceberg"), "catalog_uri": uri, "namespace": "here"}
        source = {
            "kind": "mysql",
            "schema": database.name,
            "params": database.params,
        }
        made = deploy(reported, "things to Iceberg", source, target)
        until(replicating(reported, made), "the copy is followed", LEVEL_SECONDS)
        database.execute(*STATEMENTS)

        def read() -> list[tuple[Any, ...]]:
            catalog = SqlCatalog("lakehouse", uri=uri, warehouse=str(tmp_path / "iceberg"))
            rows = catalog.load_table(("here", "things")).scan().to_arrow().to_pylist()
            return [(row["id"], row["name"]) for row in rows]

        equal(read, reported, made)
        call(reported, "POST", f"replicators/{made}/pause/")
