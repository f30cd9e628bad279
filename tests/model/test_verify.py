"""The checker finds what differs, names it, and is not fooled by what only looks alike."""

from __future__ import annotations

import datetime as dt
import hashlib
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.model.fingerprint import canonical, compare, image
from tests.model.history import Event, failures, image_failures
from tests.model.reading import present
from tests.model.verify import main
from tests.mysql_servers import ADMIN, HOST, PASSWORD, SqlDatabase
from tests.servers import Database

ROWS: list[dict[str, Any]] = [{"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 2, "v": None}]


def test_the_order_of_rows_does_not_matter_but_how_often_each_is_there_does() -> None:
    """Guards `fingerprint.image` and `compare`: a checker that forgets how often a row is there
    would pass every doubled or lost duplicate."""
    one, other = image(ROWS, ("id", "v")), image(ROWS[::-1], ("id", "v"))
    assert one.fingerprint == other.fingerprint
    assert compare(one, other, ("id",)) == []
    fewer = image(ROWS[:2], ("id", "v"))
    assert one.fingerprint != fewer.fingerprint
    assert [str(d) for d in compare(one, fewer, ())] == ["lost x1: id=2, v=None"]


def test_a_row_that_differs_is_named_by_key_and_column() -> None:
    """Guards `fingerprint.compare`: a wrong value reported as lost and extra would hide in which
    column it is wrong."""
    other = image([{"id": 1, "v": "b"}, *ROWS[1:]], ("id", "v"))
    (reported,) = compare(image(ROWS, ("id", "v")), other, ("id",))
    assert (reported.kind, reported.key, reported.columns) == ("changed", {"id": 1}, ("v",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("1.50"), Decimal("1.5")),
        (0.0, -0.0),
        (b"a", memoryview(b"a")),
        (
            dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        ),
    ],
)
def test_equal_values_of_two_drivers_have_one_text(one: object, other: object) -> None:
    """Guards `canonical` against false alarms: scale, sign of zero, kind of buffer and zone of an
    instant are the drivers'."""
    assert canonical(one) == canonical(other)


def test_different_values_never_share_a_text() -> None:
    """Guards `canonical` against blindness: NULL, empty text and the word null, or 1 and '1', that
    look alike would hide a wrong value, and so would numbers that are cut to 28 digits, as
    `Decimal.normalize` does; unknown types are refused."""
    long = Decimal("9999999999999999999999999999.0000000001")
    values = [None, "", "null", "b:1", True, 1, "1", b"1", ["1"], ["1", None], [["1"]], 1.5, "1.5",
              Decimal("NaN"), dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), {"a": 1}, {"a": "1"},
              long, long.next_plus(Context(prec=38)), Decimal("-0.10"), 10, 100]  # fmt: skip
    assert len({canonical(v) for v in values}) == len(values)
    with pytest.raises(TypeError):
        canonical(object())


HISTORY = [Event(0, "1", 1), Event(1, "1", 2), Event(2, "1", None), Event(0, "1", 3)]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(8, HISTORY[2]), (9, HISTORY[3])], ""),
        ([(8, HISTORY[1]), (9, HISTORY[3])], "expected"),
        ([(8, HISTORY[3]), (9, HISTORY[2])], "expected"),
        ([(8, HISTORY[2]), (9, HISTORY[3]), (9, HISTORY[3])], "twice"),
        ([(n, HISTORY[3]) for n in range(5)], "only 4 happened"),
    ],
)
def test_change_files_must_be_a_gapless_end_of_what_happened(
    found: list[tuple[int, Event]], said: str
) -> None:
    """Guards `history.failures`: a validator that misses a gap, an exchange, a sequence listed
    twice or an invented event proves nothing of a walk."""
    reported = failures(HISTORY, found)
    assert bool(reported) == bool(said)
    assert said in "".join(reported)


WAS = {
    "id": 1,
    "n": Decimal("1.50"),
    "doc": {"a": [Decimal("0.10")]},
    "big": hashlib.sha256(b"xyz").hexdigest(),
    "v": None,
}
SENT = {"id": 1, "n": Decimal("1.5"), "doc": '{"a":[0.1]}', "big": "xyz", "v": None, "later": None}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, SENT, ""),
        ({"id": 1}, {"id": 1, "n": 1.5}, ""),
        (None, {**SENT, "n": Decimal("1.51")}, "n after"),
        (None, {**SENT, "doc": '{"a":[0.2]}'}, "doc after"),
        (None, {**SENT, "big": "xyZ"}, "big after"),
        (None, {**SENT, "big": None}, "big after"),
        (None, {**SENT, "v": ""}, "v after"),
        ({**SENT, "big": None}, SENT, "big before"),
    ],
)
def test_each_value_of_an_image_is_compared(
    before: dict[str, Any] | None, after: dict[str, Any], said: str
) -> None:
    """Guards the checker of change files: keys and versions alone would pass values of another row
    or of another column."""
    was, seen = Event(1, "1", 2, WAS, WAS), Event(1, "1", 2, before, after)
    reported = failures([was], [(8, seen)])
    assert bool(reported) == bool(said) and said in "".join(reported)
    assert not failures([Event(1, "1", 2)], [(8, seen)])


