"""Where a table lies: its name parts and a folder name that no storage misreads."""

from __future__ import annotations

import hashlib

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse.params import LakehouseParams

STAGING_NAMESPACE = "replicator_staging"
PROGRESS = "replicator_progress"
LONGEST = 200
"""Characters of a folder's name: what stands behind it beside a staging folder has room up to 255,
where file systems end."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


ICEBERG_NAMES = frozenset(
    {
        "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id",
        "_last_updated_sequence_number",
    }
)  # fmt: skip
"""Names of Iceberg's metadata columns: a table that has one can't be merged into."""


def reserved_by_iceberg(table: TableSchema) -> list[str]:
    """The table's columns whose names Iceberg keeps for itself."""
    return [c.name for c in table.supported if c.name.casefold() in ICEBERG_NAMES]


def refuse_reserved(table: TableSchema) -> None:
    """`target:column-reserved` where the table has such a column."""
    for name in reserved_by_iceberg(table):
        raise ReplicationError("target:column-reserved", table=table.id, column=name)


def names(params: LakehouseParams, table: TableId) -> tuple[str, str]:
    """The namespace and the name of a source table's target."""
    return params.namespace or table.schema, table.name


def progress_names(params: LakehouseParams) -> tuple[str, str]:
    """The namespace and the name of the table that tells readers of watermarks."""
    return params.namespace or "replicator", PROGRESS


def folder(name: str) -> str:
    """`name` as one safe folder name, another for each name: other characters as their code between
    two `~`, and never hidden. Of one that would be longer than storages take, a beginning, a
    digest, and the generation where it ends with one."""
    start, _, number = name.rpartition("__")
    if not (number.isascii() and number.isdecimal()):
        start, number = name, ""
    made = _folder(start)
    if len(made) <= LONGEST:
        return _folder(name)
    digest = hashlib.sha256(start.encode()).hexdigest()[:32]
    return f"{made[: LONGEST // 2]}~~{digest}" + (f"__{number}" if number else "")


def _folder(name: str) -> str:
    kept = [c if c in _PLAIN else f"~{ord(c):x}~" for c in name]
    if kept and kept[0] == "_":
        kept[0] = "~5f~"
    return "".join(kept)


def staging_names(names: tuple[str, str], replicator: str, generation: int) -> tuple[str, str]:
    """The name of a generation's staging table, in a namespace of its own: two replicators may copy
    under one name until the first of them publishes. The lengths tell where names end."""
    lengths = "_".join(str(len(n)) for n in names)
    return STAGING_NAMESPACE, f"{lengths}_{names[0]}__{names[1]}__{replicator}__{generation}"


def is_branch(name: str) -> bool:
    """Whether it is the name of some generation's staging branch."""
    return name.startswith("staging_") and name.removeprefix("staging_").isdecimal()


def branch(generation: int) -> str:
    """The name of a generation's staging branch."""
    return f"staging_{generation}"
