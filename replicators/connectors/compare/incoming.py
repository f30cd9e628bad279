"""Reads an incoming data set: every column is cast, and keys and values are hashed, in one pass of
Spark expressions. Rows that can't be used are set aside with the reason.

The rows are kept divided and sorted by the hash of their key. So no later join shuffles or sorts
them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicators.connectors.compare import casting
from replicators.connectors.compare.config import Column as Configured
from replicators.connectors.compare.config import CompareConfig, InputFormat
from replicators.connectors.compare.hashing import KEY_HASH, VALUE_HASH, hashed
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REASON, ROW = "REASON", "ROW"
_BROKEN = "_broken_line"
_SHOWN = 10
_PARTITION_BYTES = 64 << 20
_MOST_PARTITIONS = 4096
_OF_TEXTS = {
    InputFormat.CSV: {
        "header": "true",
        "mode": "PERMISSIVE",
        "enforceSchema": "false",  # each file's header counts, or the read fails
        "columnPruning": "false",  # a line is checked also where a column is not asked for
        "columnNameOfCorruptRecord": _BROKEN,
        "nullValue": "\u0001",  # nothing is NULL, and "" is empty; by default both are NULL
    },
    InputFormat.JSON: {
        "mode": "PERMISSIVE",
        "primitivesAsString": "true",  # a long number stays exact
        "columnNameOfCorruptRecord": _BROKEN,
    },
}


@dataclass(frozen=True, slots=True)
class Incoming:
    """An incoming set. `rows`: the configured columns and both hashes. `unusable`: the reason, the
    row as JSON without its sensitive columns, and the key's hash, NULL where the key can't be read.
    Both are parts of `kept`, which is persisted. `repeated_keys`: how many usable keys come more
    than once."""

    kept: DataFrame
    rows: DataFrame
    unusable: DataFrame
    number: int
    unusable_number: int
    repeated_keys: int

    @property
    def held(self) -> DataFrame | None:
        """The hashes of keys that came in rows that can't be used."""
        if not self.unusable_number:
            return None
        return self.unusable.where(f"{KEY_HASH} IS NOT NULL").select(KEY_HASH)


def arrived(spark: SparkSession, config: CompareConfig, path: str) -> Incoming:
    """The data set at `path`, cast and hashed; persisted, so the caller unpersists `kept`.
    `compare:input`, `compare:column-missing`, `compare:column-not-castable`."""
    from pyspark.sql import functions as F

    raw = _read(spark, config, path)
    lacking = [c.name for c in config.columns if c.name not in raw.columns]
    if lacking:
        raise ReplicationError(
            "compare:column-missing", path=path, columns=", ".join(f"`{n}`" for n in lacking)
        )
    kept = hashed(_cast(raw, config), config.keys, config.compared, config.hash)
    kept = kept.withColumn(KEY_HASH, F.when(_is_whole(config), F.col(KEY_HASH)))
    kept = kept.repartition(_partitions(spark, raw), KEY_HASH).sortWithinPartitions(KEY_HASH)
    kept = kept.persist()
    is_usable = F.col(REASON) == ""
    try:
        number, unusable, repeated = _counted(kept, is_usable)
    except BaseException as err:
        kept.unpersist()
        if _is_of_spark(err):
            raise _unreadable(config, path) from err
        raise
    names = [c.name for c in config.columns]
    return Incoming(
        kept,
        kept.where(is_usable).select(*map(quoted, names), KEY_HASH, VALUE_HASH),
        kept.where(~is_usable).select(REASON, ROW, KEY_HASH),
        number,
        unusable,
        repeated,
    )


def _counted(kept: DataFrame, is_usable: Column) -> tuple[int, int, int]:
    """How many rows can be used, how many can't, and how many usable keys come more than once."""
    from pyspark.sql import functions as F

    by_key = kept.groupBy(KEY_HASH).agg(
        F.count_if(is_usable).alias("usable"), F.count_if(~is_usable).alias("unusable")
    )
    found = by_key.agg(
        F.coalesce(F.sum("usable"), F.lit(0)),
        F.coalesce(F.sum("unusable"), F.lit(0)),
        F.count_if(F.col("usable") > 1),
    ).collect()[0]
    return int(found[0]), int(found[1]), int(found[2])