def test_a_key_that_changed_must_be_reported() -> None:
    """Guards `history.image_failures` (CORRECTNESS 8): without the old key the row would stay under
    it, so change files that lack it must not pass."""
    moved = Event(1, "2", 3, WAS, {**WAS, "id": 2})
    assert image_failures(moved, Event(1, "2", 3, None, {"id": 2})) == [
        "the old key is not reported"
    ]
    assert not image_failures(moved, Event(1, "2", 3, {"id": 1}, {"id": 2}))
    gone = Event(2, "1", None, WAS, None)
    assert not image_failures(gone, Event(2, "1", None, {"id": 1}))
    assert image_failures(gone, Event(2, "1", None, {"id": 1, "n": 2}))


@pytest.mark.integration
def test_the_command_says_what_differs_and_by_its_exit_code(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards the checker itself: it would be worthless if it could not fail."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.t (id int PRIMARY KEY, doc jsonb, at timestamptz, "
        "n numeric(9,2));"
        "INSERT INTO shop.t VALUES (1, '{\"b\": 1, \"a\": 2}', '2024-01-01 00:00Z', 1.5), (2, "
        "NULL, NULL, NULL)"
    )
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    right: list[dict[str, Any]] = [
        {"id": 1, "doc": '{"a":2,"b":1}', "at": at, "n": Decimal("1.50")},
        {"id": 2, "doc": None, "at": None, "n": None},
    ]
    schema = pa.schema(
        [("id", pa.int32()), ("doc", pa.string()), ("at", pa.timestamp("us", "UTC")),
        ("n", pa.decimal128(9, 2))]
    )  # fmt: skip
    asked = ["shop.t", "--source", database.dsn, "--format", "delta", "--warehouse", str(tmp_path)]
    write_deltalake(tmp_path / "shop" / "t", pa.Table.from_pylist(right, schema))
    assert main(asked) == 0
    wrong = [{**right[0], "n": Decimal("1.51")}]
    write_deltalake(tmp_path / "shop" / "t", pa.Table.from_pylist(wrong, schema), mode="overwrite")
    assert main(asked) == 1
    said = capsys.readouterr().out
    assert "changed x1: id=1 in n" in said and "lost x1: id=2" in said
    assert main(["shop.none", *asked[1:]]) == 2


@pytest.mark.integration
def test_the_command_reads_mariadb_too(
    mariadb_database: SqlDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards the checker on the other sources, by types whose values drivers give in another form
    than a lakehouse has."""
    database, big = (
        mariadb_database,
        "-12345678901234567890123456789012345.000000000000000000000000000001",
    )
    database.execute(
        "CREATE TABLE `t``s` (id int PRIMARY KEY, doc json, at timestamp(6) NULL, ok bit(1), "
        "flags bit(12), f float,"
        " t time(2), w decimal(65,30), g point)",
        f"INSERT INTO `t``s` VALUES (1, '{{\"b\": 1, \"a\": 2}}', '2024-01-01 00:00:00.5', 1, "
        f"b'101', 1.1, '-838:59:58.25', {big},"
        " ST_GeomFromText('POINT(1 2)', 4326)), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL)",
    )
    at = dt.datetime(2024, 1, 1, 0, 0, 0, 500000, dt.UTC)
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    names = ("id", "doc", "at", "ok", "flags", "f", "t", "w", "g")
    row = (1, '{"a":2,"b":1}', at, True, 5, 1.1, "-838:59:58.25", big, point)
    types = [pa.int32(), pa.string(), pa.timestamp("us", "UTC"), pa.bool_(), pa.int64(),
        pa.float32(), pa.string(), pa.string(), pa.binary()]  # fmt: skip
    schema = pa.schema(list(zip(names, types, strict=True)))
    right: list[dict[str, Any]] = [dict(zip(names, row, strict=True)), {"id": 2}]
    address = f"mysql://{ADMIN}:{quote(PASSWORD)}@{HOST}:{database.server.port}/{database.name}"
    asked = ["t`s", "--source", address, "--format", "delta", "--warehouse", str(tmp_path)]
    folder = tmp_path / database.name / "t`s"
    write_deltalake(folder, pa.Table.from_pylist(right, schema))
    assert main(asked) == 0, capsys.readouterr().out
    assert main([f"{database.name}.t`s", *asked[1:]]) == 0
    wrong = [{**right[0], "flags": 4, "t": "-838:59:58.26"}]
    write_deltalake(folder, pa.Table.from_pylist(wrong, schema), mode="overwrite")
    assert main(asked) == 1
    said = capsys.readouterr().out
    assert "changed x1: id=1 in flags, t" in said and "lost x1: id=2" in said
    assert main(["none", *asked[1:]]) == 2


def test_living_rows_and_current_versions_are_what_is_compared() -> None:
    """Guards the checker's view of other modes: without it flagged rows and old versions would
    count as extra."""
    soft = [
        {"id": 1, "_is_deleted": False, "_deleted_at": None},
        {"id": 2, "_is_deleted": True, "_deleted_at": "then"},
    ]
    columns, rows = present(tuple(soft[0]), soft)
    assert (columns, list(rows)) == (("id",), [{"id": 1}])
    versions = [
        {"id": 1, "_valid_from": 1, "_valid_to": 2, "_is_current": False},
        {"id": 1, "_valid_from": 2, "_valid_to": None, "_is_current": True},
    ]
    columns, rows = present(tuple(versions[0]), versions)
    assert (columns, list(rows)) == (("id",), [{"id": 1}])
    plain = [{"id": 1, "_is_current": False}]
    assert list(present(("id", "_is_current"), plain)[1]) == plain
