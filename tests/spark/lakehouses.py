"""Tables, batches and reading for the lakehouse tests; reads with the formats' own Python readers,
never with Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, LogicalType, String
from replicators.connectors.target import FoldedBatch, KeyRange, TargetTable
from replicators.targets.lakehouse import naming
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.writer import LakehouseWriter

_NUMBERS = itertools.count()
DELTA_LONG = pytest.mark.parametrize(
    "house", ["iceberg", pytest.param("delta", marks=pytest.mark.long)], indirect=True
)
"""On Delta, `make test` has a case of every kind of statement, of publishing and of evolving. What
does not differ by format, or takes long there, runs on Delta in `make test-long`."""


def table_schema(
    name: str, columns: Mapping[str, LogicalType], key: Sequence[str] = ("id",)
) -> TableSchema:
    """A table schema; key columns can't be NULL."""
    made = tuple(
        Column(n, t, "native", nullable=n not in key, ordinal=i + 1)
        for i, (n, t) in enumerate(columns.items())
    )
    return TableSchema(TableId("shop", name), made, tuple(key), tuple(key))


PLAIN: dict[str, LogicalType] = {"id": Int(64), "name": String(), "note": String()}


@dataclass
class Lakehouse:
    """A writer with its params and a folder for batches."""

    params: LakehouseParams
    writer: LakehouseWriter
    folder: Path
    form: str = field(init=False)

    def __post_init__(self) -> None:
        self.form = self.params.format

    def file(self, table: pa.Table) -> str:
        """`table` in a Parquet file."""
        path = self.folder / f"{next(_NUMBERS)}.parquet"
        pq.write_table(table, path)
        return str(path)

    def rows(self, schema: TableSchema, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
        """Rows in the schema's Arrow form."""
        arrow = schema.arrow_schema()
        columns = list(zip(*rows, strict=True)) or [()] * len(arrow)
        return pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow
        )

    def load(
        self, table: TargetTable, schema: TableSchema, rows: Iterable[tuple[Any, ...]]
    ) -> None:
        """Stage rows as a task would write them, beside what a failed task left."""
        place = self.writer.snapshot_place(table, schema)
        path = f"{place.folder}/1.parquet"
        Path(place.folder, "failed.parquet").write_bytes(b"half a file")
        made = self.rows(schema, rows).cast(place.arrow)
        with pq.ParquetWriter(path, place.arrow, **place.options) as out:
            out.write_table(made)
        self.writer.load_snapshot_files(table, schema, [path])

    def copied(
        self,
        schema: TableSchema,
        rows: Iterable[tuple[Any, ...]],
        *,
        sequence: int = 1,
        generation: int = 1,
    ) -> TargetTable:
        """A published first copy."""
        table = TargetTable(schema.id, "r1", generation)
        self.writer.begin_snapshot(table, schema)
        self.load(table, schema, rows)
        return TargetTable(
            schema.id, "r1", generation, self.writer.publish_snapshot(table, schema, sequence)
        )

    def batch(
        self,
        schema: TableSchema,
        sequence: int,
        rows: Sequence[tuple[Any, ...]],
        *,
        deleted: Sequence[int] = (),
        unsent: Sequence[tuple[bytes | None, int | None]] = (),
        **flags: Any,
    ) -> FoldedBatch:
        """A folded batch; `deleted` are row numbers, `unsent` each row's bits and origin (of a key
        called `id`)."""
        made = self.rows(schema, rows).append_column(
            "_delete", pa.array([i in deleted for i in range(len(rows))])
        )
        if unsent:
            made = made.append_column("_unsent", pa.array([u for u, _ in unsent], pa.binary()))
            origins = [None if o is None else {"id": o} for _, o in unsent]
            made = made.append_column("_origin", pa.array(origins, pa.struct([("id", pa.int64())])))
        keys = [r[0] for r in rows] + [o for _, o in unsent if o is not None]
        if schema.key and keys and "ranges" not in flags:
            flags["ranges"] = (KeyRange(min(keys), max(keys)),)
        return FoldedBatch(schema, (self.file(made),), sequence, len(rows), **flags)

    def read(self, schema: TableSchema) -> list[tuple[Any, ...]]:
        """The live rows, in order of the first column."""
        rows = [tuple(r.values()) for r in self.records(schema)]
        return sorted(rows, key=lambda r: (r[0] is not None, r[0]))

    def records(self, schema: TableSchema) -> list[dict[str, Any]]:
        """The live rows, by column names."""
        names = naming.names(self.params, schema.id)
        if self.form == "iceberg":
            table = self.catalog().load_table(names).scan().to_arrow()
        else:
            table = _read_delta(self.writer.format.folder(names))
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    def catalog(self) -> Any:
        """The catalog as a reader opens it."""
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog(
            self.params.catalog_name, uri=self.params.catalog_uri, warehouse=self.params.warehouse
        )


def _read_delta(folder: str) -> pa.Table:
    from deltalake import DeltaTable, QueryBuilder

    done = QueryBuilder().register("t", DeltaTable(folder)).execute("SELECT * FROM t").read_all()
    return pa.table(done)
