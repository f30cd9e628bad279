"""The columns of a table of files: those that a person named, those that were seen before, and
those of the newest delivery."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.compared import database
from replicators.sources.compared.arrivals import Arrival
from replicators.sources.compared.errors import reading, writing
from replicators.sources.compared.journal import word_of
from replicators.sources.compared.lists import columns as declared_columns
from replicators.sources.compared.lists import keys_of
from replicators.sources.compared.params import BY_ENDING, FORMATS, ComparedParams
from replicators.sources.compared.types import name_of, type_of_arrow

_LOOK_BYTES = 1 << 20
_LINE_BYTES = 64 << 10
_ENDINGS = {"jsonl": "json", "ndjson": "json", "tsv": "csv", "txt": "csv", "pq": "parquet"}
_PACKED = ("gz", "bz2", "zst", "snappy", "lz4", "deflate")
_ARROW_PACKED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}


def format_of(params: ComparedParams, path: str) -> str:
    """The format of a file, as Spark calls it; CSV where the name does not say."""
    if params.format != BY_ENDING:
        return FORMATS[params.format]
    for part in reversed(path.rpartition("/")[2].lower().split(".")[1:]):
        if part not in _PACKED:
            found = _ENDINGS.get(part, part)
            return found if found in FORMATS.values() else "csv"
    return "csv"


def label_of(form: str) -> str:
    """The format's name for people."""
    return next(label for label, name in FORMATS.items() if name == form)


def _start(path: str, size: int) -> bytes:
    """The first bytes of a file, unpacked."""
    ending = path.rpartition(".")[2].lower()
    with files.open_file(path) as raw:
        if ending not in _ARROW_PACKED:
            return bytes(raw.read(size))
        with pa.CompressedInputStream(raw, _ARROW_PACKED[ending]) as stream:
            return bytes(stream.read(size))


def _whole_lines(data: bytes, size: int) -> bytes:
    return data if len(data) < size else data[: data.rfind(b"\n") + 1] or data


def header(params: ComparedParams, path: str) -> tuple[str, ...]:
    """The names in the first line of a CSV file."""
    text = _start(path, _LINE_BYTES).decode("utf-8-sig", "replace")
    first = next(csv.reader(io.StringIO(text), delimiter=params.separator), [])
    return tuple(name.strip() for name in first)


def arrow_schema(params: ComparedParams, path: str) -> pa.Schema:
    """The columns that a file shows; OSError or ValueError where it can't be read."""
    form = format_of(params, path)
    if form == "parquet":
        with files.open_file(path) as file:
            return pq.read_schema(file)
    if form == "orc":
        from pyarrow import orc

        with files.open_file(path) as file:
            return orc.ORCFile(file).schema
    if form == "avro":
        from replicators.sources.compared.avro import schema_of

        with files.open_file(path) as file:
            return schema_of(file)
    data = pa.py_buffer(_whole_lines(_start(path, _LOOK_BYTES), _LOOK_BYTES))
    if form == "json":
        return pyarrow.json.read_json(data).schema if data.size else pa.schema([])
    return pyarrow.csv.read_csv(
        data,
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=params.separator,
            newlines_in_values=True,
            invalid_row_handler=lambda _: "skip",
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            null_values=[params.null_text], strings_can_be_null=True
        ),
    ).schema


def present(params: ComparedParams, arrival: Arrival) -> list[Column]:
    """The columns that the first file of a delivery shows. `source:file-unreadable`."""
    if params.database:
        there = database.relation(params, arrival.table)
        return list(there.columns) if there is not None else []
    path = arrival.files[0]
    try:
        with reading("files"):
            found = arrow_schema(params, path)
    except (ValueError, pa.ArrowException, EOFError) as err:
        table = TableId(params.schema_name, arrival.table)
        form = label_of(format_of(params, path))
        raise ReplicationError("source:file-unreadable", table=table, format=form) from err
    kinds = {f.name: type_of_arrow(f.type) for f in found}
    return [Column(name, kind, name_of(kind)) for name, kind in kinds.items()]


# --- what was seen before -------------------------------------------------------------------------
def _seen_path(params: ComparedParams, table: str) -> str:
    return f"{params.schemas_folder}/{word_of(TableId(params.schema_name, table))}.json"


def seen(params: ComparedParams, table: str) -> list[Column]:
    """The columns of the deliveries that were compared. A type that was found once stays, also
    where a later file would suggest another one."""
    with reading("state"):
        data = files.read_if_there(_seen_path(params, table))
    return [Column.from_json(c) for c in json.loads(data)["columns"]] if data else []


def seen_tables(params: ComparedParams) -> list[str]:
    """The tables that were compared before, also those that have no file now."""
    with reading("state"):
        paths = [path for path, _ in files.listed(params.schemas_folder)]
        found = [files.read_if_there(path) for path in paths]
    return [json.loads(data)["table"] for data in found if data]


def remember(params: ComparedParams, schema: TableSchema) -> None:
    """Keep the columns of a delivery that was compared."""
    known = seen(params, schema.id.name)
    names = {c.name for c in schema.columns}
    whole = [*schema.columns, *(c for c in known if c.name not in names)]
    if whole == known:
        return
    data = {"table": schema.id.name, "columns": [c.to_json() for c in whole]}
    with writing():
        files.make_folder(params.schemas_folder)
        files.publish(_seen_path(params, schema.id.name), json.dumps(data).encode())


def described(params: ComparedParams, table: str, newest: Arrival | None) -> TableSchema | None:
    """The table's schema; None where nothing of it is there and nothing was."""
    named = declared_columns(params.columns).get(table, {}) if params.columns else {}
    found: dict[str, Column] = {c.name: c for c in seen(params, table)}
    for column in _fresh(params, newest, is_known=bool(found)):
        found.setdefault(column.name, column)
    for name, kind in named.items():
        found[name] = Column(name, kind, name_of(kind))
    if not found:
        return None
    wanted = key_of(params, table)
    key = tuple(n for n in wanted if n in found)
    is_whole = len(key) == len(wanted)
    columns = [
        replace(c, ordinal=at, nullable=c.name not in key) for at, c in enumerate(found.values(), 1)
    ]
    return TableSchema(
        TableId(params.schema_name, table),
        tuple(columns),
        key if is_whole else (),
        key if is_whole else (),
        native_id=zlib.crc32(f"{params.schema_name}.{table}".encode()) | 1 << 32,
        full_before=True,
    )


def _fresh(params: ComparedParams, newest: Arrival | None, *, is_known: bool) -> list[Column]:
    """The columns of the newest delivery. Where the table is known, one that can't be read has
    none: it is refused when its turn comes."""
    if newest is None:
        return []
    try:
        return present(params, newest)
    except ReplicationError as err:
        if not is_known or err.code != "source:file-unreadable":
            raise
        return []


def key_of(params: ComparedParams, table: str) -> tuple[str, ...]:
    """The key that a person named, or else the one that the database knows."""
    named = keys_of(params.keys, table)
    if named or not params.database:
        return named
    there = database.relation(params, table)
    return there.key if there is not None else ()


def newest_of(found: Sequence[Arrival]) -> dict[str, Arrival]:
    """The last delivery of each table."""
    return {a.table: a for a in found}
