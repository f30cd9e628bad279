"""The whole path into Snowflake, seen in the emulator: PostgreSQL's rows and every change arrive
once, over a kill. And answers that are lost, documents, comments, warehouses, sign-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from snowflake.connector import errors

from replicators.connectors.contract.source import code_of
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, Json, String
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.snowflake.checks import SnowflakeChecks
from replicators.targets.snowflake.naming import names, quoted
from replicators.targets.snowflake.params import SnowflakeParams
from replicators.targets.snowflake.writer import writer
from tests.crash.test_failpoints import died_at
from tests.harness import FILL_ITEMS, Traffic
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import asked, neutral_rows, params_of
from tests.snowflake_world import SnowflakeWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
ONE = TableSchema(
    TableId("shop", "Orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("Note", String(), "text", ordinal=2),
        Column("doc", Json(), "jsonb", ordinal=3),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(ONE.id, "r1", 1)


@pytest.mark.long
def test_postgresql_and_snowflake_have_equal_rows(
    world_maker: MakeWorld, snowflake: SnowflakeServer
) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column and a TRUNCATE, with a SIGKILL between load and merge.
    Nothing of ours is left but the progress tables."""
    with world_maker(kind=SnowflakeWorld, server_of_copies=snowflake) as world:
        traffic = Traffic(world.database)
        child = world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(20)
        world.assert_equal()
        with traffic.going_on():
            world.arm("batch_staged")
            died_at(world, child, "batch_staged")
        world.start()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_020})
        world.database.execute("ALTER TABLE shop.items ALTER COLUMN n TYPE bigint")
        world.database.execute("TRUNCATE shop.pairs")
        traffic.write(5)
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set()


@pytest.fixture
def params(snowflake: SnowflakeServer, request: pytest.FixtureRequest) -> SnowflakeParams:
    """A database of this test's own."""
    database = f"CASES_{abs(hash(request.node.nodeid)) % 10**8}"
    return SnowflakeParams(**params_of(snowflake, database))


@pytest.fixture
def target(params: SnowflakeParams, tmp_path: Path) -> Iterator[SqlMergeTarget]:
    """The target."""
    with closing(writer(params, str(tmp_path / "files"))) as made:
        yield made


def staged(target: SqlMergeTarget, rows: list[dict[str, Any]]) -> list[str]:
    """A copy's file, as a task writes it."""
    target.begin_snapshot(TABLE, ONE)
    place = target.snapshot_place(TABLE, ONE)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist(rows, place.arrow), path)
    return [path]


def published(target: SqlMergeTarget) -> TargetTable:
    """A copy of one row, up to 10."""
    target.load_snapshot_files(TABLE, ONE, staged(target, [{"id": 1}]))
    return replace(TABLE, table_uuid=target.publish_snapshot(TABLE, ONE, 10))


def batch(folder: Path, sequence: int, *rows: dict[str, Any]) -> FoldedBatch:
    """A batch of new rows."""
    path = folder / f"{sequence}.parquet"
    arrow = pa.schema([*ONE.arrow_schema(), pa.field("_delete", pa.bool_())])
    pq.write_table(pa.Table.from_pylist([{"_delete": False, **r} for r in rows], arrow), path)
    return FoldedBatch(ONE, (str(path),), sequence, len(rows))


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_to_a_copys_rows_is_asked_for(
    target: SqlMergeTarget,
    params: SnowflakeParams,
    monkeypatch: pytest.MonkeyPatch,
    is_committed: bool,
) -> None:
    """Guards the count of rows: those of a copy that were committed, and are loaded once more,
    would be doubled."""
    paths = staged(target, [{"id": 1}, {"id": 2}])
    client: Any = target._client
    connection = client._connections.get()
    commit = connection.commit

    def lost() -> None:
        if is_committed:
            commit()
        connection.close()
        raise errors.OperationalError(msg="lost", errno=250003)

    monkeypatch.setattr(connection, "commit", lost)
    if not is_committed:
        found = code_of(lambda: target.load_snapshot_files(TABLE, ONE, paths))
        assert found == "target:snowflake-account"
    target.load_snapshot_files(TABLE, ONE, paths)
    target.publish_snapshot(TABLE, ONE, 10)
    assert sorted(r["id"] for r in neutral_rows(params, ONE)) == [1, 2]


