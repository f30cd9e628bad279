"""The stream's events cut into blocks, and what is made of them: odd groups, odd ends of files, and
many tables."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from replicators.connectors.log import DecodedTable, LogBlock, Poison
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql import blocks as blocks_module
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.decode import decode
from tests.unit.sources.binlog_events import EXECUTE_LOAD, INCIDENT, STANDALONE, Fed, Log

ID = Column("id", Int(32), "int", nullable=False, wire="int")
ROTATE, ARTIFICIAL = 4, 0x20


def table(name: str) -> TableSchema:
    return TableSchema(TableId("shop", name), (ID,), key=("id",))


def decoded(blocks: Sequence[LogBlock], *names: str) -> list[DecodedTable | Poison]:
    """What the blocks hold of these tables, each block decoded as a segment of its own."""
    tables = [table(name).to_json() for name in names]
    found: list[DecodedTable | Poison] = []
    for block in blocks:
        body = np.frombuffer(bytearray(block.data), np.uint8)
        found += decode({"context": block.context, "tables": tables}, body, 1)
    return found


def ids(found: Sequence[DecodedTable | Poison]) -> list[int]:
    rows: list[int] = []
    for part in found:
        assert isinstance(part, DecodedTable), part
        rows += part.changes["id"].to_pylist()
    return rows


def codes(found: Sequence[DecodedTable | Poison]) -> dict[str, str]:
    return {str(p.table): p.code for p in found if isinstance(p, Poison)}


def group(log: Log, name: str, number: int, *values: int) -> list[bytes]:
    """A transaction with rows of a table."""
    begin, schema = log.begin(), log.table_map(number, name)
    rows = [log.insert(number, value) for value in values]
    return [begin, schema, *rows, log.commit()]


def rotate(file: str, flags: int = ARTIFICIAL) -> bytes:
    body = struct.pack("<Q", 4) + file.encode()
    return struct.pack("<IBIIIH", 0, ROTATE, 1, 19 + len(body), 0, flags) + body


# --- many tables --------------------------------------------------------------------------------------------------------  # noqa: E501


def test_a_table_that_is_opened_again_and_again_stays_readable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards the table of numbers: each opening of a table (after TRUNCATE, ALTER, FLUSH TABLES, or
    for want of room in the server's cache) has a number of its own, and a full table of numbers
    would be searched for ever."""
    monkeypatch.setattr(blocks_module, "MAPS", 8)
    fed, log = Fed("t"), Log()
    for n in range(100):
        assert ids(decoded(fed.feed(group(log, "t", 100 + n, n)), "t")) == [n]
        assert (fed.cutter.ids == -1).sum() >= len(fed.cutter.ids) // 2
    assert len(fed.cutter.ids) <= 32
    assert len(fed.cutter._maps) <= 16


def test_more_tables_than_are_kept_at_first_are_all_readable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards a choice of very many tables, with their maps in one file."""
    monkeypatch.setattr(blocks_module, "MAPS", 8)
    names = [f"t{n}" for n in range(100)]
    fed, log = Fed(*names), Log()
    for turn in range(3):
        for n, name in enumerate(names):
            assert ids(decoded(fed.feed(group(log, name, 100 + n, turn)), name)) == [turn]
    assert (fed.cutter.ids == -1).sum() >= len(fed.cutter.ids) // 2


def test_maps_of_an_open_transaction_outlive_the_forgetting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards rows behind a cut within a transaction whose map came before others were forgotten."""
    monkeypatch.setattr(blocks_module, "MAPS", 8)
    fed, log = Fed("t"), Log()
    events = [log.begin(), log.table_map(1, "t"), log.insert(1, 1)]
    blocks = fed.feed(events)
    fed.cutter.emit_open()
    blocks += [fed.cutter.ready.popleft()]
    others = [log.table_map(50 + n, f"other{n}") for n in range(20)]
    blocks += fed.feed([*others, log.insert(1, 2), log.commit()])
    assert len(blocks) == 2
    assert ids(decoded(blocks, "t")) == [1, 2]


# --- row changes that are no row events ------------------------------------------------------------------------------------  # noqa: E501


def test_a_load_that_was_logged_as_a_statement_stops_its_table() -> None:
    """Guards rows that LOAD DATA brings under `binlog_format = STATEMENT`: they come in an event of
    their own."""
    fed, log = Fed("t", "u"), Log()
    text = "LOAD DATA INFILE 'x' INTO TABLE `t` FIELDS TERMINATED BY '\\t' (`id`)"
    events = group(log, "u", 7, 1)
    events += [log.begin(), log.query(text, EXECUTE_LOAD, bytes(13)), log.commit()]
    found = decoded(fed.feed(events), "t", "u")
    assert codes(found) == {"shop.t": "source:statement-logged"}
    assert ids([p for p in found if isinstance(p, DecodedTable)]) == [1]


