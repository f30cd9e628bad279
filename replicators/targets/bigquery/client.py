"""BigQuery as `SqlMergeTarget` sees it: load jobs into staging tables, and scripts.

A staging table of changes is kept and loaded over by the next batch, so that a merge is one load
job and one script. It expires by itself.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlglot import exp

from replicators.connectors import files
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import tables, trees
from replicators.connectors.sql.client import LiveColumns, Names
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import Step
from replicators.connectors.target import CurrentRows
from replicators.targets.bigquery import dialect, layout, naming, reading, types
from replicators.targets.bigquery.errors import translate
from replicators.targets.bigquery.jobs import ANSWER_SECONDS, Jobs
from replicators.targets.bigquery.params import BigQueryParams

if TYPE_CHECKING:
    from google.cloud import bigquery

SPARE = timedelta(hours=24)
_OTHER_LAYOUT = re.compile(r"different (?:partitioning|clustering) spec", re.IGNORECASE)
CLOSE_SECONDS = 3.0
STAGING_HOURS = 72
"""How long a staging table of changes outlives its last load."""
MADE = {"made-by": "replicators"}
"""The label of datasets that this program made."""
_GROUP_ROWS = 1 << 17


class BigQueryClient:
    """A `SqlClient`. Thread safe."""

    publishes_at_once = False

    def __init__(self, client: bigquery.Client, params: BigQueryParams) -> None:
        self.client = client
        self.jobs = Jobs(client, params)
        self.params = params
        self._datasets: set[str] = set()
        self._loaded: set[Names] = set()
        self._local = threading.local()
        self._lock = threading.Lock()

    @property
    def dialect(self) -> SqlDialect:
        """BigQuery's, with this target's types."""
        return dialect.DIALECT

    def arrow(self, column: Column) -> pa.DataType:
        """The neutral type's own Arrow type."""
        return types.arrow(column)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        try:
            yield
        except ReplicationError:
            raise
        except Exception as err:
            raise translate(err, self.params.project) from err

    # What there is

    def make_namespace(self, namespace: Names) -> None:
        """Make the dataset if it does not exist. `target:bigquery-location` where it lies
        elsewhere."""
        from google.api_core.exceptions import NotFound
        from google.cloud import bigquery

        name = namespace[-1]
        if name in self._datasets:
            return
        with self._calling():
            try:
                found = self.client.get_dataset(
                    ".".join(namespace), retry=self.jobs.retry, timeout=ANSWER_SECONDS
                )
            except NotFound:
                made = bigquery.Dataset(".".join(namespace))
                made.location = self.params.location
                made.labels = {**self.params.label_values, **MADE}
                found = self.client.create_dataset(
                    made, exists_ok=True, retry=self.jobs.retry, timeout=ANSWER_SECONDS
                )
        refuse_elsewhere(self.params, name, found.location)
        with self._lock:
            self._datasets.add(name)

    def described(self, names: Names) -> bigquery.Table | None:
        """The table as the service describes it; None where there is none."""
        from google.api_core.exceptions import NotFound

        with self._calling():
            try:
                return self.client.get_table(
                    ".".join(names), retry=self.jobs.retry, timeout=ANSWER_SECONDS
                )
            except NotFound:
                return None

    def table(self, names: Names) -> LiveColumns | None:
        """The table's time of creation and its columns."""
        found = self.described(names)
        if found is None:
            return None
        made = found.created
        identity = f"{found.table_type}:{made.isoformat() if made else ''}"
        return LiveColumns(identity, _columns(found))

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """Names of tables in the dataset."""
        from google.api_core.exceptions import NotFound

        with self._calling():
            try:
                listed = self.client.list_tables(
                    ".".join(namespace), retry=self.jobs.retry, timeout=ANSWER_SECONDS
                )
                return tuple(t.table_id for t in listed if t.table_id.startswith(prefix))
            except NotFound:
                return ()

    def query(self, tree: exp.Query) -> pa.Table:
        """The rows of a small query."""
        sql = self.dialect.sql(tree)
        with self._calling():
            rows = self.client.query(
                sql, retry=self.jobs.retry, job_retry=None, timeout=ANSWER_SECONDS
            ).result(retry=self.jobs.retry, job_retry=None)
            return rows.to_arrow(create_bqstorage_client=False)

    # Staging

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy. The live table gets its layout when it is published."""
        self._make(names, schema.supported, self._options(), job)

    def _make(self, names: Names, columns: Sequence[Column], options: str, job: str) -> None:
        drop = self.dialect.sql(tables.drop(trees.table(names)))
        made = self.dialect.sql(tables.create(self.dialect, trees.table(names), columns))
        self.jobs.query(f"{drop};\n{made}{options};", job)

    def _options(self, expires_hours: int = 0) -> str:
        return dialect.options(
            self.params.label_values, self.params.encryption_key, expires_hours=expires_hours
        )

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Load the files' rows into a staging table, by one load job."""
        if not appends:
            self._stage(names, staged, job)
        self._local.staged = names
        config = _load_config(staged, self.params, appends=appends)
        staged = source_names(staged)
        target = ".".join(names)
        if _is_in_bucket(staged):
            self.jobs.load_urls(list(staged.paths), target, config, job)
            return
        with tempfile.TemporaryDirectory(prefix="replicator-load-") as folder:
            path = os.path.join(folder, "rows.parquet")
            _write(staged, path, getattr(self._local, "sequence", 0))
            with open(path, "rb") as file:
                self.jobs.load(file, target, config, job)

    def _stage(self, names: Names, staged: StagedFiles, job: str) -> None:
        """Make the staging table, unless the one that is there has the same columns and long to
        live."""
        wanted = {c.name: types.native(c) for c in staged.columns}
        found = self.described(names)
        if found is None or _columns(found) != wanted or _ends_soon(found):
            self._make(names, staged.columns, self._options(STAGING_HOURS), f"{job}_table")
        with self._lock:
            self._loaded.add(names)

    def number(self, sequence: int) -> None:
        """The batch that this thread's loads are for: the value of `_sequence_num`; 0: a copy."""
        self._local.sequence = sequence

    @property
    def last_loaded(self) -> Names | None:
        """The staging table that this thread loaded last."""
        return getattr(self._local, "staged", None)

    def keep(self, live: Names, *, job: str) -> None:
        """Copy the batch that this thread loaded last to where it stays readable."""
        place = dialect.quoted(naming.staging_names(live))
        source = dialect.quoted(self._local.staged)
        chosen = f"SELECT * FROM {source};"  # noqa: S608 - a quoted name
        self.jobs.query(f"CREATE OR REPLACE TABLE {place}{self._options()} AS {chosen}", job)

    # Changes

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        """Run the steps as one script in one transaction."""
        script = dialect.transaction(steps)
        self.jobs.estimate(script)
        self.jobs.query(script, job)

    def change(self, steps: Sequence[Step], *, job: str) -> None:
        """Run the steps one by one in one script, without a transaction: BigQuery's DDL takes no
        part in one."""
        self.jobs.query("\n".join(dialect.statements(steps)), job, attempts=1)

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        """Make the staged rows the live table.

        A live table that has the same columns already gets the rows by one transaction, together
        with the record: the table stays the same one, with its grants, policies and descriptions.
        Otherwise one statement makes it, or replaces it with its columns; then its own grants and
        policies are lost, and those of its dataset count. BigQuery replaces no table by one that is
        partitioned or clustered otherwise: such a table is removed first, and for a moment readers
        find none.
        """
        there, rows = self.table(live), self.table(staged)
        if rows is None:
            raise ReplicationError("target:table-missing", table=schema.id)
        if there is not None and there.columns == rows.columns:
            names = dialect.columns(rows.columns)
            first = [
                f"TRUNCATE TABLE {dialect.quoted(live)};",
                f"INSERT INTO {dialect.quoted(live)} ({names}) "  # noqa: S608 - quoted names
                f"SELECT {names} FROM {dialect.quoted(staged)};",
            ]
            self.jobs.query(dialect.transaction(record(there.identity), first), job)
            return
        names = dialect.columns(rows.columns)
        chosen = f"SELECT {names} FROM {dialect.quoted(staged)};"  # noqa: S608 - quoted names
        head = f"CREATE OR REPLACE TABLE {dialect.quoted(live)}"
        clauses = f"{layout.clause(schema, self.params)}{self._options()}"
        made = f"{head}{clauses} AS {chosen}"
        try:
            self.jobs.query(made, job)
        except ReplicationError as err:
            if not _OTHER_LAYOUT.search(str(err.__cause__)):
                raise
            self.jobs.query(f"DROP TABLE {dialect.quoted(live)};\n{made}", f"{job}_again")
        found = self.table(live)
        if found is None:
            raise ReplicationError("target:table-missing", table=schema.id)
        self.run(record(found.identity), job=f"{job}_record")

    def current_rows(
        self, names: Names, schema: TableSchema, mode: Mode
    ) -> AbstractContextManager[CurrentRows]:
        """The rows at this moment, by queries of the table's history."""
        return reading.opened(self, names, schema, mode)

    def drop(self, names: Names) -> None:
        """Remove a staging table. One that this process loads batches into is kept for the next."""
        if names not in self._loaded:
            self.remove(names)

    def remove_dataset(self, namespace: Names) -> None:
        """Remove a dataset that this program made, once it has no tables."""
        from google.api_core.exceptions import BadRequest, NotFound

        name, limits = ".".join(namespace), {"retry": self.jobs.retry, "timeout": ANSWER_SECONDS}
        with self._calling(), suppress(BadRequest, NotFound):
            if MADE.items() <= self.client.get_dataset(name, **limits).labels.items():
                self.client.delete_dataset(name, delete_contents=False, **limits)
                with self._lock:
                    self._datasets.discard(namespace[-1])

    def remove(self, names: Names) -> None:
        """Remove a table."""
        with self._calling():
            self.client.delete_table(
                ".".join(names), not_found_ok=True, retry=self.jobs.retry, timeout=ANSWER_SECONDS
            )
        with self._lock:
            self._loaded.discard(names)

    def close(self) -> None:
        """Remove this process's staging tables and close the connections. Where the service does
        not answer, the tables expire by themselves."""
        from google.cloud.bigquery import DEFAULT_RETRY

        retry = DEFAULT_RETRY.with_timeout(CLOSE_SECONDS)
        with suppress(Exception):
            for names in list(self._loaded):
                self.client.delete_table(
                    ".".join(names), not_found_ok=True, retry=retry, timeout=CLOSE_SECONDS
                )
        self.client.close()


