"""The changes that make a lakehouse table fit a source table, as Spark SQL. `connectors.sql.evolve`
plans them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.sql import evolve
from replicators.connectors.sql.evolve import KEPT as KEPT
from replicators.connectors.sql.evolve import MOVING as MOVING
from replicators.connectors.sql.evolve import Add, Alteration, Drop, Note, Rename, Types, Widen
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.types import fit

ORDINALS = "replicator.columns"
_WIDER = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: its SQL statement and a sentence that describes it."""

    statement: str
    text: str


def ordinals(schema: TableSchema) -> str:
    """The source's column numbers, as a table property stores them. A column that was dropped and
    made again under its old name has another number."""
    return _recorded({c.name: c.ordinal for c in schema.supported})


def _recorded(numbers: Mapping[str, int]) -> str:
    return json.dumps(numbers, sort_keys=True)


def _is_wider(old: str, new: str) -> bool:
    if (old, new) in _WIDER:
        return True
    if not (old.startswith("decimal(") and new.startswith("decimal(")):
        return False
    (p, s), (q, t) = (tuple(map(int, x[8:-1].split(","))) for x in (old, new))
    return s == t and q >= p


_WIDENING = Types(lambda c: fit(c.type).native, _is_wider)
_FIXED = Types(_WIDENING.native)


def _statement(target: str, alteration: Alteration) -> str:
    match alteration:
        case Drop(name=name):
            return dialect.drop_column(target, name)
        case Add(column=column):
            return dialect.add_column(target, column)
        case Rename(name=name, new=new):
            return dialect.rename_column(target, name, new)
        case Widen(column=column):
            return dialect.widen_column(target, column)
        case Note(numbers=numbers):
            return dialect.set_properties(target, {ORDINALS: _recorded(numbers)})


def plan(
    target: str,
    live: Mapping[str, str],
    recorded: Mapping[str, int],
    new: TableSchema,
    *,
    drops: frozenset[str],
    is_start: bool = False,
    widens: bool = True,
) -> list[Change]:
    """The changes from the live columns (name to Spark type) to `new`: see `evolve.plan`. `widens`:
    whether the table's format can widen columns."""
    types = _WIDENING if widens else _FIXED
    planned = evolve.plan(live, recorded, new, drops=drops, types=types, is_start=is_start)
    return [Change(_statement(target, c.alteration), c.text) for c in planned]
