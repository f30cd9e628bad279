"""Deliveries compared on Spark: what changed, what is refused, and what a crash leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors import failpoints
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.poll import DeliveryReport, Polled
from replicators.connectors.problems.lookup import message_of
from replicators.sources.compared.catalog import ComparedCatalog
from replicators.sources.compared.control import ComparedControl
from replicators.sources.compared.journal import Journal
from replicators.sources.compared.params import DELTA, ComparedParams
from replicators.sources.compared.poll import ComparedPoll
from replicators.sources.compared.snapshot import ComparedChunks, ComparedSession, snapshot_first
from runners.engine.tasks.on_spark import SparkTasks
from tests.compared_world import COLUMNS, SCHEMA_NAME, Inbox, csv_text, line

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
PEOPLE = TableId(SCHEMA_NAME, "people")
NAME = "one"
Change = tuple[int, int, Any, Any]


class Source:
    """A replicator's side of the source: it polls, and remembers its position."""

    def __init__(self, spark: Any, inbox: Inbox, **values: Any) -> None:
        self.spark = spark
        self.inbox = inbox
        self.values = values
        self.position: Position | None = None
        self.reports: dict[str, DeliveryReport] = {}
        self.reader = self.opened()

    @property
    def params(self) -> ComparedParams:
        return self.inbox.params(**self.values)

    def opened(self) -> ComparedPoll:
        """A reader, as a new run opens it."""
        reader = ComparedPoll(self.params, NAME)
        reader.use_tasks(SparkTasks(self.spark), lambda rows: None)
        return reader

    def schemas(self) -> list[TableSchema]:
        with ComparedCatalog(self.params) as catalog:
            return list(
                catalog.describe([TableSelection(t.id) for t in catalog.list_tables()]).values()
            )

    def begin(self) -> ComparedSession:
        """A first start."""
        self.reader.prepare(self.schemas(), None)
        session = snapshot_first(self.params, NAME, self.reader)
        self.position = session.point.position
        return session

    def again(self, **values: Any) -> None:
        """A new run, perhaps with other params."""
        self.values |= values
        self.reader = self.opened()
        self.reader.prepare(self.schemas(), self.position)

    def ask(self) -> Polled:
        assert self.position is not None
        found = self.reader.poll(self.position, self.schemas(), max_bytes=1 << 20)
        self.reports |= {f"{r.name}": r for r in found.deliveries}
        return found

    def rows(self) -> list[dict[str, Any]]:
        """All changes until nothing more comes; each answer is acknowledged."""
        got: list[dict[str, Any]] = []
        while True:
            found = self.ask()
            for part in found.changes:
                got += part.rows.to_pylist()
            if found.position == self.position:
                return got
            self.position = Position.from_json(found.position.to_json())
            self.reader.acknowledge(self.position)

    def changes(self, column: str = "name") -> list[Change]:
        """Operation, key, and a column's value afterwards and before."""
        return sorted(
            (r["_op"], r["id"], r[column], r["_before"] and r["_before"][column])
            for r in self.rows()
        )

    def copied(self) -> list[tuple[Any, ...]]:
        """The rows that a copy has now."""
        (schema,) = self.schemas()
        session = ComparedSession(self.params, NAME)
        point = session.point_of(schema, is_exact=False)
        assert self.position is None or point.position.ordinal <= session.point.position.ordinal
        read = ComparedChunks(self.params, session.point.token)
        chunks = session.plan(schema, rows_per_chunk=2)
        return sorted(
            tuple(row.values()) for c in chunks for b in read(c, schema) for row in b.to_pylist()
        )

    def tally(self, delivery: str) -> tuple[int, ...]:
        found = self.reports[delivery]
        return found.inserts, found.updates, found.deletes, found.missing, found.unchanged


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path)


@pytest.fixture
def source(spark: Any, inbox: Inbox) -> Iterator[Source]:
    made = Source(spark, inbox)
    yield made
    made.reader.close()


def test_full_sets_give_inserts_updates_and_deletes_with_the_rows_before(
    source: Source, inbox: Inbox
) -> None:
    """Guards the comparison: the first delivery is the copy, a row that is missing was deleted, and
    an update and a delete carry the whole old row. A file that comes again as it was changes
    nothing, and NULL is not an empty text."""
    inbox.deliver("1", [line(1), line(2), line(3, ""), line(4)])
    source.begin()
    assert [r[:2] for r in source.copied()] == [
        (1, "as it was"), (2, "as it was"), (3, None), (4, "as it was")
    ]  # fmt: skip
    text = csv_text([line(1), line(2, "new"), line(5)]) + '"3","","1.50"\n'
    inbox.write(inbox.folder / "2" / "people.csv", text)
    assert source.changes() == [
        (0, 5, "as it was", None),
        (1, 2, "new", "as it was"),
        (1, 3, "", None),
        (2, 4, None, "as it was"),
    ]
    assert source.tally("1") == (4, 0, 0, 0, 0)
    assert source.tally("2") == (1, 2, 1, 0, 1)
    inbox.write(inbox.folder / "3" / "people.csv", text)
    assert source.changes() == []
    assert source.tally("3") == (0, 0, 0, 0, 4)
    assert len(source.copied()) == 4


