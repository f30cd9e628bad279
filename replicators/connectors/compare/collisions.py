"""Looks for different values that have the same hash, by comparing the values themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicators.connectors.compare.config import CompareConfig
from replicators.connectors.compare.diff import Operation
from replicators.connectors.compare.hashing import KEY_HASH
from replicators.connectors.compare.incoming import collision

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OLD = "_old_"
_GOLDEN, _DIGITS = 0.6180339887498949, 12


def require_no_collision(
    incoming: DataFrame, current: DataFrame, found: DataFrame, config: CompareConfig
) -> None:
    """`compare:collision` where a row of `found` has the key's hash of another key, or counts as
    unchanged although a compared value differs. Columns that `current` lacks are not looked at."""
    from pyspark.sql import functions as F

    operation = F.col(config.names.operation)
    there = set(current.columns)
    names = [n for n in (*config.keys, *config.compared) if n in there]
    old = current.select(KEY_HASH, *(F.col(f"`{n}`").alias(_OLD + n) for n in names))
    matched = found.where(operation.isin(Operation.UPDATE.value, Operation.NONE.value))
    rows = matched.select(KEY_HASH, operation).join(incoming, KEY_HASH).join(old, KEY_HASH)
    is_other_key = _differs([n for n in config.keys if n in there])
    is_other_value = _differs([n for n in config.compared if n in there])
    is_unchanged = operation == Operation.NONE.value
    wrong = rows.where(is_other_key | (is_unchanged & is_other_value))
    number = wrong.count()
    if number:
        raise collision(number, wrong)


def share_of(rows: DataFrame, share: float, turn: int) -> DataFrame:
    """About that share of the rows: those whose key hashes lie in one range, another one for each
    `turn`. The same keys of every set, so nothing needs to be joined to find them."""
    from pyspark.sql import functions as F

    if share >= 1:
        return rows
    first = (turn * _GOLDEN) % 1 * (1 - share)
    low, high = (f"{int(at * 16**_DIGITS):0{_DIGITS}x}" for at in (first, first + share))
    return rows.where((F.col(KEY_HASH) >= F.lit(low)) & (F.col(KEY_HASH) < F.lit(high)))


def _differs(names: list[str]) -> Column:
    from pyspark.sql import functions as F

    found = F.lit(False)
    for name in names:
        found = found | ~F.col(f"`{name}`").eqNullSafe(F.col(f"`{_OLD}{name}`"))
    return found
