"""Whether a benchmark's figure is told of rows that were right: what is compared, and what counts
for nothing."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks import (
    backlog,
    binlog,
    capture,
    changes,
    growth,
    growth_size,
    lag,
    merge,
    place,
    programs,
    snapshot_programs,
)
from benchmarks.copied import sums
from benchmarks.report import Peer
from benchmarks.workload import Stream, Workload
from demo import shop


def test_a_copy_with_other_values_in_the_same_number_of_rows_is_wrong(tmp_path: Path) -> None:
    """Guards `copied.sums`, which `snapshot_programs.checked` asks: fails where rows are counted
    only, or where two rows may swap a value."""
    right = sums(_copied())
    pq.write_table(_copied(), tmp_path / "right.parquet")
    pq.write_table(_copied(swapped=True), tmp_path / "wrong.parquet")
    ran = programs.Ran(2.0, 0.5)
    good = snapshot_programs.checked("p", ran, [tmp_path / "right.parquet"], right)
    assert good == Peer("p", 2, 0.5)
    assert (
        snapshot_programs.checked("p", ran, [tmp_path / "wrong.parquet"], right).missing
        == snapshot_programs.WRONG
    )
    assert snapshot_programs.checked("p", ran, [], right).missing == snapshot_programs.WRONG
    assert sums(_copied(is_wide=False)) == right


def _copied(*, swapped: bool = False, is_wide: bool = True) -> pa.Table:
    """Four rows, in the types of one reader or of another."""
    ids, cents = [1, 2, 3, 4], [100, 250, 50, 75]
    cents = cents[::-1] if swapped else cents
    at = [datetime(2025, 1, 1, 0, 0, n, tzinfo=UTC) for n in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array(ids, pa.int64() if is_wide else pa.int32()),
            "status": ["shipped"] * 4,
            "amount": pa.array([Decimal(c) / 100 for c in cents], pa.decimal128(12, 2))
            if is_wide
            else pa.array([c / 100 for c in cents]),
            "note": [f"note {i} for this row" for i in ids],
            "at": pa.array(at, pa.timestamp("us", "UTC"))
            if is_wide
            else pa.array([t.replace(tzinfo=None) for t in at], pa.timestamp("ms")),
            "ok": pa.array([i % 3 == 0 for i in ids])
            if is_wide
            else pa.array([0, 0, 1, 0], pa.int16()),
        }
    )


def test_a_failure_of_decoding_is_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Guards `capture.Taken.run`: fails where a job that Spark ended with an error leaves the
    seconds of the capture alone, whose rows are then decoded for the check, and are right."""

    class Reader:
        def __init__(self) -> None:
            self.start = self.close = lambda *_: None

        def read(self, **_: Any) -> Any:
            return SimpleNamespace(position=SimpleNamespace(ordinal=2))

    class Capture:
        fault = None

        def __init__(self, reader: Any, *_: Any, on_seal: Any, **__: Any) -> None:
            self._reader, self._seal = reader, on_seal

        def run(self) -> None:
            self._reader.read()
            self._seal(SimpleNamespace(number=1))

        def stop(self) -> None:
            pass

    def fail(*_: Any) -> None:
        raise ArithmeticError("the job was ended")

    source = SimpleNamespace(log=SimpleNamespace(reader=lambda *_: Reader(), decoder=""))
    stream = Stream(source, None, "slot", None, [], 1)  # type: ignore[arg-type]
    monkeypatch.setattr(capture, "Capture", Capture)
    monkeypatch.setattr(capture, "task_for", lambda *_: None)
    monkeypatch.setattr(capture, "decode_segments", fail)
    with pytest.raises(ArithmeticError, match="the job was ended"):
        capture.Taken(stream, tmp_path, spark=object()).run()


def test_images_of_changes_are_compared_in_all_columns(tmp_path: Path) -> None:
    """Guards `capture.is_right` and `workload.expected`: fails where a column is not compared,
    where two rows may swap a value, or where an update may stand before the inserts."""
    server = SimpleNamespace(params=lambda _: {"host": "h", "user": "u", "database": "d"})
    load = Workload(server, 0, inserts=10_000)  # type: ignore[arg-type]
    rows = [(0, k) for k in range(1, 10_001)] + [(1, k) for k in range(1, 5001)]
    right = _images([*rows, *((2, k) for k in range(1, load.deletes + 1))])

    def is_right(table: pa.Table) -> bool:
        pq.write_table(table, tmp_path / "changes.parquet")
        return capture.is_right([str(tmp_path / "changes.parquet")], load)

    assert is_right(right)
    for column in ("customer", "status", "amount", "note", "at", "ok"):
        values = right.column(column).take(pa.array([*range(1, right.num_rows), 0]))
        at = right.schema.get_field_index(column)
        assert not is_right(right.set_column(at, column, values)), column
    moved = right.take(pa.array([10_000, *range(10_000), *range(10_001, right.num_rows)]))
    assert not is_right(moved.set_column(0, "_sequence", right.column("_sequence")))


