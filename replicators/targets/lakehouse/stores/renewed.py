"""A file system whose token is renewed before it ends. Tasks take it along as it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileSystemHandler, FileType

_EARLY_SECONDS = 300.0
_LATEST = 0.5
"""The share of its life after which a file system that lives only for minutes is made anew."""


class Renewed(FileSystemHandler):
    """`make` gives a file system and the time when it ends. Thread safe."""

    def __init__(
        self, make: Callable[[], tuple[FileSystem, float]], clock: Callable[[], float] | None = None
    ) -> None:
        self._make = make
        self._clock = clock
        self._until = 0.0
        self._system: FileSystem | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._make, self._clock)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def _now(self) -> FileSystem:
        with self._lock:
            now = self._clock() if self._clock else time.time()
            if self._system is None or now > self._until:
                self._system, ends = self._make()
                self._until = ends - min(_EARLY_SECONDS, (ends - now) * _LATEST)
            return self._system

    def get_type_name(self) -> str:
        return "renewed"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        found: list[FileInfo] = self._now.get_file_info(list(paths))
        return found

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        found: list[FileInfo] = self._now.get_file_info(selector)
        return found

    def create_dir(self, path: str, recursive: bool) -> None:
        self._now.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._now.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._now.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise PermissionError("a whole store is never emptied")

    def delete_file(self, path: str) -> None:
        self._now.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._now.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self._now.copy_file(src, dest)

    def open_input_stream(self, path: str) -> Any:
        return self._now.open_input_stream(path, compression=None)

    def open_input_file(self, path: str) -> Any:
        return self._now.open_input_file(path)

    def open_output_stream(self, path: str, metadata: dict[str, str]) -> Any:
        return self._now.open_output_stream(path, compression=None, metadata=metadata)

    def open_append_stream(self, path: str, metadata: dict[str, str]) -> Any:
        return self._now.open_append_stream(path, compression=None, metadata=metadata)


class Within(Renewed):
    """For keys that open a table's folder only. pyarrow looks at a folder's own name, and marks the
    folders above what it makes or deletes: such keys may do neither. A store has no folders: what
    lies in one makes it."""

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        return [self._look(path) for path in paths]

    def _look(self, path: str) -> FileInfo:
        try:
            return self._now.get_file_info(path)
        except OSError:
            is_there = bool(self._now.get_file_info(FileSelector(path, allow_not_found=True)))
        return FileInfo(path, FileType.Directory if is_there else FileType.NotFound)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Nothing is to be made."""

    def delete_dir(self, path: str) -> None:
        """The mark of the folder itself may stay."""
        for info in self._now.get_file_info(FileSelector(path, allow_not_found=True)):
            if info.type == FileType.Directory:
                self._now.delete_dir(info.path)
            else:
                self._now.delete_file(info.path)
