"""Where a table lies: its name parts and a folder name that no storage misreads."""

from __future__ import annotations

from replicators.connectors.schema import TableId
from replicators.targets.lakehouse.params import LakehouseParams

STAGING_NAMESPACE = "replicator_staging"
PROGRESS = "replicator_progress"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def names(params: LakehouseParams, table: TableId) -> tuple[str, str]:
    """The namespace and the name of a source table's target."""
    return params.namespace or table.schema, table.name


def progress_names(params: LakehouseParams) -> tuple[str, str]:
    """The namespace and the name of the table that tells readers of watermarks."""
    return params.namespace or "replicator", PROGRESS


def folder(name: str) -> str:
    """`name` as one safe folder name, another for each name: other characters as their code between two `~`, and never hidden."""
    kept = [c if c in _PLAIN else f"~{ord(c):x}~" for c in name]
    if kept and kept[0] == "_":
        kept[0] = "~5f~"
    return "".join(kept)


def staging_names(names: tuple[str, str], generation: int) -> tuple[str, str]:
    """The name of a generation's staging table, in a namespace of its own. The length tells where the first name ends."""
    return STAGING_NAMESPACE, f"{len(names[0])}_{names[0]}__{names[1]}__{generation}"


def branch(generation: int) -> str:
    """The name of a generation's staging branch."""
    return f"staging_{generation}"