def test_a_function_that_was_called_in_a_statement_stops_every_table() -> None:
    """Guards rows that a stored function changed: the log has only its call, which does not say
    where."""
    fed, log = Fed("t", "u"), Log()
    found = decoded(
        fed.feed([log.begin(), log.query("SELECT `shop`.`f`(1)"), log.commit()]), "t", "u"
    )
    assert codes(found) == dict.fromkeys(("shop.t", "shop.u"), "source:statement-logged")


def test_an_incident_outside_of_any_transaction_stops_every_table_and_no_more() -> None:
    """Guards MariaDB's note that its log lacks changes, which has no GTID: the stream has to go on
    behind it."""
    fed, log = Fed("t"), Log()
    blocks = fed.feed([*group(log, "t", 7, 1), log.event(INCIDENT, b"\1\0\0")])
    assert codes(decoded(blocks, "t")) == {"shop.t": "source:log-incident"}
    assert ids(decoded(fed.feed(group(log, "t", 7, 2)), "t")) == [2]
    gtids = blocks[-1].position.detail["gtids"]
    assert gtids == "0-1-1"


def test_an_event_of_a_kind_that_is_not_known_stops_every_table_and_is_not_passed_over() -> None:
    """Guards `kernels.is_unknown`: rows may come in kinds of events that a later server brings,
    such as the fragments of large ones in MariaDB 12.3. What a server calls ignorable, and what
    stands between transactions, is passed over."""
    fed, log = Fed("t", "u"), Log()
    strange = [log.begin(), log.table_map(7, "t"), log.event(172, b"rows"), log.commit()]
    found = decoded(fed.feed(strange), "t", "u")
    assert codes(found) == dict.fromkeys(("shop.t", "shop.u"), "source:log-event")
    events = [log.event(172, b"between"), log.begin(), log.table_map(7, "t")]
    ignorable = bytearray(log.event(172, b"a note"))
    ignorable[17] |= k.IGNORABLE
    events.append(bytes(ignorable))
    found = decoded(fed.feed([*events, log.insert(7, 3), log.commit()]), "t", "u")
    assert not codes(found)
    assert ids([p for p in found if isinstance(p, DecodedTable)]) == [3]


# --- ends of files -----------------------------------------------------------------------------------------------------------  # noqa: E501


def test_a_group_that_a_crash_cut_off_leaves_no_trace() -> None:
    """Guards the reading past a crash of MariaDB: what it had not wholly logged it rolls back, and
    goes on in the next file."""
    fed, log = Fed("t"), Log()
    events = group(log, "t", 7, 1)
    events += [log.begin(), log.table_map(7, "t"), log.insert(7, 2)]
    blocks = fed.feed([*events, rotate("binlog.000002")])
    log = Log()
    log.number = 1
    blocks += fed.feed(group(log, "t", 9, 3))
    assert ids(decoded(blocks, "t")) == [1, 3]
    assert blocks[-1].position.detail["gtids"] == "0-1-2"
    assert blocks[-1].position.detail["file"] == "binlog.000002"


def test_a_group_that_a_crash_cut_off_after_a_part_was_handed_out_stops_its_tables() -> None:
    """Guards rows of a transaction that never was, which lie in the log already."""
    fed, log = Fed("t", "u"), Log()
    blocks = fed.feed(
        [*group(log, "u", 6, 1), log.begin(), log.table_map(7, "t"), log.insert(7, 2)]
    )
    fed.cutter.emit_open()
    blocks += [fed.cutter.ready.popleft()]
    blocks += fed.feed([rotate("binlog.000002")])
    assert [b.ends_closed for b in blocks] == [True, False, True]
    assert codes(decoded(blocks, "t"))["shop.t"] == "source:transaction-unsure"


def test_a_group_that_goes_on_in_another_file_is_damage() -> None:
    """Guards against leaving out a transaction that the server did commit: only a file without an
    end was cut off."""
    fed, log = Fed("t"), Log()
    with pytest.raises(ReplicationError, match="damaged"):
        fed.feed([log.begin(), log.table_map(7, "t"), rotate("binlog.000002", 0)])


def test_a_rollback_behind_a_cut_stops_the_tables_of_the_part_before() -> None:
    """Guards CORRECTNESS 25: the rows that are undone lie in a segment before the one that has the
    ROLLBACK."""
    fed, log = Fed("t"), Log()
    blocks = fed.feed([log.begin(), log.table_map(7, "t"), log.insert(7, 1)])
    fed.cutter.emit_open()
    blocks += [fed.cutter.ready.popleft()]
    blocks += fed.feed([log.query("ROLLBACK")])
    assert codes(decoded(blocks[-1:], "t")) == {"shop.t": "source:transaction-unsure"}


def test_a_statement_alone_is_a_transaction() -> None:
    """Guards the hand-made events of this file: DDL of a table that is not chosen leaves
    nothing."""
    fed, log = Fed("t"), Log()
    assert fed.feed([log.begin(STANDALONE), log.query("CREATE TABLE x (id int)")]) == []
