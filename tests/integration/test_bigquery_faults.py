"""BigQuery as a target in the emulator: what the params promise, lost connections, crashes between
load and merge, and what other hands do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as NoAnswer

from demo.bigquery import EmbeddedBigQuery
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Decimal, Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.bigquery.checks import BigQueryChecks
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.writer import BigQueryWriter
from tests.proxies import CuttingProxy

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180), pytest.mark.long]
_NUMBERS = itertools.count(1)
SCHEMA = TableSchema(
    TableId("shop", "orders"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("größe in €", Decimal(30, 20), "numeric(30,20)", ordinal=2),
        Column("tags", Array(String()), "text[]", ordinal=3),
    ),
    ("id",),
    ("id",),
)
TABLE = TargetTable(SCHEMA.id, "r1", 1)
Open = Callable[..., BigQueryWriter]


@pytest.fixture
def params(bigquery: EmbeddedBigQuery) -> BigQueryParams:
    return BigQueryParams(
        project="shop-faults", dataset=f"faults_{next(_NUMBERS)}", endpoint=bigquery.url
    )


@pytest.fixture
def opened(params: BigQueryParams, tmp_path: Path) -> Iterator[Open]:
    """Opens writers, each as a process of its own would."""
    made: list[BigQueryWriter] = []

    def one(**values: Any) -> BigQueryWriter:
        made.append(BigQueryWriter(replace(params, **values), str(tmp_path / "files")))
        made[-1].client.jobs.waits = lambda _: None
        return made[-1]

    yield one
    for writer in made:
        writer.close()


def published(writer: BigQueryWriter, schema: TableSchema = SCHEMA) -> TargetTable:
    table = replace(TABLE, source=schema.id)
    writer.begin_snapshot(table, schema)
    place = writer.snapshot_place(table, schema)
    path = f"{place.folder}/1.parquet"
    rows = [{"id": 1, "tags": ["a", None, "b"]}, {"id": 2}]
    pq.write_table(pa.Table.from_pylist(rows, place.arrow), path)
    writer.load_snapshot_files(table, schema, [path])
    return replace(table, table_uuid=writer.publish_snapshot(table, schema, 10))


def batch(folder: Path, sequence: int) -> FoldedBatch:
    """A batch that changes row 1, and adds a row of its own."""
    arrow = pa.schema([*SCHEMA.arrow_schema(), pa.field("_delete", pa.bool_())])
    rows = [{"id": 1, "_delete": False}, {"id": 1000 + sequence, "_delete": False}]
    path = folder / f"{sequence}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, arrow), path)
    return FoldedBatch(SCHEMA, (str(path),), sequence, 2)


def query(params: BigQueryParams, table: str, shown: str = "*") -> list[tuple[Any, ...]]:
    with open_client(params) as client:
        name = f"`{params.project}`.`{params.dataset}`.`{table}`"
        found = client.query_and_wait(f"SELECT {shown} FROM {name} ORDER BY 1")
        return [tuple(r.values()) for r in found]


def tables(params: BigQueryParams) -> set[str]:
    with open_client(params) as client:
        return {t.table_id for t in client.list_tables(params.dataset)}


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(ReplicationError) as caught:
        act()
    assert "(" not in caught.value.message.title
    return caught.value.code


# --- what the params promise --------------------------------------------------------------------


def test_names_arrays_and_the_column_of_the_batch_are_as_promised(
    opened: Open, params: BigQueryParams, tmp_path: Path
) -> None:
    """Guards `naming`, the arrays without NULL, `_sequence_num` and the kept batch. The table, its
    progress and all that lay beside it are gone after `drop`, and it can be copied again."""
    writer = opened(sequence_column=True, keep_staging=True)
    live = published(writer)
    assert writer.merge(live, batch(tmp_path, 20)).was_applied
    assert query(params, "orders") == [
        (1, None, [], 20), (2, None, [], 0), (1020, None, [], 20)
    ]  # fmt: skip
    assert [r[0] for r in query(params, "_staging_orders")] == [1, 1020]
    with open_client(params) as client:
        found = client.get_table(f"{params.project}.{params.dataset}.orders")
    assert [f.name for f in found.schema] == ["id", "gr__e_in__", "tags", "_sequence_num"]
    assert [f.field_type for f in found.schema][:2] == ["INTEGER", "BIGNUMERIC"]
    writer.drop(live)
    assert tables(params) == set()
    published(writer)
    assert query(params, "orders", "id, tags, _sequence_num") == [(1, ["a", "b"], 0), (2, [], 0)]


def test_a_table_of_somebody_else_is_refused_or_replaced(
    opened: Open, params: BigQueryParams
) -> None:
    """Guards the param of existing tables: what a person made is replaced only if they say so, and
    what another replicator made never is."""
    with open_client(params) as client:
        client.create_dataset(params.dataset)
        client.query_and_wait(f"CREATE TABLE {params.dataset}.orders AS SELECT 7 AS id")
        with closing(BigQueryChecks(params)) as checks:
            found = checks.tables([SCHEMA], "r1")
        assert "target:table-taken" in {p.code for p in found}
    assert code_of(lambda: published(opened())) == "target:table-taken"
    writer = opened(existing_tables="replace")
    published(writer)
    assert [r[0] for r in query(params, "orders", "id")] == [1, 2]
    other = replace(TABLE, replicator="r2")
    assert code_of(lambda: writer.begin_snapshot(other, SCHEMA)) == "target:table-taken"


def test_a_dataset_that_was_made_for_a_schema_goes_with_its_last_table(
    opened: Open, params: BigQueryParams
) -> None:
    """Guards DROP DATABASE: a dataset of ours is removed when it is empty, never with a table of
    somebody else's in it. Two schemas may have tables of one name."""
    schemas = [f"a_{params.dataset}", f"b_{params.dataset}"]
    ids = [TableId(schema, "orders") for schema in schemas]
    writer = opened(dataset="")
    first, second = [published(writer, replace(SCHEMA, id=i)) for i in ids]
    with open_client(params) as client:
        client.query_and_wait(f"CREATE TABLE {schemas[1]}.mine AS SELECT 1 AS x")
        writer.drop(first)
        writer.drop(second)
        left = {d.dataset_id for d in client.list_datasets()} & set(schemas)
        assert left == {schemas[1]}
    published(writer, replace(SCHEMA, id=ids[0]))


