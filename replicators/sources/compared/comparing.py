"""Compares one delivery with the rows that are known, on Spark. Each row is read, cast and hashed
once, and kept with its hashes; after that only hashes are joined.

What is refused raises an error of `messages.REFUSALS`; nothing of it stays. Otherwise all files are
durable when `compare` returns, and `journal.Journal.add` makes them known.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from replicators.connectors import failpoints, files
from replicators.connectors.compare.diff import (
    Comparison,
    Kind,
    Operation,
    counts,
    verdicts,
)
from replicators.connectors.compare.hashing import KEY_HASH, VALUE_HASH, hashed
from replicators.connectors.model.changes import FAULT_FIELDS, Op, before_fields
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Bytes
from replicators.connectors.poll import DeliveryReport
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import quoted
from replicators.connectors.tasks import Tasks
from replicators.sources.compared.arrivals import Arrival
from replicators.sources.compared.casting import (
    CORRUPT,
    FAULTY,
    IS_CORRUPT,
    RAW,
    REASON,
    cast_rows,
    ddl,
)
from replicators.sources.compared.database import Extract, extracted
from replicators.sources.compared.journal import (
    PORTIONS,
    Compared,
    Journal,
    Portion,
    word_of,
)
from replicators.sources.compared.params import ComparedParams
from replicators.sources.compared.reading import (
    Delivered,
    delivered,
    is_unreadable,
    unreadable,
)
from replicators.sources.compared.types import spark_type
from replicators.sources.compared.writing import written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_A_FILE = 1 << 20
CHANGES_A_PORTION = 1 << 16
ROWS_A_PARTITION = 2_000_000
SMALL_ROWS = 200_000
SAMPLE_KEYS = 3
BYTES_A_ROW = 40
_OPERATION, _NUMBER = "_operation", "_op"
_BEFORE, _COUNT = "_before", "_count"
_CHANGED = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)


@dataclass(frozen=True, slots=True)
class Work:
    """What a comparison needs. `progress` hears of the rows in each long step."""

    spark: SparkSession
    tasks: Tasks
    params: ComparedParams
    journal: Journal
    progress: Callable[[int], None]


def state_schema(schema: TableSchema) -> pa.Schema:
    """The columns of a file of rows: the table's, those of a fault, whether the line did not fit,
    and the hashes."""
    hashes = [pa.field(KEY_HASH, pa.string()), pa.field(VALUE_HASH, pa.string())]
    corrupt = pa.field(IS_CORRUPT, pa.bool_())
    return pa.schema([*schema.arrow_schema(), *FAULT_FIELDS, corrupt, *hashes])


def changes_schema(schema: TableSchema) -> pa.Schema:
    """The columns of a file of changes."""
    before = pa.field(_BEFORE, pa.struct(before_fields(schema)))
    op = pa.field(_NUMBER, pa.int8())
    return pa.schema([op, *schema.arrow_schema(), before, *FAULT_FIELDS])


def compare(
    work: Work, number: int, arrival: Arrival, schema: TableSchema, *, is_copied: bool = False
) -> Compared:
    """Compare a delivery with the table's last one. `schema`: the columns that are followed now.
    `is_copied`: a copy of the table will have all of its rows, so its changes are not needed."""
    last = work.journal.last_of(schema.id)
    one = _Comparing(work, arrival, schema, last, uuid.uuid4().hex[:12], number)
    one.is_copied = is_copied
    try:
        return one.run()
    except ReplicationError:
        one.remove_all()
        raise


class _Comparing:
    """One comparison. Its files have names of its own, so a second try meets none of the first."""

    def __init__(
        self,
        work: Work,
        arrival: Arrival,
        schema: TableSchema,
        last: Compared | None,
        name: str,
        number: int,
    ) -> None:
        self._work = work
        self._arrival = arrival
        self._schema = schema.bare
        self._last = last
        self._name = name
        self._number = number
        self._kept: list[Any] = []
        self._faults = 0
        self._extract = ""
        self.is_copied = False

    def run(self) -> Compared:
        """All steps."""
        try:
            return self._run()
        finally:
            for frame in self._kept:
                frame.unpersist()

    def _run(self) -> Compared:
        arrived = self._arrived()
        self._faults = self._require_keys(arrived)
        failpoints.hit("delivery_hashed")
        if self._extract:
            files.remove(self._extract)
        incoming = self._frame(arrived, _state_types(self._schema))
        current = self._current()
        found, tally = self._verdicts(incoming, arrived, current)
        self._require_size(sum(p.rows for p in arrived), tally)
        changes = self._changes(incoming, current, found, tally)
        rows = arrived if self._is_full or current is None else self._merged(incoming, current)
        return self._compared(arrived, rows, changes, tally)

    @property
    def _is_full(self) -> bool:
        return self._work.params.is_full

    # --- 1: read, cast and hash ---------------------------------------------------------------
    def _arrived(self) -> tuple[Portion, ...]:
        """The delivery's rows, with their hashes."""
        self._work.progress(self._arrival.size // BYTES_A_ROW)
        found = self._delivered()
        try:
            rows = cast_rows(found.rows, self._schema)
            return self._write("rows", self._hashed(rows), state_schema(self._schema), ROWS_A_FILE)
        except ReplicationError:
            raise
        except Exception as err:
            if not is_unreadable(err):
                raise
            raise unreadable(found.form, self._arrival, self._schema) from err

    def _delivered(self) -> Delivered:
        """The delivery as a frame. The rows of a database are first written to a file, by one
        task."""
        work = self._work
        if not work.params.database:
            return delivered(work.spark, work.params, self._arrival, self._schema)
        folder = self._folder("rows")
        if not files.is_url(folder):
            os.makedirs(folder, exist_ok=True)
        names = tuple(c.name for c in self._schema.columns)
        raw = frozenset(c.name for c in self._schema.columns if isinstance(c.type, Bytes))
        what = Extract(self._schema.id, f"{folder}/extract.parquet", names, raw)
        self._extract = what.path
        work.progress(extracted(work.tasks, work.params, what))
        types = {n: "binary" if n in raw else "string" for n in names}
        rows: Any = files.parquet_frame(work.spark, [what.path], ddl(types))
        whole = rows.selectExpr("*", f"CAST(NULL AS string) AS {CORRUPT}")
        return Delivered(whole, "parquet")

    def _hashed(self, rows: DataFrame) -> DataFrame:
        values = [c.name for c in self._schema.columns if c.name not in self._schema.key]
        return hashed(rows, self._schema.key, [*values, RAW]).drop(RAW)

    def _require_keys(self, arrived: Sequence[Portion]) -> int:
        """Each line fits, each row has a key, and each key comes once. Returns the number of rows
        with a value that could not be cast."""
        from pyspark.sql import functions as F

        key = self._schema.key
        types = {n: spark_type(self._schema.column(n).type) for n in key}
        types |= {KEY_HASH: "string", FAULTY: "binary", IS_CORRUPT: "boolean"}
        is_none = " OR ".join(f"{quoted(n)} IS NULL" for n in key)
        groups = (
            self._frame(arrived, types)
            .groupBy(KEY_HASH)
            .agg(
                F.count("*").alias(_COUNT),
                F.count_if(IS_CORRUPT).alias("_corrupt"),
                F.count_if(F.expr(is_none)).alias("_none"),
                F.count(FAULTY).alias("_faults"),
                *(F.first(quoted(n)).alias(n) for n in key),
            )
        )
        found = groups.selectExpr(
            "sum(_corrupt) AS corrupt",
            "sum(_none) AS none",
            "sum(_faults) AS faults",
            f"count_if({_COUNT} > 1) AS keys",
            f"sum(if({_COUNT} > 1, {_COUNT}, 0)) AS rows",
        ).collect()[0]
        if found["corrupt"]:
            raise self._refused("source:delivery-malformed", rows=found["corrupt"])
        if found["none"]:
            columns = ", ".join(key)
            raise self._refused("source:delivery-key-null", rows=found["none"], columns=columns)
        if found["keys"]:
            repeated = groups.where(F.col(_COUNT) > 1)
            sample = repeated.orderBy(F.desc(_COUNT), *map(quoted, key)).limit(SAMPLE_KEYS)
            raise self._refused(
                "source:delivery-key-repeated",
                keys=found["keys"],
                rows=found["rows"],
                sample="; ".join(_shown(r, key) for r in sample.collect()),
            )
        return int(found["faults"] or 0)

    # --- 2: compare ---------------------------------------------------------------------------
    def _current(self) -> DataFrame | None:
        """The rows of the table's last delivery, with hashes that are made as today's. Hashes of
        other columns are made anew from the rows."""
        last = self._last
        if last is None:
            return None
        self._work.progress(last.rows_total)
        if _hashed_alike(last.schema, self._schema):
            return self._frame(last.rows, _state_types(self._schema))
        rows = self._frame(last.rows, _state_types(last.schema))
        known = {c.name: c for c in last.schema.columns}
        columns = [
            f"CAST({quoted(c.name) if c.name in known else 'NULL'} AS {spark_type(c.type)}) "
            f"AS {quoted(c.name)}"
            for c in self._schema.columns
        ]
        none = ("CAST(NULL AS binary) AS _faulty", "CAST(NULL AS string) AS _fault_reason")
        more = (f"CAST(NULL AS boolean) AS {IS_CORRUPT}", f"CAST(NULL AS string) AS {RAW}")
        cast = rows.selectExpr(*columns, *none, *more)
        made = self._hashed(cast).persist()
        self._kept.append(made)
        return made

    def _verdicts(
        self, incoming: DataFrame, arrived: Sequence[Portion], current: DataFrame | None
    ) -> tuple[DataFrame, Mapping[Operation, int]]:
        """What happened to each key, and how often each operation is there."""
        from pyspark.sql import functions as F

        rows = sum(p.rows for p in arrived)
        day = datetime.now(UTC).date()
        how = Comparison(
            day, Kind.FULL if self._is_full else Kind.DELTA, is_small=rows <= SMALL_ROWS
        )
        old = None
        if current is not None:
            before: date = day - timedelta(days=1)
            old = self._spread(current.select(KEY_HASH, VALUE_HASH)).withColumns(
                {
                    how.names.operation: F.lit(Operation.NONE.value),
                    how.names.start: F.lit(before),
                }
            )
        new = self._spread(incoming.select(KEY_HASH, VALUE_HASH))
        found = verdicts(new, old, how).persist()
        self._kept.append(found)
        tally = counts(found, how)
        changed = found.where(F.col(how.names.operation).isin([o.value for o in _CHANGED]))
        return changed.select(KEY_HASH, F.col(how.names.operation).alias(_OPERATION)), tally

    def _spread(self, rows: DataFrame) -> DataFrame:
        """Large sets in partitions that fit into the memory of an executor."""
        total = max(self._last.rows_total if self._last else 0, self._arrival.size // BYTES_A_ROW)
        parts = total // ROWS_A_PARTITION
        return rows.repartition(parts, KEY_HASH) if parts > 1 else rows

    def _require_size(self, rows: int, tally: Mapping[Operation, int]) -> None:
        before = self._last.rows_total if self._last else 0
        lost, limit = tally[Operation.DELETE], self._work.params.largest_loss
        if before and lost * 100 > before * limit:
            raise self._refused(
                "source:delivery-shrank",
                rows=rows,
                lost=lost,
                before=before,
                percent=round(100 * lost / before),
                limit=limit,
            )

    # --- 3: write what changed ----------------------------------------------------------------
    def _changes(
        self,
        incoming: DataFrame,
        current: DataFrame | None,
        found: DataFrame,
        tally: Mapping[Operation, int],
    ) -> tuple[Portion, ...]:
        from pyspark.sql import functions as F

        if self.is_copied or not sum(tally[o] for o in _CHANGED):
            return ()
        self._work.progress(sum(tally[o] for o in _CHANGED))
        arrow, key = changes_schema(self._schema), self._schema.key
        rows = found.join(incoming.drop(VALUE_HASH), KEY_HASH, "left")
        names = [c.name for c in self._schema.columns]
        if current is None:
            none = ddl({n: spark_type(self._schema.column(n).type) for n in names})
            rows = rows.withColumn(_BEFORE, F.lit(None).cast(f"struct<{_struct(none)}>"))
        else:
            struct = F.struct(*(F.col(quoted(n)) for n in names)).alias(_BEFORE)
            rows = rows.join(
                current.select(KEY_HASH, struct).join(
                    found.where(F.col(_OPERATION) != Operation.INSERT.value).select(KEY_HASH),
                    KEY_HASH,
                ),
                KEY_HASH,
                "left",
            )
        images = {n: F.coalesce(F.col(quoted(n)), F.col(_BEFORE)[n]) for n in key}
        number = F.create_map(*(F.lit(x) for o in _NUMBERS for x in (o.value, int(_NUMBERS[o]))))
        numbered = rows.withColumns(images).withColumn(
            _NUMBER, number[F.col(_OPERATION)].cast("tinyint")
        )
        made = self._write(
            "changes",
            numbered.select(_NUMBER, *map(quoted, names), _BEFORE, FAULTY, REASON),
            arrow,
            CHANGES_A_PORTION,
        )
        if len(made) >= PORTIONS:
            raise self._refused("source:delivery-too-large", limit=PORTIONS)
        failpoints.hit("delivery_changes_written")
        return made

    def _merged(self, incoming: DataFrame, current: DataFrame) -> tuple[Portion, ...]:
        """All rows after a delivery that has only some."""
        stay = current.join(incoming.select(KEY_HASH), KEY_HASH, "left_anti")
        schema = state_schema(self._schema)
        whole = stay.unionByName(incoming, allowMissingColumns=True)
        return self._write("rows", whole, schema, ROWS_A_FILE)

    def _compared(
        self,
        arrived: Sequence[Portion],
        rows: tuple[Portion, ...],
        changes: tuple[Portion, ...],
        tally: Mapping[Operation, int],
    ) -> Compared:
        report = DeliveryReport(
            table=self._schema.id,
            name=self._arrival.delivery,
            mark=self._arrival.mark,
            at=self._arrival.at,
            rows=sum(p.rows for p in arrived),
            inserts=tally[Operation.INSERT],
            updates=tally[Operation.UPDATE],
            deletes=tally[Operation.DELETE],
            missing=tally[Operation.NOT_SUPPLIED],
            unchanged=tally[Operation.NONE],
            quarantined=self._faults,
        )
        is_new = self._last is not None and self._last.schema.columns != self._schema.columns
        before = self._work.journal.version
        version = self._number if is_new else before
        if rows is not arrived:
            files.remove_all(p.path for p in arrived)
        return Compared(
            self._number, self._name, self._schema, version, report, tuple(rows), changes
        )

    # --- small parts --------------------------------------------------------------------------
    def _refused(self, code: str, **facts: object) -> ReplicationError:
        delivery = self._arrival.delivery
        return ReplicationError(code, table=self._schema.id, delivery=delivery, **facts)

    def _folder(self, kind: str) -> str:
        table = word_of(self._schema.id)
        return f"{self._work.journal.folder}/{kind}/{table}/{self._number:012d}-{self._name}"

    def _write(
        self, kind: str, rows: DataFrame, schema: pa.Schema, most_rows: int
    ) -> tuple[Portion, ...]:
        return written(rows, self._folder(kind), schema, most_rows)

    def _frame(self, portions: Sequence[Portion], types: Mapping[str, str]) -> DataFrame:
        """The files' rows with these columns."""
        spark, names = self._work.spark, [p.path for p in portions]
        if not names:
            return spark.createDataFrame([], ddl(types))
        frame: Any = files.parquet_frame(spark, names, ddl(types))
        return frame

    def remove_all(self) -> None:
        """Remove what was written."""
        for kind in ("rows", "changes"):
            files.remove_folder(self._folder(kind))


_NUMBERS = {
    Operation.INSERT: Op.INSERT,
    Operation.UPDATE: Op.UPDATE,
    Operation.DELETE: Op.DELETE,
}


def _state_types(schema: TableSchema) -> dict[str, str]:
    types = {c.name: spark_type(c.type) for c in schema.columns}
    kept = (FAULTY, "binary"), (REASON, "string"), (IS_CORRUPT, "boolean")
    return types | dict(kept) | {KEY_HASH: "string", VALUE_HASH: "string"}


def _hashed_alike(one: TableSchema, other: TableSchema) -> bool:
    """Whether the hashes of both schemas can be compared."""
    return one.key == other.key and {(c.name, c.type) for c in one.columns} == {
        (c.name, c.type) for c in other.columns
    }


def _struct(text: str) -> str:
    return text.replace("` ", "`: ")


def _shown(row: Any, key: Sequence[str]) -> str:
    values = ", ".join(f"{n} = {row[n]}" for n in key)
    return f"{values} ({row[_COUNT]} times)"
