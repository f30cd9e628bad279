"""What the lines into databases and warehouses make of what they find: shares, ratios, lags, and
peers without a figure."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import requests

from benchmarks import (
    LINES,
    backlog_into,
    copied,
    copy_into,
    dlt_into,
    emulator,
    lag_postgresql,
    played,
    resources,
    search_into,
    waits,
)
from benchmarks.dlt_into import Dlt, Loaded, Way
from benchmarks.programs import Ran
from benchmarks.report import Peer, Result
from replicators.connectors.model.schema import TableId


def test_a_peer_that_loaded_other_rows_or_none_has_no_figure() -> None:
    """Guards `Loaded.peer`; fails where a load counts although its table differs from the source's,
    or where a missing peer is asked for its rows."""
    loaded = Loaded("dlt", Ran(4.0, 0.5))
    assert loaded.peer(1000, lambda: True) == Peer("dlt", 250, 0.5)
    assert loaded.peer(1000, lambda: False) == Peer("dlt", None, missing=dlt_into.WRONG)
    gone = Loaded("dlt", missing="not installed: x")
    assert gone.peer(1000, pytest.fail) == Peer("dlt", None, missing="not installed: x")


def test_each_line_into_a_server_has_its_place_and_its_peers() -> None:
    """Guards `emulator.EMULATED`: fails where a line of `copy_into` or `backlog_into` has no
    server, or where a peer that is not dlt is called dlt."""
    modules = {"copy_into", "backlog_into"}
    kinds = {line.partition("-")[0] for line, (module, _) in LINES.items() if module in modules}
    assert kinds - {"postgresql"} == set(emulator.EMULATED)
    assert [w.name for w in emulator.of("bigquery-copy").ways] == [
        "dlt pyarrow, parquet", "dlt connectorx, parquet",
    ]  # fmt: skip
    (way,) = emulator.of("spanner-copy").ways
    assert (way.program, "dlt" in way.name) == ("spanner", False)


def test_a_server_without_http_has_no_share_of_waiting() -> None:
    """Guards `copy_into.share`; fails where a line claims to know how long it waited for a server
    that it does not ask by `requests`."""
    assert copy_into.share(6.6, 0.0) == ""
    assert "3.5 s are waiting" in copy_into.share(6.6, 3.5)


def test_what_the_played_spanner_holds_is_summed_as_arrow_is() -> None:
    """Guards `played._row`; fails where a moment, a decimal or a boolean of the store is summed as
    another value than the source's."""
    kept = {"id": 3, "customer": 3, "status": "shipped", "amount": "1.11", "note": "note 3 for x",
            "at": "2025-01-01T00:00:03.000000000Z", "ok": 1}  # fmt: skip
    row = pa.Table.from_pylist([played._row(kept)], played.ROWS)
    assert copied.sums(row)[:4] == (1, 3, 3, 1)
    assert copied.sums(row)[7:9] == (111, 1735689603)
    empty = dict.fromkeys(kept) | {"id": 4}
    assert played._row(empty) == empty


def test_a_process_of_dlt_that_failed_is_not_asked_again() -> None:
    """Guards `Dlt.load`: fails where the second load of a backlog waits for a process that is
    gone, or where its reason replaces the first one."""

    class Gone:
        asked = 0

        def say(self, **_: Any) -> None:
            self.asked += 1

        def hear(self, _: float) -> dict[str, Any]:
            raise RuntimeError("the peer ended with 1: no such table")

    talk = Gone()
    process = Dlt(Way("pyarrow", "csv"), {}, talk)  # type: ignore[arg-type]
    told = [process.load(), process.load()]
    assert told[0] == told[1] == Loaded("dlt pyarrow, csv", missing=told[0].missing)
    assert "no such table" in told[0].missing and talk.asked == 1


def test_the_ratio_is_to_the_better_of_the_two_native_ways() -> None:
    """Guards `copy_into._beside_native`; fails where the ratio is to the slower one, where the
    first round counts, or where the ratio is turned around."""
    told = copy_into._beside_native(
        "postgresql-copy", 1000, [9.0, 2.0, 2.0], [[9.0, 4.0, 4.0], [9.0, 1.0, 1.0]], True, "x 1"
    )
    assert (told.ours, told.ratio, told.reached) == (500, 0.5, False)
    assert [p.value for p in told.peers] == [250, 1000]