def refuse_elsewhere(params: BigQueryParams, dataset: str, location: str | None) -> None:
    """`target:bigquery-location` where a dataset lies in another location. An emulator's datasets
    lie nowhere."""
    if location and not params.is_emulated and location.lower() != params.location.lower():
        raise ReplicationError(
            "target:bigquery-location", dataset=dataset, found=location, location=params.location
        )


def _ends_soon(table: bigquery.Table) -> bool:
    """Whether a staging table may expire before its batch is merged."""
    return table.expires is not None and table.expires - datetime.now(UTC) < SPARE


def _columns(table: bigquery.Table) -> dict[str, str]:
    return {
        f.name: types.shown(f.field_type, f.mode, f.precision, f.scale) for f in table.schema or ()
    }


def _load_config(
    staged: StagedFiles, params: BigQueryParams, *, appends: bool
) -> bigquery.LoadJobConfig:
    from google.cloud import bigquery

    written = bigquery.WriteDisposition
    lists = bigquery.ParquetOptions()
    lists.enable_list_inference = True
    config = bigquery.LoadJobConfig(
        source_format=bigquery.SourceFormat.PARQUET,
        create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
        write_disposition=written.WRITE_APPEND if appends else written.WRITE_TRUNCATE,
        schema=[field(c) for c in staged.columns],
        labels=params.label_values,
    )
    config.parquet_options = lists
    if params.encryption_key:
        config.destination_encryption_configuration = bigquery.EncryptionConfiguration(
            params.encryption_key
        )
    return config


