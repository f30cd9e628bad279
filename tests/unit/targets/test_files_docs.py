"""The recipes of `docs/files.md` do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb

from replicators.connectors.contract.sink import Change, batch, resolved, snapshot
from replicators.connectors.model.changes import Op
from tests import replayed
from tests.unit.targets.test_files_sink import SCHEMA, TABLE, generation, sink_in

PAGE = Path(__file__).resolve().parents[3] / "docs" / "files.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_loader_in_duckdb_gives_the_tables_rows(tmp_path: Path) -> None:
    """Guards the recipe for DuckDB: each bucket once, over a changed key and a TRUNCATE."""
    sink = sink_in(tmp_path)
    sink.begin(TABLE, SCHEMA)
    sink.deliver(TABLE, snapshot([(n, f"r{n}") for n in range(9)], SCHEMA, 1, 10))
    first = [Change(11, Op.UPDATE, 1, "new", 1), Change(12, Op.UPDATE, 20, "moved", 70, old_id=2),
             Change(13, Op.DELETE, 3, at=70), Change(14, Op.INSERT, 3, "again", 80)]  # fmt: skip
    second = [Change(15, Op.TRUNCATE, 0, at=200), Change(16, Op.INSERT, 7, "after", 201)]
    code: dict[str, Any] = {}
    exec(blocks("python")[0], code)  # noqa: S102 (our own page)
    with duckdb.connect() as db:
        sink.deliver(TABLE, batch(first, SCHEMA, 10))
        sink.resolved(TABLE, resolved(14, 150))
        loaded = code["load"](db, str(tmp_path / "shop.orders"))
        assert loaded == "2024-11-24-07-06"
        assert _rows(db) == _expected(tmp_path)
        assert len(_rows(db)) == 9
        assert code["load"](db, str(tmp_path / "shop.orders"), loaded) == loaded
        sink.deliver(TABLE, batch(second, SCHEMA, 14))
        sink.resolved(TABLE, resolved(16, 100_000))
        code["load"](db, str(tmp_path / "shop.orders"), loaded)
        assert _rows(db) == _expected(tmp_path) == {(7, "after")}
        assert db.execute("SELECT count(*) FROM changes").fetchone() == (15,)


def _rows(db: duckdb.DuckDBPyConnection) -> set[tuple[Any, ...]]:
    db.execute(blocks("sql")[0])
    return set(db.execute("SELECT id, note FROM present").fetchall())


def _expected(folder: Path) -> set[tuple[Any, ...]]:
    return {(r["id"], r["note"]) for r in replayed.rows(generation(folder))}


def test_json_lines_are_read_by_another_programs_reader(tmp_path: Path) -> None:
    """Guards JSON lines against a reader that is not Python's."""
    sink = sink_in(tmp_path, format="JSON lines")
    sink.begin(TABLE, SCHEMA)
    changes = [Change(11 + n, Op.INSERT, n, f'"{n}"\n\\ü', at=1) for n in range(50)]
    sink.deliver(TABLE, batch(changes, SCHEMA, 10, 2))
    with duckdb.connect() as db:
        found = db.execute(
            "SELECT _sequence, after.id, after.note FROM read_json($1, format='newline_delimited')"
            " ORDER BY 1",
            [f"{generation(tmp_path)}/*/*/*.jsonl.gz"],
        ).fetchall()
    assert found == [(c.sequence, c.id, c.note) for c in changes]
