"""Files on their way into Redshift: Parquet files in the staging folder, a manifest beside them,
and the COPY that loads them."""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors.arrow import texts
from replicators.connectors.file_errors import translated
from replicators.connectors.locations import plain
from replicators.connectors.model.schema import Column
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.storage import Storage
from replicators.targets.redshift import types
from replicators.targets.redshift.naming import quoted

MANIFEST = "manifest.json"


def folder_of(folder: str, names: Names) -> str:
    """The folder for the files of a staging table."""
    return "/".join([folder, *map(plain, names)])


def upload(storage: Storage, staged: StagedFiles, folder: str) -> tuple[str, int]:
    """Write the files' rows, and a manifest of them. Returns its URL and the number of rows."""
    system, path = storage.open(folder)
    entries, count = [], 0
    with translated():
        for number, source in enumerate(staged.paths):
            name = f"{number}.parquet"
            with system.open_output_stream(f"{path}/{name}", compression=None) as out:
                rows = _write(staged, source, out)
                size = out.tell()
            count += rows
            if rows:  # Redshift refuses an empty file
                told = {"url": f"{folder}/{name}", "mandatory": True}
                entries.append({**told, "meta": {"content_length": size}})
        with system.open_output_stream(f"{path}/{MANIFEST}", compression=None) as out:
            out.write(json.dumps({"entries": entries}).encode())
    return f"{folder}/{MANIFEST}", count


def _write(staged: StagedFiles, source: str, out: pa.NativeFile) -> int:
    count, fields = 0, [pa.field(f.name, _plain(f.type)) for f in staged.arrow]
    with pq.ParquetWriter(out, pa.schema(fields), compression="snappy") as made:
        for batch in staged.read_file(source):
            arrays = [
                _loadable(values, c)
                for values, c in zip(batch.columns, staged.columns, strict=True)
            ]
            made.write_batch(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))
            count += batch.num_rows
    return count


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_time(kind) or pa.types.is_list(kind) or pa.types.is_binary(kind):
        return pa.string()
    return kind


def _loadable(values: pa.Array, column: Column) -> pa.Array:
    """Values as COPY takes them: moments in UTC, and as texts times of day, bytes in hexadecimal
    digits, and lists in JSON. A text that is too long is refused here, by its column's name."""
    kind = values.type
    made = values
    if pa.types.is_list(kind):
        made = texts.lists(values)
    elif pa.types.is_binary(kind):
        made = texts.digits(values)
    made = made.cast(_plain(kind))
    if pa.types.is_string(made.type):
        longest = pc.max(pc.binary_length(made)).as_py() or 0
        if longest > types.LONGEST_TEXT:
            raise ReplicationError(
                "target:redshift-long", column=column.name, size=longest, most=types.LONGEST_TEXT
            )
    return made


def copy(names: Names, manifest: str, authorization: str) -> str:
    """The statement that loads the files of a manifest. It may hold a secret: never log it."""
    return f"COPY {quoted(names)} FROM '{manifest}' {authorization} FORMAT AS PARQUET MANIFEST"


def needs_first(columns: Sequence[Column]) -> bool:
    """Whether COPY reads some of the columns as another type first."""
    return any(types.native(c) in types.LOADED for c in columns)


def first(names: Names, columns: Sequence[Column]) -> str:
    """The statement that makes the temporary table into which the files are loaded."""
    kinds = [(c.name, types.native(c)) for c in columns]
    shown = [f"{quoted((n,))} {types.LOADED.get(k, (k, ''))[0]}" for n, k in kinds]
    return f"CREATE TEMPORARY TABLE {quoted(names)} ({', '.join(shown)})"


def converted(names: Names, loaded: Names, columns: Sequence[Column]) -> str:
    """The statement that fills a table from the temporary one."""
    shown = [
        types.LOADED.get(types.native(c), ("", "{}"))[1].format(quoted((c.name,))) for c in columns
    ]
    listed = ", ".join(quoted((c.name,)) for c in columns)
    return f"INSERT INTO {quoted(names)} ({listed}) SELECT {', '.join(shown)} FROM {quoted(loaded)}"