def _partitions(spark: SparkSession, raw: DataFrame) -> int:
    """Into how many parts a set is divided: enough for all cores, and none too large to sort in
    memory."""
    size = int(str(raw._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    wanted = max(int(spark.sparkContext.defaultParallelism), size // _PARTITION_BYTES + 1)
    return min(wanted, _MOST_PARTITIONS)


def require_unique(incoming: Incoming, config: CompareConfig) -> None:
    """`compare:duplicate-keys` where a key comes more than once, `compare:collision` where
    different keys have one hash."""
    from pyspark.sql import functions as F

    if not incoming.repeated_keys:
        return
    again = incoming.rows.groupBy(KEY_HASH).count().where("count > 1").select(KEY_HASH)
    keys = [F.col(quoted(k)) for k in config.keys]
    rows = incoming.rows.join(again, KEY_HASH).groupBy(KEY_HASH, *keys).count()
    several = rows.groupBy(KEY_HASH).count().where("count > 1")
    if not several.isEmpty():
        raise collision(several.count(), several)
    first = rows.orderBy(F.desc("count"), *keys).limit(_SHOWN).collect()
    is_secret = {c.name for c in config.columns if c.is_sensitive}
    named = [
        " ".join(_shown(k, r[k], k in is_secret) for k in config.keys) + f" ({r['count']} times)"
        if not is_secret.issuperset(config.keys)
        else f"the key with the hash {r[KEY_HASH]} ({r['count']} times)"
        for r in first
    ]
    number = rows.count()
    more = ", and more" if number > len(named) else ""
    raise ReplicationError("compare:duplicate-keys", number=number, named="; ".join(named) + more)


def collision(number: int, rows: DataFrame) -> ReplicationError:
    """The error for rows with a hash that other values have too."""
    first = rows.select(KEY_HASH).limit(3).collect()
    return ReplicationError(
        "compare:collision", number=number, named=", ".join(str(r[0]) for r in first)
    )


def _read(spark: SparkSession, config: CompareConfig, path: str) -> DataFrame:
    """The set as it was delivered. Values of CSV and JSON are text, and a line that can't be read,
    or does not fit the CSV's header, is kept whole in `_broken_line`."""
    form = config.input.format
    options = {**_OF_TEXTS.get(form, {}), **config.input.options}
    try:
        reader = spark.read.format(form.value).options(**options)
        if form != InputFormat.CSV:
            return reader.load(path)
        columns = [c for c in reader.load(path).columns if c != _BROKEN]
        schema = ", ".join(f"{quoted(c)} string" for c in (*columns, _BROKEN))
        return reader.schema(schema).load(path)
    except Exception as err:
        if _is_of_spark(err):
            raise _unreadable(config, path) from err
        raise


def _unreadable(config: CompareConfig, path: str) -> ReplicationError:
    return ReplicationError("compare:input", path=path, format=config.input.format.value)


def _is_of_spark(err: BaseException) -> bool:
    from pyspark.errors import PySparkException

    return isinstance(err, PySparkException)


def _cast(raw: DataFrame, config: CompareConfig) -> DataFrame:
    """The configured columns with their types, `REASON` (empty for a usable row) and `ROW`."""
    from pyspark.sql import functions as F

    reasons: list[Column] = []
    if _BROKEN in raw.columns:
        reasons.append(_when(F.col(_BROKEN).isNotNull(), "the line does not fit the header"))
    values: list[Column] = []
    for column in config.columns:
        value, is_cut = _cast_one(raw, column)
        values.append(F.when(~is_cut, value).alias(column.name))
        reasons += _reasons(column, value, is_cut)
    open_names = [quoted(n) for n in (*config.open_columns, *_if_there(_BROKEN, raw, config))]
    reason = F.concat_ws("; ", *reasons)
    row = F.to_json(F.struct(*open_names), {"ignoreNullFields": "false"})
    return raw.select(
        *values,
        reason.alias(REASON),
        F.when(reason != "", row).alias(ROW),
    )


def _if_there(name: str, raw: DataFrame, config: CompareConfig) -> Sequence[str]:
    """The broken line itself, unless it may hold something sensitive."""
    return (name,) if name in raw.columns and not config.sensitive_columns else ()


def _cast_one(raw: DataFrame, column: Configured) -> tuple[Column, Column]:
    """The value, and whether a part of it was lost."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    given, kind = F.col(quoted(column.name)), raw.schema[column.name].dataType.simpleString()
    value = casting.cast(given, kind, column.type)
    is_cut = casting.is_cut(given, kind, column.type, value)
    try:
        raw.select(value, is_cut)
    except AnalysisException as err:
        raise ReplicationError(
            "compare:column-not-castable", column=column.name, found=kind, wanted=column.type
        ) from err
    return value, is_cut


def _reasons(column: Configured, value: Column, is_cut: Column) -> list[Column]:
    from pyspark.sql import functions as F

    came = F.col(quoted(column.name)).isNotNull()
    found = [
        _when(came & value.isNull(), f"{column.name} is no {column.type}"),
        _when(is_cut, f"{column.name} does not fit {column.type} without a loss"),
    ]
    if column.is_key:
        found.append(_when(~came, f"the key column {column.name} is NULL"))
    elif not column.is_nullable:
        found.append(_when(~came, f"{column.name} is NULL"))
    return found


def _is_whole(config: CompareConfig) -> Column:
    from pyspark.sql import functions as F

    whole = F.lit(True)
    for key in config.keys:
        whole = whole & F.col(quoted(key)).isNotNull()
    return whole


def _when(condition: Column, text: str) -> Column:
    from pyspark.sql import functions as F

    return F.when(condition, F.lit(text))


def _shown(name: str, value: object, is_secret: bool) -> str:
    return f"{name}={'(hidden)' if is_secret else value}"
