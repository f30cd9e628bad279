"""A target's bucket or folder, without Spark: check, list and remove folders. Reads no tables."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from pyarrow import fs

from replicators.connectors.files import open_url
from replicators.connectors.problems.problem import Problem
from replicators.connectors.stores import Store, bucket_of, is_s3

NO_BUCKET = "NO_SUCH_BUCKET"
_WORD = b"replicator"

_BUCKET = (
    (r"NO_?SUCH_?BUCKET", "target:bucket-missing"),
    (
        r"INVALID_?ACCESS_?KEY_?ID|INVALID_?CLIENT_?TOKEN_?ID|SIGNATURE_?DOES_?NOT_?MATCH"
        r"|NO_?CREDENTIALS|AUTH_?FAILURE|InvalidAccessKeyId",
        "target:bucket-keys",
    ),
    (r"ACCESS[_ ]?DENIED|HTTP status 403", "target:bucket-rights"),
)


class TrialFailed(OSError):
    """`act`: what could not be done. The store's error is the cause."""

    def __init__(self, act: str) -> None:
        super().__init__(act)
        self.act = act


class Storage:
    """The folders of a target, reached as its settings say."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, url: str) -> tuple[fs.FileSystem, str]:
        """The file system of a folder or URL, and the path in it. OSError."""
        own = self.own_system(url)
        return (own, bucket_of(url)[1]) if own is not None else open_url(url)

    def own_system(self, url: str) -> fs.FileSystem | None:
        """The file system that the settings lead to; None where the URL alone does."""
        if not is_s3(url) or not self._store.is_named:
            return None
        return self._bucket(bucket_of(url)[0])

    def look(self, url: str) -> None:
        """List the folder, in a store; its bucket has to be there. TrialFailed. An answer to a list
        names its reason, one to a question for a single object doesn't."""
        try:
            system, path = self.open(url)
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
            bucket = bucket_of(url)[0]
            if not found and system.get_file_info(bucket).type == fs.FileType.NotFound:
                raise FileNotFoundError(NO_BUCKET)
        except OSError as err:
            raise TrialFailed("list") from err

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

    def _bucket(self, name: str) -> fs.FileSystem:
        """Amazon itself says in which region a bucket is."""
        store = self._store
        region = store.in_region or ("" if store.where else fs.resolve_s3_region(name))
        return fs.S3FileSystem(
            access_key=store.access_key or None,
            secret_key=store.secret_key or None,
            endpoint_override=store.where or None,
            region=region or None,
        )

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


def bucket_problem(act: Callable[[str], None], url: str) -> Problem | None:
    """What a look at the folder's bucket, or a trial of it, finds."""
    try:
        act(url)
    except TrialFailed as err:
        return Problem.of(bucket_code(str(err.__cause__)), bucket=bucket_of(url)[0], act=err.act)
    return None


def bucket_code(text: str) -> str:
    """The code for a store's error. The SDK names some by words, others by the answer's number."""
    for pattern, code in _BUCKET:
        if re.search(pattern, text, re.IGNORECASE):
            return code
    return "target:unreachable"
