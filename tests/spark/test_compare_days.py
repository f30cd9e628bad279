"""Comparisons of a data set with the one before, day by day."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from demo import days
from replicators.connectors import files
from replicators.connectors.compare import run, tables
from replicators.connectors.compare.config import parse
from replicators.connectors.compare.run import compare
from replicators.connectors.compare.stores import open_store
from replicators.connectors.problems.errors import ReplicationError
from tests.spark.compared_sets import ComparedSet, day

pytestmark = pytest.mark.spark

SIMPLE = "keys: {id: int}\nnon_keys: {a: string, b: int}\n"
NAMES = ("id", "a", "b")
SEEDS_RESULT = {"I": 2_000, "U": 4_000, "D": 2_000, "X": 0, "N": 4_000}


@pytest.fixture
def simple(spark: Any, tmp_path: Path) -> ComparedSet:
    return ComparedSet(spark, tmp_path, SIMPLE)


def places(root: Path, form: str) -> str:
    """Where a format's tables lie in the tests' session."""
    if form == "iceberg":
        name = root.name.replace("-", "_")
        return (
            f"current: {{table: lakehouse.{name}.now}}\nhistory: {{table: lakehouse.{name}.was}}\n"
        )
    return f"current: {{path: {root}/current}}\nhistory: {{path: {root}/history}}\n"


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("form", "broadcast"),
    [
        ("iceberg", 200_000),
        pytest.param("delta", 0, marks=LONG),
        pytest.param("parquet", 0, marks=LONG),
    ],
)
def test_the_seeds_example(spark: Any, tmp_path: Path, form: str, broadcast: int) -> None:
    """10,000 rows; on the second day a fifth is deleted and replaced, two fifths are updated."""
    columns = (
        "keys:\n"
        + "".join(f"  {k}: string\n" for k in days.KEYS)
        + "non_keys:\n"
        + "".join(f"  {v}: bigint\n" for v in days.VALUES)
    )
    first, second = days.days()
    for name, rows in (("day1", first), ("day2", second)):
        days.write_csv(rows, tmp_path / name)
    config = parse(
        f"format: {form}\nbroadcast_rows: {broadcast}\n" + columns + places(tmp_path, form)
    )
    one = compare(spark, config, f"{tmp_path}/day1", date(2019, 6, 18))
    assert one.counts == {"I": 10_000, "U": 0, "D": 0, "X": 0, "N": 0}
    two = compare(spark, config, f"{tmp_path}/day2", date(2019, 6, 19), check_all=True)
    assert two.counts == SEEDS_RESULT
    assert [s.name for s in two.stages][0] == "cast and hash"

    store = open_store(spark, config)
    current = store.current()
    assert current is not None
    counted = {r[0]: r[1] for r in current.groupBy("OPERATION").count().collect()}
    assert counted == {k: v for k, v in SEEDS_RESULT.items() if v}
    live = current.where("OPERATION <> 'D'").select(*days.KEYS, *days.VALUES).collect()
    assert {tuple(r) for r in live} == set(second)
    gone = current.where("OPERATION = 'D'").select(*days.KEYS, *days.VALUES).collect()
    assert {tuple(r) for r in gone} == set(first[:2_000])
    history = store.rows(config.history).groupBy("EFF_START_DATE", "OPERATION").count().collect()
    assert {(str(r[0]), r[1]): r[2] for r in history} == {
        ("2019-06-18", "I"): 10_000,
        ("2019-06-19", "I"): 2_000,
        ("2019-06-19", "U"): 4_000,
        ("2019-06-19", "D"): 2_000,
    }
    if form == "parquet":
        read = pq.read_table(tmp_path / "current" / "latest")
        assert read.num_rows == 12_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "broadcast", "keeps"),
    [
        ("full", 999, True),
        ("full", 0, True),
        ("full", 999, False),
        ("delta", 999, True),
        ("delta", 0, True),
    ],
)
def test_random_days_are_what_a_naive_replay_gives(
    spark: Any, tmp_path: Path, kind: str, broadcast: int, keeps: bool
) -> None:
    """Keys come, change, go and come back; some rows can't be read on some days."""
    numbers = random.Random(f"{kind} {broadcast}")
    made = ComparedSet(
        spark,
        tmp_path,
        f"kind: {kind}\nbroadcast_rows: {broadcast}\nmax_deleted: 1\n"
        f"keep_deleted: {str(keeps).lower()}\n" + SIMPLE,
    )
    naive: dict[int, tuple[str | None, int, str, date]] = {}
    for n in range(3):
        on = day(n)
        ids = numbers.sample(range(12), 8)
        rows = {i: (numbers.choice(["", "x", None]), numbers.choice([1, 2])) for i in ids}
        broken = set(numbers.sample(ids, 2)) if n else set()
        made.deliver_rows(
            NAMES, [(i, a, "?" if i in broken else b) for i, (a, b) in rows.items()], on
        )
        accepted = {i: row for i, row in rows.items() if i not in broken}
        naive = _replayed(naive, accepted, broken, on, kind == "delta")
        if not keeps:
            naive = {i: row for i, row in naive.items() if row[2] != "D"}
        found = {
            r["id"]: (r["a"], r["b"], r["OPERATION"], r["EFF_START_DATE"]) for r in made.current()
        }
        assert found == naive, f"day {n}"
        todays = [r for r in made.rows("history") if r["EFF_START_DATE"] == on]
        if keeps:
            changed = {i: row for i, row in naive.items() if row[3] == on}
            assert {
                r["id"]: (r["a"], r["b"], r["OPERATION"], r["EFF_START_DATE"]) for r in todays
            } == changed


