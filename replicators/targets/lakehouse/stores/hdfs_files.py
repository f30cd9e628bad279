"""pyarrow's files in HDFS, by WebHDFS: the protocol that a namenode, its datanodes and an HttpFS
gateway speak. A path begins with the cluster's name, which the protocol does not have."""

from __future__ import annotations

import os
import pwd
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from pyarrow import PythonFile
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from replicators.connectors import limits
from replicators.targets.lakehouse.stores import blocks

_SECONDS = 60.0
_KINDS = {"DIRECTORY": FileType.Directory, "FILE": FileType.File}
_ERRORS: dict[str, type[OSError]] = {
    "FileNotFoundException": FileNotFoundError,
    "AccessControlException": PermissionError,
    "SecurityException": PermissionError,
    "FileAlreadyExistsException": FileExistsError,
    "ParentNotDirectoryException": NotADirectoryError,
}


class WebHdfs:
    """The service at an address. Errors are OSErrors. Their text has the name that Hadoop or
    `requests` has for them, and no path."""

    def __init__(self, where: str, user: str) -> None:
        self._root = f"{where}/webhdfs/v1"
        self._user = {"user.name": user or _own_user()}
        self._seconds = limits.left(_SECONDS)
        self._session = requests.Session()
        again = Retry(total=None, connect=2, read=0, status=0, redirect=0, backoff_factor=0.5)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=again))

    def ask(self, method: str, op: str, path: str, **values: Any) -> Any:
        """The answer's JSON."""
        answer = self._send(method, op, path, values)
        try:
            return answer.json()
        except ValueError as err:
            raise OSError("no WebHDFS answers") from err

    def read(self, path: str, start: int, length: int) -> bytes:
        """A range of a file."""
        return self._send("GET", "OPEN", path, {"offset": start, "length": length}).content

    def write(self, method: str, op: str, path: str, data: bytes, **values: Any) -> None:
        """Bytes, which go where the first answer says."""
        first = self._send(method, op, path, values, follows=False)
        where = first.headers.get("Location")
        if not where:
            raise OSError("no WebHDFS answers")
        kind = {"Content-Type": "application/octet-stream"}
        self._done(method, where, data=data, headers=kind)

    def _send(
        self, method: str, op: str, path: str, values: Any, *, follows: bool = True
    ) -> requests.Response:
        asked = {"op": op, **self._user, **values}
        url = self._root + quote(path, safe="/")
        return self._done(method, url, params=asked, allow_redirects=follows)

    def _done(self, method: str, url: str, **how: Any) -> requests.Response:
        try:
            answer = self._session.request(method, url, timeout=self._seconds, **how)
        except requests.RequestException as err:  # its text has the path and the user
            raise OSError(f"{type(err).__name__} of the WebHDFS address") from None
        if answer.status_code < 400:
            return answer
        try:
            said = answer.json()["RemoteException"]["exception"]
        except (ValueError, KeyError, TypeError):
            said = "HTTP"
        raise _ERRORS.get(said, OSError)(f"[{said}] status={answer.status_code}")


def _own_user() -> str:
    """The user that Spark's client of Hadoop takes where none is entered."""
    named = os.environ.get("HADOOP_USER_NAME")
    if named:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise OSError("no HDFS user is entered, and this process's has no name") from None


def connect(where: str, user: str, cluster: str) -> WebHdfs:
    """The service. Spark asks the cluster itself, so its server has to answer too."""
    named = urlsplit(f"hdfs://{cluster}")
    if named.hostname and named.port:
        seconds = limits.left(_SECONDS)
        socket.create_connection((named.hostname, named.port), timeout=seconds).close()
    return WebHdfs(where, user)


class HdfsFiles(FileSystemHandler):
    """`open_service` is called once in each process. Tasks take it along."""

    def __init__(self, open_service: Callable[[], WebHdfs]) -> None:
        self._open = open_service
        self._service: WebHdfs | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return HdfsFiles, (self._open,)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def _web(self) -> WebHdfs:
        with self._lock:
            if self._service is None:
                self._service = self._open()
            return self._service

    def get_type_name(self) -> str:
        return "webhdfs"

    def normalize_path(self, path: str) -> str:
        return path.rstrip("/")

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        return [self._info(path.rstrip("/")) for path in paths]

    def _info(self, path: str) -> FileInfo:
        try:
            found = self._web.ask("GET", "GETFILESTATUS", _inner(path))["FileStatus"]
        except FileNotFoundError:
            return FileInfo(path, FileType.NotFound)
        return _found(path, found)

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        base = selector.base_dir.rstrip("/")
        try:
            return list(self._below(base, selector.recursive))
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise

    def _below(self, base: str, is_recursive: bool) -> Iterator[FileInfo]:
        found = self._web.ask("GET", "LISTSTATUS", _inner(base))["FileStatuses"]["FileStatus"]
        for one in found:
            if not one["pathSuffix"]:
                raise NotADirectoryError("a file is no folder")
            info = _found(f"{base}/{one['pathSuffix']}", one)
            yield info
            if is_recursive and info.type == FileType.Directory:
                with suppress(FileNotFoundError):  # somebody removed it meanwhile
                    yield from self._below(info.path, is_recursive)

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002 - always so
        self._web.ask("PUT", "MKDIRS", _inner(path))

    def delete_dir(self, path: str) -> None:
        if not _inner(path).strip("/"):
            return self.delete_root_dir_contents()
        self._web.ask("DELETE", "DELETE", _inner(path), recursive="true")
        return None

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        if not _inner(path).strip("/"):
            return self.delete_root_dir_contents()
        for info in self.get_file_info_selector(FileSelector(path, allow_not_found=missing_dir_ok)):
            self._web.ask("DELETE", "DELETE", _inner(info.path), recursive="true")
        return None

    def delete_root_dir_contents(self) -> None:
        raise PermissionError("a whole store is never emptied")

    def delete_file(self, path: str) -> None:
        if not self._web.ask("DELETE", "DELETE", _inner(path), recursive="false")["boolean"]:
            raise FileNotFoundError("no such file")

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("nothing is moved in a store")

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError("nothing is copied in a store")

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        web, inner = self._web, _inner(path)
        size = web.ask("GET", "GETFILESTATUS", inner)["FileStatus"]["length"]

        def fetch(start: int, length: int) -> bytes:
            return web.read(inner, start, length)

        return PythonFile(blocks.reader(fetch, size), mode="r")

    def open_output_stream(self, path: str, metadata: dict[str, str]) -> Any:  # noqa: ARG002
        web, inner = self._web, _inner(path)

        def send(number: int, data: bytes) -> None:
            if number == 0:
                web.write("PUT", "CREATE", inner, data, overwrite="true")
            else:
                web.write("POST", "APPEND", inner, data)

        def end(count: int) -> None:
            if not count:
                web.write("PUT", "CREATE", inner, b"", overwrite="true")

        return PythonFile(blocks.Writer(send, end), mode="w")

    def open_append_stream(self, path: str, metadata: dict[str, str]) -> Any:
        raise NotImplementedError("nothing is appended in a store")


def _inner(path: str) -> str:
    """The path in the cluster."""
    return "/" + path.strip("/").partition("/")[2]


def _found(path: str, status: dict[str, Any]) -> FileInfo:
    kind = _KINDS.get(status["type"], FileType.Unknown)
    size = status["length"] if kind == FileType.File else None
    changed = datetime.fromtimestamp(status["modificationTime"] / 1000, UTC)
    return FileInfo(path, kind, size=size, mtime=changed)