def field(column: Column) -> bigquery.SchemaField:
    """A column as a load job's schema has it."""
    from google.cloud import bigquery

    text = types.native(column)
    is_array = text.startswith("ARRAY<")
    inner = text.removeprefix("ARRAY<").removesuffix(">") if is_array else text
    name, _, digits = inner.partition("(")
    sizes = [int(d) for d in digits.rstrip(")").split(",")] if digits else []
    digits_of: dict[str, Any] = dict(zip(("precision", "scale"), sizes, strict=False))
    mode = "REPEATED" if is_array else "NULLABLE"
    return bigquery.SchemaField(column.name, name, mode=mode, **digits_of)


def _is_in_bucket(staged: StagedFiles) -> bool:
    """Whether BigQuery can read the files itself, as they are."""
    return (
        bool(staged.paths)
        and all(path.startswith("gs://") for path in staged.paths)
        and staged.is_plain
        and naming.SEQUENCE not in staged.arrow.names
        and not any(pa.types.is_list(f.type) for f in staged.arrow)
    )


def _write(staged: StagedFiles, path: str, sequence: int) -> None:
    """All rows in one file: each load job counts against a quota."""
    at = staged.arrow.get_field_index(naming.SEQUENCE)
    with pq.ParquetWriter(path, staged.arrow, compression="zstd", use_dictionary=False) as out:
        for batch in staged.read(_GROUP_ROWS):
            if at >= 0:
                number = pa.repeat(pa.scalar(sequence, pa.int64()), batch.num_rows)
                batch = batch.set_column(at, staged.arrow.field(at), number)
            out.write_batch(_without_null_elements(batch, staged.arrow))


def source_names(staged: StagedFiles) -> StagedFiles:
    """The same files, whose columns are read by the names that they have in the files. `staged` has
    BigQuery's names."""
    known: dict[str, str] = {}
    for path in staged.paths:
        with files.open_file(path) as source:
            found = pq.ParquetFile(source).schema_arrow
        known |= {naming.column(n): n for n in found.names}
        known |= {
            f"{f.name}.{naming.column(part.name)}": part.name
            for f in found
            if pa.types.is_struct(f.type)
            for part in f.type
        }
    values = tuple(
        replace(
            v,
            name=known.get(v.name, v.name),
            part=known.get(f"{v.name}.{v.part}", v.part) if v.part else "",
        )
        for v in staged.values
    )
    return replace(staged, values=values)


def _without_null_elements(batch: pa.RecordBatch, arrow: pa.Schema) -> pa.RecordBatch:
    """The batch without the NULL elements of its lists: BigQuery's arrays hold none."""
    arrays = [
        _dense(values) if pa.types.is_list(values.type) else values for values in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def _dense(lists: pa.ListArray) -> pa.ListArray:
    elements = lists.flatten()
    if not elements.null_count:
        return lists
    kept = elements.is_valid()
    rows = pc.list_parent_indices(lists).filter(kept).to_numpy()
    sizes = np.bincount(rows, minlength=len(lists))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), elements.filter(kept), type=lists.type, mask=lists.is_null()
    )
