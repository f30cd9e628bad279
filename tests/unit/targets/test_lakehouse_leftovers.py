"""What copies leave that broke off, and what is in the way of a copy that is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Int, String
from replicators.connectors.ownership import LiveTable
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable, Token
from replicators.targets.lakehouse import evolve, leftovers, naming
from replicators.targets.lakehouse.leftovers import folders_of, tables_of
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import UUID
from replicators.targets.lakehouse.writer import LakehouseWriter

COLUMNS = (Column("id", Int(64), "bigint", ordinal=1), Column("a", String(), "text", ordinal=2))
SCHEMA = TableSchema(TableId("shop", "orders"), COLUMNS, ("id",), ("id",))
TABLE = TargetTable(SCHEMA.id, "r1", 7)
KEPT = {**{c.name: c.ordinal for c in COLUMNS}, "gone": evolve.KEPT}


class Session:
    """Spark as far as it is asked here: statements are noted, and `act` does what they would."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.act: Any = lambda _: None
        self.conf = SimpleNamespace(set=lambda *_: None, get=lambda *_: None, unset=lambda *_: None)

    def newSession(self) -> Session:  # noqa: N802 - Spark's name
        return self

    def sql(self, text: str) -> Any:
        self.reported.append(text)
        self.act(text)
        return SimpleNamespace(collect=list)

    def table(self, name: str) -> Any:
        types = {"id": "bigint", "a": "string", "gone": "string"}
        kind = {n: SimpleNamespace(simpleString=lambda t=t: t) for n, t in types.items()}
        fields = [SimpleNamespace(name=n, dataType=t, metadata={}) for n, t in kind.items()]
        return SimpleNamespace(schema=SimpleNamespace(fields=fields))


@pytest.fixture
def session() -> Session:
    return Session()


def lakehouse(form: str, folder: Path, session: Session) -> LakehouseWriter:
    uri = f"sqlite:///{folder}/catalog.db"
    params = LakehouseParams(warehouse=f"{folder}/w", format=form, catalog_uri=uri)
    return LakehouseWriter(params, session)


def code(call: Any) -> str:
    with pytest.raises(ReplicationError) as caught:
        call()
    return caught.value.code


def put(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True)
        (path / "rows.parquet").write_bytes(b"rows")


def test_only_the_tables_own_staging_is_its_leftovers() -> None:
    """Guards `folders_of` and `tables_of`: with another table's staging, rows of a copy that goes
    on would be removed."""
    names = ("shop", "orders é")
    start = naming.folder("4_8_shop__orders é__r1__")
    own = [f"{start}{end}" for end in ("3", "12_files", "12.claim", "12")]
    others = [
        f"{start}5__1",
        f"{start}5_files__1",
        f"{start}x",
        f"{start}",
        f"{start}5_files_2",
        start.replace("r1", "r2") + "3",
    ]
    assert folders_of([*own, *others], names, "r1") == own
    assert tables_of(
        [naming.staging_names(names, "r1", 3)[1], "4_8_shop__orders é__r1__5__1"], names, "r1"
    ) == ["4_8_shop__orders é__r1__3"]


def test_a_new_copy_into_delta_removes_what_earlier_ones_left(
    session: Session, tmp_path: Path
) -> None:
    """Each copy has a generation of its own: what one that broke off staged, as large as the table,
    would stay for ever."""
    staging = tmp_path / "w" / naming.STAGING_NAMESPACE
    old = [staging / f"4_6_shop__orders__r1__{n}" for n in ("3", "3_files", "6")]
    other = staging / "4_6_shop__orders__r2__3"
    put(*old, other)
    lakehouse("delta", tmp_path, session).begin_snapshot(TABLE, SCHEMA)
    assert [p.name for p in staging.iterdir()] == [other.name]


def test_half_a_table_of_a_first_publishing_that_was_cut_is_not_taken_for_anothers(
    session: Session, tmp_path: Path
) -> None:
    """Delta writes a table's files into its folder before the first commit. A kill there left a
    folder that every later copy was refused for, as somebody else's (`target:table-taken`)."""
    writer, live = lakehouse("delta", tmp_path, session), tmp_path / "w" / "shop" / "orders"

    def cut(text: str) -> None:
        if "REPLACE TABLE" in text:
            put(live)
            raise OSError("No space left on device")

    session.act = cut
    writer.begin_snapshot(TABLE, SCHEMA)
    for _ in range(2):
        assert code(lambda: writer.publish_snapshot(TABLE, SCHEMA, 5)) == "target:storage-full"
    assert live.exists()
    again = lakehouse("delta", tmp_path, session)
    again.begin_snapshot(replace(TABLE, generation=8), SCHEMA)
    assert not live.exists()