def test_the_ratio_to_dlt_is_to_its_best_way_that_was_right() -> None:
    """Guards `copy_into.beside_dlt` and `backlog_into.beside_dlt`; fails where a way without a
    figure ends the line or counts."""
    ways = [Peer("a", 50), Peer("b", 100), Peer("c", None, missing="failed: x")]
    told = copy_into.beside_dlt("l", 1000, [8.0, 2.0], ways, 5, True, "")
    assert (told.ours, told.ratio, told.reached) == (500, 5.0, True)
    alone = copy_into.beside_dlt("l", 1000, [2.0], ways[2:], 5, True, "")
    assert (alone.ratio, alone.reached) == (None, False)
    ours = Result("postgresql-backlog", "row changes/s", 500, 0.5, checked=True)
    beside = backlog_into.beside_dlt(ours, Peer("dlt", 50), 5, "")
    assert (beside.line, beside.ratio, beside.reached) == ("postgresql-backlog-dlt", 10.0, True)
    assert not backlog_into.beside_dlt(ours, ways[2], 5, "").reached


def test_a_change_waits_for_the_first_merge_that_reaches_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `lag_postgresql.lags` and `visible`: fails where a merge that ends before a change
    counts for it, or where a change that never arrived has a lag."""
    rows = [("orders", 10, 100.5), ("other", 99, 100.6), ("orders", 20, 103.0)]
    server = _Server([(json.dumps({"target_table": t, "sequence": s}), at) for t, s, at in rows])
    shown = lag_postgresql.visible(server)  # type: ignore[arg-type]
    sequences, at = np.array([5, 10, 11, 21, 22]), np.array([100.0, 100.0, 100.0, 102.0, 999.0])
    monkeypatch.setattr(lag_postgresql, "committed", lambda *_: (sequences, at))
    table = TableId("shop", "orders")
    found = lag_postgresql.lags(None, shown["orders"], table, 0.0, 200.0)  # type: ignore[arg-type]
    assert list(found) == [0.5, 0.5, 3.0, np.inf]
    assert "2.50 s apart in the middle" in lag_postgresql.apart(shown, 0.0, 200.0)


class _Server:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def execute(self, sql: str, **_: Any) -> list[Any]:
        return self._rows


def test_rows_that_differ_at_the_target_are_not_equal() -> None:
    """Guards `lag_postgresql.is_equal`; fails where rows are counted only, or where their order or
    the servers' types matter."""
    here, there = _Server([(1, 2.50), (2, 3)]), _Server([(2, 3), (1, 2.50)])
    assert lag_postgresql.is_equal(here, there, "ours", "inventory")  # type: ignore[arg-type]
    there = _Server([(2, 3), (1, 2.51)])
    assert not lag_postgresql.is_equal(here, there, "ours", "inventory")  # type: ignore[arg-type]


def test_waiting_counts_once_although_requests_overlap(tmp_path: Path) -> None:
    """Guards `waits.within`: fails where two requests at the same time count twice, or where what
    lies outside of the interval counts."""
    told = waits.Waits()
    for span in ((8.0, 11.0), (1.0, 4.0), (2.0, 3.0), (3.5, 5.0), (20.0, 30.0)):
        told.add(*span)
    told.write(tmp_path / "waits.json")
    spans = waits.read(tmp_path / "waits.json")
    assert waits.within(spans, 0.0, 12.0) == 7.0
    assert waits.within(spans, 2.0, 9.0) == 4.0
    assert waits.within(waits.read(tmp_path / "none"), 0.0, 12.0) == 0.0


def test_a_request_is_noted_until_the_end_only() -> None:
    """Guards `waits.counted`; fails where requests are not seen, or where the library stays changed
    afterwards."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 (the server calls it so)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        try:
            with waits.counted() as told:
                requests.get(url, timeout=20)
            requests.get(url, timeout=20)
        finally:
            server.shutdown()
            thread.join()
    ((began, ended),) = told.spans
    assert began <= ended


def test_an_emulator_is_not_ours() -> None:
    """Guards `resources._part`; fails where the emulator's memory and CPU time count as ours."""

    class Process:
        def cmdline(self) -> list[str]:
            return ["/v/bin/python", "/v/bin/bqemulator", "start", "--rest-port", "1"]

    assert resources._part(Process()) == "emulator"  # type: ignore[arg-type]
    assert "emulator" in resources.NOT_OURS


def test_what_an_index_has_after_a_part_of_the_changes() -> None:
    """Guards `search_into.wanted`: fails where a peer that sent a part, or nothing, counts as
    right."""

    class Load:
        inserts, updates, deletes, changes = 10, 5, 2, 17

    load: Any = Load()
    cents = [k * 37 % 100000 for k in range(1, 11)]
    assert search_into.wanted(load, 4) == (4, 0, sum(cents[:4]))
    assert search_into.wanted(load, 13) == (10, 3, sum(cents) + 300)
    assert search_into.wanted(load) == (8, 3, sum(cents[2:]) + 300)


def test_the_middle_round_of_a_peer_counts_unless_one_had_no_figure() -> None:
    """Guards `search_into.middle`."""
    rounds = [Peer("a", 3), Peer("a", 1), Peer("a", 2)]
    assert search_into.middle(rounds).value == 2
    failed = Peer("a", None, missing="failed: x")
    assert search_into.middle([*rounds, failed]) == failed
