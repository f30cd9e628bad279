"""Indexes the events of a raw segment: rows by schema, transactions, truncations, and what makes
rows unsure. Pure."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.expand import QUERY, Damaged, Expanded
from replicators.sources.mysql.foreign_keys import ALL, NONE, ForeignKey, unlogged
from replicators.sources.mysql.offsets import MARIADB
from replicators.sources.mysql.prepared import is_one_phase
from replicators.sources.mysql.queries import (
    ANY,
    EXECUTE_LOAD,
    Kind,
    Statement,
    query_of,
    statement,
)
from replicators.sources.mysql.schemas import Schema, find_table, schema_of
from replicators.sources.mysql.steps import TableStep, steps_of
from replicators.sources.mysql.tablemaps import TableMap, parse_map

NOT_SELECTED = -1
INCIDENT, XA_PREPARE, PARTIAL_UPDATE = 26, 38, 39


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE at an offset of the body."""

    at: int
    transaction: int
    table: TableId


@dataclass(slots=True)
class Index:
    """The events of a segment: lines of row events (`kernels.E_*`) in the log's order with their
    schemas, lines of transactions, truncations, and faults. A fault stops a table: (offset, code,
    facts). `changed`: the number of the transaction that changed a table in a way that the log does
    not show. `carried`: the tables that may have rows of the transaction open at the start (number
    0) in earlier segments. `steps`: what statements did to columns before this segment.
    `steps_after` (None: the same) adds the step of the statement that is the segment."""

    body: np.ndarray
    events: np.ndarray
    begins: np.ndarray
    schemas: list[Schema]
    schema_of_event: np.ndarray
    truncations: list[Truncation] = field(default_factory=list)
    faults: dict[TableId, tuple[int, str, dict[str, str]]] = field(default_factory=dict)
    changed: dict[TableId, int] = field(default_factory=dict)
    carried: set[TableId] = field(default_factory=set)
    steps: list[TableStep] = field(default_factory=list)
    steps_after: list[TableStep] | None = None


def index_segment(
    context: dict[str, Any],
    expanded: Expanded,
    tables: Sequence[TableSchema],
    charsets: dict[int, str],
) -> Index:
    data, has_crc = expanded.body, expanded.has_checksums
    """Index a body without compressed events. `Damaged` where it can't be read."""
    count, row_count, map_count, begin_count, other_count, damage = k.count_events(data)
    if damage >= 0:
        raise Damaged(damage)
    # numba would compile again for a numpy bool.
    has_crc = bool(has_crc)
    flavour = str(context["flavour"])
    old = [_parse(base64.b64decode(m), flavour, 0) for m in context.get("maps", {}).values()]
    size = 1 << max(6, (2 * (len(old) + map_count) + 1).bit_length())
    ids, numbers = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    for n, found in enumerate(old):
        place = k.find(ids, found.number)
        ids[place], numbers[place] = found.number, n
    maps = np.zeros(map_count + 1, np.int64)
    events = np.zeros((row_count, k.E_FIELDS), np.int64)
    begins = np.zeros((begin_count + 1, k.X_FIELDS), np.int64)
    others = np.zeros((other_count, 2), np.int64)
    opened = _open_transaction(context.get("transaction"))
    begins[0] = opened or (0, 0)
    fault, offset, n_rows, n_maps, n_begins, n_others = k.scan(
        data,
        has_crc,
        k.CRC_TABLES,
        ids,
        numbers,
        len(old),
        maps,
        events,
        begins,
        others,
        opened is not None,
    )
    if fault:
        raise Damaged(offset)
    parsed = old + [
        _parse(_event(data, int(at), has_crc), flavour, int(at)) for at in maps[:n_maps]
    ]
    schemas: list[Schema] = []
    steps = [TableStep.from_json(s) for s in context.get("steps", ())]
    of_map = np.array(
        [_schema_number(m, tables, charsets, steps, schemas) for m in parsed] or [0], np.int64
    )
    events = events[:n_rows]
    index = Index(data, events, begins[:n_begins], schemas, of_map[events[:, k.E_MAP]])
    index.steps = steps
    if "steps_after" in context:
        index.steps_after = [TableStep.from_json(s) for s in context["steps_after"]]
    cascades = str(context.get("cascades", ALL if flavour == MARIADB else NONE))
    table_of = {found.number: found.table for found in parsed}
    lowers = bool(context.get("lowers"))
    by_id = {t.id: t for t in tables}
    index.carried = {m.table for m in old} & by_id.keys() if opened else set()
    _look_at_others(
        index,
        others[:n_others],
        has_crc,
        by_id,
        cascades,
        table_of,
        charsets,
        lowers=lowers,
    )
    return index


def _event(data: np.ndarray, at: int, has_crc: bool) -> bytes:
    size = int.from_bytes(data[at : at + 4].tobytes(), "little")
    return data[at + 4 : at + 4 + size - (k.CRC if has_crc else 0)].tobytes()


def _parse(event: bytes, flavour: str, offset: int) -> TableMap:
    try:
        return parse_map(event, flavour)
    except (ValueError, KeyError, IndexError) as err:
        raise Damaged(offset) from err


def _schema_number(
    found: TableMap,
    tables: Sequence[TableSchema],
    charsets: dict[int, str],
    steps: Sequence[TableStep],
    schemas: list[Schema],
) -> int:
    table = find_table(found.table, tables)
    if table is None:
        return NOT_SELECTED
    for i, schema in enumerate(schemas):
        if schema.map.table == found.table and schema.map.columns == found.columns:
            return i
    try:
        schemas.append(schema_of(found, table, charsets, steps_of(steps, table.id)))
    except ValueError as err:
        raise Damaged(0) from err
    return len(schemas) - 1


