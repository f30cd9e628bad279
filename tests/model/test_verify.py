"""The checker finds what differs, names it, and is not fooled by what only looks alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.model.fingerprint import canonical, compare, image
from tests.model.history import Event, failures, order_failures
from tests.model.reading import present
from tests.model.verify import main
from tests.servers import Database

ROWS: list[dict[str, Any]] = [{"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 2, "v": None}]


def test_the_order_of_rows_does_not_matter_but_how_often_each_is_there_does() -> None:
    one, other = image(ROWS, ("id", "v")), image(ROWS[::-1], ("id", "v"))
    assert one.fingerprint == other.fingerprint
    assert compare(one, other, ("id",)) == []
    fewer = image(ROWS[:2], ("id", "v"))
    assert one.fingerprint != fewer.fingerprint
    assert [str(d) for d in compare(one, fewer, ())] == ["lost x1: id=2, v=None"]


def test_a_row_that_differs_is_named_by_key_and_column() -> None:
    other = image([{"id": 1, "v": "b"}, *ROWS[1:]], ("id", "v"))
    (told,) = compare(image(ROWS, ("id", "v")), other, ("id",))
    assert (told.kind, told.key, told.columns) == ("changed", {"id": 1}, ("v",))


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
    assert canonical(one) == canonical(other)


def test_different_values_never_share_a_text() -> None:
    values = [None, "", "null", "b:1", True, 1, "1", b"1", ["1"], ["1", None], [["1"]], 1.5, "1.5",
              Decimal("NaN"), dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), {"a": 1}, {"a": "1"}]  # fmt: skip
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
    told = failures(HISTORY, found)
    assert bool(told) == bool(said)
    assert said in "".join(told)


def test_a_version_that_goes_back_is_seen() -> None:
    assert order_failures(HISTORY) == []
    assert order_failures([Event(0, "1", 3), Event(1, "1", 2)]) == ["key 1: version 2 after 3"]


@pytest.mark.integration
def test_the_command_says_what_differs_and_by_its_exit_code(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards the checker itself: it would be worthless if it could not fail."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.t (id int PRIMARY KEY, doc jsonb, at timestamptz, n numeric(9,2));"
        "INSERT INTO shop.t VALUES (1, '{\"b\": 1, \"a\": 2}', '2024-01-01 00:00Z', 1.5), (2, NULL, NULL, NULL)"
    )
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    right: list[dict[str, Any]] = [
        {"id": 1, "doc": '{"a":2,"b":1}', "at": at, "n": Decimal("1.50")},
        {"id": 2, "doc": None, "at": None, "n": None},
    ]
    schema = pa.schema(
        [("id", pa.int32()), ("doc", pa.string()), ("at", pa.timestamp("us", "UTC")), ("n", pa.decimal128(9, 2))]
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


def test_living_rows_and_current_versions_are_what_is_compared() -> None:
    """Guards the checker's view of other modes: without it flagged rows and old versions would count as extra."""
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