@pytest.mark.parametrize("replicator", ["", "r2"])
def test_what_another_put_there_stays(session: Session, tmp_path: Path, replicator: str) -> None:
    """Guards the claim: files under the table's name are removed only where this replicator was
    publishing there."""
    writer, live = lakehouse("delta", tmp_path, session), tmp_path / "w" / "shop" / "orders"
    writer.begin_snapshot(TABLE, SCHEMA)
    put(live)
    if replicator:
        put(tmp_path / "w" / naming.STAGING_NAMESPACE / f"4_6_shop__orders__{replicator}__6.claim")
    assert code(lambda: writer.publish_snapshot(TABLE, SCHEMA, 5)) == "target:table-taken"
    assert code(lambda: writer.begin_snapshot(TABLE, SCHEMA)) == "target:table-taken"
    assert (live / "rows.parquet").exists()


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_a_table_that_somebody_made_during_the_copy_is_not_replaced(
    session: Session, tmp_path: Path, monkeypatch: Any, form: str
) -> None:
    """Guards the second look at the owner: a first copy may take hours, and Delta's publishing
    replaces whatever is there."""
    writer = lakehouse(form, tmp_path, session)
    monkeypatch.setattr(writer.format, "live", lambda *_: LiveTable("", "", None))
    monkeypatch.setattr(writer.format, "publish", lambda *_, **__: pytest.fail("published"))
    assert code(lambda: writer.publish_snapshot(TABLE, SCHEMA, 5)) == "target:table-taken"


@pytest.mark.parametrize("is_rewind", [True, False])
def test_a_rewind_into_iceberg_keeps_columns_that_the_source_has_no_more(
    session: Session, tmp_path: Path, monkeypatch: Any, is_rewind: bool
) -> None:
    """Under the policy *lenient* a column that the source dropped stays, and its values are nowhere
    else. A rewind dropped it, as a fresh copy does."""
    writer = lakehouse("iceberg", tmp_path, session)
    lake = writer.format
    shown = {UUID: "u", evolve.ORDINALS: evolve.json.dumps(KEPT), "replicator.key": '["id"]'}
    monkeypatch.setattr(lake, "live", lambda *_: LiveTable("r1", "u", Token("r1", 6, 4, "u")))
    monkeypatch.setattr(lake, "properties", lambda *_: shown)
    monkeypatch.setattr(lake, "begin_rewind", lambda *_: None)
    if is_rewind:
        writer.begin_rewind(TABLE, "99")
    writer.publish_snapshot(TABLE, SCHEMA, 5)
    assert any("set_current_snapshot" in text for text in session.reported)
    assert is_rewind is not any("DROP COLUMN `gone`" in text for text in session.reported)


@pytest.mark.parametrize("is_rewind", [True, False])
def test_a_rewind_into_delta_knows_columns_that_were_kept(
    session: Session, tmp_path: Path, monkeypatch: Any, is_rewind: bool
) -> None:
    """Forgotten, a kept column is taken for a later one of its name, whose old rows get its
    values."""
    writer = lakehouse("delta", tmp_path, session)
    lake, reported = writer.format, evolve.json.dumps(KEPT, sort_keys=True)
    monkeypatch.setattr(lake, "live", lambda *_: LiveTable("r1", "u", Token("r1", 6, 4, "u")))
    opened = SimpleNamespace(
        metadata=lambda: SimpleNamespace(
            configuration={evolve.ORDINALS: reported}, partition_columns=[], description=""
        )
    )
    monkeypatch.setattr(lake, "_open", lambda *_: opened)
    monkeypatch.setattr(lake, "begin_rewind", lambda *_: None)
    if is_rewind:
        writer.begin_rewind(TABLE, "99")
    writer.publish_snapshot(TABLE, SCHEMA, 5)
    assert is_rewind is ('"gone": -1' in session.reported[-1])


