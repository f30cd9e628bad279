"""Turns exceptions of a file system or an object store into error codes. The raw text stays in
`__cause__`."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR}
_REFUSED_TEXT = re.compile(
    r"access.?denied|forbidden|permission denied|not a directory|status 403", re.IGNORECASE
)
_FULL_TEXT = re.compile(r"no space left|quota exceeded", re.IGNORECASE)


def code_of(err: BaseException) -> str:
    """The error code for an exception."""
    if not isinstance(err, OSError):
        return "internal:unexpected"
    if err.errno in _FULL or _FULL_TEXT.search(str(err)):
        return "target:storage-full"
    if err.errno in _REFUSED or _REFUSED_TEXT.search(str(err)):
        return "target:not-writable"
    return "target:unreachable"


@contextmanager
def translated(table: TableId | None = None) -> Iterator[None]:
    """Raise file errors as `ReplicationError`s."""
    try:
        yield
    except (OSError, pa.ArrowException) as err:
        raise ReplicationError(code_of(err), table=table, name_of_error=type(err).__name__) from err
