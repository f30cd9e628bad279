"""A delivery's files as a frame of Spark. CSV and JSON are read as text; the other formats have
types of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import quoted
from replicators.sources.compared.arrivals import Arrival
from replicators.sources.compared.casting import CORRUPT, ddl
from replicators.sources.compared.columns import format_of, header, label_of
from replicators.sources.compared.errors import reading
from replicators.sources.compared.params import ComparedParams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUOTED_EMPTY = "\ue000"
"""What an empty text in quotes is read as, so that it is not NULL."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The rows, with the columns of the table's schema, and `_corrupt_record`: the text of a line
    that does not fit."""

    rows: DataFrame
    form: str


def delivered(
    spark: SparkSession, params: ComparedParams, arrival: Arrival, schema: TableSchema
) -> Delivered:
    """The delivery's rows. `source:delivery-column-missing`, `source:delivery-unreadable`."""
    form = format_of(params, arrival.files[0])
    names = [c.name for c in schema.columns]
    if form == "csv":
        return Delivered(_csv(spark, params, arrival, schema), form)
    if form == "json":
        rows = (
            spark.read.schema(ddl(dict.fromkeys([*names, CORRUPT], "string")))
            .options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT, encoding="UTF-8")
            .json(_paths(arrival.files))
        )
        return Delivered(rows, form)
    return Delivered(_typed(spark, form, arrival, schema), form)


def _paths(paths: Sequence[str]) -> list[str]:
    """The paths as Spark takes them: nothing in them is a pattern, and an object store of Amazon is
    known as s3a."""
    return ["s3a://" + p[5:] if p.startswith("s3://") else _plain(p) for p in paths]


def _plain(path: str) -> str:
    return "".join(f"\\{c}" if c in "{}[]*?\\" else c for c in path)


def _csv(
    spark: SparkSession, params: ComparedParams, arrival: Arrival, schema: TableSchema
) -> DataFrame:
    """Spark goes by the place of a column. So files whose first lines differ are read apart."""
    from pyspark.sql import functions as F

    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    with reading("files"):
        for path in arrival.files:
            groups[header(params, path)].append(path)
    options: dict[str, Any] = {
        "header": True,
        "sep": params.separator,
        "quote": '"',
        "escape": '"',
        "multiLine": True,
        "nullValue": params.null_text,
        "emptyValue": _QUOTED_EMPTY,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "enforceSchema": True,
        "maxCharsPerColumn": -1,
    }
    wanted = [c.name for c in schema.columns]
    frames = []
    for names, paths in groups.items():
        require(wanted, names, arrival, schema)
        shown = ddl(dict.fromkeys([*_distinct(names), CORRUPT], "string"))
        rows = spark.read.schema(shown).options(**options).csv(_paths(paths))
        values = {n: F.when(F.col(quoted(n)) == _QUOTED_EMPTY, "").otherwise(F.col(quoted(n)))
                  for n in wanted}  # fmt: skip
        frames.append(rows.select(*(v.alias(n) for n, v in values.items()), CORRUPT))
    return _together(frames)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, each once: the second column of a name is not read."""
    found: list[str] = []
    for at, name in enumerate(names):
        found.append(name if name and name not in found else f"_{at}_{name}")
    return found


def _typed(spark: SparkSession, form: str, arrival: Arrival, schema: TableSchema) -> DataFrame:
    try:
        rows = spark.read.format(form).load(_paths(arrival.files))
    except Exception as err:
        if not is_unreadable(err):
            raise
        raise unreadable(form, arrival, schema) from err
    wanted = [c.name for c in schema.columns]
    require(wanted, rows.columns, arrival, schema)
    return rows.selectExpr(*(quoted(n) for n in wanted), f"CAST(NULL AS string) AS {CORRUPT}")


def _together(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def require(
    wanted: Sequence[str], present: Sequence[str], arrival: Arrival, schema: TableSchema
) -> None:
    """`source:delivery-column-missing` where a column of the table is not in the delivery."""
    missing = [n for n in wanted if n not in present]
    if missing:
        raise ReplicationError(
            "source:delivery-column-missing",
            table=schema.id,
            delivery=arrival.delivery,
            columns=", ".join(f"`{n}`" for n in missing),
            present=", ".join(present) or "no columns",
        )


def unreadable(form: str, arrival: Arrival, schema: TableSchema) -> ReplicationError:
    """The error of a delivery that Spark can't read."""
    return ReplicationError(
        "source:delivery-unreadable",
        table=schema.id,
        delivery=arrival.delivery,
        format=label_of(form),
    )


def is_unreadable(err: Exception) -> bool:
    """Whether Spark says that a file is not what it should be."""
    text = str(err)
    return any(word in text for word in _UNREADABLE)


_UNREADABLE = (
    "FAILED_READ_FILE",
    "UNABLE_TO_INFER_SCHEMA",
    "MALFORMED",
    "CANNOT_READ_FILE",
    "not a Parquet file",
    "Not an Avro data file",
    "Malformed ORC",
    "UNSUPPORTED_ENCODING",
    "ZipException",
    "CharConversionException",
)