def _images(rows: list[tuple[int, int]]) -> pa.Table:
    """Changes (operation, key) of the workload."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "_sequence": range(len(rows)),
            "_op": pa.array([op for op, _ in rows], pa.int8()),
            "_before": [{"id": k} for _, k in rows],
            "id": [k for _, k in rows],
            "customer": [k % 5000 for _, k in rows],
            "status": ["returned" if op == 1 else "shipped" for op, _ in rows],
            "amount": pa.array(
                [Decimal(k * 37 % 100000 + 100 * (op == 1)) / 100 for op, k in rows],
                pa.decimal128(12, 2),
            ),
            "note": [f"note {k} for this row" for _, k in rows],
            "at": pa.array(
                [start + timedelta(seconds=k) for _, k in rows], pa.timestamp("us", "UTC")
            ),
            "ok": [k % 3 == 0 for _, k in rows],
        }
    )


def test_a_row_of_the_binlog_is_compared_in_all_columns() -> None:
    """Guards `binlog.sums`, which the backlog asks too: fails where a name, a note or a time may be
    another one, to the microsecond."""
    second = datetime(2026, 1, 1, tzinfo=UTC)
    values: dict[str, list[Any]] = {
        "id": [1, 2, -1], "n": [1, 2, None], "name": ["name 1", "name 2", None],
        "price": [Decimal("0.14"), Decimal("0.29"), None], "note": ["x", "xx", None],
        "at": [second.replace(tzinfo=None)] * 2 + [None], "seen": [second] * 2 + [None],
    }  # fmt: skip
    types = {
        "price": pa.decimal128(12, 2),
        "at": pa.timestamp("us"),
        "seen": pa.timestamp("us", "UTC"),
    }
    right = pa.table({k: pa.array(v, types.get(k)) for k, v in values.items()})
    micro = timedelta(microseconds=1)
    others = {
        "n": 3, "name": "name 3", "price": Decimal("0.15"), "note": "xxx",
        "at": second.replace(tzinfo=None) + micro, "seen": second + micro,
    }  # fmt: skip
    for at, (name, other) in enumerate(others.items(), 1):
        changed = pa.array([other, *values[name][1:]], right.column(name).type)
        assert binlog.sums(right.set_column(at, name, changed)) != binlog.sums(right), name
    assert binlog.sums(right)[0] == 2


def test_the_peer_of_the_backlog_gets_what_ours_got(tmp_path: Path) -> None:
    """Guards `backlog.in_turn` and `backlog.as_text`: fails where two tasks that end in the other
    order turn batches round, or where Spark writes times into JSON by itself, without
    microseconds."""
    for number in (1, 0, 2):
        (tmp_path / f"part-0000{number}-x.json").write_text("{}")
        os.utime(tmp_path / f"part-0000{number}-x.json", (9 - number, 9 - number))
    backlog.in_turn(tmp_path)
    by_time = sorted(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime)
    assert by_time == sorted(tmp_path.iterdir())
    assert "CAST(at AS STRING) AS at" in backlog.as_text()
    assert "CAST(seen AS STRING) AS seen" in backlog.as_text()


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_merges_of_scattered_keys_are_compared_too(form: str, tmp_path: Path) -> None:
    """Guards `merge.Rounds.once` with a target that merges nothing: fails where scattered keys are
    not read afterwards, or where what is read is not what the merge was to leave."""
    rows, path = 4000, tmp_path / "warehouse" / "bench" / "events"
    target = place.target_params(tmp_path, form)
    ids = list(range(0, 2 * rows, 2))
    there = pa.table(
        {"id": ids, "customer": pa.array([0] * rows, pa.int32()), "status": ["s"] * rows}
    )

    class Writer:
        def __init__(self, *, is_right: bool) -> None:
            self._is_right = is_right

        def merge(self, _: Any, made: Any) -> None:
            table, sequence = there, made.sequence >> 32
            if self._is_right:
                changed = pq.read_table(made.paths[0])
                kept = dict.fromkeys(ids, "s") | dict.fromkeys(
                    changed.column("id").to_pylist(), "merged"
                )
                now = [i for i in kept if kept[i] == "s" or i % 10]
                table = pa.table(
                    {
                        "id": now,
                        "customer": pa.array(
                            [sequence + 10_000 if kept[i] == "merged" else 0 for i in now],
                            pa.int32(),
                        ),
                        "status": [kept[i] for i in now],
                    }
                )
            _store(target, form, path, table)

    for is_right in (True, False):
        rounds = merge.Rounds(Writer(is_right=is_right), target, form, tmp_path, rows)
        rounds.once(None, pruned=True, scattered=True)  # type: ignore[arg-type]
        assert rounds.checked is is_right


def _store(target: Any, form: str, path: Path, table: pa.Table) -> None:
    """Write the table anew, without Spark."""
    if form == "delta":
        write_deltalake(str(path), table, mode="overwrite")
        return
    catalog = SqlCatalog(target.catalog_name, uri=target.catalog_uri, warehouse=target.warehouse)
    catalog.create_namespace_if_not_exists("bench")
    catalog.create_table_if_not_exists("bench.events", table.schema).overwrite(table)


def test_the_end_of_many_merges_is_compared_by_value(tmp_path: Path) -> None:
    """Guards `growth.Merges.is_right`: fails where keys are compared only, so that an update may be
    lost."""
    merges = growth.Merges(tmp_path, SimpleNamespace(merge=lambda *_: None), None)  # type: ignore[arg-type]
    before = dict(merges.there)
    merges.once()
    assert merges.there != before
    found = pa.table({"id": list(merges.there), "customer": list(merges.there.values())})
    assert merges.is_right(found)
    lost = pa.table(
        {"id": list(merges.there), "customer": [before.get(i, 2) for i in merges.there]}
    )
    assert not merges.is_right(lost)


def test_a_program_that_prints_less_has_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `BinlogLoad.printed`: fails where a program that ended well, and printed nothing, has
    a time."""
    load = object.__new__(binlog.BinlogLoad)
    load.inserts = 5
    text = "### INSERT INTO `bench`.`events`\n### SET\n" * (load.changes + 1)
    for said, value in ((text, True), ("", False)):
        shown = ["printf", "%s", said]
        monkeypatch.setattr(binlog.BinlogLoad, "_print", shown)
        peer = load.printed(tmp_path)
        assert (peer.value is not None) is value
    assert peer.missing == "failed: it printed 0 of 9"
    monkeypatch.setattr(binlog.BinlogLoad, "_print", ["not-there"])
    assert load.printed(tmp_path).missing.startswith("failed: ")


