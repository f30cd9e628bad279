"""Compares an incoming set with the current one. Only hashes are joined; each row's other columns
are joined back to the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

from replicators.connectors.compare.hashing import KEY_HASH, VALUE_HASH

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NEW, _OLD, _LAST, _SINCE, _HELD = "_new", "_old", "_last", "_since", "_held"


class Operation(StrEnum):
    """What happened to a row since the last set. NOT_SUPPLIED: a delta set does not have it, or it
    came but could not be read."""

    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"
    NOT_SUPPLIED = "X"
    NONE = "N"


_ARRIVED = (Operation.INSERT, Operation.UPDATE, Operation.NONE)


class Kind(StrEnum):
    """FULL: a row that is missing was deleted. DELTA: a row that is missing was not supplied."""

    FULL = "full"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the two columns that say what happened to a row, and since when it is so."""

    operation: str = "OPERATION"
    start: str = "EFF_START_DATE"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two sets are compared: `day` is the effective date of the incoming one, later than every
    date in the current one. `is_small`: the incoming set's hashes fit into the memory of each
    executor, so the current set is not shuffled. `few_missing`: so do the hashes of the current
    rows for which nothing came."""

    day: date
    kind: Kind = Kind.FULL
    names: Names = Names()
    is_small: bool = False
    few_missing: bool = False


def verdicts(
    incoming: DataFrame,
    current: DataFrame | None,
    how: Comparison,
    held: DataFrame | None = None,
) -> DataFrame:
    """For each key of either set: `_key_hash`, the operation, and the date since which it is so.

    Both frames have `_key_hash` and `_value_hash`, at most one row for a key; `current` also has
    the two columns of `how.names`, and None means that there is no set yet. `held` has the
    `_key_hash` of rows that came but could not be read, perhaps repeatedly. A row that was deleted
    before stays D with its old date, or is I again. I, U and D have `how.day`, unless the row is D
    since earlier; X and N keep the date that they had.
    """
    from pyspark.sql import functions as F

    new = incoming.select(KEY_HASH, F.col(VALUE_HASH).alias(_NEW))
    if current is None:
        nothing = new.withColumns({_OLD: _null(), _LAST: _null(), _SINCE: _null().cast("date")})
        joined = nothing
    else:
        joined = _joined(new, _hashes_of(current, how.names), how.is_small)
    joined = _with_held(joined, held)
    operation = (
        F.when(F.col(_NEW).isNull(), _missing(how.kind))
        .when(
            F.col(_OLD).isNull() | (F.col(_LAST) == Operation.DELETE.value), _is(Operation.INSERT)
        )
        .when(F.col(_NEW) == F.col(_OLD), _is(Operation.NONE))
        .otherwise(_is(Operation.UPDATE))
    )
    return joined.select(
        KEY_HASH,
        operation.alias(how.names.operation),
        _start(operation, how).alias(how.names.start),
    )


def compared(
    incoming: DataFrame,
    current: DataFrame | None,
    how: Comparison,
    held: DataFrame | None = None,
    found: DataFrame | None = None,
) -> DataFrame:
    """Every row of both sets once, with its operation and date: I, U and N with the values of
    `incoming`, D and X with those of `current`. A column that a side lacks is NULL. `found`: the
    verdicts, where they are known already (and kept, since they are read more than once)."""
    from pyspark.sql import functions as F

    names = how.names
    if current is None:
        return incoming.withColumns(
            {names.operation: _is(Operation.INSERT), names.start: F.lit(how.day)}
        )
    if found is None:
        found = verdicts(incoming, current, how, held)
    operation = F.col(names.operation)
    arrived = found.where(operation.isin([o.value for o in _ARRIVED]))
    rows = incoming.join(F.broadcast(arrived) if how.is_small else arrived, KEY_HASH)
    if how.is_small:
        missing = _missing_of_small(current, arrived, how, held)
    else:
        which = found.where(~operation.isin([o.value for o in _ARRIVED]))
        which = F.broadcast(which) if how.few_missing else which
        missing = current.drop(names.operation, names.start).join(which, KEY_HASH)
    return rows.unionByName(missing, allowMissingColumns=True)


def counts(found: DataFrame, how: Comparison) -> Mapping[Operation, int]:
    """How many rows had each operation on `how.day`. Rows that were deleted earlier do not
    count."""
    return tallied(found, how)[0]


def tallied(found: DataFrame, how: Comparison) -> tuple[Mapping[Operation, int], int]:
    """The `counts`, and the number of all current rows for which nothing came."""
    from pyspark.sql import functions as F

    operation, start = F.col(how.names.operation), F.col(how.names.start)
    is_old = (operation == Operation.DELETE.value) & (start < F.lit(how.day))
    rows = found.groupBy(operation.alias("operation"), is_old.alias("is_old")).count().collect()
    seen = {str(r["operation"]): int(r["count"]) for r in rows if not r["is_old"]}
    missing = sum(int(r["count"]) for r in rows if r["operation"] not in _ARRIVED)
    return {o: seen.get(o.value, 0) for o in Operation}, missing


def _hashes_of(current: DataFrame, names: Names) -> DataFrame:
    from pyspark.sql import functions as F

    return current.select(
        KEY_HASH,
        F.col(VALUE_HASH).alias(_OLD),
        F.col(names.operation).alias(_LAST),
        F.col(names.start).alias(_SINCE),
    )


def _joined(new: DataFrame, old: DataFrame, is_small: bool) -> DataFrame:
    """The full outer join of both sides' hashes. No side of it can be broadcast. So for a small
    incoming set it is two joins in which the small side is: the current rows with what came for
    them, and what came for no current row."""
    if not is_small:
        return new.join(old, KEY_HASH, "full_outer")
    from pyspark.sql import functions as F

    of_old = old.join(F.broadcast(new), KEY_HASH, "left")
    matched = old.join(F.broadcast(new.select(KEY_HASH)), KEY_HASH, "left_semi").select(KEY_HASH)
    only_new = new.join(F.broadcast(matched), KEY_HASH, "left_anti")
    return of_old.unionByName(only_new, allowMissingColumns=True)


def _missing_of_small(
    current: DataFrame, arrived: DataFrame, how: Comparison, held: DataFrame | None
) -> DataFrame:
    """The current rows for which nothing came, found without a shuffle of the current set."""
    from pyspark.sql import functions as F

    names = how.names
    rows = current.join(F.broadcast(arrived.select(KEY_HASH)), KEY_HASH, "left_anti")
    rows = rows.withColumnsRenamed({names.operation: _LAST, names.start: _SINCE})
    rows = _with_held(rows, held)
    operation = _missing(how.kind)
    return rows.withColumns({names.operation: operation, names.start: _start(operation, how)}).drop(
        _LAST, _SINCE, _HELD
    )


def _with_held(rows: DataFrame, held: DataFrame | None) -> DataFrame:
    from pyspark.sql import functions as F

    if held is None:
        return rows.withColumn(_HELD, F.lit(False))
    keys = held.select(KEY_HASH).distinct().withColumn(_HELD, F.lit(True))
    return rows.join(keys, KEY_HASH, "left")


def _missing(kind: Kind) -> Column:
    """The operation of a current row for which nothing came."""
    from pyspark.sql import functions as F

    is_gone = F.col(_LAST) == Operation.DELETE.value
    if kind == Kind.DELTA:
        return F.when(is_gone, _is(Operation.DELETE)).otherwise(_is(Operation.NOT_SUPPLIED))
    is_held = F.coalesce(F.col(_HELD), F.lit(False)) & ~is_gone
    return F.when(is_held, _is(Operation.NOT_SUPPLIED)).otherwise(_is(Operation.DELETE))


def _start(operation: Column, how: Comparison) -> Column:
    """The day of an operation that changed something; otherwise the date that the row had."""
    from pyspark.sql import functions as F

    stays_gone = (operation == Operation.DELETE.value) & (F.col(_LAST) == Operation.DELETE.value)
    changes = operation.isin("I", "U", "D") & ~F.coalesce(stays_gone, F.lit(False))
    return F.when(changes, F.lit(how.day)).otherwise(F.col(_SINCE))


def _is(operation: Operation) -> Column:
    from pyspark.sql import functions as F

    return F.lit(operation.value)


def _null() -> Column:
    from pyspark.sql import functions as F

    return F.lit(None).cast("string")