def test_documents_and_odd_names_arrive_exactly(
    target: SqlMergeTarget, params: SnowflakeParams, tmp_path: Path
) -> None:
    """Guards PARSE_JSON and quotes: a document is no text inside of a VARIANT, a document `null`
    is not NULL, and names keep their letters."""
    live = published(target)
    rows = [{"id": n, "doc": doc} for n, doc in enumerate(('{"a": [1, null]}', "null", None), 2)]
    target.merge(live, batch(tmp_path, 20, *rows))
    place = quoted(names(params, ONE.id))
    assert place.endswith('"shop"."Orders"')
    text = f'SELECT "id", TO_JSON("doc") AS d FROM {place} WHERE "id" > 1 ORDER BY "id"'
    assert [r["d"] for r in asked(params, text)] == ['{"a":[1,null]}', "null", None]
    wrong = batch(tmp_path, 30, {"id": 9, "doc": "{broken"})
    assert code_of(lambda: target.merge(live, wrong)) == "target:snowflake-value"
    token = target.token(live)
    assert token is not None and token.sequence == 20


def test_a_comment_of_a_person_stays_and_the_table_is_known(
    target: SqlMergeTarget, params: SnowflakeParams, tmp_path: Path
) -> None:
    """Guards the mark in the comment: catalogs of data keep their words there too."""
    live, place = published(target), names(params, ONE.id)
    shown = asked(params, f"SHOW OBJECTS IN SCHEMA {quoted(place[:2])}")
    mark = next(r["comment"] for r in shown if r["name"] == place[2])
    told = f"COMMENT ON TABLE {quoted(place)} IS 'All orders. {mark}'"
    asked(params, told)
    assert target.merge(live, batch(tmp_path, 20, {"id": 2})).was_applied
    asked(params, f"COMMENT ON TABLE {quoted(place)} IS 'All orders.'")
    again = batch(tmp_path, 30, {"id": 3})
    assert code_of(lambda: target.merge(live, again)) == "target:table-replaced"


@pytest.mark.parametrize("suspends", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_warehouse_sleeps_after_a_merge_where_that_is_asked_for(
    params: SnowflakeParams, tmp_path: Path, suspends: bool
) -> None:
    """Guards *Suspend the warehouse after each merge*, also where it is suspended already. It
    happens once for each merge: a minute is billed whenever a warehouse resumes."""
    name = f"LOADS_{suspends}".upper()
    own = replace(params, suspends=suspends, warehouse=name)

    def state() -> str:
        return str(asked(own, f"SHOW WAREHOUSES LIKE '{name}'")[0]["state"])

    with closing(writer(own, str(tmp_path / "files"))) as target:
        client: Any = target._client
        live, ended = published(target), []
        inner = client._suspend
        client._suspend = lambda: (ended.append(1), inner())
        asked(own, f'ALTER WAREHOUSE "{name}" RESUME')
        for sequence in (20, 30):
            target.merge(live, batch(tmp_path, sequence, {"id": sequence}))
            assert state() == ("SUSPENDED" if suspends else "STARTED")
        assert len(ended) == (2 if suspends else 0)


def key_of(passphrase: str = "") -> str:
    """A new private key, as OpenSSL writes it."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    how: Any = serialization.NoEncryption()
    if passphrase:
        how = serialization.BestAvailableEncryption(passphrase.encode())
    pem = serialization.Encoding.PEM
    return made.private_bytes(pem, serialization.PrivateFormat.PKCS8, how).decode()


def test_a_key_signs_in_with_and_without_line_ends(params: SnowflakeParams) -> None:
    """Guards the sign-in by a key pair, whose text a form's field joins to one line. A wrong
    passphrase and a wrong password have their own words, without the secret."""

    def codes(**changed: Any) -> list[str]:
        with SnowflakeChecks(replace(params, **changed)) as checks:
            found = checks.connection()
        assert "secret" not in str([p.to_json() for p in found])
        return [p.code for p in found]

    plain, locked = key_of(), key_of("secret")
    assert codes(private_key=plain, password="") == []
    assert codes(private_key=plain.replace("\n", ""), password="") == []
    assert codes(private_key=locked, passphrase="secret", password="") == []
    assert codes(private_key=locked, passphrase="secret not", password="") == [
        "target:snowflake-key"
    ]
    assert codes(password="wrong") == ["target:snowflake-login"]
    assert codes(suspends=False) == []
