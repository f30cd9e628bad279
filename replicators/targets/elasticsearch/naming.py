"""The names of indexes and aliases, and the ids of documents.

A table is searched by its alias, `vehicles`. The documents lie in `vehicles-g3`, where 3 is the
generation of the copy; after a TRUNCATE in `vehicles-g3-t17`, where 17 is its sequence. They are
written by another alias, whose name tells the replicator. So nobody writes to an index of somebody
else, and no request makes an index by mistake.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.json_text import TEXT, concat, value
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.model.types import Bytes, LogicalType

LONGEST_NAME = 200
"""Bytes of an alias: the names that we make of it must have at most 255."""
LONGEST_ID = 512
HASHED = "sha256:"
_WRONG = re.compile(r'[\\/*?"<>| ,#:\x00-\x1f]')


def name_fault(name: str) -> str:
    """What is wrong with the name of an index, as a sentence; empty where nothing is."""
    if not name:
        return "must not be empty"
    if name != name.lower():
        return "must be in lower case"
    if _WRONG.search(name):
        return 'must not have blanks or any of \\ / * ? " < > | , # :'
    if name[0] in "-_+.":
        return "must not begin with - _ + or ."
    if len(name.encode()) > LONGEST_NAME:
        return f"must be at most {LONGEST_NAME} bytes long"
    return ""


def alias_of(rule: str, table: TableId) -> str:
    """The name under which a table is searched. Letters become lower case."""
    name = rule.replace("{schema}", table.schema).replace("{table}", table.name)
    return name.lower()


def index_of(alias: str, generation: int, truncated_at: int = 0) -> str:
    """The index that holds the documents."""
    return f"{alias}-g{generation}" + (f"-t{truncated_at}" if truncated_at else "")


def is_index_of(alias: str, index: str) -> bool:
    """Whether we could have made the index for this alias."""
    return re.fullmatch(rf"{re.escape(alias)}-g\d+(-t\d+|-refused)?", index) is not None


def writing_alias(alias: str, generation: int, replicator: str) -> str:
    """The alias by which this replicator writes."""
    owner = hashlib.sha256(replicator.encode()).hexdigest()[:12]
    return f"{alias}-g{generation}-by-{owner}"


def refused_index(alias: str, generation: int) -> str:
    """The index of documents that the cluster refused."""
    return f"{alias}-g{generation}-refused"


def ids(columns: Sequence[pa.Array], schema: TableSchema) -> pa.Array:
    """The documents' ids from the columns of the key. A key of one column is its text; bytes are in
    base64. A key of several columns is a JSON array. An id that would be empty or longer than 512
    bytes, or that looks like a hash, is the hash of its text."""
    kinds = [schema.column(name).type for name in schema.key]
    if len(columns) == 1:
        text = _plain(columns[0], kinds[0])
    else:
        texts = [value(c, k) for c, k in zip(columns, kinds, strict=True)]
        pieces = [p for i, t in enumerate(texts) for p in (("," if i else "["), t)]
        text = concat(*pieces, "]")
    length = pc.binary_length(text.cast(pa.large_binary()))
    is_odd = pc.or_(
        pc.or_(pc.greater(length, LONGEST_ID), pc.equal(length, 0)),
        pc.starts_with(text, HASHED),
    )
    odd = np.flatnonzero(pc.fill_null(is_odd, False).to_numpy(zero_copy_only=False))
    if not len(odd):
        return text
    hashed = [HASHED + hashlib.sha256(t.encode()).hexdigest() for t in text.take(odd).to_pylist()]
    mask = np.zeros(len(text), bool)
    mask[odd] = True
    return pc.replace_with_mask(text, pa.array(mask), pa.array(hashed, TEXT))


def _plain(column: pa.Array, kind: LogicalType) -> pa.Array:
    if pa.types.is_string(column.type):
        return column.cast(TEXT)
    text = value(column, kind)
    quoted = isinstance(kind, Bytes) or pc.any(pc.starts_with(text, '"')).as_py()
    return pc.utf8_trim(text, characters='"') if quoted else text
