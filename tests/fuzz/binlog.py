"""Mutated row events of a binlog through the compiled decoder of the MySQL plugin: index, measure
and fill, as `decode` calls them, each event alone, with memory of exactly the size that it
measured, and guards behind every buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from replicators.connectors.model.schema import TableSchema
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.expand import expand
from replicators.sources.mysql.segments import Index, index_segment
from replicators.sources.mysql.values import Labels, Layout, _Slot
from tests.fuzz import mutating as m

I_WIDTH, I_EACH, I_IS_MOMENT, I_IS_BEFORE, I_PLACE, I_FIELDS = range(6)
TEXTS = -1
KEPT_CHECKSUMS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """The real row events of one table, and what decoding knows of it: `prefix` are the frames of a
    transaction's begin and of its TABLE_MAP; `slots` and `infos` describe the output columns."""

    name: str
    prefix: np.ndarray
    events: np.ndarray
    at: np.ndarray
    size: np.ndarray
    layout: Layout
    slots: np.ndarray
    infos: np.ndarray
    labels: np.ndarray
    label_starts: np.ndarray
    has_key: bool
    has_whole_before: bool


def cases(recorded: dict[str, Any], body: np.ndarray) -> list[Case]:
    """A case for each kind of a recorded segment."""
    tables = [TableSchema.from_json(t) for t in recorded["tables"]]
    charsets = {int(n): str(c) for n, c in recorded["context"]["charsets"].items()}
    index = index_segment(recorded["context"], expand(body, has_checksums=True), tables, charsets)
    frames = _frames(body)
    begin = next(f for f in frames if f[8] in (33, 34, 42, 162))
    maps = {f[23:29]: f for f in frames if f[8] == k.TABLE_MAP_EVENT}
    found = []
    for number in range(len(index.schemas)):
        mine = np.flatnonzero(index.schema_of_event == number)
        if len(mine):
            found.append(_case(index, number, mine, begin, maps, body, charsets))
    return found


def _frames(body: np.ndarray) -> list[bytes]:
    raw, at, found = body.tobytes(), 0, []
    while at < len(raw):
        size = 4 + int.from_bytes(raw[at : at + 4], "little")
        found.append(raw[at : at + size])
        at += size
    return found


def _case(
    index: Index,
    number: int,
    mine: np.ndarray,
    begin: bytes,
    maps: dict[bytes, bytes],
    body: np.ndarray,
    charsets: dict[int, str],
) -> Case:
    schema = index.schemas[number]
    where = dict(zip((c.name for c in schema.schema.columns), schema.where, strict=True))
    layout = Layout.of(schema.map.columns, [where[n] for n in schema.schema.key])
    labels = Labels()
    width = len(layout.columns)
    columns = [(c, where[c.name]) for c in schema.schema.columns]
    before = (
        columns
        if schema.schema.full_before
        else [(c, n) for c, n in columns if c.name in schema.schema.key]
    )
    made = [_Slot(c, layout.columns[n], n, labels, charsets) for c, n in columns]
    made += [_Slot(c, layout.columns[n], width + n, labels, charsets) for c, n in before]
    slots = np.zeros((len(made), k.S_FIELDS), np.int64)
    infos = np.zeros((len(made), I_FIELDS), np.int64)
    for slot, line, info in zip(made, slots, infos, strict=True):
        slot.describe(line)
        is_text = slot.code >= k.TEXT
        info[I_WIDTH] = TEXTS if is_text else slot.width
        info[I_EACH] = slot._most_chars(1, 0) if is_text else 0
        info[I_IS_MOMENT] = slot.is_moment
        info[I_IS_BEFORE] = slot.place >= width
        info[I_PLACE] = slot.place % width
    events = index.events[mine]
    parts = [body[e[k.E_AT] : e[k.E_END]] for e in events]
    map_frame = maps[body[events[0, k.E_AT] + 19 : events[0, k.E_AT] + 25].tobytes()]
    sizes = np.array([len(p) for p in parts], np.int64)
    return Case(
        str(schema.schema.id.name),
        np.frombuffer(begin + map_frame, np.uint8),
        np.concatenate(parts),
        np.cumsum(sizes) - sizes,
        sizes,
        layout,
        slots,
        infos,
        np.frombuffer(bytes(labels.data) or b"\0", np.uint8),
        np.array(labels.starts, np.int64),
        bool(before),
        schema.schema.full_before,
    )


def run(
    case: Case, count: int, seed: int, samples: int
) -> tuple[int, int, np.ndarray, list[bytes]]:
    """Mutate and decode `count` events: (violation or 0, the event it was seen at, how many of each
    outcome, the first events that were decoded)."""
    seen = np.zeros(len(m.NAMES), np.int64)
    room = int(case.size.max()) + 128
    kept, kept_size = np.zeros((samples, room), np.uint8), np.zeros(samples, np.int64)
    layout = case.layout
    violation, number = _run(
        case.prefix, case.events, case.at, case.size, count, seed, layout.widths, layout.sizes,
        layout.keys,
        case.slots, case.infos, case.labels, case.label_starts, case.has_key, case.has_whole_before,
        seen, kept, kept_size,
    )  # fmt: skip
    return (
        int(violation),
        int(number),
        seen,
        [kept[i, : kept_size[i]].tobytes() for i in range(samples) if kept_size[i]],
    )


@njit
def _put4(out, at, v):
    for i in range(4):
        out[at + i] = np.uint8((v >> (8 * i)) & 0xFF)


