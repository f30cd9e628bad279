"""pyiceberg's client of a Hive metastore, with limits of time, and its faults as error codes."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog.hive import HiveCatalog, _HiveClient
from thrift.Thrift import TApplicationException
from thrift.transport import TSocket, TTransport
from thrift.transport.TTransport import TTransportException

from replicators.connectors import limits
from replicators.targets.lakehouse.servers import ANSWER_SECONDS

_RIGHTS = re.compile(r"AccessControlException|Permission denied|not authorized", re.IGNORECASE)
_AWAY = frozenset({TTransportException.NOT_OPEN, TTransportException.TIMED_OUT})


class _Client(_HiveClient):
    """Ends a request that is not answered in time."""

    def _init_thrift_transport(self) -> Any:
        place = urlsplit(self._uri)
        socket = TSocket.TSocket(place.hostname, place.port)
        socket.setTimeout(1000 * limits.left(ANSWER_SECONDS))
        return TTransport.TBufferedTransport(socket)


class _Catalog(HiveCatalog):
    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _Client(properties["uri"])


def open_metastore(
    name: str, uri: str, warehouse: str, properties: dict[str, str], *, is_look: bool = False
) -> Any:
    """The catalog. A look asks the metastore for its namespaces."""
    made = _Catalog(name, uri=uri, warehouse=warehouse, **properties)
    if is_look:
        made.list_namespaces()
    return made


def fault(err: BaseException | None) -> str:
    """The code of what an exception says about the metastore; empty where it says nothing."""
    if isinstance(err, TTransportException):
        return "target:catalog-unreachable"
    return "target:catalog-rights" if err is not None and _RIGHTS.search(str(err)) else ""


def fault_of_opening(err: BaseException) -> str:
    """As `fault`, for a catalog that is opened: its first answer must be that of a metastore."""
    if isinstance(err, TTransportException) and err.type not in _AWAY:
        return "target:catalog-unknown"
    return fault(err) or (
        "target:catalog-unknown" if isinstance(err, TApplicationException) else ""
    )
