"""The index by which merges find rows."""

from __future__ import annotations

from collections.abc import Sequence

from replicators.connectors.model.schema import Column
from replicators.connectors.mysql import sql
from replicators.targets.mysql.types import fit_column

MOST_COLUMNS = 16
MOST_BYTES = 3072
LONGEST_PREFIX = 191
BYTES_A_CHARACTER = 4


def key_index(key: Sequence[Column]) -> str:
    """The columns of a key as a part of ADD INDEX. Of long values it has the beginning: an index
    has at most 3,072 bytes and 16 columns."""
    some = key[:MOST_COLUMNS]
    each = MOST_BYTES // len(some)
    return ", ".join(_part(column, each) for column in some)


def _part(column: Column, most: int) -> str:
    native, name = fit_column(column).native, sql.name(column.name)
    if native == "longtext":
        return f"{name}({min(LONGEST_PREFIX, most // BYTES_A_CHARACTER)})"
    if native == "longblob":
        return f"{name}({min(LONGEST_PREFIX, most)})"
    if native.startswith("varbinary("):
        length = int(native.removeprefix("varbinary(").removesuffix(")"))
        return f"{name}({min(length, most)})"
    return name
