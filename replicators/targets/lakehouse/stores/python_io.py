"""pyiceberg's files by the file system of a `Store`, for stores whose secrets pyiceberg has no
settings for. Its properties carry the store's fields."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

_KIND, _FIELDS = "replicator.store.kind", "replicator.store.fields"
_IO = "replicators.targets.lakehouse.stores.pyiceberg_io.StoreFileIO"


def properties(kind: str, fields: dict[str, Any]) -> dict[str, str]:
    """pyiceberg's properties for a store of the module `kind`."""
    return {"py-io-impl": _IO, _KIND: kind, _FIELDS: json.dumps(fields)}


def store_in(found: dict[str, str]) -> object:
    """The store that these properties carry."""
    return import_module(f"{__package__}.{found[_KIND]}").from_json(found[_FIELDS])