def _replayed(
    before: dict[int, tuple[str | None, int, str, date]],
    rows: dict[int, tuple[str | None, int]],
    broken: set[int],
    on: date,
    is_delta: bool,
) -> dict[int, tuple[str | None, int, str, date]]:
    after: dict[int, tuple[str | None, int, str, date]] = {}
    for i, (a, b) in rows.items():
        old = before.get(i)
        if old is None or old[2] == "D":
            after[i] = (a, b, "I", on)
        elif old[:2] == (a, b):
            after[i] = (a, b, "N", old[3])
        else:
            after[i] = (a, b, "U", on)
    for i, old in before.items():
        if i in rows:
            continue
        if old[2] == "D":
            after[i] = old
        elif is_delta or i in broken:
            after[i] = (*old[:2], "X", old[3])
        else:
            after[i] = (*old[:2], "D", on)
    return after


def test_the_same_date_again_changes_nothing_and_an_earlier_one_is_refused(
    simple: ComparedSet,
) -> None:
    simple.deliver("id,a,b\n1,x,1\n2,y,2\n", day(0))
    simple.deliver("id,a,b\n1,x,1\n2,z,2\n", day(1))
    before = simple.current(), simple.rows("history")
    again = simple.deliver("id,a,b\n7,other,7\n", day(1))
    assert again.is_repeated
    assert again.counts == {"I": 0, "U": 1, "D": 0, "X": 0, "N": 1}
    with pytest.raises(ReplicationError, match="2019-06-18 is before 2019-06-19"):
        simple.deliver("id,a,b\n7,other,7\n", day(0))
    assert (simple.current(), simple.rows("history")) == before


def test_rows_that_cant_be_used_are_quarantined_with_the_reason(simple: ComparedSet) -> None:
    simple.settings = "keys: {id: int}\nnon_keys: {a: {type: string, nullable: false}, b: int}\n"
    simple.deliver('id,a,b\n1,"x",1\n2,y,2\n', day(0))
    found = simple.deliver('id,a,b\n1,x,ten\n,y,1\n3,,4\nfour,z,4\n5,"",5\n6,a\n', day(1))
    assert found.quarantined == 5
    assert found.rows == 1
    assert found.counts == {"I": 1, "U": 0, "D": 1, "X": 1, "N": 0}
    reasons = {r["ROW"].partition(',"_broken')[0]: r["REASON"] for r in simple.rows("quarantine")}
    assert reasons == {
        '{"id":"1","a":"x","b":"ten"': "b is no int",
        '{"id":null,"a":"y","b":"1"': "the key column id is NULL",
        '{"id":"3","a":null,"b":"4"': "a is NULL",
        '{"id":"four","a":"z","b":"4"': "id is no int",
        '{"id":"6","a":"a","b":null': "the line does not fit the header",
    }
    assert {r["id"]: r["OPERATION"] for r in simple.current()} == {1: "X", 2: "D", 5: "I"}


