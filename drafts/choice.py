"""The chosen tables of a draft, as data: every function gives a new list. Knows no database and no
source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from replicators.connectors.model.schema import EXCLUDABLE

Key = tuple[str, str]
Tables = list[dict[str, Any]]


def key_of(table: Mapping[str, Any]) -> Key:
    """What names a table."""
    return table["schema"], table["name"]


def by_key(tables: Iterable[Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """The chosen tables by name, whole."""
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
    """With these tables too; those chosen already stay as they are."""
    chosen = by_key(tables)
    for key in keys:
        chosen.setdefault(key, _new(key))
    return _ordered(chosen)


def dropped(tables: Tables, keys: Collection[Key]) -> Tables:
    """Without these tables."""
    return _ordered({k: t for k, t in by_key(tables).items() if k not in keys})


def with_page(
    tables: Tables,
    shown: Iterable[Key],
    ticked: Collection[Key],
    applied: Mapping[str, Collection[Key]],
    kindless: Collection[Key] = (),
) -> Tables:
    """After one page of the list was ticked: tables that were not shown stay as they are. `applied`
    says for each kind of change which of the shown tables take it; those in `kindless` keep what
    they have of that."""
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
    """With or without a kind of change for those of these tables that are chosen."""
    chosen = by_key(tables)
    for key in chosen.keys() & set(keys):
        left = {*chosen[key]["excluded"]} - {kind} | (set() if is_taken else {kind})
        chosen[key]["excluded"] = [k for k in EXCLUDABLE if k in left]
    return _ordered(chosen)


def with_kinds(tables: Tables, key: Key, excluded: Sequence[str]) -> Tables:
    """With these kinds of changes of a table left out; the table is chosen thereby."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["excluded"] = [kind for kind in EXCLUDABLE if kind in excluded]
    return _ordered(chosen)


def with_columns(tables: Tables, key: Key, columns: Sequence[str]) -> Tables:
    """With these columns of a table (none: all, also later ones); the table is chosen thereby."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["columns"] = list(columns)
    return _ordered(chosen)


def with_mode(tables: Tables, key: Key, mode: str) -> Tables:
    """With a mode of its own for a table (empty: the replicator's); the table is chosen thereby."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["mode"] = mode
    return _ordered(chosen)


def with_filter(tables: Tables, key: Key, text: str) -> Tables:
    """With this row filter of a table, empty for all rows; the table is chosen thereby."""
    chosen = by_key(added(tables, [key]))
    chosen[key]["filter"] = text
    return _ordered(chosen)


def without_columns(
    tables: Tables, key: Key, names: Collection[str], known: Sequence[str]
) -> Tables:
    """Without these columns; `known` are all columns of the table, which a choice of all of them
    stands for."""
    table = by_key(tables).get(key)
    if table is None:
        return tables
    kept = [c for c in table.get("columns") or known if c not in names]
    return with_columns(tables, key, kept) if kept else tables


def with_column_again(
    tables: Tables, key: Key, name: str, known: Sequence[str], *, is_explicit: bool
) -> Tables:
    """With a column that was left out; all of `known` is again a choice of everything unless
    `is_explicit`."""
    table = by_key(tables).get(key)
    if table is None or not table.get("columns"):
        return tables
    kept = {*table["columns"], name}
    if not is_explicit and kept >= set(known):
        return with_columns(tables, key, ())
    return with_columns(tables, key, [c for c in known if c in kept])