def test_a_set_of_changed_rows_deletes_nothing(spark: Any, inbox: Inbox) -> None:
    """Guards delta sets: a row that is missing stays, and the state has it for a later update."""
    source = Source(spark, inbox, rows=DELTA)
    inbox.deliver("1", [line(1), line(2)])
    source.begin()
    inbox.deliver("2", [line(2, "new"), line(3)])
    assert [c[:2] for c in source.changes()] == [(0, 3), (1, 2)]
    assert source.tally("2") == (1, 1, 0, 1, 0)
    inbox.deliver("3", [line(1, "late")])
    assert source.changes() == [(1, 1, "late", "as it was")]
    assert [r[:2] for r in source.copied()] == [(1, "late"), (2, "new"), (3, "as it was")]


@pytest.mark.long
def test_deliveries_that_waited_come_in_their_order(source: Source, inbox: Inbox) -> None:
    """Guards a pause: each delivery is compared with the one before it. The first delivery of a
    table that had none at the start comes as inserts."""
    inbox.deliver("day1", [line(1)])
    source.begin()
    inbox.deliver("day10", [line(1, "ten")])
    inbox.deliver("day2", [line(1, "two")])
    inbox.deliver("day2", [("7", "other", "")], table="others")
    found = [(r["_op"], r["id"], r["name"]) for r in source.rows()]
    assert [f for f in found if f[1] == 1] == [(1, 1, "two"), (1, 1, "ten")]
    assert (0, 7, "other") in found


REFUSED: list[tuple[str, Sequence[Sequence[str]], Sequence[str], str, dict[str, str]]] = [
    ("shrank", [line(1)], COLUMNS, "source:delivery-shrank", {"lost": "3", "before": "4"}),
    ("empty", [], COLUMNS, "source:delivery-shrank", {"rows": "0", "percent": "100"}),
    (
        "repeated",
        [line(1), line(1), line(2), line(3), line(4)],
        COLUMNS,
        "source:delivery-key-repeated",
        {"keys": "1", "rows": "2", "sample": "id = 1 (2 times)"},
    ),
    ("no key", [line(1), ("", "x", "1"), ("two", "x", "1")], COLUMNS,
     "source:delivery-key-null", {"rows": "2", "columns": "id"}),
    ("no column", [("1", "x")], ("id", "name"), "source:delivery-column-missing",
     {"columns": "`amount`", "present": "id, name"}),
    ("odd line", [line(1), ("2", "x", "1", "more")], COLUMNS,
     "source:delivery-malformed", {"rows": "1"}),
]  # fmt: skip


def test_a_bad_delivery_is_refused_and_yesterdays_state_stays(source: Source, inbox: Inbox) -> None:
    """Guards every refusal: nothing of it is applied, its text says what to do, it is not read
    again, and the next good delivery is compared with yesterday's."""
    inbox.deliver("00", [line(n) for n in range(1, 5)])
    source.begin()
    before = source.copied()
    for number, (_, rows, columns, code, facts) in enumerate(REFUSED, 1):
        name = f"{number:02}"
        inbox.deliver(name, rows, columns=columns)
        # What is described is what is known: the newest file lacks a column here.
        assert source.rows() == []
        report = source.reports[name]
        assert report.code == code
        assert {k: v for k, v in report.facts if k in facts} == facts
        shown = message_of(code).render({**dict(report.facts), "table": "delivered.people"})
        assert "{" not in shown.text + shown.suggestion
        assert "(" + "table)" not in shown.text
    assert source.copied() == before
    leftovers = Journal(source.params.folder_of(NAME)).folder
    assert len(list(Path(leftovers).rglob("rows/**/*.parquet"))) >= 1
    inbox.deliver("50", [line(n, "good") for n in range(1, 5)])
    assert [c[:2] for c in source.changes()] == [(1, n) for n in range(1, 5)]


@pytest.mark.long
def test_a_refused_loss_is_tried_again_when_it_is_allowed(source: Source, inbox: Inbox) -> None:
    """Guards `rule`: the same file is read again only after a setting changed."""
    inbox.deliver("1", [line(1), line(2), line(3)])
    source.begin()
    inbox.deliver("2", [line(1)])
    assert source.rows() == []
    assert source.reports["2"].code == "source:delivery-shrank"
    source.again()
    assert source.rows() == []
    source.again(largest_loss=100)
    assert [c[:2] for c in source.changes()] == [(2, 2), (2, 3)]
    assert source.reports["2"].code == ""


