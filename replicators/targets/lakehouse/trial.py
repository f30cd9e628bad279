"""Tries in a REST catalog, in Glue or in a Hive metastore what a run does there, and says what it
refuses. It leaves nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from replicators.connectors.problems.errors import driver_of
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.storage import Storage, tried
from replicators.targets.lakehouse import catalog, hive, naming
from replicators.targets.lakehouse.errors import code_of
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.stores import Store

_NO_VIEWS = "target:catalog-views"
_COLUMNS = "target:catalog-columns"


class _Failed(Exception):
    """`problem`: what it is, where the catalog has no part in it."""

    def __init__(self, act: str, code: str, problem: Problem | None = None) -> None:
        super().__init__(act)
        self.act = act
        self.code = code
        self.problem = problem


def of_server(err: Exception, act: str, params: LakehouseParams) -> Problem:
    """The problem of a catalog that could not be opened or asked."""
    if isinstance(err, ImportError):
        return Problem.of("target:driver-missing", driver=driver_of(err))
    code = _faults(params).fault_of_opening(err) or "target:catalog-unreachable"
    return Problem.of(code, act=act) if code == "target:catalog-rights" else Problem.of(code)


def _faults(params: LakehouseParams) -> Any:
    """The module that knows what the catalog's client raises."""
    if params.is_glue:
        from replicators.targets.lakehouse import aws

        return aws
    if params.is_hive:
        from replicators.targets.lakehouse import metastore

        return metastore
    from replicators.targets.lakehouse import remote

    return remote


def failed(params: LakehouseParams, namespaces: Iterable[str]) -> Problem | None:
    """What the catalog refuses of what a run needs: to make those of the namespaces that are not
    there, and to make, change, rename and drop a table. Changed columns that a metastore refuses
    are a warning, and the trial goes on."""
    try:
        opened = catalog.open_catalog(params, is_look=True)
    except Exception as err:  # noqa: BLE001 - whatever a driver raises becomes a problem the user sees
        return of_server(err, "open the warehouse", params)
    try:
        takes_columns = _try(opened, params, sorted(namespaces))
    except _Failed as err:
        if err.problem is not None:
            return err.problem
        cause = err.__cause__
        code = (_faults(params).fault(cause) if cause else "") or err.code
        if code == "target:catalog-unreachable" and _is_answer(cause):
            code = err.code
        return Problem.of(code, act=err.act)
    finally:
        opened.close()
    return None if takes_columns else Problem.of(_COLUMNS, severity=Severity.WARNING)


def _is_answer(err: BaseException | None) -> bool:
    """Whether the server said that it failed, in place of nothing."""
    from pyiceberg.exceptions import ServerError

    return isinstance(err, ServerError)


def _try(opened: Any, params: LakehouseParams, namespaces: list[str]) -> bool:
    """Whether the catalog takes changed columns. It does all else, or `_Failed`."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    mark = f"{naming.STAGING_NAMESPACE}_{uuid.uuid4().hex}"
    with _doing("look for a namespace"):
        is_new = any(not opened.namespace_exists(name) for name in namespaces)
    home = mark if is_new else naming.STAGING_NAMESPACE
    first, second = (home, f"{mark}_1"), (home, f"{mark}_2")
    place = f"{params.warehouse_url}/{naming.folder(mark)}"
    takes_columns, files = True, None if params.is_lent else params.store
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    try:
        if is_new:
            with _doing("create a namespace"):
                own = {"location": hive.folder(params.warehouse_url, mark)}
                opened.create_namespace((mark,), own if params.is_hive else {})
        with _doing("create a table"):
            made = opened.create_table(first, schema, location=place)
        if params.is_lent:
            files = _borrowed(params, first)
            if found := tried(files, f"{place}/data"):
                raise _Failed("use the lent keys", "", found)
        if not params.is_hive:  # pyiceberg asks for another lock than Spark's Iceberg does
            with _doing("change a table"):
                change = made.transaction().set_properties({naming.STAGING_NAMESPACE: "1"})
                change.commit_transaction()
        else:
            with _doing("change a table"):
                takes_columns = _takes_columns(opened, first)
        with _doing("rename a table"):
            opened.rename_table(first, second)
        with _doing("drop a table"):
            opened.drop_table(second)
        if params.is_rest and params.current_views:
            _try_a_view(opened, (home, f"{mark}_3"), schema, f"{place}/view")
        if is_new:
            with _doing("drop a namespace"):
                opened.drop_namespace((mark,))
    except _Failed:
        _clear(opened, (first, second), mark if is_new else "", purges=params.is_lent)
        raise
    finally:
        for one in (place, hive.folder(params.warehouse_url, mark)):
            with suppress(OSError):
                if files is not None:
                    Storage(files).remove_folder(one)
    return takes_columns


def _borrowed(params: LakehouseParams, names: tuple[str, str]) -> Store:
    """The keys that the catalog lends for a table. They hold also when the table is dropped."""
    act = "lend the keys of a table"
    try:
        with _doing(act, "target:keys-not-lent"):
            return params.store.of_table(names).taken()
    except _Failed as err:
        if isinstance(err.__cause__, OSError):
            raise _Failed(act, "", Problem.of("target:keys-not-lent")) from err
        raise


def _takes_columns(opened: Any, names: tuple[str, str]) -> bool:
    """Give the place of the table's column another type, as a column does that comes before it. A
    metastore may compare places, and refuse it."""
    from hive_metastore.ttypes import FieldSchema

    with opened._client as client:
        found = client.get_table(dbname=names[0], tbl_name=names[1])
        found.sd.cols = [FieldSchema(name="first", type="boolean")]
        try:
            client.alter_table(dbname=names[0], tbl_name=names[1], new_tbl=found)
        except Exception as err:
            if code_of(err) != _COLUMNS:
                raise
            return False
    return True


def _try_a_view(opened: Any, names: tuple[str, str], schema: Any, place: str) -> None:
    from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

    query = SQLViewRepresentation(type="sql", sql="SELECT CAST(1 AS BIGINT) AS id", dialect="spark")
    version = ViewVersion.model_validate(
        {
            "schema-id": 0,
            "representations": [ViewRepresentation(query)],
            "default-namespace": names[:1],
        }
    )
    with _doing("create a view", _NO_VIEWS):
        opened.create_view(names, schema, version, location=place)
    try:
        with _doing("read a view", _NO_VIEWS):
            opened.load_view(names)
    finally:
        with _doing("drop a view", _NO_VIEWS):
            opened.drop_view(names)


def _clear(
    opened: Any, tables: tuple[tuple[str, str], ...], namespace: str, *, purges: bool
) -> None:
    """Drop what a trial left that failed in its midst. `purges`: the server is asked to remove the
    files too, for which this program has no keys."""
    for table in tables:
        with suppress(Exception):
            if purges:
                opened.purge_table(table)
        with suppress(Exception):
            opened.drop_table(table)
    if namespace:
        with suppress(Exception):
            opened.drop_namespace((namespace,))


@contextmanager
def _doing(act: str, code: str = "target:catalog-trial") -> Iterator[None]:
    try:
        yield
    except Exception as err:
        raise _Failed(act, code) from err