def test_a_new_copy_into_iceberg_removes_what_earlier_ones_left(
    session: Session, tmp_path: Path, monkeypatch: Any
) -> None:
    """Files that were loaded but are none of any version a catalog leaves; and a generation may be
    skipped where a copy broke off before it staged anything."""
    writer = lakehouse("iceberg", tmp_path, session)
    lake, staging = writer.format, tmp_path / "w" / naming.STAGING_NAMESPACE
    listed = [(naming.STAGING_NAMESPACE, f"4_6_shop__orders__{n}__3") for n in ("r1", "r2")]
    reader = SimpleNamespace(list_tables=lambda _: listed, namespace_exists=lambda _: True)
    monkeypatch.setattr(lake, "open_reader", lambda: reader)
    monkeypatch.setattr(lake, "live", lambda *_: None)
    staged = {("replicator_staging", "4_6_shop__orders__r1__3"): {UUID: "0123456789"}}
    monkeypatch.setattr(lake, "properties", lambda _, names: staged.get(names))
    first, branch = (
        tmp_path / "w/shop/orders/01234567/data/x",
        staging / "4_6_shop__orders__r1__3/x",
    )
    put(first, branch, tmp_path / "w/shop/orders/another")
    writer.begin_snapshot(TABLE, SCHEMA)
    assert [t for t in session.reported if t.startswith("DROP")] == [
        "DROP TABLE IF EXISTS `lakehouse`.`replicator_staging`.`4_6_shop__orders__r1__3` PURGE"
    ]
    assert not first.exists() and not branch.exists()
    assert (tmp_path / "w/shop/orders/another/rows.parquet").exists()


def test_a_staging_name_of_the_live_table_goes_without_its_files(
    session: Session, tmp_path: Path, monkeypatch: Any
) -> None:
    """Guards `purge`: Glue renames in two steps, and a process that ends between them leaves two
    names of one table. PURGE by the one would remove the files of the other."""
    writer = lakehouse("iceberg", tmp_path, session)
    lake, live = writer.format, tmp_path / "w/shop/orders/01234567/data/x"
    staged = (naming.STAGING_NAMESPACE, "4_6_shop__orders__r1__3")
    monkeypatch.setattr(lake, "properties", lambda _, names: {UUID: "0123456789"})
    put(live)
    leftovers.purge(lake, session, TABLE, staged)  # type: ignore[arg-type]
    dropped = [t for t in session.reported if t.startswith("DROP")]
    assert dropped == [f"DROP TABLE IF EXISTS `lakehouse`.`{staged[0]}`.`{staged[1]}`"]
    assert live.exists()


def test_every_staging_branch_of_a_table_that_lives_goes(
    session: Session, tmp_path: Path, monkeypatch: Any
) -> None:
    """A branch keeps its version, and that version's files, for ever; somebody else's branch is not
    touched."""
    writer = lakehouse("iceberg", tmp_path, session)
    lake = writer.format
    branches = SimpleNamespace(branches={"main": 1, "staging_3": 2, "staging_5": 3, "staging_x": 4})
    monkeypatch.setattr(lake, "open_reader", lambda: SimpleNamespace(list_tables=lambda _: []))
    monkeypatch.setattr(lake, "live", lambda *_: LiveTable("r1", "u", Token("r1", 6, 4, "u")))
    monkeypatch.setattr(lake, "properties", lambda *_: {})
    monkeypatch.setattr(lake, "snapshots", lambda *_: branches)
    writer.begin_snapshot(TABLE, SCHEMA)
    dropped = [t.rpartition(" ")[2] for t in session.reported if "DROP BRANCH" in t]
    assert dropped == ["`staging_3`", "`staging_5`"]


def test_a_list_in_the_key_is_not_sorted_by(
    session: Session, tmp_path: Path, monkeypatch: Any
) -> None:
    """Iceberg refuses such an order (`Cannot sort by non-primitive source field`): each upkeep
    failed, as a conflict, for ever."""
    writer = lakehouse("iceberg", tmp_path, session)
    monkeypatch.setattr(writer.format, "open_reader", lambda: None)
    monkeypatch.setattr(writer.format, "live", lambda *_: None)
    monkeypatch.setattr(writer.format, "properties", lambda *_: None)
    listed = replace(COLUMNS[1], type=Array(Int(64)))
    writer.begin_snapshot(TABLE, replace(SCHEMA, columns=(COLUMNS[0], listed), key=("id", "a")))
    assert "'replicator.key' = '[\"id\"]'" in session.reported[-1]


@pytest.mark.parametrize("act", ["begin_snapshot", "evolve"])
def test_a_column_with_a_name_of_icebergs_is_refused_by_its_name(
    session: Session, tmp_path: Path, act: str
) -> None:
    """Guards `naming.refuse_reserved`: Spark said AnalysisException, which nobody could mend."""
    writer = lakehouse("iceberg", tmp_path, session)
    odd = replace(SCHEMA, columns=(*COLUMNS, Column("_Pos", Int(64), "bigint", ordinal=3)))
    schemas = (SCHEMA, odd) if act == "evolve" else (odd,)
    with pytest.raises(ReplicationError) as caught:
        getattr(writer, act)(TABLE, *schemas)
    assert (caught.value.code, caught.value.facts["column"]) == ("target:column-reserved", "_Pos")
    assert session.reported == []
