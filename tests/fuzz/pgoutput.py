"""Mutated row messages of pgoutput through the compiled decoder of the PostgreSQL plugin, as
`tests.fuzz.binlog` does it. The protocol has no checksums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from replicators.connectors.model.schema import TableSchema
from replicators.sources.postgresql import kernels as k
from replicators.sources.postgresql.relations import Schema, find_table, parse_relation, schema_of
from replicators.sources.postgresql.values import WIDTHS, _lines
from tests.fuzz import mutating as m

TEXTS = -1
CODE_WIDTHS = np.array(
    [0 if c == k.BOOL else WIDTHS.get(c, TEXTS) for c in range(k.FLOAT_TEXT + 1)], np.int64
)


@dataclass(frozen=True, slots=True)
class Case:
    """The real row messages of one table: `prefix` are the frames of a Begin and of its Relation,
    `lines` its slots."""

    name: str
    oid: int
    prefix: np.ndarray
    events: np.ndarray
    at: np.ndarray
    size: np.ndarray
    lines: np.ndarray
    first_before: int
    keys: np.ndarray


def cases(recorded: dict[str, Any], body: np.ndarray) -> list[Case]:
    """A case for each table of a recorded segment; the last schema of each."""
    tables = [TableSchema.from_json(t) for t in recorded["tables"]]
    raw, at, messages = body.tobytes(), 0, []
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        messages.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    begin = next(x for x in messages if x[:1] == b"B")
    relations = {x[1:5]: x for x in messages if x[:1] == b"R"}
    found = []
    for oid, relation in relations.items():
        parsed = parse_relation(relation)
        table = find_table(parsed, tables)
        mine = [x for x in messages if x[:1] in b"IUD" and x[1:5] == oid]
        if table is not None and mine:
            found.append(_case(schema_of(parsed, table), begin, relation, mine))
    return found


def _case(table_schema: Schema, begin: bytes, relation: bytes, mine: list[bytes]) -> Case:
    schema = table_schema.schema
    before = list(schema.columns) if schema.full_before else [schema.column(n) for n in schema.key]
    where = {c.name: n for c, n in zip(schema.columns, table_schema.where, strict=True)}
    keys = np.zeros(len(table_schema.relation.columns), np.bool_)
    keys[[where[name] for name in schema.key]] = True
    lines = _lines([*schema.columns, *before], where)
    lines[len(schema.columns) :, k.S_COLUMN] += len(keys)
    sizes = np.array([len(x) for x in mine], np.int64)
    return Case(
        schema.id.name,
        table_schema.relation.oid,
        np.frombuffer(
            b"".join(len(x).to_bytes(4, "little") + x for x in (begin, relation)), np.uint8
        ),
        np.frombuffer(b"".join(mine), np.uint8),
        np.cumsum(sizes) - sizes,
        sizes,
        lines,
        len(schema.columns),
        keys,
    )


def run(
    case: Case, count: int, seed: int, samples: int
) -> tuple[int, int, np.ndarray, list[bytes]]:
    """As `binlog.run`."""
    seen = np.zeros(len(m.NAMES), np.int64)
    room = int(case.size.max()) + 128
    kept, kept_size = np.zeros((samples, room), np.uint8), np.zeros(samples, np.int64)
    violation, number = _run(
        case.prefix, case.oid, case.events, case.at, case.size, count, seed, case.keys, case.lines,
        case.first_before, CODE_WIDTHS, seen, kept, kept_size,
    )  # fmt: skip
    return (
        int(violation),
        int(number),
        seen,
        [kept[i, : kept_size[i]].tobytes() for i in range(samples) if kept_size[i]],
    )


@njit
def _run(
    prefix,
    oid,
    events,
    ev_at,
    ev_size,
    count,
    seed,
    keys,
    lines,
    first_before,
    widths,
    seen,
    kept,
    kept_size,
):
    rng = np.array(
        [np.uint64(seed) * np.uint64(2654435769) + np.uint64(88172645463325252)], np.uint64
    )
    p = len(prefix)
    body = np.zeros(p + 4 + ev_size.max() + 256, np.uint8)
    body[:p] = prefix
    n_kept = 0
    for number in range(count):
        which = m.draw(rng) % len(ev_at)
        at, size = ev_at[which], ev_size[which]
        o = p + 4
        body[o : o + size] = events[at : at + size]
        new = m.mutate(body, o, size, 0 if m.draw(rng) % 50 == 0 else 5, rng)
        if new == size and m.is_same(events, body[o : o + size], at, size):
            seen[m.UNCHANGED] += 1
            continue
        for i in range(4):
            body[p + i] = np.uint8((new >> (8 * i)) & 0xFF)
        outcome = _decode(body[: o + new], oid, keys, lines, first_before, widths)
        if outcome < 0:
            return outcome, number
        seen[outcome] += 1
        if outcome == m.ACCEPTED and n_kept < len(kept):
            kept[n_kept, :new] = body[o : o + new]
            kept_size[n_kept] = new
            n_kept += 1
    return 0, count


@njit
def _decode(d, oid, keys, template, first_before, widths):
    """One segment of a Begin, a Relation and a mutated message, as `decode` reads it: what became
    of it."""
    relations = np.zeros(4, np.int64)
    count, n_relations, n_begins, largest, damage = k.scan(d, relations)
    if damage >= 0:
        return m.FRAME
    if n_relations != 1 or count > 64:
        # Another Relation is read by Python; more rows than one are those of a TRUNCATE.
        return m.NO_ROWS
    begins = np.zeros((n_begins + 1, 3), np.int64)
    begins[0, 2] = -1
    row_at, row_schema = np.empty(count, np.uint32), np.empty(count, np.int32)
    known = np.array([np.int64(oid)])
    fault, _ = k.index(
        d, known, np.array([np.int64(-2)]), np.zeros(1, np.int64), np.zeros(1, np.int64), begins,
        row_at, row_schema,
        np.empty(count, np.int32),
    )  # fmt: skip
    if fault:
        return m.INDEX
    starts, order = np.zeros(2, np.int64), np.empty(count, np.uint32)
    k.group(row_schema, starts, order)
    rows = order[: starts[1]]
    if len(rows) == 0:
        return m.NO_ROWS
    slots = template.copy()
    scratch = np.empty(largest + 1, np.uint8)
    sizes, facts = np.zeros((len(slots), k.Z_FIELDS), np.int64), np.zeros(2, np.int64)
    fault, _, _ = k.measure(
        d, row_at, rows, keys, slots, first_before, sizes, facts, scratch, scratch
    )
    if fault:
        return m.DAMAGED if fault == k.CORRUPT else m.VALUE
    return _fill(d, row_at, rows, keys, slots, first_before, sizes, facts, scratch, widths)


@njit
def _fill(d, row_at, rows, keys, slots, first_before, sizes, facts, scratch, widths):
    count = len(rows)
    bits = (count + 7) // 8
    starts = np.zeros((5 * len(slots) + 4, 2), np.int64)
    used, n = _lay_out(slots, sizes, count, widths, starts)
    marks = np.array([-1, -1, -1, 0], np.int64)
    if facts[0]:
        marks[0] = used
        used, n = m.place(used, bits, starts, n)
        marks[1] = used // 4
        used, n = m.place(used, 4 * (count + 1), starts, n)
        marks[2] = used
        used, n = m.place(used, facts[0] * ((first_before + 7) // 8), starts, n)
    struct_at = np.int64(-1)
    if len(slots) > first_before:
        struct_at = used
        used, n = m.place(used, bits, starts, n)
    a8 = np.zeros(used, np.uint8)
    m.put_guards(a8, starts, n)
    a32 = a8.view(np.int32)
    fault, _, _ = k.fill(
        d, row_at, rows, keys, slots, first_before, np.empty(count, np.int8), marks, struct_at,
        scratch, scratch,
        a8, a8.view(np.int16), a32, a8.view(np.int64),
    )  # fmt: skip
    if not m.are_guards_whole(a8, starts, n):
        return m.OVERRUN
    if fault:
        return m.VALUE
    for s in range(len(slots)):
        code, chars, items = slots[s, k.S_CODE], sizes[s, k.Z_CHARS], sizes[s, k.Z_ITEMS]
        if code >= k.ARRAY:
            if not m.are_offsets_ordered(a32, slots[s, k.S_OFFSETS], count, items):
                return m.DISORDER
            if widths[code % k.ARRAY] == TEXTS and not m.are_offsets_ordered(
                a32, slots[s, k.S_ITEM_OFFSETS], items, chars
            ):
                return m.DISORDER
        elif widths[code] == TEXTS and not m.are_offsets_ordered(
            a32, slots[s, k.S_OFFSETS], count, chars
        ):
            return m.DISORDER
    return m.ACCEPTED


@njit
def _lay_out(slots, sizes, rows, widths, starts):
    """As `values._Slot.lay_out`, with room for guards: (size of the arena, buffers)."""
    used, n = np.int64(0), 0
    for s in range(len(slots)):
        values, chars, items = sizes[s, k.Z_VALUES], sizes[s, k.Z_CHARS], sizes[s, k.Z_ITEMS]
        texts = sizes[s, k.Z_TEXTS]
        item = slots[s, k.S_CODE] % k.ARRAY
        if texts and (item == k.FLOAT4 or item == k.FLOAT8):
            slots[s, k.S_CODE] += k.FLOAT_TEXT - item
            item = k.FLOAT_TEXT
        slots[s, k.S_FORM] = 98 if not texts else (116 if texts == values else 0)
        slots[s, k.S_VALID] = slots[s, k.S_ITEM_VALID] = -1
        slots[s, k.S_DATA] = slots[s, k.S_ITEM_DATA] = -1
        slots[s, k.S_OFFSETS] = slots[s, k.S_ITEM_OFFSETS] = -1
        slots[s, k.S_POS] = slots[s, k.S_CHARS] = 0
        if values < rows:
            slots[s, k.S_VALID] = used
            used, n = m.place(used, (rows + 7) // 8, starts, n)
        is_array = slots[s, k.S_CODE] >= k.ARRAY
        count = items if is_array else rows
        if is_array:
            slots[s, k.S_OFFSETS] = used // 4
            used, n = m.place(used, 4 * (rows + 1), starts, n)
            if sizes[s, k.Z_ITEM_VALUES] < items:
                slots[s, k.S_ITEM_VALID] = used
                used, n = m.place(used, (items + 7) // 8, starts, n)
        width = widths[item]
        if width == TEXTS:
            slots[s, k.S_ITEM_OFFSETS if is_array else k.S_OFFSETS] = used // 4
            used, n = m.place(used, 4 * (count + 1), starts, n)
            slots[s, k.S_POS] = slots[s, k.S_CHARS] = used
            used, n = m.place(used, chars, starts, n)
        else:
            data = used // min(max(width, 1), 8)
            slots[s, k.S_ITEM_DATA if is_array else k.S_DATA] = data
            used, n = m.place(used, width * count if width else (count + 7) // 8, starts, n)
    return used, n
