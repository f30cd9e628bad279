"""A target's bucket or folder, without Spark: check, list and remove folders. Reads no tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Protocol

from pyarrow import fs

from replicators.connectors.files import open_url
from replicators.connectors.problems.problem import Problem
from replicators.connectors.stores import NO_BUCKET, bucket_of

_WORD = b"replicator"


class Reached(Protocol):
    """How a target's bucket is reached."""

    def system(self, url: str) -> fs.FileSystem | None:
        """The file system that the settings lead to; None where the URL alone does."""
        ...

    def code(self, text: str) -> str:
        """The code for an error of the store."""
        ...


class TrialFailed(OSError):
    """`act`: what could not be done. The store's error is the cause."""

    def __init__(self, act: str) -> None:
        super().__init__(act)
        self.act = act


class Storage:
    """The folders of a target, reached as its settings say."""

    def __init__(self, store: Reached) -> None:
        self._store = store

    def open(self, url: str) -> tuple[fs.FileSystem, str]:
        """The file system of a folder or URL, and the path in it. OSError."""
        own = self.own_system(url)
        return (own, bucket_of(url)[1]) if own is not None else open_url(url)

    def own_system(self, url: str) -> fs.FileSystem | None:
        """The file system that the settings lead to; None where the URL alone does."""
        return self._store.system(url)

    def look(self, url: str) -> None:
        """List the folder, in a store; its bucket has to be there. TrialFailed. An answer to a list
        names its reason, one to a question for a single object doesn't."""
        try:
            system, path = self.open(url)
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
            if not found and self._is_missing(system, bucket_of(url)[0]):
                raise FileNotFoundError(NO_BUCKET)
        except OSError as err:
            raise TrialFailed("list") from err

    def _is_missing(self, system: fs.FileSystem, bucket: str) -> bool:
        """Whether the store says that there is no such bucket. Who may list a bucket may not always
        look at the bucket itself."""
        try:
            return bool(system.get_file_info(bucket).type == fs.FileType.NotFound)
        except OSError as err:
            if self._store.code(str(err)).endswith("-rights"):
                return False
            raise

    def try_it(self, url: str) -> None:
        """Write, read, list and delete a small file below the folder, in a store. TrialFailed. The
        mark of an empty folder may stay."""
        name = f"_replicator_{uuid.uuid4().hex}"
        act = "write to"
        try:
            system, path = self.open(url.rstrip("/"))
            file = f"{path}/{name}/trial"
            with system.open_output_stream(file, compression=None) as out:
                out.write(_WORD)  # an answer to a write names its reason, one to a look doesn't
            system.create_dir(f"{path}/{name}/folder", recursive=True)
            act = "read from"
            with system.open_input_file(file) as found:
                found.read()
            act = "list"
            system.get_file_info(fs.FileSelector(f"{path}/{name}"))
            act = "delete from"
            system.delete_dir(f"{path}/{name}")
        except OSError as err:
            raise TrialFailed(act) from err

    def has_folder(self, url: str) -> bool:
        """Whether the folder exists; in a store, whether it has anything."""
        system, path = self.open(url)
        return bool(system.get_file_info(path).type == fs.FileType.Directory)

    def make_folder(self, url: str) -> None:
        """Make a folder and those above it; nothing where it exists."""
        system, path = self.open(url)
        system.create_dir(path, recursive=True)

    def remove_folder(self, url: str) -> None:
        """Remove a folder with everything in it; nothing where it does not exist."""
        system, path = self.open(url)
        if system.get_file_info(path).type == fs.FileType.Directory:
            system.delete_dir(path)

    def folders(self, url: str) -> list[str]:
        """The names of the folders directly in this folder; empty if it does not exist."""
        system, path = self.open(url)
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)

    def keep_only(self, url: str, names: set[str]) -> None:
        """Remove the folder's files that are not in `names`."""
        system, path = self.open(url)
        for info in system.get_file_info(fs.FileSelector(path)):
            if info.base_name not in names:
                system.delete_file(info.path)


def looked(store: Reached, url: str) -> Problem | None:
    """What a look at the folder's bucket finds."""
    return _problem(store, Storage(store).look, url)


def tried(store: Reached, url: str) -> Problem | None:
    """What a trial of the folder's bucket finds."""
    return _problem(store, Storage(store).try_it, url)


def _problem(store: Reached, act: Callable[[str], None], url: str) -> Problem | None:
    try:
        act(url)
    except TrialFailed as err:
        code = store.code(str(err.__cause__))
        return Problem.of(code, bucket=bucket_of(url)[0], act=err.act)
    return None
