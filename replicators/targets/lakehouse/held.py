"""What a catalog holds under a name, asked without Spark: pyiceberg knows views in a REST catalog
only. A database's rows and a metastore's entries say where a view's metadata file is."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from replicators.targets.lakehouse import catalog
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import OWNER

VIEW = "replicator.view"
"""A table's property: the name of its view."""
OF = "replicator.view-of"
"""A view's property: the name of its table."""
_PLACE = "metadata_location"


@contextmanager
def opened(params: LakehouseParams, reader: Any, *, is_look: bool = False) -> Iterator[Any]:
    """The reader, or a catalog for this context alone. None where there is no catalog yet."""
    if reader is not None or not catalog.is_there(params):
        yield reader
        return
    made = catalog.open_catalog(params, is_look=is_look)
    try:
        yield made
    finally:
        made.close()


def view(reader: Any, params: LakehouseParams, names: tuple[str, ...]) -> Mapping[str, str] | None:
    """The properties of the view with these names; empty if it is a table or anything else. None if
    nothing has the names."""
    if params.is_rest:
        return _served(reader, names)
    if params.is_hive:
        return _in_metastore(reader, names)
    entry = _in_database(reader, names)
    if entry is None:
        return None
    is_view = str(entry.get("iceberg_type") or "") == "VIEW"
    return _read(reader, entry[_PLACE]) if is_view else {}


def _served(reader: Any, names: tuple[str, ...]) -> Mapping[str, str] | None:
    from pyiceberg.exceptions import NoSuchViewError

    try:
        found: Mapping[str, str] = reader.load_view(names).metadata.properties
    except NoSuchViewError:
        return {} if reader.table_exists(names) else None
    return found


def _in_database(reader: Any, names: tuple[str, ...]) -> Mapping[str, Any] | None:
    from sqlalchemy import text

    query = text(
        "SELECT * FROM iceberg_tables WHERE catalog_name = :catalog"
        " AND table_namespace = :space AND table_name = :name"
    )
    values = {"catalog": reader.name, "space": ".".join(names[:-1]), "name": names[-1]}
    with reader.engine.connect() as connection:
        return connection.execute(query, values).mappings().first()  # type: ignore[no-any-return]


def _in_metastore(reader: Any, names: tuple[str, ...]) -> Mapping[str, str] | None:
    """Iceberg's views have a metadata file; Spark's own have their properties in the metastore."""
    found = entry(reader, names)
    if found is None:
        return None
    if found.tableType != "VIRTUAL_VIEW":
        return {}
    place = found.parameters.get(_PLACE)
    return _read(reader, place) if place else dict(found.parameters)


def entry(reader: Any, names: tuple[str, ...]) -> Any:
    """What a Hive metastore has under a name; None where it has nothing."""
    from hive_metastore.ttypes import NoSuchObjectException

    with reader._client as client:
        try:
            return client.get_table(dbname=names[0], tbl_name=names[1])
        except NoSuchObjectException:
            return None


def _read(reader: Any, place: str) -> Mapping[str, str]:
    """The properties in a view's metadata file."""
    with reader._load_file_io(location=place).new_input(place).open() as file:
        raw = file.read()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    found: Mapping[str, str] = json.loads(text).get("properties", {})
    return found


def is_taken(
    reader: Any,
    params: LakehouseParams,
    names: tuple[str, str],
    place: tuple[str, str],
    replicator: str,
) -> bool:
    """Whether something that is not the replicator's view of this table lies at a place."""
    there = view(reader, params, place)
    return there is not None and (
        not replicator or (there.get(OWNER), there.get(OF)) != (replicator, names[-1])
    )
