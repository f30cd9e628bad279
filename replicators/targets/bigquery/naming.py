"""Names that BigQuery takes. Different names may become one: the checks tell it beforehand. Uses no
driver."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.targets.bigquery.params import BigQueryParams

LONGEST_COLUMN = 300
LONGEST_TABLE_BYTES = 1024
LONGEST_DATASET = 1024
RESERVED = (
    "_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER",
    "_CHANGE_SEQUENCE_NUMBER", "_CHANGE_TYPE", "_CHANGE_TIMESTAMP",
)  # fmt: skip
"""Prefixes that BigQuery keeps for itself, in any case."""
STAGING = "_staging_"
OWN_TABLES = ("_replicator_", STAGING)
"""Prefixes of the tables that a replicator makes beside the copies."""
SEQUENCE = "_sequence_num"
_KEPT_IN_TABLES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No",
                             "Pc", "Pd", "Zs"})  # fmt: skip


def _is_plain(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


def column(name: str) -> str:
    """A column's name. Letters of other languages and signs become underscores."""
    made = "".join(c if _is_plain(c) else "_" for c in name) or "_"
    if made[0].isdigit() or made.upper().startswith(RESERVED):
        made = f"c{made}" if made[0] == "_" else f"_{made}"
    return made[:LONGEST_COLUMN]


def table(name: str) -> str:
    """A table's name. It may have letters and digits of any language, marks, underscores, dashes
    and blanks."""
    made = "".join(c if unicodedata.category(c) in _KEPT_IN_TABLES else "_" for c in name)
    made = made.strip() or "_"
    if made.upper().startswith(RESERVED) or made.lower().startswith(OWN_TABLES):
        made = f"t{made}"
    while len(made.encode()) > LONGEST_TABLE_BYTES:
        made = made[:-1]
    return made


def dataset(name: str) -> str:
    """A dataset's name: letters, digits and underscores."""
    return ("".join(c if _is_plain(c) else "_" for c in name) or "_")[:LONGEST_DATASET]


def names(params: BigQueryParams, table_id: TableId) -> tuple[str, str, str]:
    """Project, dataset and table of a source table."""
    return params.project, params.dataset or dataset(table_id.schema), table(table_id.name)


def view(params: BigQueryParams, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The view of a target table's living rows; None where there are none."""
    if not params.current_views:
        return None
    made = names[-1]
    while len(made.encode()) + len(params.view_suffix) > LONGEST_TABLE_BYTES:
        made = made[:-1]
    return (*names[:-1], f"{made}{params.view_suffix}")


def renamed(schema: TableSchema) -> TableSchema:
    """The schema with BigQuery's column names."""
    changed = {c.name: column(c.name) for c in schema.columns}
    if all(old == new for old, new in changed.items()):
        return schema
    return replace(
        schema,
        columns=tuple(replace(c, name=changed[c.name]) for c in schema.columns),
        key=_all(schema.key, changed),
        primary_key=_all(schema.primary_key, changed),
    )


def _all(wanted: Iterable[str], changed: dict[str, str]) -> tuple[str, ...]:
    return tuple(changed.get(n, n) for n in wanted)


def numbered(schema: TableSchema) -> TableSchema:
    """The schema with the column that says with which batch a row came."""
    return replace(schema, columns=(*schema.columns, Column(SEQUENCE, Int(64), "")))


def staging_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The table that keeps a table's last batch."""
    return (*names[:-1], f"{STAGING}{names[-1]}")


def shown(params: BigQueryParams, schema: TableSchema) -> TableSchema:
    """The schema as the table has it, without the mode's columns."""
    made = renamed(schema)
    return numbered(made) if params.sequence_column else made


def shared(params: BigQueryParams, schema: TableSchema) -> list[tuple[str, str]]:
    """Pairs of columns that would share a name in BigQuery, where case does not count."""
    seen: dict[str, str] = {SEQUENCE: SEQUENCE} if params.sequence_column else {}
    found = []
    for one in schema.supported:
        place = column(one.name).casefold()
        if place in seen:
            found.append((one.name, seen[place]))
        seen.setdefault(place, one.name)
    return found
