"""Reads the current rows of one version of a table by the formats' own Python readers, without
Spark. They see merge-on-read deletes and deletion vectors. Tasks may read too: nothing but the
table's folder is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal as PyDecimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.model.types import Date, Decimal, Int, String, Timestamp, Uuid
from replicators.targets.lakehouse.errors import translate
from replicators.targets.lakehouse.stores import Store

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import DataScan

    from replicators.connectors.reading import CurrentRows

ROWS_AT_ONCE = 1 << 16
_PUSHED = (Int, Decimal, String, Uuid, Date, Timestamp)
"""The types whose literals both readers compare as Arrow does. Limits of other key columns are only
applied to what was read."""


class Scan(Protocol):
    """Reads a version's rows."""

    def __call__(
        self, columns: Sequence[str], limits: Limits, mode: Mode, /
    ) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader may leave out: rows whose column `name` is less than `lower`, not less than
    `upper`, or none of `values`."""

    name: str = ""
    lower: Any = None
    upper: Any = None
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class LakehouseRows:
    """See `CurrentRows`."""

    schema: TableSchema
    mode: Mode
    scan: Scan

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """See `CurrentRows.rows`."""
        names = reading.chosen(self.schema, columns)
        wanted = reading.neutral(self.schema, names)
        if lower is None and upper is None:
            for found in self._read(names, Limits()):
                yield from reading.fitted(found, wanted).to_batches(ROWS_AT_ONCE)
            return
        first = self.schema.key[0]
        read = list(dict.fromkeys([*names, first]))
        kind = self.schema.arrow_schema().field(first).type
        low, high = (None if v is None else reading.scalar(v, kind).as_py() for v in (lower, upper))
        whole = reading.neutral(self.schema, read)
        for found in self._read(read, self._limits(first, lower=low, upper=high)):
            rows = reading.within(reading.fitted(found, whole), first, lower, upper)
            yield from rows.select(names).to_batches(ROWS_AT_ONCE)

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        """See `CurrentRows.rows_by_keys`."""
        names = reading.chosen(self.schema, columns)
        read = list(dict.fromkeys([*names, *self.schema.key]))
        whole = reading.neutral(self.schema, read)
        first = self.schema.key[0]
        values = tuple(pc.unique(keys.column(first)).drop_null().to_pylist())
        parts = [whole.empty_table()]
        if keys.num_rows:
            for found in self._read(read, self._limits(first, values=values)):
                parts.append(reading.with_keys(reading.fitted(found, whole), keys))
        return pa.concat_tables(parts).select(names)

    def parts(self, bytes_a_part: int) -> Sequence[CurrentRows]:
        """See `Divisible.parts`."""
        if not isinstance(self.scan, IcebergScan):
            return (self,)
        with translated(self.schema.id):
            scans = self.scan.parts(bytes_a_part)
        return [replace(self, scan=scan) for scan in scans]

    def _limits(self, name: str, **limits: Any) -> Limits:
        is_pushed = isinstance(self.schema.column(name).type, _PUSHED)
        return Limits(name, **limits) if is_pushed else Limits()

    def _read(self, columns: Sequence[str], limits: Limits) -> Iterator[pa.Table]:
        with translated(self.schema.id):
            for batch in self.scan(columns, limits, self.mode):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])


@contextmanager
def translated(table: TableId) -> Iterator[None]:
    """Errors of the readers become codes."""
    try:
        yield
    except Exception as err:
        raise translate(err, table) from err


@dataclass(frozen=True, slots=True)
class IcebergScan:
    """A snapshot of an Iceberg table, from its metadata file. `share` (number, of how many): every
    so many-th of its files, from that number on."""

    metadata: str
    snapshot: int | None
    store: Store
    share: tuple[int, int] = (0, 1)

    def __call__(
        self, columns: Sequence[str], limits: Limits, mode: Mode, /
    ) -> Iterator[pa.RecordBatch]:
        """One file after the other: a reader of all files at once would hold all that it has read
        before somebody takes it."""
        from pyiceberg.io.pyarrow import ArrowScan

        if self.snapshot is None:
            return
        found = self._scan(row_filter=_iceberg_filter(limits, mode), selected_fields=tuple(columns))
        number, shares = self.share
        files = sorted(found.plan_files(), key=lambda task: task.file.file_path)[number::shares]
        reader = ArrowScan(found.table_metadata, found.io, found.projection(), found.row_filter)
        for file in files:
            yield from reader.to_record_batches([file])

    def parts(self, bytes_a_part: int) -> Sequence[IcebergScan]:
        """Scans of about equally many files each."""
        if self.snapshot is None:
            return (self,)
        sizes = [task.file.file_size_in_bytes for task in self._scan().plan_files()]
        shares = max(1, min(len(sizes), -(-sum(sizes) // bytes_a_part)))
        return [replace(self, share=(number, shares)) for number in range(shares)]

    def _scan(self, **chosen: Any) -> DataScan:
        from pyiceberg.table import StaticTable

        found = StaticTable.from_metadata(self.metadata, properties=self.store.iceberg_properties())
        return found.scan(snapshot_id=self.snapshot, **chosen)


def _iceberg_filter(limits: Limits, mode: Mode) -> BooleanExpression:
    from pyiceberg import expressions as e

    parts: list[Any] = []
    if mode is Mode.SOFT_DELETE:
        parts.append(e.Or(e.EqualTo("_is_deleted", False), e.IsNull("_is_deleted")))
    if mode is Mode.HISTORY:
        parts.append(e.EqualTo("_is_current", True))
    if limits.lower is not None:
        parts.append(e.GreaterThanOrEqual(limits.name, limits.lower))
    if limits.upper is not None:
        parts.append(e.LessThan(limits.name, limits.upper))
    if limits.values:
        parts.append(e.In(limits.name, set(limits.values)))
    return reduce(e.And, parts) if parts else e.AlwaysTrue()


@dataclass(frozen=True, slots=True)
class DeltaScan:
    """A version of a Delta table in a folder."""

    url: str
    version: int
    store: Store

    def __call__(
        self, columns: Sequence[str], limits: Limits, mode: Mode, /
    ) -> Iterator[pa.RecordBatch]:
        from deltalake import DeltaTable, QueryBuilder

        query = f"SELECT {', '.join(map(_quoted, columns))} FROM t{_where(limits, mode)}"  # noqa: S608 - quoted names
        table = DeltaTable(
            self.url, version=self.version, storage_options=self.store.delta_options()
        )
        found = QueryBuilder().register("t", table)
        yield from pa.RecordBatchReader.from_stream(found.execute(query))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _where(limits: Limits, mode: Mode) -> str:
    parts: list[str] = []
    name = _quoted(limits.name)
    if mode is Mode.SOFT_DELETE:
        parts.append("(_is_deleted IS NULL OR NOT _is_deleted)")
    if mode is Mode.HISTORY:
        parts.append("_is_current")
    if limits.lower is not None:
        parts.append(f"{name} >= {_literal(limits.lower)}")
    if limits.upper is not None:
        parts.append(f"{name} < {_literal(limits.upper)}")
    if limits.values:
        parts.append(f"{name} IN ({_literals(limits.values)})")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _literals(values: Iterable[Any]) -> str:
    return ", ".join(map(_literal, values))


def _literal(value: Any) -> str:
    """A value of one of the `_PUSHED` types in DataFusion's SQL."""
    match value:
        case int():
            return str(value)
        case PyDecimal():
            exponent = value.as_tuple().exponent
            scale = max(0, -exponent) if isinstance(exponent, int) else 0
            return f"arrow_cast('{value:f}', 'Decimal128(38, {scale})')"
        case datetime():
            zone = "None" if value.tzinfo is None else 'Some("UTC")'
            shown = value.isoformat(timespec="microseconds")
            return f"arrow_cast('{shown}', 'Timestamp(Microsecond, {zone})')"
        case date():
            return f"arrow_cast('{value.isoformat()}', 'Date32')"
        case str():
            return "'" + value.replace("'", "''") + "'"
    raise ValueError(f"no literal for {type(value).__name__}")
