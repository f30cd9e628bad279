"""Writes what a poll gave as durable change files, numbered by its segment. It is Arrow already, so
it needs no task. The change files are its only form."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors import files as folder
from replicators.connectors.log import DecodedTable, Poison
from replicators.connectors.model.changes import META_FIELDS, Op, OpCounts, first_sequence
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.poll import Polled, TableChanges
from runners.engine.changelog.segments import file_word
from runners.engine.decode.job import Decoded, file_row, held, write_file
from runners.engine.sizes import NO_LIMITS, Limits


def write_polled(number: int, found: Polled, prefix: str, limits: Limits = NO_LIMITS) -> Decoded:
    """The change files of segment `number`, durable when this returns."""
    files, poisons = [], []
    faults: dict[TableId, str] = {}
    for place, item in enumerate(_numbered(number, found)):
        kept = held(item, limits)
        if isinstance(kept, Poison):
            poisons.append((number, kept))
            continue
        path = f"{prefix}-{place}-{file_word(str(kept.schema.id))}-{kept.version}.parquet"
        facts = write_file(path, kept)
        file = file_row(number, facts)
        if file.faults:
            faults.setdefault(file.table, facts["fault"])
        files.append(file)
    if files:
        folder.sync_folder(os.path.dirname(prefix))
    return Decoded(tuple(files), tuple(poisons), faults)


def _numbered(number: int, found: Polled) -> Iterator[DecodedTable]:
    """Each table's changes with their sequences, which count across the whole poll."""
    following = first_sequence(number)
    for part in found.changes:
        rows = _checked(part)
        if not rows.num_rows:
            continue
        sequences = pa.array(np.arange(following, following + rows.num_rows, dtype=np.int64))
        following += rows.num_rows
        changes = rows.add_column(0, META_FIELDS[0], sequences)
        yield DecodedTable(part.schema, _version(part.schema), changes, _counts(rows))


def _checked(part: TableChanges) -> pa.Table:
    if part.rows.schema != part.arrow:
        raise TypeError(f"{part.schema.id}: a poll gave {part.rows.schema}, not {part.arrow}")
    return part.rows


def _version(schema: TableSchema) -> str:
    """A word that differs for each schema of a table."""
    text = json.dumps(schema.bare.to_json(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _counts(rows: pa.Table) -> OpCounts:
    found = {c["values"]: c["counts"] for c in pc.value_counts(rows.column("_op")).to_pylist()}
    return OpCounts(
        *(found.get(int(op), 0) for op in (Op.INSERT, Op.UPDATE, Op.DELETE, Op.TRUNCATE))
    )
