"""Where a warehouse lies: one module for each kind of store. Text only; nothing is opened here.

A module has `FIELDS` (the form's), `SCHEMES` (what a person may write; the first one is what all
readers know), `faults` (what is wrong with the fields) and `of` (the store that the fields name).
"""

from __future__ import annotations

from typing import Any

from replicators.targets.lakehouse.stores import adls, gcs, hdfs, s3
from replicators.targets.lakehouse.stores.kind import Store

__all__ = ["Store", "faults", "one_name", "store_of"]

_KINDS: tuple[Any, ...] = (s3, gcs, adls, hdfs)


def one_name(url: str) -> str:
    """The URL with the scheme that all readers know."""
    scheme, mark, rest = url.partition("://")
    found = [kind.SCHEMES[0] for kind in _KINDS if scheme in kind.SCHEMES]
    return f"{found[0]}{mark}{rest}" if found and mark else url


def store_of(params: Any, url: str) -> Store:
    """How the warehouse is reached. A folder, and a store that no field is for, need nothing."""
    found = [kind for kind in _KINDS if _is_in(url, kind)]
    made: Store = found[0].of(params) if found else Store()
    return made


def faults(params: Any, url: str) -> dict[str, str]:
    """What is wrong with the fields of all kinds, by their names."""
    found: dict[str, str] = {}
    for kind in _KINDS:
        if _is_in(url, kind):
            found |= kind.faults(params)
        else:
            named = [n for n in kind.FIELDS if getattr(params, n)]
            found |= dict.fromkeys(named, f"is only for a warehouse in {kind.SCHEMES[0]}://")
    return found


def _is_in(url: str, kind: Any) -> bool:
    return url.partition("://")[0] in kind.SCHEMES and "://" in url