def test_a_copy_of_the_log_that_is_not_whole_has_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `changes._copied`: fails where the files that `mysqlbinlog` left are not compared with
    the server's."""
    server = SimpleNamespace(execute=lambda _: [("binlog.1", 5, "No")])

    def dump(*_: Any) -> programs.Ran:
        (tmp_path / "raw-binlog.1").write_bytes(bytes(held))
        return programs.Ran(2.0, 0.1)

    monkeypatch.setattr(changes, "_dumped", dump)
    held = 5
    assert changes._copied(server, tmp_path, 8) == Peer(changes.RAW, 4, 0.1)  # type: ignore[arg-type]
    held = 0
    assert changes._copied(server, tmp_path, 8).value is None  # type: ignore[arg-type]


def test_the_smallest_table_is_not_measured_in_a_colder_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `growth_size.measure`: fails where the first size warms the JVM up for the larger
    ones, so that tables seem to grow for nothing."""
    seconds = iter([(9.0, 9.0), (1.0, 2.0), (1.0, 8.0), (2.0, 20.0)])

    class Rounds:
        checked = True

        def __init__(self, *_: Any) -> None: ...

        def compare(self, *_: Any, **__: Any) -> tuple[float, float]:
            return next(seconds)

    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    monkeypatch.setattr(growth_size, "Rounds", Rounds)
    monkeypatch.setattr(growth_size, "fill", lambda *_: None)
    monkeypatch.setattr(place, "spark", lambda *_: nullcontext())
    monkeypatch.setattr(place, "TARGET", replace(place.TARGET, writer=lambda *_: None))
    (result,) = growth_size.measure("growth-size")
    assert (result.ours, result.ratio) == (2.0, 2.0)
    assert "1,000,000 rows in 4 files: ours 1.00 s, plain 2.00 s; 10,000,000" in result.note


def test_what_the_traffic_changes_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `lag.is_equal`: fails where a price that never came is not seen, or where rows without
    a key are only counted."""
    views = {"customer_id": None, "path": "/a", "agent": "x", "duration_ms": 3}
    target = {"products": {"id": 1, "name": "a", "price": Decimal("1.10")}, "page_views": views}
    source = dict(target)

    class Table:
        def __init__(self, name: str) -> None:
            self._row = target[name]

        def scan(self, selected_fields: tuple[str, ...]) -> Any:
            held = pa.table({field: [self._row[field]] for field in selected_fields})
            return SimpleNamespace(to_arrow=lambda: held)

    def execute(sql: str, **_: Any) -> list[tuple[Any, ...]]:
        names, _, name = sql.removeprefix("SELECT ").partition(" FROM shop.")
        return [(1,) if "count" in names else tuple(source[name][n] for n in names.split(", "))]

    server: Any = SimpleNamespace(execute=execute)
    monkeypatch.setattr(place, "iceberg_table", lambda *names: Table(names[-1]))
    assert all(lag.is_equal(server, None, name) for name in source)
    source["products"] = {**target["products"], "price": Decimal("1.11")}
    source["page_views"] = {**views, "path": "/b"}
    assert not any(lag.is_equal(server, None, name) for name in source)
    assert set(lag.COMPARED) == set(shop.TABLES)
