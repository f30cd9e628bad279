"""pyarrow's files in a container of Azure, by Azure's own client of blobs. A path begins with the
container.

Hadoop marks a folder by an empty blob of the folder's name with `hdi_isfolder`; accounts that have
folders of their own show them so too. A folder may also have no mark and only blobs below it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobBlock, BlobPrefix, BlobProperties, BlobServiceClient
from pyarrow import PythonFile
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType

from replicators.targets.lakehouse.stores import blocks

_MARK = "hdi_isfolder"
_DELETERS = 8


@contextmanager
def _told() -> Iterator[None]:
    """Azure's errors as OSError. The text has Azure's code, and no name."""
    try:
        yield
    except AzureError as err:
        kinds: tuple[tuple[type[AzureError], type[OSError]], ...] = (
            (ResourceNotFoundError, FileNotFoundError),
            (ResourceExistsError, FileExistsError),
            (ClientAuthenticationError, PermissionError),
        )
        kind = next((own for theirs, own in kinds if isinstance(err, theirs)), OSError)
        raise kind(_text(err)) from err


def _text(err: AzureError) -> str:
    said = err.message.partition("\n")[0]
    if isinstance(err, HttpResponseError) and err.status_code:
        code = getattr(err, "error_code", None) or err.reason
        return f"[{getattr(code, 'value', code)}] status={err.status_code} {said}"
    return f"{type(err).__name__}: {said}"


class AzureFiles(FileSystemHandler):
    """`connect` makes the client, once in each process. Tasks take `connect` along."""

    def __init__(self, connect: Callable[[], BlobServiceClient]) -> None:
        self._connect = connect
        self._client: BlobServiceClient | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return AzureFiles, (self._connect,)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def _container(self, path: str) -> tuple[Any, str]:
        with self._lock:
            if self._client is None:
                with _told():
                    self._client = self._connect()
        name, _, inner = path.strip("/").partition("/")
        return self._client.get_container_client(name), inner

    def _blob(self, path: str) -> Any:
        container, inner = self._container(path)
        return container.get_blob_client(inner)

    def get_type_name(self) -> str:
        return "azure"

    def normalize_path(self, path: str) -> str:
        return path.rstrip("/")

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        with _told():
            return [self._info(path.rstrip("/")) for path in paths]

    def _info(self, path: str) -> FileInfo:
        container, inner = self._container(path)
        try:
            if not inner:
                container.get_container_properties()
                return FileInfo(path, FileType.Directory)
            return _found(path, container.get_blob_client(inner).get_blob_properties())
        except ResourceNotFoundError:
            if inner and next(_listed(container, f"{inner}/"), None) is not None:
                return FileInfo(path, FileType.Directory)
            return FileInfo(path, FileType.NotFound)

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        """What lies in the folder. A container that is missing is an error in any case."""
        base = selector.base_dir.rstrip("/")
        container, inner = self._container(base)
        root = base[: len(base) - len(inner)].rstrip("/")
        found: dict[str, FileInfo] = {}
        with _told():
            for item in _listed(container, f"{inner}/" if inner else "", selector.recursive):
                path = f"{root}/{item.name.rstrip('/')}"
                inside = path[len(base) + 1 :].split("/")
                for above in list(accumulate(inside, "{}/{}".format))[:-1]:
                    folder = f"{base}/{above}"
                    found[folder] = FileInfo(folder, FileType.Directory)
                if path not in found or isinstance(item, BlobPrefix):
                    found[path] = _found(path, item)
            is_there = found or not inner or selector.allow_not_found
            if not is_there and self._info(base).type != FileType.Directory:
                raise FileNotFoundError(f"no folder {base}")
        return list(found.values())

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002 - always so
        _, inner = self._container(path)
        if not inner:
            return
        with _told():
            try:
                self._blob(path).upload_blob(b"", metadata={_MARK: "true"}, overwrite=False)
            except ResourceExistsError:
                if self._info(path.rstrip("/")).type != FileType.Directory:
                    raise

    def delete_dir(self, path: str) -> None:
        self.delete_dir_contents(path, missing_dir_ok=True)
        self._drop(self._blob(path))

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Delete files, and then folders from below."""
        container, inner = self._container(path)
        if not inner:
            return self.delete_root_dir_contents()
        with _told():
            found = list(_listed(container, f"{inner}/", is_recursive=True))
        if not found and not missing_dir_ok and self.get_file_info([path])[0].type.value == 0:
            raise FileNotFoundError(f"no folder {path}")
        files = [item.name for item in found if not _is_mark(item)]
        with ThreadPoolExecutor(_DELETERS) as pool:
            for _ in pool.map(lambda name: self._drop(container.get_blob_client(name)), files):
                pass
        for name in sorted((i.name for i in found if _is_mark(i)), reverse=True):
            self._drop(container.get_blob_client(name))
        return None

    def _drop(self, blob: Any) -> None:
        with _told():
            try:
                blob.delete_blob()
            except ResourceNotFoundError as err:
                if getattr(err, "error_code", "") == "ContainerNotFound":
                    raise

    def delete_root_dir_contents(self) -> None:
        raise PermissionError("a whole store is never emptied")

    def delete_file(self, path: str) -> None:
        """Delete a file; nothing where there is none. The client asks again where an answer is
        lost, and can't tell then who deleted the file."""
        self._drop(self._blob(path))

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("nothing is moved in a store")

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError("nothing is copied in a store")

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        with _told():
            blob = self._blob(path)
            size = blob.get_blob_properties().size

        def fetch(start: int, length: int) -> bytes:
            with _told():
                found: bytes = blob.download_blob(start, length).readall()
            return found

        return PythonFile(blocks.reader(fetch, size), mode="r")

    def open_output_stream(self, path: str, metadata: dict[str, str]) -> Any:  # noqa: ARG002
        blob = self._blob(path)

        def send(number: int, data: bytes) -> None:
            with _told():
                blob.stage_block(_name(number), data)

        def end(count: int) -> None:
            with _told():
                blob.commit_block_list([BlobBlock(_name(n)) for n in range(count)])

        return PythonFile(blocks.Writer(send, end), mode="w")

    def open_append_stream(self, path: str, metadata: dict[str, str]) -> Any:
        raise NotImplementedError("nothing is appended in a store")


def _name(number: int) -> str:
    """The name of a block. All blocks of a blob have names of one length."""
    return f"{number:08d}"


def _is_mark(item: BlobProperties) -> bool:
    return (item.metadata or {}).get(_MARK, "").lower() == "true"


def _found(path: str, item: BlobProperties | BlobPrefix) -> FileInfo:
    if isinstance(item, BlobPrefix) or _is_mark(item):
        return FileInfo(path, FileType.Directory)
    return FileInfo(path, FileType.File, size=item.size, mtime=item.last_modified)


def _listed(container: Any, prefix: str, is_recursive: bool = False) -> Iterator[Any]:
    asked = {"name_starts_with": prefix or None, "include": ["metadata"]}
    if is_recursive:
        return iter(container.list_blobs(**asked))
    return iter(container.walk_blobs(**asked, delimiter="/"))
