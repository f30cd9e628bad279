"""What Spark and this program need for a warehouse in HDFS. Spark speaks to the cluster itself, and
this program by WebHDFS: it has no Java and none of Hadoop's libraries. Nobody signs in: the user is
a name. Opens nothing until it is asked."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import urlsplit

from replicators.connectors.params import param
from replicators.connectors.stores import Codes, code_of, endpoint_fault
from replicators.targets.lakehouse.stores import python_io
from replicators.targets.lakehouse.stores.kind import Store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("hdfs",)
FIELDS = ("hdfs_web", "hdfs_user")
_CODES: Codes = (
    (r"AccessControlException|SecurityException", "target:hdfs-rights"),
    (r"\[HTTP\] status=401|AuthenticationException", "target:hdfs-login"),
    (r"no HDFS user", "target:hdfs-user"),
    (r"\[HTTP\] status=4|no WebHDFS", "target:hdfs-unknown"),
)  # fmt: skip
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")


class HasCluster(Protocol):
    """Params with the fields of a cluster."""

    @property
    def warehouse(self) -> str: ...
    @property
    def hdfs_web(self) -> str: ...
    @property
    def hdfs_user(self) -> str: ...


def web(group: str) -> Any:
    """The field of the service's address."""
    return param(
        "WebHDFS address",
        group=group,
        help="The namenode's HTTP address, or that of an HttpFS gateway: http://namenode:9870",
        default="",
        note="for a warehouse in HDFS",
        addresses=True,
        is_movable=True,
        secrets_go="HDFS is asked without a password",
        check=endpoint_fault,
    )


def user(group: str) -> Any:
    """The field of the user's name."""
    return param(
        "HDFS user",
        group=group,
        help="Who owns the files. Empty: HADOOP_USER_NAME of web and workers, or the user that "
        "runs them",
        default="",
        note="for a warehouse in HDFS",
        addresses=True,
        is_movable=True,
    )


def faults(params: HasCluster) -> dict[str, str]:
    """What is wrong with the fields together. Without an address, a warehouse is left to pyarrow's
    own client, which needs Hadoop's libraries."""
    if not params.hdfs_web:
        return {"hdfs_user": "needs a WebHDFS address"} if params.hdfs_user else {}
    found = {}
    if not urlsplit(params.warehouse).hostname:
        found["warehouse"] = "must name the cluster: hdfs://namenode:8020/warehouse"
    if params.hdfs_user and not _USER.fullmatch(params.hdfs_user):
        found["hdfs_user"] = "must be a user's name"
    return found


def of(params: HasCluster) -> Store:
    """The cluster that the warehouse and the fields name."""
    if not params.hdfs_web:
        return Store()
    return Hdfs(params.hdfs_web.rstrip("/"), params.hdfs_user)


@dataclass(frozen=True, slots=True)
class Hdfs(Store):
    """A cluster, and what each reader is told of it. Spark brings the file system."""

    is_tried: ClassVar[bool] = True

    where: str = ""
    user: str = ""

    def system(self, url: str) -> FileSystem:
        """See `Store`."""
        from pyarrow.fs import PyFileSystem

        from replicators.targets.lakehouse.stores.hdfs_files import HdfsFiles, connect

        cluster = urlsplit(url).netloc
        return PyFileSystem(HdfsFiles(partial(connect, self.where, self.user, cluster)))

    def driver_environment(self) -> dict[str, str]:
        """The user, whom Hadoop's client reads from here."""
        return {"HADOOP_USER_NAME": self.user} if self.user else {}

    def iceberg_properties(self) -> dict[str, str]:
        """pyiceberg asks this store for the file system."""
        return python_io.properties("hdfs", asdict(self))

    def code(self, text: str) -> str:
        """See `Store`."""
        return code_of(text, _CODES)


def from_json(text: str) -> Hdfs:
    """The store that `iceberg_properties` wrote."""
    return Hdfs(**json.loads(text))
