"""A table's name parts, and folder names that are safe in every storage."""

from __future__ import annotations

import hashlib

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import rules
from replicators.targets.lakehouse.params import LakehouseParams

STAGING_NAMESPACE = "replicator_staging"
PROGRESS = "replicator_progress"
LONGEST = 200
"""Longest folder name that we make. Staging folders add a suffix; file systems allow 255
characters."""
LONGEST_SPACE, LONGEST_NAME = 128, 255
"""Of a namespace and a table, in Glue and in Hive's metastore."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


ICEBERG_NAMES = frozenset(
    {
        "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id",
        "_last_updated_sequence_number",
    }
)  # fmt: skip
"""Names of Iceberg's metadata columns. MERGE fails on a table with such a column."""


def reserved_by_iceberg(table: TableSchema) -> list[str]:
    """The table's columns whose names Iceberg reserves."""
    return [c.name for c in table.supported if c.name.casefold() in ICEBERG_NAMES]


def refuse_reserved(table: TableSchema) -> None:
    """Raise `target:column-reserved` if the table has such a column."""
    for name in reserved_by_iceberg(table):
        raise ReplicationError("target:column-reserved", table=table.id, column=name)


def names(params: LakehouseParams, table: TableId) -> tuple[str, str]:
    """The target namespace and name of a source table, by the rules of the params."""
    space = rules.pairs(params.schema_namespaces).get(table.schema, table.schema)
    made = params.namespace.replace(rules.SCHEMA, space) or space
    name = params.table_prefix.replace(rules.SCHEMA, table.schema) + table.name
    cased = rules.CASES[params.name_case]
    return cased(made), cased(name)


def view(params: LakehouseParams, names: tuple[str, str]) -> tuple[str, str] | None:
    """The view of a table's living rows; None where there are none. Hive writes it in lower
    case."""
    if not (params.current_views and params.has_views):
        return None
    end = str.lower(params.view_suffix) if params.is_hive else params.view_suffix
    cased = rules.CASES[params.name_case]
    return names[0], cased(f"{names[1][: LONGEST_NAME - len(end)]}{end}")


def progress_names(params: LakehouseParams) -> tuple[str, str]:
    """The namespace and name of the progress table, which holds the watermarks."""
    fixed = "" if rules.SCHEMA in params.namespace else params.namespace
    return rules.CASES[params.name_case](fixed) or "replicator", PROGRESS


def folder(name: str) -> str:
    """`name` as a safe folder name that is never hidden. Different names give different results.
    Other characters become their code between two `~`. A name that is too long for storages becomes
    its beginning, a digest, and its generation if it ends with one."""
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


def fault_in_lower_case(space: str, name: str, staging: str) -> str:
    """Why a catalog that writes names in lower case can't list a table under its names, as a part
    of a sentence; empty where it can."""
    for one in (space, name):
        if one != one.lower():
            return f"`{one}` has upper case letters, which the catalog writes in lower case"
        if not one.isascii() or not one.replace("_", "a").isalnum():
            return f"`{one}` has other characters than a-z, 0-9 and _"
    if len(space) > LONGEST_SPACE or len(staging) > LONGEST_NAME:
        return "they are too long for the name of a table that is being copied"
    return ""


def staging_mark(params: LakehouseParams, replicator: str) -> str:
    """The replicator's id as a part of a staging table's name. Hive takes no hyphen there."""
    return replicator.replace("-", "_") if params.is_hive else replicator


def staging_names(names: tuple[str, str], replicator: str, generation: int) -> tuple[str, str]:
    """The name of a generation's staging table, in a namespace of its own. Two replicators may copy
    under one name until the first of them publishes. The lengths in the name mark where its parts
    end."""
    lengths = "_".join(str(len(n)) for n in names)
    return STAGING_NAMESPACE, f"{lengths}_{names[0]}__{names[1]}__{replicator}__{generation}"


def is_branch(name: str) -> bool:
    """Whether it is the name of a staging branch of any generation."""
    return name.startswith("staging_") and name.removeprefix("staging_").isdecimal()


def branch(generation: int) -> str:
    """The name of a generation's staging branch."""
    return f"staging_{generation}"