@pytest.mark.long
def test_a_refused_set_of_changed_rows_holds_the_later_ones(spark: Any, inbox: Inbox) -> None:
    """Guards delta sets: what comes after a missing delivery would build on it. A corrected file
    lets all go on."""
    source = Source(spark, inbox, rows=DELTA)
    inbox.deliver("1", [line(1)])
    source.begin()
    inbox.deliver("2", [line(2), line(2)])
    inbox.deliver("3", [line(3)])
    assert source.rows() == []
    path = inbox.deliver("2", [line(2)])
    inbox.age(path, -3)
    assert [c[:2] for c in source.changes()] == [(0, 2), (0, 3)]


def test_a_value_that_can_not_be_cast_is_marked_for_quarantine(
    source: Source, inbox: Inbox
) -> None:
    """Guards `_faulty`: the row is there, the value is NULL with its reason, in the change and in a
    later copy. A corrected value is an update; a rounded one is a fault too."""
    inbox.deliver("1", [line(1), line(2)])
    source.values["columns"] = "people: amount decimal(5,2)"
    source.begin()
    inbox.deliver("2", [line(1, amount="much"), line(2, amount="1.555")])
    found = source.rows()
    assert [(r["id"], r["amount"], r["_faulty"]) for r in found] == [
        (1, None, b"\x04"),
        (2, None, b"\x04"),
    ]
    assert found[0]["_fault_reason"] == "amount: the value is no decimal(5,2)"
    assert source.reports["2"].quarantined == 2
    assert [r[3] for r in source.copied()] == [b"\x04", b"\x04"]
    inbox.deliver("3", [line(1, amount="2.50"), line(2, amount="1.555")])
    (mended,) = source.rows()
    assert (mended["_op"], mended["id"], str(mended["amount"])) == (1, 1, "2.50")


@pytest.mark.long
def test_a_new_column_comes_with_another_schema(source: Source, inbox: Inbox) -> None:
    """Guards `schema_version`, and hashes of other columns: only rows with a value in the new
    column changed."""
    inbox.deliver("1", [line(1), line(2)])
    source.begin()
    before = source.ask().schema_version
    wider = (*COLUMNS, "town")
    inbox.deliver("2", [(*line(1), ""), (*line(2), "Rome")], columns=wider)
    found = source.ask()
    assert found.schema_version != before
    assert found.changes[0].schema.columns[-1].name == "town"
    assert source.changes("town") == [(1, 2, "Rome", None)]


def _parquet(inbox: Inbox, name: str, prices: Sequence[str | None]) -> None:
    table = pa.table(
        {
            "id": pa.array(range(1, len(prices) + 1), pa.int32()),
            "price": pa.array(prices).cast(pa.decimal128(10, 2)),
            "tags": pa.array([["a"]] * len(prices)),
        }
    )
    (inbox.folder / name).mkdir()
    pq.write_table(table, inbox.folder / name / "people.parquet")


def _json(inbox: Inbox, name: str, prices: Sequence[str | None]) -> None:
    rows = [{"id": n, "price": p and float(p), "tags": ["a"]} for n, p in enumerate(prices, 1)]
    inbox.write(inbox.folder / name / "people.json", "\n".join(map(json.dumps, rows)))


def _orc(inbox: Inbox, name: str, prices: Sequence[str | None]) -> None:
    from pyarrow import orc

    table = pa.table(
        {
            "id": pa.array(range(1, len(prices) + 1), pa.int64()),
            "price": pa.array(prices).cast(pa.decimal128(10, 2)),
            "tags": pa.array(['["a"]'] * len(prices)),
        }
    )
    (inbox.folder / name).mkdir()
    orc.write_table(table, inbox.folder / name / "people.orc")


def _avro(inbox: Inbox, name: str, prices: Sequence[str | None]) -> None:
    fields = [
        {"name": "id", "type": "int"},
        {"name": "price", "type": ["null", _PRICE]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ]
    rows = [{"id": n, "price": p and Decimal(p), "tags": ["a"]} for n, p in enumerate(prices, 1)]
    (inbox.folder / name).mkdir()
    with (inbox.folder / name / "people.avro").open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "people", "fields": fields}, rows)


_PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
FORMATS = {"parquet": _parquet, "json": _json, "orc": _orc, "avro": _avro}


