"""The whole path into Redshift, played by a PostgreSQL server with an S3 server: PostgreSQL's rows
and every change arrive once, over a kill. And faults of bucket, role and rights, documents, and
answers that are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.contract.source import code_of
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Bytes, Int, Json, String
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.redshift.checks import RedshiftChecks
from replicators.targets.redshift.params import RedshiftParams
from replicators.targets.redshift.writer import writer
from tests.crash.test_failpoints import died_at
from tests.harness import FILL_ITEMS, Traffic
from tests.redshift_server import LOADER, ROLE, RedshiftServer, fresh_redshift_database
from tests.redshift_target import USER, neutral_rows, params_of
from tests.redshift_world import RedshiftWorld
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]
ONE = TableSchema(
    TableId("Shop", "Orders"),
    (
        Column("id", String(), "text", nullable=False, ordinal=1),
        Column("doc", Json(), "jsonb", ordinal=2),
        Column("raw", Bytes(), "bytea", ordinal=3),
        Column("n", Int(32), "integer", ordinal=4),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(ONE.id, "r1", 1)


def test_postgresql_and_redshift_have_equal_rows(
    world_maker: MakeWorld, redshift: RedshiftServer
) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column and a TRUNCATE, with a SIGKILL between load and merge. Nothing of
    ours is left but the progress tables, and no file in the bucket."""
    with (
        fresh_redshift_database(redshift) as copies,
        world_maker(kind=RedshiftWorld, played=redshift, copies=copies) as world,
    ):
        assert isinstance(world, RedshiftWorld)
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
        world.database.execute("TRUNCATE shop.pairs")
        traffic.write(5)
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set()


@pytest.fixture
def copies(redshift: RedshiftServer) -> Iterator[Database]:
    """A database of this test's own."""
    with fresh_redshift_database(redshift) as made:
        yield made


@pytest.fixture
def params(redshift: RedshiftServer, copies: Database) -> RedshiftParams:
    """A user with the rights on it and nothing else."""
    return RedshiftParams(**params_of(redshift, copies, LOADER))


@pytest.fixture
def target(params: RedshiftParams, tmp_path: Path) -> Iterator[SqlMergeTarget]:
    """The target."""
    with closing(writer(params, str(tmp_path / "files"))) as made:
        yield made


def staged(target: SqlMergeTarget, *rows: dict[str, Any]) -> list[str]:
    """A copy's file, as a task writes it."""
    target.begin_snapshot(TABLE, ONE)
    place = target.snapshot_place(TABLE, ONE)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), place.arrow), path)
    return [path]


def published(target: SqlMergeTarget, *rows: dict[str, Any]) -> TargetTable:
    """A copy of these rows, up to 10."""
    target.load_snapshot_files(TABLE, ONE, staged(target, *rows))
    return replace(TABLE, table_uuid=target.publish_snapshot(TABLE, ONE, 10))


def batch(folder: Path, sequence: int, *rows: dict[str, Any]) -> FoldedBatch:
    """A batch of new rows."""
    path = folder / f"{sequence}.parquet"
    arrow = pa.schema([*ONE.arrow_schema(), pa.field("_delete", pa.bool_())])
    pq.write_table(pa.Table.from_pylist([{"_delete": False, **r} for r in rows], arrow), path)
    return FoldedBatch(ONE, (str(path),), sequence, len(rows))


