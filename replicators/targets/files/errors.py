"""Turns exceptions of a file system or an object store into error codes."""

from __future__ import annotations

from replicators.connectors.file_errors import code_of as code_of
from replicators.connectors.file_errors import translated as translated
