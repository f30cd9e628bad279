"""Rows of values nobody thought of, of MySQL and MariaDB: the log and the snapshot give the
same."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.mysql_source import Follower, following
from tests.mysql_servers import fresh_sql_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LABELS = ["", "a", "it's", "ü", "x" * 60]
FLAGS = ["r", "w", "ż", "long word"]
NO_DAYS = ["0000-00-00", "2024-00-15", "2024-02-00"]
NO_NAMES = "\x81\x8d\x8f\x90\x9d"  # what the servers have in latin1 where the code page has nothing
MICROS = 1_000_000
LONGEST = (839 * 3600 - 1) * MICROS  # of MySQL's; MariaDB goes on to .999999


def _time(micros: int) -> str:
    seconds, rest = divmod(abs(micros), MICROS)
    return f"{'-' * (micros < 0)}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"  # noqa: E501


def _decimal(number: int) -> Decimal:
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -30))


finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts | finite,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=6,
)  # fmt: skip
# By column: its type, and the values that are written.
COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "b": ("bigint", st.integers(-(2**63), 2**63 - 1)),
    "u": ("bigint unsigned", st.integers(0, 2**64 - 1)),
    "d": ("decimal(38,7)", st.decimals(-(10**20), 10**20, places=7, allow_nan=False)),
    "w": ("decimal(65,30)", st.integers(1 - 10**65, 10**65 - 1).map(_decimal)),
    "f": ("double", finite | st.sampled_from([-0.0, 5e-324, -2.2e-308])),
    "o": ("date", st.dates(dt.date(1000, 1, 1)) | st.sampled_from(NO_DAYS)),
    "h": ("time(6)", st.integers(-LONGEST, LONGEST).map(_time)),
    "z": ("timestamp(6) NULL",
    st.datetimes(dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(2038, 1, 19, 3, 14, 7))),
    "m": ("datetime(6)",
    st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31)) | st.sampled_from(NO_DAYS)),
    "y": ("year", st.just(0) | st.integers(1901, 2155)),
    "n": ("bit(10)", st.integers(0, 1023)),
    "e": (f"enum({', '.join(map(repr, LABELS[1:]))})".replace('"it\'s"', "'it''s'"),
    st.sampled_from(LABELS)),
    "g": (f"set({', '.join(map(repr, FLAGS))})",
    st.lists(st.sampled_from(FLAGS), unique=True).map(",".join)),
    "s": ("varchar(200) CHARACTER SET utf8mb4", texts),
    "l": ("text CHARACTER SET latin1",
    st.text(st.characters(codec="cp1252") | st.sampled_from(NO_NAMES))),
    "x": ("varbinary(100)", st.binary(max_size=40)),
    "r": ("blob", st.binary(max_size=300)),
    "j": ("json", documents.map(json.dumps)),
}  # fmt: skip
# Those that read back as what Python wrote.
PLAIN = ("b", "u", "d", "f", "h", "y", "n", "e", "s", "l", "x", "r")
rows_of_values = st.lists(
    st.tuples(*(st.none() | values for _, values in COLUMNS.values())), min_size=10, max_size=25
)


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_any_rows_come_the_same_by_log_and_by_snapshot(
    server: str, request: pytest.FixtureRequest
) -> None:
    """Guards "snapshot == log" for any values of most types, with inserts, updates and deletes."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    insert = f"INSERT INTO t VALUES (%s{', %s' * len(COLUMNS)})"
    with fresh_sql_database(request.getfixturevalue(server)) as database:
        database.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
        with (
            following(database, "t") as follower,
            database.connect(charset="utf8mb4") as connection,
        ):
            cursor = connection.cursor()
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")

            @settings(
                max_examples=15,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=True,
                phases=[Phase.generate],  # a smaller example would take minutes to find
            )
            @given(rows_of_values, st.randoms())
            def check(rows: list[tuple[Any, ...]], random: Any) -> None:
                cursor.execute("TRUNCATE TABLE t")
                cursor.executemany(insert, [(i, *row) for i, row in enumerate(rows)])
                written = {i: dict(zip(COLUMNS, row, strict=True)) for i, row in enumerate(rows)}
                for i in range(len(rows) // 4):
                    changed, gone = (random.randrange(len(rows)) for _ in range(2))
                    cursor.execute(
                        "UPDATE t SET b = %s, s = %s WHERE id = %s", (i, f"{i}", changed)
                    )
                    cursor.execute("DELETE FROM t WHERE id = %s", (gone,))
                    if changed in written:
                        written[changed] |= {"b": i, "s": f"{i}"}
                    written.pop(gone, None)
                found = _as_logged(follower)
                copied = {r["id"]: r for r in follower.copy().to_pylist()}
                assert _exact(found) == _exact(copied)
                plain = {i: {c: row[c] for c in PLAIN} for i, row in written.items()}
                assert {i: {c: row[c] for c in PLAIN} for i, row in found.items()} == plain

            check()


def _as_logged(follower: Follower) -> dict[int, dict[str, Any]]:
    """The rows by their keys, as the log's changes leave them."""
    found: dict[int, dict[str, Any]] = {}
    for change in follower.changes()["t"].to_pylist():
        image = {k: v for k, v in change.items() if not k.startswith("_")}
        if change["_op"] == 3:
            found.clear()
        elif change["_op"] == 2:
            del found[image["id"]]
        else:
            found[image["id"]] = image
    return found


def _exact(rows: dict[int, dict[str, Any]]) -> dict[int, dict[str, str]]:
    """Values in a form that tells 0.0 from -0.0."""
    return {i: {c: repr(v) for c, v in row.items()} for i, row in rows.items()}