@njit
def _run(prefix, events, ev_at, ev_size, count, seed, widths, sizes, keys, slots, infos, labels,
    label_starts,
         has_key, has_whole_before, seen, kept, kept_size):  # fmt: skip
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
        old = k.crc32(body, o, o + size, k.CRC_TABLES)
        is_stale = m.draw(rng) % KEPT_CHECKSUMS == 0
        new = m.mutate(body, o, size, 0 if m.draw(rng) % 50 == 0 else 19, rng)
        if new == size and m.is_same(events, body[o : o + size], at, size):
            seen[m.UNCHANGED] += 1
            continue
        if new >= 19 and not is_stale:
            _put4(body, o + 9, new + 4)
        _put4(body, p, new + 4)
        _put4(body, o + new, old if is_stale else k.crc32(body, o, o + new, k.CRC_TABLES))
        outcome = _decode(
            body[: o + new + 4],
            widths,
            sizes,
            keys,
            slots,
            infos,
            labels,
            label_starts,
            has_key,
            has_whole_before,
        )
        if outcome < 0:
            return outcome, number
        if is_stale and outcome > m.CHECKSUM:
            return m.UNSEEN, number
        seen[outcome] += 1
        if outcome == m.ACCEPTED and n_kept < len(kept):
            kept[n_kept, : new + 4] = body[o : o + new + 4]
            kept_size[n_kept] = new + 4
            n_kept += 1
    return 0, count


@njit
def _decode(
    d, widths, sizes, keys, template, infos, labels, label_starts, has_key, has_whole_before
):
    """One segment of a begin, a TABLE_MAP and a mutated event, as `decode` reads it: what became of
    it."""
    _, n_rows, n_maps, n_begins, n_others, damage = k.count_events(d)
    if damage >= 0:
        return m.FRAME
    ids, numbers = np.full(64, -1, np.int64), np.zeros(64, np.int64)
    events = np.zeros((n_rows, k.E_FIELDS), np.int64)
    begins = np.zeros((n_begins + 1, k.X_FIELDS), np.int64)
    others = np.zeros((n_others, 2), np.int64)
    fault, _, n_rows, n_maps, _, _ = k.scan(
        d,
        True,
        k.CRC_TABLES,
        ids,
        numbers,
        0,
        np.zeros(n_maps + 1, np.int64),
        events,
        begins,
        others,
        False,
    )
    if fault:
        return m.CHECKSUM if fault == k.CHECKSUM else m.INDEX
    if n_rows != 1 or events[0, k.E_MAP] != 0:
        return m.NO_ROWS
    mine, counts = np.zeros(1, np.int64), np.zeros(1, np.int64)
    totals = np.zeros((k.T_FIELDS, len(widths)), np.int64)
    fault, _ = k.measure(d, events, mine, widths, sizes, keys, totals, counts)
    if fault:
        return m.DAMAGED
    rows = counts[0]
    slots = template.copy()
    starts = np.zeros((3 * len(slots) + 1, 2), np.int64)
    used, n, struct_at = _lay_out(slots, infos, rows, totals, has_key, starts)
    a8 = np.zeros(used, np.uint8)
    m.put_guards(a8, starts, n)
    struct_valid = np.array([struct_at, 0, np.int64(has_whole_before)], np.int64)
    fault, _, _ = k.fill(
        d, events, mine, widths, sizes, keys, slots, np.empty(rows, np.int8),
        np.empty(rows, np.int32), struct_valid,
        labels, label_starts, 8, a8, a8.view(np.int16), a8.view(np.int32), a8.view(np.int64),
    )  # fmt: skip
    if not m.are_guards_whole(a8, starts, n):
        return m.OVERRUN
    if fault:
        return m.VALUE
    a32 = a8.view(np.int32)
    for s in range(len(slots)):
        if infos[s, I_WIDTH] == TEXTS:
            most = slots[s, k.S_POS] - slots[s, k.S_CHARS]
            if not m.are_offsets_ordered(a32, slots[s, k.S_OFFSETS], rows, most):
                return m.DISORDER
    return m.ACCEPTED


@njit
def _lay_out(slots, infos, rows, totals, has_key, starts):
    """As `values._Slot.lay_out`, with room for guards: (size of the arena, buffers, where the
    validity of `_before` lies)."""
    used, n = np.int64(0), 0
    for s in range(len(slots)):
        is_before, place = infos[s, I_IS_BEFORE], infos[s, I_PLACE]
        chars = totals[k.T_CHARS_BEFORE if is_before else k.T_CHARS, place]
        nulls = rows if is_before else totals[k.T_NULLS, place]
        if nulls or infos[s, I_IS_MOMENT]:
            slots[s, k.S_VALID] = used
            used, n = m.place(used, (rows + 7) // 8, starts, n)
        width = infos[s, I_WIDTH]
        if width == TEXTS:
            slots[s, k.S_OFFSETS] = used // 4
            used, n = m.place(used, 4 * (rows + 1), starts, n)
            slots[s, k.S_POS] = slots[s, k.S_CHARS] = used
            each = infos[s, I_EACH]
            used, n = m.place(used, rows * each if each else chars, starts, n)
        else:
            slots[s, k.S_DATA] = used // min(max(width, 1), 8)
            used, n = m.place(used, width * rows if width else (rows + 7) // 8, starts, n)
    if not has_key:
        return used, n, np.int64(-1)
    struct_at = used
    used, n = m.place(used, (rows + 7) // 8, starts, n)
    return used, n, struct_at