@pytest.mark.long
def test_a_delivery_that_is_wrong_is_refused_and_changes_nothing(simple: ComparedSet) -> None:
    simple.deliver("id,a,b\n1,x,1\n2,y,2\n3,z,3\n", day(0))
    before = simple.current(), simple.rows("history")
    refused = {
        "id,a,b\n1,x,1\n1,x,2\n2,y,2\n2,y,2\n2,y,3\n": r"2 keys .*id=2 \(3 times\); id=1 \(2",
        "id,a,b\n": "compare:empty",
        "id,a,b\nx,1,1\n": "compare:empty",
        "id,a,b\n3,z,3\n": "2 of 3 rows are missing.* share of 0.5",
        "id,b\n1,1\n": "lacks these columns: `a`",
    }
    for text, said in refused.items():
        with pytest.raises(ReplicationError, match=said):
            simple.deliver(text, day(1))
    with pytest.raises(ReplicationError, match="compare:input"):
        compare(simple.spark, simple.config, f"{simple.root}/none", day(1))
    assert (simple.current(), simple.rows("history")) == before
    assert simple.deliver("id,a,b\n", day(1), allow_deletes=True).counts["D"] == 3


@pytest.mark.parametrize("form", ["parquet", "iceberg"])
@pytest.mark.long
def test_a_run_that_fails_before_the_end_leaves_yesterdays(
    spark: Any, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of the day is written by then. A killed run leaves it there; the next one removes
    it, also if its date is another."""
    made = ComparedSet(spark, tmp_path, f"format: {form}\n" + SIMPLE + places(tmp_path, form))
    made.deliver("id,a,b\n1,x,1\n2,y,2\n", day(0))
    before = made.current(), made.rows("history")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run._Run, "_publish", dies)
        with pytest.raises(KeyboardInterrupt):
            made.deliver("id,a,b\n1,x,7\n2,y,2\n", day(1))
        assert (made.current(), made.rows("history")) == before
        patched.setattr(run, "remove_unpublished", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            made.deliver("id,a,b\n1,x,8\n2,y,2\n", day(1))
    assert made.current() == before[0]
    assert len(made.rows("history")) == 3
    made.deliver("id,a,b\n1,x,9\n2,y,2\n", day(2))
    assert [r["b"] for r in made.rows("history") if r["OPERATION"] == "U"] == [9]


@pytest.mark.long
def test_sensitive_columns_lie_apart_and_join_by_key_hash_and_date(
    spark: Any, tmp_path: Path
) -> None:
    made = ComparedSet(
        spark,
        tmp_path,
        "max_deleted: 1\nkeys: {id: int}\nnon_keys:\n  a: string\n"
        f"  mail: {{type: string, sensitive: true}}\nsensitive: {{path: {tmp_path}/private}}\n",
    )
    made.deliver("id,a,mail\n1,x,m1\n2,x,m2\n3,x,m3\n4,x,m4\n", day(0))
    found = made.deliver("id,a,mail\n1,x,new1\n2,y,m2\n4,x,m4\n5,z,m5\nx,z,hidden\n", day(1))
    assert found.counts == {"I": 1, "U": 2, "D": 1, "X": 0, "N": 1}
    store = open_store(spark, made.config)
    private = store.rows(made.config.sensitive)
    assert set(private.columns) == {"_key_hash", "EFF_START_DATE", "mail"}
    current = store.current()
    assert "mail" not in current.columns
    both = current.join(private, ["_key_hash", "EFF_START_DATE"])
    assert {r["id"]: (r["OPERATION"], r["mail"]) for r in both.collect()} == {
        1: ("U", "new1"), 2: ("U", "m2"), 3: ("D", "m3"), 4: ("N", "m4"), 5: ("I", "m5"),
    }  # fmt: skip
    history = store.rows(made.config.history).join(private, ["_key_hash", "EFF_START_DATE"])
    assert history.count() == 8
    written = [p.read_bytes() for p in tmp_path.rglob("*.parquet") if "private" not in p.as_posix()]
    assert written and not any(b"hidden" in text or b"new1" in text for text in written)


@pytest.mark.long
def test_another_configuration_makes_the_hashes_again_instead_of_updates(
    simple: ComparedSet,
) -> None:
    simple.deliver("id,a,b\n1,x,1\n2,y,2\n", day(0))
    simple.settings = "hash: sha256\nkeys: {id: bigint}\nnon_keys: {b: bigint, a: string}\n"
    with pytest.raises(ReplicationError, match="`id`.* has the type int"):
        simple.deliver("id,a,b\n1,x,1\n2,y,2\n", day(1))
    simple.settings = "hash: sha256\nkeys: {id: int}\nnon_keys: {b: int, a: string, c: string}\n"
    found = simple.deliver("id,a,b,c\n1,x,1,\n2,y,2,new\n", day(1))
    assert found.counts == {"I": 0, "U": 1, "D": 0, "X": 0, "N": 1}
    assert {r["id"]: r["c"] for r in simple.current()} == {1: None, 2: "new"}
    assert {r.get("c") for r in simple.rows("history")} == {None, "new"}


@pytest.fixture
def few_delta_tasks(spark: Any) -> Iterator[None]:
    """As in a comparison's own session."""
    name = "spark.databricks.delta.snapshotPartitions"
    spark.conf.set(name, "4")
    yield
    spark.conf.unset(name)


@pytest.mark.long
@pytest.mark.usefixtures("few_delta_tasks")
def test_delta_tables_hold_both_days(spark: Any, tmp_path: Path) -> None:
    made = ComparedSet(spark, tmp_path, "format: delta\n" + SIMPLE)
    made.deliver("id,a,b\n1,x,1\n2,y,2\n", day(0))
    assert made.deliver("id,a,b\n1,x,1\n3,y,2\n", day(1)).counts["D"] == 1
    assert made.operations(made.current()) == {"N": 1, "I": 1, "D": 1}
    assert made.operations(made.rows("history")) == {"I": 3, "D": 1}


@pytest.mark.long
def test_a_column_out_of_the_comparison_is_kept_up_without_an_update(simple: ComparedSet) -> None:
    simple.settings = "keys: {id: int}\nnon_keys: {a: string, b: {type: int, compared: false}}\n"
    simple.deliver("id,a,b\n1,x,1\n", day(0))
    assert simple.deliver("id,a,b\n1,x,2\n", day(1)).counts["N"] == 1
    assert [r["b"] for r in simple.current()] == [2]


@pytest.mark.long
def test_values_with_the_same_hash_are_found_on_demand(
    simple: ComparedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F

    from replicators.connectors.compare import hashing

    weak = hashing.value_hash
    monkeypatch.setattr(hashing, "value_hash", lambda f, a: F.lit("0" * 32))
    simple.deliver("id,a,b\n1,x,1\n2,y,2\n", day(0))
    with pytest.raises(ReplicationError, match=r"compare:collision.*1 rows"):
        simple.deliver("id,a,b\n1,x,1\n2,y,3\n", day(1), check_all=True)
    assert {r["b"] for r in simple.current()} == {1, 2}
    monkeypatch.setattr(hashing, "value_hash", weak)


@pytest.mark.long
def test_parquet_tables_are_registered_and_partitions_added(spark: Any, tmp_path: Path) -> None:
    """In the session's own catalog; Hive's is tried in test_compare_commands."""
    name = f"reg_{tmp_path.name}".replace("-", "_")
    made = ComparedSet(
        spark,
        tmp_path,
        SIMPLE + "catalog: {type: session}\n"
        f"current: {{path: {tmp_path}/current, table: {name}.now}}\n"
        f"history: {{path: {tmp_path}/history, table: {name}.was}}\n",
    )
    made.deliver("id,a,b\n1,x,1\n2,y,2\n", day(0))
    made.deliver("id,a,b\n1,x,5\n2,y,2\n", day(1))
    shown = spark.sql(f"SELECT id, b, OPERATION FROM {name}.now ORDER BY id").collect()
    assert [tuple(r) for r in shown] == [(1, 5, "U"), (2, 2, "N")]
    listed = spark.sql(f"SHOW PARTITIONS {name}.was").collect()
    assert [r[0] for r in listed] == [f"EFF_START_DATE={day(0)}", f"EFF_START_DATE={day(1)}"]
    assert spark.table(f"{name}.was").count() == 3


def test_only_a_place_of_its_own_is_replaced(spark: Any, tmp_path: Path) -> None:
    made = ComparedSet(spark, tmp_path, SIMPLE)
    files.make_folder(f"{tmp_path}/current")
    (tmp_path / "current" / "somebody.parquet").write_text("x")
    with pytest.raises(ReplicationError, match="compare:not-ours"):
        made.deliver("id,a,b\n1,x,1\n", day(0))
    iceberg = ComparedSet(
        spark, tmp_path, "format: iceberg\n" + SIMPLE + places(tmp_path, "iceberg")
    )
    table = iceberg.config.current.table
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {table} (id int) USING iceberg")
    with pytest.raises(ReplicationError, match="compare:not-ours"):
        iceberg.deliver("id,a,b\n1,x,1\n", day(0))
    assert tables.TableStore(spark, iceberg.config).days(iceberg.config.history) == []