def test_odd_values_arrive_exactly_and_a_broken_one_changes_nothing(
    target: SqlMergeTarget, params: RedshiftParams, tmp_path: Path
) -> None:
    """Guards what passes through a manifest, a temporary table and conversions: documents, bytes,
    keys that differ in blanks at their end, quotes, backslashes and line ends."""
    keys = ["a", "a ", "it's", "b\\n\n\t", "ü🙂"]
    live = published(target, *({"id": k, "doc": None, "raw": None, "n": 0} for k in keys))
    rows = [
        {"id": k, "doc": f'{{"at": [{n}, null]}}', "raw": bytes([0, n, 255]), "n": n}
        for n, k in enumerate(keys, 1)
    ]
    target.merge(live, batch(tmp_path, 20, *rows))
    assert sorted(neutral_rows(params, ONE), key=lambda r: r["n"]) == rows
    wrong = batch(tmp_path, 30, {"id": "x", "doc": "{broken"})
    assert code_of(lambda: target.merge(live, wrong)) == "target:redshift-value"
    token = target.token(live)
    assert token is not None and token.sequence == 20


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_to_a_copys_rows_is_asked_for(
    target: SqlMergeTarget,
    params: RedshiftParams,
    monkeypatch: pytest.MonkeyPatch,
    is_committed: bool,
) -> None:
    """Guards the count of rows: those of a copy that were committed, and are loaded once more,
    would be doubled."""
    paths = staged(target, {"id": "a"}, {"id": "b"})
    client: Any = target._client
    connection = client._connections.get()
    commit = connection.commit

    def lost() -> None:
        if is_committed:
            commit()
        connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(connection, "commit", lost)
    if not is_committed:
        found = code_of(lambda: target.load_snapshot_files(TABLE, ONE, paths))
        assert found == "target:redshift-lost"
    target.load_snapshot_files(TABLE, ONE, paths)
    target.publish_snapshot(TABLE, ONE, 10)
    assert sorted(r["id"] for r in neutral_rows(params, ONE)) == ["a", "b"]


def test_keys_in_place_of_a_role_load_rows_and_reach_no_error(
    redshift: RedshiftServer, params: RedshiftParams, tmp_path: Path
) -> None:
    """Guards the COPY with keys, and the secret within it."""
    keys = replace(params, role="")
    with closing(writer(keys, str(tmp_path / "keys"))) as target:
        published(target, {"id": "a"})
    assert "aws_secret_access_key=not-a-secret" in redshift.copies[-1]
    assert [r["id"] for r in neutral_rows(params, ONE)] == ["a"]


def test_faults_have_their_own_words(
    redshift: RedshiftServer, params: RedshiftParams, copies: Database
) -> None:
    """Guards *Test connection*: it names login, database, bucket, role and rights, without a
    secret, and leaves nothing behind."""

    def codes(**changed: Any) -> list[str]:
        with RedshiftChecks(replace(params, **changed)) as checks:
            found = checks.connection() or checks.tables([ONE], "")
        assert "not-a-secret" not in str([p.to_json() for p in found])
        return [p.code for p in found]

    assert codes() == codes(role="") == codes(role="default") == []
    assert codes(password="wrong") == ["target:redshift-login"]
    assert codes(database="nowhere") == ["target:redshift-database"]
    assert codes(staging="s3://nowhere/x") == ["target:bucket-missing"]
    assert codes(role=f"{ROLE}-2") == ["target:redshift-role"]
    assert codes(host="127.0.0.1", port=1) == ["target:redshift-host"]
    copies.execute(f"REVOKE CREATE ON DATABASE {copies.name} FROM {USER}")
    assert codes() == ["target:redshift-create"]
    copies.execute('CREATE SCHEMA "Shop"')
    copies.execute(f'GRANT USAGE ON SCHEMA "Shop" TO {USER}')
    assert codes() == codes(schema="Shop") == ["target:redshift-create"]


def test_two_merges_at_once_end_with_a_conflict(
    target: SqlMergeTarget, params: RedshiftParams, tmp_path: Path
) -> None:
    """Guards the retry: Redshift ends the second of two transactions that change one table, with
    its error 1023."""
    live = published(target, {"id": "a"})
    client: Any = target._client
    progress = target._places.progress(("Shop", "Orders"))[-1]
    text = f'UPDATE "Shop"."{progress}" SET sequence = sequence'
    begun, ended, codes = threading.Event(), threading.Event(), []

    def late() -> None:
        with client.transaction() as connection:
            connection.execute(b"SELECT 1")
            connection.execute(f'SELECT * FROM "Shop"."{progress}"'.encode())
            begun.set()
            ended.wait(30)
            connection.execute(text.encode())

    thread = threading.Thread(target=lambda: codes.append(code_of(late)))
    thread.start()
    assert begun.wait(30)
    target.merge(live, batch(tmp_path, 20, {"id": "b"}))
    ended.set()
    thread.join(30)
    assert codes == ["target:conflict"]