# --- lost connections and crashes ---------------------------------------------------------------


@pytest.mark.parametrize("answers", ["query", "load"])
def test_a_job_whose_answer_was_lost_is_found_and_not_run_twice(
    opened: Open, params: BigQueryParams, tmp_path: Path, bigquery: EmbeddedBigQuery, answers: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Guards the ids of jobs: the service ran the job, and the network was cut before it said so.
    The same request comes again, is refused as a duplicate, and the first job's end counts."""
    live = published(opened())
    with CuttingProxy(bigquery.port) as proxy:
        writer = opened(endpoint=f"http://127.0.0.1:{proxy.port}")
        begun = writer.client.jobs._begun
        cut: list[str] = []

        def cutting(name: str, begin: Callable[[str], Any]) -> Any:
            if f"_{'merge' if answers == 'query' else 'batch'}_" in name and not cut:
                cut.append(name)
                proxy.cut_after(0)
            return begun(name, begin)

        monkeypatch.setattr(writer.client.jobs, "_begun", cutting)
        assert writer.merge(live, batch(tmp_path, 20)).was_applied
        assert proxy.cuts == 1 and cut
    assert [r[0] for r in query(params, "orders", "id")] == [1, 2, 1020]


def test_a_load_whose_last_answer_was_lost_is_not_loaded_twice(
    opened: Open, params: BigQueryParams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `_is_upload_gone`: the file was there as a whole and the job ran, but the answer was
    lost. The piece that comes again belongs to no upload."""
    writer, send, lost = opened(), HTTPAdapter.send, list[str]()
    live = published(writer)

    def losing(self: HTTPAdapter, request: Any, *args: Any, **named: Any) -> Any:
        answer = send(self, request, *args, **named)
        if request.method == "PUT" and not lost:
            lost.append(request.url)
            raise NoAnswer("lost")
        return answer

    monkeypatch.setattr(HTTPAdapter, "send", losing)
    assert writer.merge(live, batch(tmp_path, 20)).was_applied
    assert lost
    assert [r[0] for r in query(params, "orders", "id")] == [1, 2, 1020]


def test_a_process_that_died_between_load_and_merge_leaves_nothing(
    opened: Open, params: BigQueryParams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the order of writes: after the load only a staging table is there. The next process
    removes it, and merges the same batch once."""

    class Killed(BaseException):
        """As a SIGKILL, nothing handles it."""

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    live, first = published(opened()), opened()
    monkeypatch.setattr(first.client, "run", killed)
    with pytest.raises(Killed):
        first.merge(live, batch(tmp_path, 20))
    assert any("_batch_" in name for name in tables(params))
    second = opened()
    token = second.token(live)
    assert token is not None and token.sequence == 10
    assert second.merge(live, batch(tmp_path, 20)).was_applied
    assert not second.merge(live, batch(tmp_path, 20)).was_applied
    assert [r[0] for r in query(params, "orders", "id")] == [1, 2, 1020]
    assert sum("_batch_" in name for name in tables(params)) == 1


def test_a_merge_that_ended_without_its_record_is_not_merged_again(
    opened: Open, params: BigQueryParams, tmp_path: Path
) -> None:
    """Guards the token: the process died after the script, before the engine's store had it."""
    live = published(opened())
    assert opened().merge(live, batch(tmp_path, 20)).was_applied
    second = opened()
    assert second.token(live) is not None
    assert not second.merge(live, batch(tmp_path, 20)).was_applied
    assert [r[0] for r in query(params, "orders", "id")] == [1, 2, 1020]


def test_a_column_dropped_by_hand_and_a_dead_service_have_their_texts(
    opened: Open, params: BigQueryParams, tmp_path: Path, bigquery: EmbeddedBigQuery
) -> None:
    """Guards `errors`: each fault has a code that says what to do, and the merge is done once when
    the service is back."""
    live = published(opened())
    with CuttingProxy(bigquery.port) as proxy:
        cut = opened(endpoint=f"http://127.0.0.1:{proxy.port}")
        assert cut.token(live) is not None
        retry = cut.client.jobs.retry.with_timeout(0.1)
        cut.client.jobs.__class__ = type("Hasty", (type(cut.client.jobs),), {"retry": retry})
        proxy.lead_to(1)
        proxy.cut_after(0)
        assert code_of(lambda: cut.merge(live, batch(tmp_path, 20))) == "target:unreachable"
        proxy.lead_to(bigquery.port)
        assert cut.merge(live, batch(tmp_path, 20)).was_applied
    with open_client(params) as client:
        client.query_and_wait(f"ALTER TABLE {params.dataset}.orders DROP COLUMN tags")
    found = code_of(lambda: opened().merge(live, batch(tmp_path, 30)))
    assert found in {"target:column-missing", "target:bigquery-refused"}
