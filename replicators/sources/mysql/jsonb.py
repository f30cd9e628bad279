"""MySQL's binary JSON as the text that the server prints. Format: MySQL, `sql-common/json_binary.h`."""

from __future__ import annotations

import pyarrow as pa


def json_texts(values: pa.Array) -> pa.Array:
    """Binary documents as text."""
    raise NotImplementedError
