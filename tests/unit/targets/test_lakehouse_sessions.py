"""Sessions are kept: one call has one at a time, and leaves nothing in it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.sessions import PER_SESSION, Sessions
from replicators.targets.lakehouse.writer import LakehouseWriter

OWN = {"spark.own": "1"}


class Conf(dict[str, str]):
    """A session's conf."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        if self.pop("broken", None):
            raise ConnectionError("the server is gone")
        self.pop(name, None)


class Session:
    """Spark as far as it is asked here."""

    def __init__(self) -> None:
        self.conf = Conf({"spark.sql.shuffle.partitions": "2"})
        self.views: set[str] = set()
        self.made: list[Session] = []
        self.catalog = self

    def dropTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        self.views.remove(name)


class Local(Session):
    def newSession(self) -> Session:  # noqa: N802 - Spark's name
        self.made.append(Session())
        return self.made[-1]


class Remote(Session):
    """Spark Connect's."""

    def cloneSession(self) -> Session:  # noqa: N802 - Spark's name
        self.made.append(Session())
        return self.made[-1]


class Frame:
    def __init__(self, session: Session) -> None:
        self.session = session

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        self.session.views.add(name)


@pytest.mark.parametrize("kind", [Local, Remote])
def test_there_are_as_many_sessions_as_calls_side_by_side(kind: type[Any]) -> None:
    """Guards `Sessions`: a new session a call kept a connection to the catalog for ever, three a
    second in the demo."""
    spark = kind()
    sessions, gate = Sessions(spark, OWN), threading.Barrier(3)
    seen: list[int] = []

    def work() -> None:
        for _ in range(50):
            with sessions.lent() as lent:
                gate.wait(10)
                seen.append(id(lent.spark))
                gate.wait(10)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    turns = [set(seen[n : n + 3]) for n in range(0, len(seen), 3)]
    assert len(spark.made) == 3
    assert len(turns) == 50
    assert all(len(turn) == 3 for turn in turns)


@pytest.mark.parametrize("fault", [None, ValueError, KeyboardInterrupt])
def test_a_call_leaves_nothing_in_its_session(fault: type[BaseException] | None) -> None:
    """Guards `LentSession.clear`: with the stamp of the call before, a commit would carry another
    table's token."""
    spark = Local()
    sessions = Sessions(spark, OWN)

    def call() -> None:
        with sessions.lent() as lent:
            lent.conf.set("stamp", "a")
            lent.conf.set("stamp", "b")
            lent.conf.set("spark.own", "2")
            lent.conf.set("spark.sql.shuffle.partitions", "1")
            lent.show(Frame(spark.made[0]), "batch")
            assert spark.made[0].views == {"batch"}
            if fault:
                raise fault

    if fault:
        with pytest.raises(fault):
            call()
    else:
        call()
    assert len(spark.made) == 1
    assert spark.made[0].views == set()
    assert spark.made[0].conf == {**PER_SESSION, **OWN, "spark.sql.shuffle.partitions": "2"}


def test_what_a_session_holds_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `LentConf`: on a Spark of other processes, each question is a request."""
    asked: list[str] = []

    def get(conf: Conf, name: str, default: str | None = None) -> str | None:
        asked.append(name)
        return dict.get(conf, name, default)

    monkeypatch.setattr(Conf, "get", get)
    spark = Local()
    sessions = Sessions(spark, OWN)
    for value in "abc":
        with sessions.lent() as lent:
            lent.conf.set("stamp", value)
            lent.conf.set("spark.own", value)
            assert spark.made[0].conf["stamp"] == value
        assert spark.made[0].conf == {**PER_SESSION, **OWN, "spark.sql.shuffle.partitions": "2"}
    assert asked == ["stamp", "spark.own"]


def test_a_session_that_cant_be_made_clean_is_given_up() -> None:
    """The call's own outcome stays, and the next one has another session."""
    spark = Local()
    sessions = Sessions(spark, OWN)
    with sessions.lent() as lent:
        lent.conf.set("stamp", "a")
        spark.made[0].conf["broken"] = "yes"
    with sessions.lent() as lent:
        assert lent.conf.get("stamp", None) is None
    assert len(spark.made) == 2


@pytest.mark.parametrize(
    ("changes", "rows", "vectors"),
    [(10, 1_000, False), (10, 5_000_000, True), (10, None, True), (50_000, 1_000, True)],
)
def test_merges_read_by_vectors_where_there_is_much_to_read(
    tmp_path: Path, changes: int, rows: int | None, vectors: bool
) -> None:
    """Guards `_fit_size`: each file that is read by vectors leaves something in the heap, and a
    large table is read slowly without."""
    params = LakehouseParams(warehouse=str(tmp_path), catalog_uri=f"sqlite:///{tmp_path}/c.db")
    conf: dict[str, str] = {}
    session: Any = SimpleNamespace(conf=SimpleNamespace(set=conf.__setitem__))
    batch: Any = SimpleNamespace(rows=changes)
    LakehouseWriter(params, None)._fit_size(session, batch, rows)
    assert (conf.get("spark.sql.iceberg.vectorization.enabled") == "true") is vectors


def test_a_line_that_delta_writes_with_each_read_is_muted(tmp_path: Path) -> None:
    """Guards `mute`: a run into Delta wrote an ERROR of no meaning into its output about once a
    second."""
    levels: dict[str, str] = {}
    log4j = SimpleNamespace(
        core=SimpleNamespace(
            config=SimpleNamespace(Configurator=SimpleNamespace(setLevel=levels.__setitem__))
        ),
        Level=SimpleNamespace(OFF="off"),
    )
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(logging=SimpleNamespace(log4j=log4j)))
    )
    params = LakehouseParams(warehouse=str(tmp_path), format="delta")
    LakehouseWriter(params, SimpleNamespace(_jvm=jvm))
    assert levels == {"org.apache.spark.sql.delta.DeltaParquetFileFormat": "off"}
    LakehouseWriter(params, SimpleNamespace())  # Spark Connect has no JVM here.
