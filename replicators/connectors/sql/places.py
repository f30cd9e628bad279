"""Where a SQL target keeps things: the names of its tables and views, and a snapshot's files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from replicators.connectors.model.modes import stored
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.state import PROGRESS
from replicators.connectors.target import SnapshotPlace, TargetTable

OPTIONS = {"compression": "zstd", "compression_level": 1, "use_dictionary": False}
"""How tasks write a snapshot's files: they are read once and removed."""


def one_per_namespace(names: Names) -> Names:
    """The progress table of a target table: one for all tables of a namespace."""
    return (*names[:-1], PROGRESS)


def one_per_table(names: Names) -> Names:
    """The progress table of a target table: each has its own. For databases in which transactions
    that change one table at the same time end each other, or wait for each other."""
    digest = hashlib.sha256(names[-1].encode()).hexdigest()[:16]
    return (*names[:-1], f"{PROGRESS}_{digest}")


def no_view(_: Names) -> None:
    """No table has a view."""


@dataclass(frozen=True, slots=True)
class SqlPlaces:
    """Where a SQL target keeps things.

    `names`: the target table of a source table. `folder`: a folder or URL that the run's tasks can
    write to; a snapshot's files wait there until they are loaded. `progress`: the progress table of
    a target table, `one_per_namespace` or `one_per_table`. `view`: the view of the living
    rows of a target table; None: it gets none. `hidden`: columns that a view leaves out beside the
    mode's.
    """

    names: Callable[[TableId], Names]
    folder: str
    progress: Callable[[Names], Names] = one_per_namespace
    view: Callable[[Names], Names | None] = no_view
    hidden: frozenset[str] = frozenset()


def snapshot_place(table: TargetTable, schema: TableSchema, folder: str) -> SnapshotPlace:
    """Where tasks write a snapshot's files."""
    shown = stored(schema, table.mode)
    arrow = shown.arrow_schema()
    fields = [arrow.field(c.name) for c in shown.supported]
    return SnapshotPlace(folder, pa.schema(fields), dict(OPTIONS))


def are_portions(paths: Sequence[str]) -> bool:
    """Whether the paths name portions that tasks wrote into the table (`portion_path`)."""
    return all(path.rsplit("/", 1)[-1].isdigit() for path in paths)
