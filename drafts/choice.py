"""The chosen tables of a draft as data. Every function returns a new list. Uses no database and no
source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from replicators.connectors.model.schema import EXCLUDABLE

Key = tuple[str, str]
Tables = list[dict[str, Any]]


def key_of(table: Mapping[str, Any]) -> Key:
    """The key of a table: its schema and name."""
    return table["schema"], table["name"]


def by_key(tables: Iterable[Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """The full entries of the chosen tables, by key."""
    return {key_of(t): {**_new(key_of(t)), **t} for t in tables}


def _ordered(chosen: Mapping[Key, dict[str, Any]]) -> Tables:
    return [chosen[key] for key in sorted(chosen)]


def _new(key: Key) -> dict[str, Any]:
    return {
        "schema": key[0],
        "name": key[1],
        "columns": [],
        "excluded": [],
        "mode": "",
        "filter": "",
    }


def added(tables: Tables, keys: Iterable[Key]) -> Tables:
    """The choice with these tables added. Tables that are already chosen stay as they are."""
    chosen = by_key(tables)
    for key in keys:
        chosen.setdefault(key, _new(key))
    return _ordered(chosen)


def dropped(tables: Tables, keys: Collection[Key]) -> Tables:
    """The choice without these tables."""
    return _ordered({k: t for k, t in by_key(tables).items() if k not in keys})


def with_page(
    tables: Tables,
    shown: Iterable[Key],
    ticked: Collection[Key],
    applied: Mapping[str, Collection[Key]],
    kindless: Collection[Key] = (),
) -> Tables:
    """The choice after one page of the list was ticked. Tables that were not shown stay as they
    are. `applied` gives, for each kind of change, the shown tables that take it. Tables in
    `kindless` keep their kinds."""
    chosen = by_key(tables)
    for key in shown:
        if key not in ticked:
            chosen.pop(key, None)
            continue
        table = chosen.setdefault(key, _new(key))
        if key not in kindless:
            table["excluded"] = [kind for kind in EXCLUDABLE if key not in applied[kind]]
    return _ordered(chosen)


def with_kind(tables: Tables, keys: Collection[Key], kind: str, *, is_taken: bool) -> Tables:
    """The choice with or without a kind of change, for those of `keys` that are chosen."""
    chosen = by_key(tables)
    for key in chosen.keys() & set(keys):
        left = {*chosen[key]["excluded"]} - {kind} | (set() if is_taken else {kind})
        chosen[key]["excluded"] = [k for k in EXCLUDABLE if k in left]
    return _ordered(chosen)


def with_kinds(tables: Tables, key: Key, excluded: Sequence[str]) -> Tables:
    """The choice with these kinds of changes left out for a table. This also chooses the table."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["excluded"] = [kind for kind in EXCLUDABLE if kind in excluded]
    return _ordered(chosen)


def with_columns(tables: Tables, key: Key, columns: Sequence[str]) -> Tables:
    """The choice with these columns of a table (empty: all columns, also later ones). This also
    chooses the table."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["columns"] = list(columns)
    return _ordered(chosen)


def with_mode(tables: Tables, key: Key, mode: str) -> Tables:
    """The choice with a table's own mode (empty: the replicator's). This also chooses the table."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["mode"] = mode
    return _ordered(chosen)


def with_filter(tables: Tables, key: Key, text: str) -> Tables:
    """The choice with this row filter for a table (empty: all rows). This also chooses the
    table."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["filter"] = text
    return _ordered(chosen)


def without_columns(
    tables: Tables, key: Key, names: Collection[str], known: Sequence[str]
) -> Tables:
    """The choice without these columns of a table. `known` lists all its columns, since an empty
    choice stands for all of them."""
    table = by_key(tables).get(key)
    if table is None:
        return tables
    kept = [c for c in table.get("columns") or known if c not in names]
    return with_columns(tables, key, kept) if kept else tables


def with_column_again(
    tables: Tables, key: Key, name: str, known: Sequence[str], *, is_explicit: bool
) -> Tables:
    """The choice with a column that was left out before. If all of `known` are chosen again, this
    becomes a choice of all columns unless `is_explicit`."""
    table = by_key(tables).get(key)
    if table is None or not table.get("columns"):
        return tables
    kept = {*table["columns"], name}
    if not is_explicit and kept >= set(known):
        return with_columns(tables, key, ())
    return with_columns(tables, key, [c for c in known if c in kept])
