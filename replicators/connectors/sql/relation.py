"""The columns of the staged relation: a folded batch as a SQL target's statements read it.
Importing this loads no sqlglot.

For every dialect it has, in this order:
- the table's own columns, in the target's types (not where each row is a message);
- `_delete`, where the batch's mode marks deleted rows;
- one boolean column per unsent column: true where the row lacks the value, never NULL;
- where rows may come from another row, a boolean `_is_moved` (never NULL) and the key of that other
  row, one column per key column. They are NULL where `_is_moved` is false;
- `_committed_at`, where the batch is timed (`FoldedBatch.timed`);
- the columns that only the mode's fold writes, such as `_deleted_at`, `_valid_from` or
  `_occurrence`.

A name that the table has too gets underscores at its end, until no column has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicators.connectors.model.modes import MESSAGE_COLUMNS, Mode, extra_columns
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Boolean, Int, Timestamp
from replicators.connectors.target import FoldedBatch

_MOMENT = Timestamp(6, zone=True)


@dataclass(frozen=True, slots=True)
class Relation:
    """The staged relation's columns beside the table's own.

    `delete` and `moved` are empty where there is no such column. `unsent` holds pairs of a table's
    column and its flag, `origins` pairs of a key column and the column with its earlier value.
    `more` are the mode's columns; `rank` is the name of the one that orders a key's rows, or empty.
    `committed` is the name of the one with the time of a key's last change, or empty.
    """

    own: tuple[Column, ...]
    delete: str = ""
    unsent: tuple[tuple[str, str], ...] = ()
    moved: str = ""
    origins: tuple[tuple[str, str], ...] = ()
    more: tuple[Column, ...] = ()
    rank: str = ""
    committed: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column, in order. A column for an earlier key has the key column's type."""
        by_name = {c.name: c for c in self.own}
        flags = [self.delete, *(flag for _, flag in self.unsent), self.moved]
        origins = [replace(by_name[k], name=n, nullable=True) for k, n in self.origins]
        made = [Column(name, Boolean(), "", nullable=False) for name in flags if name]
        return (*self.own, *made, *origins, *self.more)

    def flag(self, column: str) -> str:
        """The flag of an unsent column; empty where the batch has all of its values."""
        return dict(self.unsent).get(column, "")

    def origin(self, column: str) -> str:
        """The column with a key column's earlier value."""
        return dict(self.origins)[column]


def relation(batch: FoldedBatch) -> Relation:
    """The staged relation of a batch."""
    schema = batch.schema
    added = extra_columns(batch.mode)
    taken = {c.name.casefold() for c in (*schema.columns, *added)}

    def free(name: str) -> str:
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        return name

    if batch.mode is Mode.MESSAGES:
        return Relation((), more=MESSAGE_COLUMNS)
    if batch.mode in (Mode.APPEND, Mode.MULTISET):
        return Relation(schema.supported, more=added)
    if batch.append_only or not schema.key:
        return Relation(schema.supported)
    delete = free("_delete")
    places = {c.name: at for at, c in enumerate(schema.columns)}
    unsent = tuple((n, free(f"_unsent_{places[n]}")) for n in batch.unsent)
    has_origins = batch.has_origins and bool(batch.unsent or batch.no_inserts)
    moved = free("_is_moved") if has_origins else ""
    origins = (
        tuple((n, free(f"_origin_{at}")) for at, n in enumerate(schema.key)) if has_origins else ()
    )
    more: tuple[Column, ...] = ()
    rank = ""
    committed = free("_committed_at") if batch.timed else ""
    if committed:
        more = (Column(committed, _MOMENT, ""),)
    if batch.mode is Mode.SOFT_DELETE:
        more = (Column("_deleted_at", _MOMENT, ""),)
        if batch.no_inserts:
            rank = free("_sequence")
            more += (Column(rank, Int(64), ""),)
    if batch.mode is Mode.HISTORY:
        more = (Column("_valid_from", _MOMENT, ""), Column("_valid_to", _MOMENT, ""))
    return Relation(schema.supported, delete, unsent, moved, origins, more, rank, committed)