def _open_transaction(message: str | None) -> tuple[int, int] | None:
    if not message:
        return None
    event = np.frombuffer(base64.b64decode(message), np.uint8)
    size = len(event)
    if size < k.HEADER:
        raise Damaged(0)
    (end,) = struct.unpack_from("<I", event.data, 13)
    return end - size, int(k.begin_time(event, 0, size, int(event[4])))


# --- what is neither rows nor their frame ---------------------------------------------------------------------------  # noqa: E501


def _look_at_others(
    index: Index,
    others: np.ndarray,
    has_crc: bool,
    tables: Mapping[TableId, TableSchema],
    cascades: str,
    table_of: Mapping[int, TableId],
    charsets: Mapping[int, str],
    *,
    lowers: bool,
) -> None:
    """Make truncations into events of their own; stop the tables whose rows are unsure. `cascades`:
    which foreign keys change rows without logging it. `table_of`: tables by the log's numbers.
    `lowers`: whether table names in statements are converted to lower case."""
    truncations: list[Truncation] = []
    for at, transaction in others.tolist():
        event = _event(index.body, at, has_crc)
        if event[4] in (QUERY, EXECUTE_LOAD):
            try:
                said = statement(*query_of(event, charsets), lowers=lowers)
            except ValueError as err:
                raise Damaged(at) from err
            truncations += _look_at_query(index, said, at, transaction, tables, cascades)
        elif fault := _of_all(event[4]):
            for table in tables:
                index.faults.setdefault(table, (at, *fault))
        elif event[4] == PARTIAL_UPDATE:
            number = int.from_bytes(event[k.HEADER : k.HEADER + 6], "little")
            for table in tables.keys() & {table_of[number]} if number in table_of else tables:
                index.faults.setdefault(table, (at, "source:row-image", {}))
        elif event[4] == XA_PREPARE and not is_one_phase(event):
            _stop_tables_of(index, transaction, at, "source:transaction-unsure")
    index.truncations = truncations


def _of_all(kind: int) -> tuple[str, dict[str, str]] | None:
    """The fault that an event of this kind is for every table; see `kernels.is_unknown`."""
    if kind == INCIDENT:
        return "source:log-incident", {}
    if 42 < kind < 160 or kind > 171:
        return "source:log-event", {"kind": str(kind)}
    return None


def _look_at_query(
    index: Index,
    said: Statement,
    at: int,
    transaction: int,
    tables: Mapping[TableId, TableSchema],
    cascades: str,
) -> list[Truncation]:
    touched = [t for t in tables if {t, TableId(t.schema, "*"), ANY} & set(said.tables)]
    if transaction < 0:
        raise Damaged(at)
    if said.kind is Kind.TRUNCATE:
        return [Truncation(at, transaction, t) for t in touched]
    key = unlogged(said.keys, cascades)
    said = _judged(said, [tables[t] for t in touched])
    if said.kind is Kind.CHANGE and (key or said.unlogged):
        for table in touched:
            index.faults.setdefault(table, (at, *_change(said, key, table)))
            index.changed.setdefault(table, transaction)
    elif said.kind is Kind.ROWS:
        for table in touched:
            index.faults.setdefault(table, (at, "source:statement-logged", {}))
    elif (
        said.kind is Kind.XA_COMMIT and not (index.events[:, k.E_TRANSACTION] == transaction).any()
    ):
        # It was prepared before the stream began, or too long ago: nobody knows which rows it
        # commits.
        for table in tables:
            index.faults.setdefault(table, (at, "source:transaction-unsure", {}))
    elif said.kind in (Kind.ROLLBACK, Kind.ROLLBACK_TO):
        _stop_tables_of(index, transaction, at, "source:transaction-unsure")
    return []


def _judged(said: Statement, tables: Sequence[TableSchema]) -> Statement:
    """The statement, with a reason to doubt rows if it drops the index that identifies them. A
    later look could miss this, because the index may exist again by then."""
    schemas = [s for t in tables for s in (t, t.known) if s is not None]
    if said.unlogged or {s.key_index.lower() for s in schemas}.isdisjoint(said.indexes):
        return said
    return replace(said, unlogged="a drop of the index that told its rows apart")


def _change(said: Statement, key: ForeignKey | None, table: TableId) -> tuple[str, dict[str, str]]:
    """Code and facts for a table that a statement touches. The table was dropped, was renamed, has
    rows changed without a log, or has a foreign key that causes such changes."""
    now = dict(said.moved).get(table)
    if said.gone:
        return "source:table-missing", {}
    if now is not None and table not in {new for _, new in said.moved}:
        return "source:table-renamed", {"now": str(now)}
    if key is not None:
        return "source:cascade", {"constraint": key.constraint, "rule": key.rule}
    return "source:change-unlogged", {"change": said.unlogged}


def _stop_tables_of(index: Index, transaction: int, at: int, code: str) -> None:
    """Stop the tables of a transaction that was not simply committed: they can't be kept exact."""
    mine = index.events[:, k.E_TRANSACTION] == transaction
    numbers = set(index.schema_of_event[mine].tolist()) - {NOT_SELECTED}
    tables = {index.schemas[n].schema.id for n in numbers}
    for table in tables | (index.carried if transaction == 0 else set()):
        index.faults.setdefault(table, (at, code, {}))
