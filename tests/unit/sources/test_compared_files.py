"""Which files belong to which delivery, what they hold, and what people write about them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.model.types import Date, Decimal, Float, Int, Json, String, Timestamp
from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.compared import pattern
from replicators.sources.compared.arrivals import Settled, arrivals, order_of
from replicators.sources.compared.catalog import ComparedCatalog
from replicators.sources.compared.checks import ComparedChecks
from replicators.sources.compared.columns import described, newest_of, remember
from replicators.sources.compared.lists import columns, keys_of
from replicators.sources.compared.params import ComparedParams
from replicators.sources.compared.schedule import last_before, next_after
from tests.compared_world import SCHEMA_NAME, Inbox, line

PEOPLE = TableId(SCHEMA_NAME, "people")


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("/data/{delivery}/{table}.csv", ""),
        ("s3://bucket/in/{table}/*.parquet", ""),
        ("data/{table}.csv", "absolute"),
        ("/data/{day}/{table}.csv", "{day}"),
        ("/data/{table}/{table}.csv", "only once"),
        ("ftp://host/{table}.csv", "begin with"),
    ],
)
def test_a_path_that_can_not_be_read_is_named(text: str, fault: str) -> None:
    found = pattern.fault(text)
    assert fault in found if fault else found == ""


def test_files_are_put_together_by_table_and_delivery(inbox: Inbox) -> None:
    """Guards the grouping and the order: day10 comes after day2. Hidden files and those of other
    endings are left out."""
    for day in ("day10", "day2"):
        inbox.deliver(day, [line(1)])
        inbox.deliver(day, [line(1)], table="orders")
    inbox.write(inbox.folder / "day2" / "_SUCCESS", "")
    inbox.write(inbox.folder / "day2" / "people.txt", "no")
    found = [(a.delivery, a.table) for a in arrivals(inbox.params())]
    assert found == [
        ("day2", "orders"), ("day2", "people"), ("day10", "orders"), ("day10", "people")
    ]  # fmt: skip
    assert order_of("2026-01-09") < order_of("2026-01-10") < order_of("2026-02-01")


def test_a_folder_of_parts_is_one_delivery_and_a_replaced_file_is_a_new_one(inbox: Inbox) -> None:
    """Guards paths that end in a folder, as Spark writes them, and paths without {delivery}."""
    for part in ("part-0.csv", "part-1.csv"):
        inbox.write(inbox.folder / "people" / part, "id\n1\n")
    (one,) = arrivals(inbox.params(files=f"{inbox.folder}/{{table}}"))
    assert (one.table, len(one.files)) == ("people", 2)
    (whole,) = arrivals(inbox.params(files=f"{inbox.folder}/people/*.csv"))
    assert whole.table == "people"
    inbox.age(inbox.folder / "people" / "part-0.csv", -5)
    (again,) = arrivals(inbox.params(files=f"{inbox.folder}/{{table}}"))
    assert again.mark != one.mark


def test_a_file_that_still_grows_is_not_read(inbox: Inbox) -> None:
    """Guards `Settled`: it counts from the last change."""
    path = inbox.deliver("d1", [line(1)])
    settled = Settled(10)

    def whole(now: float) -> int:
        return len(settled.are(arrivals(inbox.params()), now))

    assert whole(100.0) == 0
    with path.open("a") as file:
        file.write('"2","more","1"\n')
    assert whole(111.0) == 0
    assert whole(120.0) == 0
    assert whole(121.0) == 1


def test_a_marker_says_that_a_delivery_is_complete(inbox: Inbox) -> None:
    inbox.deliver("d1", [line(1)])
    inbox.deliver("d2", [line(1)])
    inbox.write(inbox.folder / "d1" / "_SUCCESS", "")
    found = Settled(0).are(arrivals(inbox.params(marker="_SUCCESS")), 1.0)
    assert [a.delivery for a in found] == ["d1"]


def test_keys_and_types_are_read_from_one_line_each() -> None:
    text = "people: id; lines: order, line; day"
    assert keys_of(text, "lines") == ("order", "line")
    assert keys_of(text, "others") == ("day",)
    found = columns("people: id bigint, price decimal(12,2), full name string")
    assert found == {"people": {"id": Int(64), "price": Decimal(12, 2), "full name": String()}}


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("keys", "people: id,,name", "without a name"),
        ("keys", "people: id; people: name", "twice"),
        ("columns", "people: id number", "is no type"),
        ("columns", "id bigint", "begin with the table"),
        ("columns", "people: id decimal(99,2)", "1 to 38 digits"),
        ("schedule", "every day", "cron expression"),
        ("delimiter", "||", "one character"),
        ("schema_name", "a.b", "without dots"),
        ("marker", "a/b", "without a folder"),
    ],
)
def test_what_is_wrong_with_a_field_is_said(name: str, text: str, part: str) -> None:
    given = {"files": "/in/{table}.csv", "state": "/state", name: text}
    with pytest.raises(InvalidParams) as caught:
        parse(ComparedParams, given)
    assert part in caught.value.errors[name]


def test_the_schedule_is_in_utc() -> None:
    midnight = 1_700_006_400.0  # 2023-11-15 00:00 UTC
    assert next_after("0 6 * * *", midnight) == midnight + 6 * 3600
    assert last_before("0 6 * * *", midnight) == midnight - 18 * 3600
    assert last_before("0 6 * * *", midnight + 6 * 3600) == midnight + 6 * 3600


def _kinds(inbox: Inbox, path: str) -> dict[str, object]:
    (arrival,) = arrivals(inbox.params(files=path))
    schema = described(inbox.params(files=path), "people", arrival)
    assert schema is not None
    return {c.name: c.type for c in schema.columns}


def test_columns_and_types_come_from_each_format(inbox: Inbox) -> None:
    """Guards the types that the catalog shows for a file, without Spark."""
    inbox.deliver("d1", [("1", "Ann", "1.5")])
    assert _kinds(inbox, f"{inbox.folder}/{{delivery}}/{{table}}.csv") == {
        "id": Int(64), "name": String(), "amount": Float(64)
    }  # fmt: skip
    rows = [{"id": 1, "since": "2026-01-01", "tags": ["a"]}]
    inbox.write(inbox.folder / "j" / "people.json", "\n".join(map(json.dumps, rows)))
    found = _kinds(inbox, f"{inbox.folder}/{{delivery}}/{{table}}.json")
    assert (found["id"], found["tags"]) == (Int(64), Json())
    table = pa.table(
        {
            "id": pa.array([1], pa.int32()),
            "price": pa.array([None], pa.decimal128(10, 2)),
            "at": pa.array([0], pa.timestamp("us", tz="UTC")),
            "day": pa.array([0], pa.date32()),
        }
    )
    (inbox.folder / "p").mkdir()
    pq.write_table(table, inbox.folder / "p" / "people.parquet")
    pyarrow.orc.write_table(table, inbox.folder / "p" / "people.orc")
    expected = {"id": Int(32), "price": Decimal(10, 2), "at": Timestamp(6, True), "day": Date()}
    assert _kinds(inbox, f"{inbox.folder}/{{delivery}}/{{table}}.parquet") == expected
    assert _kinds(inbox, f"{inbox.folder}/{{delivery}}/{{table}}.orc")["price"] == Decimal(10, 2)


def test_the_columns_of_an_avro_file_are_in_its_head(inbox: Inbox) -> None:
    import fastavro

    fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ]
    schema = fastavro.parse_schema({"type": "record", "name": "people", "fields": fields})
    (inbox.folder / "a").mkdir()
    with (inbox.folder / "a" / "people.avro").open("wb") as file:
        fastavro.writer(file, schema, [])
    assert _kinds(inbox, f"{inbox.folder}/{{delivery}}/{{table}}.avro") == {
        "id": Int(64), "name": String(), "price": Decimal(9, 2), "at": Timestamp(6, True),
        "tags": Json(),
    }  # fmt: skip


def test_a_type_that_was_found_stays_and_a_named_one_wins(inbox: Inbox) -> None:
    """Guards `seen`: a later file in which all numbers are whole must not change a column's type.
    A table stays known when its files are gone."""
    inbox.deliver("d1", [("1", "Ann", "1.5")])
    params = inbox.params(columns="people: name uuid")
    first = described(params, "people", newest_of(arrivals(params))["people"])
    assert first is not None and first.column("name").native == "uuid"
    remember(params, first)
    path = inbox.deliver("d2", [("1", "Ann", "2")])
    then = described(params, "people", newest_of(arrivals(params))["people"])
    assert then == first
    for gone in (path, inbox.folder / "d1" / "people.csv"):
        gone.unlink()
    with ComparedCatalog(params) as catalog:
        assert [t.id for t in catalog.list_tables()] == [PEOPLE]
        assert catalog.describe([TableSelection(PEOPLE)])[PEOPLE] == first


def test_checks_name_what_keeps_deliveries_from_being_compared(inbox: Inbox) -> None:
    """Guards the assessment: a missing key would only be found by the run."""

    def codes(**values: str) -> list[str]:
        with ComparedChecks(inbox.params(**values)) as checks:
            return [
                p.code for p in (*checks.connection(), *checks.tables([TableSelection(PEOPLE)]))
            ]

    assert codes() == ["source:no-files", "source:table-missing"]
    inbox.deliver("d1", [line(1)])
    assert codes() == []
    assert codes(keys="") == ["source:no-key-named"]
    assert codes(keys="people: nr") == ["source:key-column-missing"]
    assert codes(keys="amount") == ["source:key-column-type"]
    inbox.write(inbox.folder / "d1" / "people.parquet", "no parquet")
    files = f"{inbox.folder}/{{delivery}}/{{table}}.parquet"
    assert codes(files=files) == ["source:file-unreadable"]


def test_a_folder_that_is_not_there_is_said(inbox: Inbox) -> None:
    with pytest.raises(ReplicationError) as caught:
        arrivals(inbox.params(files="/no/such/folder/{table}.csv"))
    assert caught.value.code == "source:files-unreachable"
