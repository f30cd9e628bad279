"""Turns errors of files, stores and Spark into `ReplicationError`s. A raw text never gets into
them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from replicators.connectors.problems.errors import ReplicationError


def _reason(err: OSError) -> str:
    if isinstance(err, FileNotFoundError):
        return "it does not exist"
    if isinstance(err, NotADirectoryError):
        return "it is a file, or lies below one"
    if isinstance(err, PermissionError):
        return "this program may not open it"
    if err.errno:
        return os.strerror(err.errno).lower()
    return "the store does not answer, or refuses"


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever can't be read is `source:files-unreachable`."""
    try:
        yield
    except OSError as err:
        raise ReplicationError("source:files-unreachable", what=what, reason=_reason(err)) from err


@contextmanager
def writing() -> Iterator[None]:
    """Whatever can't be written is `source:state-unwritable`."""
    try:
        yield
    except OSError as err:
        raise ReplicationError("source:state-unwritable", reason=_reason(err)) from err


def translate(err: BaseException) -> Exception:
    """The error of a code for an error of any kind."""
    if isinstance(err, ReplicationError):
        return err
    if isinstance(err, OSError):
        return ReplicationError("source:files-unreachable", what="files", reason=_reason(err))
    return ReplicationError("internal:unexpected", name_of_error=type(err).__name__)