@pytest.mark.parametrize(
    "ending",
    ["parquet", *(pytest.param(e, marks=pytest.mark.long) for e in FORMATS if e != "parquet")],
)
def test_other_formats_keep_their_types(spark: Any, inbox: Inbox, ending: str) -> None:
    """Guards typed formats: nothing goes through text, and nested values are JSON."""
    inbox.ending, deliver = ending, FORMATS[ending]
    source = Source(spark, inbox)
    deliver(inbox, "1", ["1.50", "2.25"])
    source.begin()
    deliver(inbox, "2", ["1.50", None])
    (changed,) = source.rows()
    assert (changed["_op"], changed["id"], changed["price"]) == (1, 2, None)
    assert float(changed["_before"]["price"]) == 2.25
    assert json.loads(changed["tags"]) == ["a"]
    assert source.tally("2") == (0, 1, 0, 0, 1)


PLACES = (*failpoints.DELIVERY_NAMES, "served", "acknowledged")


def test_a_crash_anywhere_repeats_the_delivery_to_the_same_changes(
    source: Source, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the order of writes: rows and changes first, then the delivery's own file, then the
    position, then what is no longer needed is removed."""

    class Died(Exception):
        pass

    inbox.deliver("00", [line(n) for n in range(1, 4)])
    source.begin()
    for number, place in enumerate(PLACES, 1):
        text = f"at {place}"
        inbox.deliver(f"{number:02}", [line(1), line(2, text), line(3)])
        hit = failpoints.hit

        def die(name: str, place: str = place) -> None:
            if name == place:
                raise Died

        monkeypatch.setattr(failpoints, "hit", die)
        if place in failpoints.DELIVERY_NAMES:
            with pytest.raises(Died):
                source.ask()
        else:
            found = source.ask()
            if place == "acknowledged":
                source.reader.acknowledge(found.position)
        monkeypatch.setattr(failpoints, "hit", hit)
        if place == "acknowledged":
            source.position = found.position  # it was durable before it was acknowledged
            source.again()
            assert source.changes() == []
            continue
        source.again()
        old = "as it was" if number == 1 else f"at {PLACES[number - 2]}"
        assert source.changes() == [(1, 2, text, old)]
    kept = list(Path(source.params.folder_of(NAME)).rglob("*.parquet"))
    assert len(kept) <= 2 * 2  # two states, in at most two files each
    assert ComparedControl(source.params, NAME).status().end == source.position.ordinal  # type: ignore[union-attr]


@pytest.mark.long
def test_a_large_delivery_comes_in_portions(
    source: Source, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards positions within a delivery: a run that ends between two portions goes on behind the
    first, and only while the same comparison is there."""
    from replicators.sources.compared import comparing

    monkeypatch.setattr(comparing, "CHANGES_A_PORTION", 1)
    inbox.deliver("1", [line(1)])
    source.begin()
    source.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    try:
        inbox.deliver("2", [line(n, "new") for n in range(1, 5)])
        assert source.position is not None
        first = source.reader.poll(source.position, source.schemas(), max_bytes=1)
    finally:
        source.spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert first.has_more
    got = [i for part in first.changes for i in part.rows["id"].to_pylist()]
    source.position = Position.from_json(first.position.to_json())
    source.reader.acknowledge(source.position)
    source.again()
    got += [r["id"] for r in source.rows()]
    assert sorted(got) == [1, 2, 3, 4]
    lost = Position(first.position.ordinal, {**first.position.detail, "try": "another"})
    with pytest.raises(Exception, match="position-lost"):
        Journal(source.params.folder_of(NAME)).read().require(lost)


@pytest.mark.long
def test_a_file_that_changes_while_it_is_read_is_read_again(
    source: Source, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `is_still`."""
    inbox.deliver("1", [line(1)])
    source.begin()
    path = inbox.deliver("2", [line(1, "half")])
    hit = failpoints.hit

    def grow(name: str) -> None:
        if name == "delivery_hashed":
            inbox.deliver("2", [line(1, "whole")])
            inbox.age(path, -2)
            monkeypatch.setattr(failpoints, "hit", hit)

    monkeypatch.setattr(failpoints, "hit", grow)
    assert source.rows() == []
    assert source.changes() == [(1, 1, "whole", "as it was")]


@pytest.mark.long
def test_another_key_is_compared_anew(source: Source, inbox: Inbox) -> None:
    """Guards hashes that were made of other columns."""
    inbox.deliver("1", [line(1, "a"), line(2, "b")])
    source.begin()
    source.again(keys="name")
    inbox.deliver("2", [line(1, "a"), line(3, "b")])
    assert [(r["_op"], r["name"], r["id"]) for r in source.rows()] == [(1, "b", 3)]
    assert replace(source.schemas()[0]).key == ("name",)
