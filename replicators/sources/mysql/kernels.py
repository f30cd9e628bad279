"""Compiled loops over binlog events: verify and index them, measure a table's rows, fill Arrow
buffers.

No Python object per row. `scan` checks every event's frame and checksum, `measure` every length in
the rows; `fill` then reads the same bytes again. The file is long but must stay one: for a cached
function numba notices only changes of the function's own file, so functions in other files could
stay compiled in an old form. Formats: MySQL, `libs/mysql/binlog/event/`; values:
`sql-common/my_time.cc`, `strings/decimal.cc`.
"""

# ruff: noqa: C901, SIM102, SIM109, SIM110 - compiled code branches by type, and numba has neither
# cheap tuples nor all()

from __future__ import annotations

import numpy as np
from numba import njit

# Codes of a value's form. Those from TEXT on are characters or bytes of any length.
INT1, INT2, INT3, INT4, INT8 = range(5)
UNSIGNED = 8
FLOAT, DOUBLE, DECIMAL, YEAR, DATE, DATETIME, TIMESTAMP, BIT = range(16, 24)
TEXT, BYTES, PADDED, GEOMETRY, ENUM, SET, TIME, DECIMAL_TEXT = range(64, 72)
UUID, INET4, INET6, VECTOR = range(72, 76)
MOMENT_ZERO, MOMENT_FAIL, MOMENT_TEXT = 8, 32, 128

# Faults.
FINE, CORRUPT, PARTIAL, ZERO_DATE, CHECKSUM, NO_MAP, FULL, NO_TRANSACTION, NO_DATE = range(9)

# Fields of a slot (an output column): `S_COLUMN` counts the before image's columns after those of
# the after image.
(
    S_COLUMN,
    S_CODE,
    S_P1,
    S_P2,
    S_VALID,
    S_DATA,
    S_OFFSETS,
    S_CHARS,
    S_POS,
    S_LIMIT,
    S_NULLS,
    S_FIELDS,
) = range(12)
# Lines of `totals`: characters and NULLs, of after and before images.
T_CHARS, T_NULLS, T_CHARS_BEFORE, T_NULLS_BEFORE, T_FIELDS = range(5)
# Fields of a row event.
E_AT, E_END, E_KIND, E_MAP, E_TRANSACTION, E_FIELDS = range(6)
WRITE, UPDATE, DELETE = 1, 2, 3
# Fields of a transaction: where its first event begins, and its commit time (microseconds; 0:
# unknown).
X_OFFSET, X_TIME, X_FIELDS = range(3)

HEADER = 19
CRC = 4
QUERY_EVENT, XID_EVENT, TABLE_MAP_EVENT = 2, 16, 19
GTID_EVENT, ANONYMOUS_EVENT, TAGGED_EVENT, MARIADB_GTID_EVENT = 33, 34, 42, 162
MIN_MICROS, MAX_MICROS = -62135596800000000, 253402300799999999
POW10 = 10 ** np.arange(19, dtype=np.int64)
DIGIT_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
MASK32 = np.uint64(0xFFFFFFFF)
SHIFT32 = np.uint64(32)


def _crc_tables() -> np.ndarray:
    """Tables of CRC-32 (the polynomial of zlib) for eight bytes at a time."""
    tables = np.zeros((8, 256), np.uint32)
    for i in range(256):
        value = i
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        tables[0, i] = value
    for i in range(256):
        value = int(tables[0, i])
        for n in range(1, 8):
            value = int(tables[0, value & 0xFF]) ^ (value >> 8)
            tables[n, i] = value
    return tables


CRC_TABLES = _crc_tables()


# --- integers ------------------------------------------------------------------------------------------------------  # noqa: E501


# Unsigned indexes: numba then omits its test for negative ones, and the loads merge into one.


@njit
def byte(d, p):
    return np.int64(d[np.uint64(p)])


@njit
def le2(d, p):
    return byte(d, p) | (byte(d, p + 1) << 8)


@njit
def le3(d, p):
    return le2(d, p) | (byte(d, p + 2) << 16)


@njit
def le4(d, p):
    return byte(d, p) | (byte(d, p + 1) << 8) | (byte(d, p + 2) << 16) | (byte(d, p + 3) << 24)


@njit
def le6(d, p):
    return le4(d, p) | (le2(d, p + 4) << 32)


@njit
def le8(d, p):
    return le4(d, p) | (le4(d, p + 4) << 32)


@njit
def le(d, p, n):
    v = np.int64(0)
    for i in range(n):
        v |= byte(d, p + i) << (8 * i)
    return v


@njit
def be(d, p, n):
    v = np.int64(0)
    for i in range(n):
        v = (v << 8) | byte(d, p + i)
    return v


@njit
def signed(v, bits):
    return v - (np.int64(1) << bits) if v >> (bits - 1) else v


@njit
def packed(d, p, end):
    """A length-encoded integer: (value or -1, position after it)."""
    if p >= end:
        return np.int64(-1), p
    first = byte(d, p)
    if first < 251:
        return first, p + 1
    n = 2 if first == 252 else (3 if first == 253 else (8 if first == 254 else 0))
    if n == 0 or p + 1 + n > end:
        return np.int64(-1), p
    return le(d, p + 1, n), p + 1 + n


@njit(cache=True, nogil=True)
def crc32(d, p, end, tables):
    """zlib's CRC-32 of d[p:end]."""
    c = np.uint32(0xFFFFFFFF)
    while p + 8 <= end:
        low = np.uint32(le4(d, p)) ^ c
        high = np.uint32(le4(d, p + 4))
        c = (
            tables[7, low & np.uint32(0xFF)]
            ^ tables[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ tables[5, (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ tables[4, low >> np.uint32(24)]
            ^ tables[3, high & np.uint32(0xFF)]
            ^ tables[2, (high >> np.uint32(8)) & np.uint32(0xFF)]
            ^ tables[1, (high >> np.uint32(16)) & np.uint32(0xFF)]
            ^ tables[0, high >> np.uint32(24)]
        )
        p += 8
    while p < end:
        c = tables[0, (c ^ np.uint32(d[np.uint64(p)])) & np.uint32(0xFF)] ^ (c >> np.uint32(8))
        p += 1
    return np.int64(c ^ np.uint32(0xFFFFFFFF))


# --- the segment: events -------------------------------------------------------------------------------------------  # noqa: E501


@njit
def rows_kind(t):
    """WRITE, UPDATE or DELETE for a row event, else 0."""
    if t == 23 or t == 30:
        return WRITE
    if t == 24 or t == 31:
        return UPDATE
    if t == 25 or t == 32:
        return DELETE
    return 0


@njit(cache=True, nogil=True)
def count_events(d):
    """(events, row events, TABLE_MAPs, transactions, others; offset of the first damaged frame or
    -1)."""
    n, rows, maps, begins, others = 0, 0, 0, 0, 0
    p, end = np.int64(0), np.int64(len(d))
    while p < end:
        if end - p < 4:
            return n, rows, maps, begins, others, p
        size = le4(d, p)
        if size < HEADER or size > end - p - 4 or le4(d, p + 4 + 9) != size:
            return n, rows, maps, begins, others, p
        t = byte(d, p + 8)
        n += 1
        if rows_kind(t):
            rows += 1
        elif t == TABLE_MAP_EVENT:
            maps += 1
        elif (
            t == GTID_EVENT or t == ANONYMOUS_EVENT or t == TAGGED_EVENT or t == MARIADB_GTID_EVENT
        ):
            begins += 1
        else:
            others += 1
        p += 4 + size
    return n, rows, maps, begins, others, np.int64(-1)


@njit
def is_plain_query(d, at, end):
    """Whether a QUERY event is only a BEGIN or COMMIT, as around rows."""
    p = at + HEADER
    if p + 13 > end:
        return False
    q = p + 13 + le2(d, p + 11) + byte(d, p + 8) + 1
    n = end - q
    if n == 5:
        return (
            byte(d, q) == 66 and byte(d, q + 1) == 69 and byte(d, q + 2) == 71
            and byte(d, q + 3) == 73 and byte(d, q + 4) == 78
        )  # fmt: skip
    if n == 6:
        return (
            byte(d, q) == 67 and byte(d, q + 1) == 79 and byte(d, q + 2) == 77
            and byte(d, q + 3) == 77 and byte(d, q + 4) == 73 and byte(d, q + 5) == 84
        )  # fmt: skip
    return False


@njit
def is_same(d, a, b, n):
    for i in range(n):
        if d[np.uint64(a + i)] != d[np.uint64(b + i)]:
            return False
    return True


@njit
def find(ids, number):
    """The place of a number in an open hash table: its own, or the empty place (-1) where it
    belongs."""
    mask = len(ids) - 1
    i = ((number * 2654435761) >> 7) & mask
    while ids[i] != -1 and ids[i] != number:
        i = (i + 1) & mask
    return i


@njit
def stepwise(d, p, end):
    """A whole number; the low bits of its first byte give the count of bytes that follow (see
    `tagged`): (value or -1, position after it)."""
    if p >= end:
        return np.int64(-1), p
    first = byte(d, p)
    more = 0
    while more < 7 and (first >> more) & 1:
        more += 1
    if first == 0xFF or p + 1 + more > end:
        return np.int64(-1), p
    return (le(d, p, more + 1) >> (more + 1)) & ((np.int64(1) << (7 * more + 7)) - 1), p + 1 + more


@njit
def tagged_time(d, at, end):
    """The commit time of a transaction with a tagged GTID, in microseconds; -1 if its event does
    not hold it."""
    p = at + HEADER
    for _ in range(3):
        _, p = stepwise(d, p, end)
    for wanted in range(7):
        field, p = stepwise(d, p, end)
        if field != wanted:
            return np.int64(-1)
        value = np.int64(0)
        for _ in range(16 if field == 1 else 1):
            value, p = stepwise(d, p, end)
            if value < 0:
                return np.int64(-1)
        if field == 3:
            p += value
        elif field == 6:
            return value
    return np.int64(-1)


@njit
def begin_time(d, at, end, t):
    """The commit time of a transaction in microseconds, from the event that opens it."""
    if t == TAGGED_EVENT:
        v = tagged_time(d, at, end)
        return v if 0 <= v <= MAX_MICROS else le4(d, at) * 1000000
    if (t == GTID_EVENT or t == ANONYMOUS_EVENT) and end - at >= HEADER + 42 + 7:
        p = at + HEADER + 25
        if byte(d, p) == 2:
            v = le(d, p + 17, 7)
            return v & ~(np.int64(1) << 55)
    return le4(d, at) * 1000000


@njit(cache=True, nogil=True)
def scan(d, has_crc, tables, ids, numbers, known, maps, events, begins, others, open_begin):
    """Index a segment whose frames `count_events` found right: (fault, offset, row events, maps,
    begins, others).

    `ids` and `numbers` are a hash table from table numbers to maps, filled with the `known` maps
    from before. `maps` receives the offsets of distinct TABLE_MAPs, `events` and `begins` lines as
    above. `others` receives (offset, transaction) of every other event except XID and plain BEGIN
    and COMMIT. `open_begin`: a transaction is open at the start (line 0).
    """
    n_rows, n_maps, n_others = 0, 0, 0
    n_begins = 1 if open_begin else 0
    has_begun = open_begin
    p, last = np.int64(0), np.int64(len(d))
    tail = CRC if has_crc else 0
    while p < last:
        size = le4(d, p)
        at = p + 4
        end = at + size - tail
        if end < at + HEADER:
            return CORRUPT, p, n_rows, n_maps, n_begins, n_others
        if has_crc and crc32(d, at, end, tables) != le4(d, end):
            return CHECKSUM, p, n_rows, n_maps, n_begins, n_others
        t = byte(d, at + 4)
        kind = rows_kind(t)
        if kind:
            if end < at + HEADER + 8:
                return CORRUPT, p, n_rows, n_maps, n_begins, n_others
            number = le6(d, at + HEADER)
            i = find(ids, number)
            if ids[i] == -1:
                return NO_MAP, p, n_rows, n_maps, n_begins, n_others
            if not has_begun:
                return NO_TRANSACTION, p, n_rows, n_maps, n_begins, n_others
            events[n_rows, E_AT] = at
            events[n_rows, E_END] = end
            events[n_rows, E_KIND] = kind
            events[n_rows, E_MAP] = numbers[i]
            events[n_rows, E_TRANSACTION] = n_begins - 1
            n_rows += 1
        elif t == TABLE_MAP_EVENT:
            if end < at + HEADER + 8:
                return CORRUPT, p, n_rows, n_maps, n_begins, n_others
            number = le6(d, at + HEADER)
            i = find(ids, number)
            is_known = False
            if ids[i] != -1 and numbers[i] >= known:
                q = maps[numbers[i] - known]
                is_known = le4(d, q) == size and is_same(
                    d, q + 4 + HEADER, at + HEADER, size - HEADER - tail
                )
            if not is_known:
                ids[i] = number
                numbers[i] = known + n_maps
                maps[n_maps] = p
                n_maps += 1
        elif (
            t == GTID_EVENT or t == ANONYMOUS_EVENT or t == TAGGED_EVENT or t == MARIADB_GTID_EVENT
        ):
            begins[n_begins, X_OFFSET] = le4(d, at + 13) - size
            begins[n_begins, X_TIME] = begin_time(d, at, end, t)
            n_begins += 1
            has_begun = True
        elif not (t == XID_EVENT or (t == QUERY_EVENT and is_plain_query(d, at, end))):
            others[n_others, 0] = p
            others[n_others, 1] = n_begins - 1
            n_others += 1
        p = at + size
    return FINE, np.int64(-1), n_rows, n_maps, n_begins, n_others


# --- rows ----------------------------------------------------------------------------------------------------------  # noqa: E501


@njit
def rows_begin(d, events, e, columns):
    """Where the rows of an event begin: (fault, position)."""
    at, end = events[e, E_AT], events[e, E_END]
    p = at + HEADER + 8
    if byte(d, at + 4) >= 30:
        if p + 2 > end:
            return CORRUPT, p
        extra = le2(d, p)
        if extra < 2:
            return CORRUPT, p
        p += extra
    width, p = packed(d, p, end)
    if width != columns:
        return CORRUPT, p
    size = (columns + 7) >> 3
    for _ in range(2 if events[e, E_KIND] == UPDATE else 1):
        if p + size > end:
            return CORRUPT, p
        for c in range(columns):
            if not byte(d, p + (c >> 3)) & (1 << (c & 7)):
                return PARTIAL, p
        p += size
    return FINE, p


@njit
def skip_image(d, p, end, widths, sizes, chars, nulls):
    """Walk over an image; add its lengths and NULLs to the sums. Returns the position after it, or
    -1."""
    n = len(widths)
    marks = p
    p += (n + 7) >> 3
    if p > end:
        return np.int64(-1)
    for c in range(n):
        if byte(d, marks + (c >> 3)) & (1 << (c & 7)):
            nulls[c] += 1
            continue
        w = widths[c]
        if w == 0:
            p += sizes[c]
        else:
            if p + w > end:
                return np.int64(-1)
            size = le(d, p, w)
            chars[c] += size
            p += w + size
        if p > end:
            return np.int64(-1)
    return p


@njit(cache=True, nogil=True)
def measure(d, events, mine, widths, sizes, keys, totals, counts):
    """Check the rows of a table's events (`mine` are their numbers) and count them: (fault, event).

    `widths` and `sizes` are the columns' `length_rule`s. `counts` receives the rows of each event,
    `totals` the sums. A delete's key counts for the after image, because it is stored there too.
    """
    n = len(widths)
    chars = np.zeros(n, np.int64)
    nulls = np.zeros(n, np.int64)
    for m in range(len(mine)):
        e = mine[m]
        fault, p = rows_begin(d, events, e, n)
        if fault:
            return fault, m
        end, kind = events[e, E_END], events[e, E_KIND]
        rows = 0
        while p < end:
            if kind == WRITE:
                p = skip_image(d, p, end, widths, sizes, totals[T_CHARS], totals[T_NULLS])
            elif kind == UPDATE:
                p = skip_image(
                    d, p, end, widths, sizes, totals[T_CHARS_BEFORE], totals[T_NULLS_BEFORE]
                )
                if p >= 0:
                    p = skip_image(d, p, end, widths, sizes, totals[T_CHARS], totals[T_NULLS])
            else:
                chars[:] = 0
                nulls[:] = 0
                p = skip_image(d, p, end, widths, sizes, chars, nulls)
                for c in range(n):
                    totals[T_CHARS_BEFORE, c] += chars[c]
                    totals[T_NULLS_BEFORE, c] += nulls[c]
                    if keys[c]:
                        totals[T_CHARS, c] += chars[c]
                        totals[T_NULLS, c] += nulls[c]
                    else:
                        totals[T_NULLS, c] += 1
            if p < 0:
                return CORRUPT, m
            rows += 1
        counts[e] = rows
    return FINE, 0


@njit
def read_image(d, p, widths, sizes, base, r, sent, at, size):
    """Note where the values of an image lie, as columns from `base` on. Returns the position after
    it."""
    n = len(widths)
    marks = p
    p += (n + 7) >> 3
    for c in range(n):
        j = base + c
        if byte(d, marks + (c >> 3)) & (1 << (c & 7)):
            sent[j, r] = 0
            continue
        sent[j, r] = 1
        w = widths[c]
        if w == 0:
            length = sizes[c]
        elif w == 1:
            length = byte(d, p)
            p += 1
        else:
            length = le(d, p, w)
            p += w
        at[j, r] = p
        size[j, r] = length
        p += length
    return p


@njit
def is_moved(d, r, keys, sent, at, size):
    """Whether an update changed the key."""
    n = len(keys)
    for c in range(n):
        if keys[c]:
            if sent[c, r] != sent[n + c, r]:
                return True
            if sent[c, r] and (
                size[c, r] != size[n + c, r] or not is_same(d, at[c, r], at[n + c, r], size[c, r])
            ):
                return True
    return False


# --- values --------------------------------------------------------------------------------------------------------  # noqa: E501


@njit
def days_from_civil(y, m, day):
    y -= m <= 2
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (m + (-3 if m > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


@njit
def civil_from_days(z):
    z += 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    m = mp + (3 if mp < 10 else -9)
    return yoe + era * 400 + (m <= 2), m, doy - (153 * mp + 2) // 5 + 1


@njit
def is_date(y, m, day):
    """Whether the calendar has that date."""
    if y < 1 or y > 9999 or m < 1 or m > 12 or day < 1:
        return False
    leap = m == 2 and y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
    return day <= MONTH_DAYS[m] + leap


@njit
def no_date(m, day):
    return ZERO_DATE if m == 0 or day == 0 else NO_DATE


@njit
def fraction(d, p, digits):
    """Microseconds stored in 0 to 3 bytes; -1 for invalid ones."""
    if digits == 0:
        return np.int64(0)
    if digits <= 2:
        v = byte(d, p)
        return v * 10000 if v < 100 else np.int64(-1)
    if digits <= 4:
        v = be(d, p, 2)
        return v * 100 if v < 10000 else np.int64(-1)
    v = be(d, p, 3)
    return v if v < 1000000 else np.int64(-1)


@njit
def read_moment(d, p, code, digits):
    """(fault, microseconds or days, year, month, day, second of the day, microseconds within it). A
    value without month or day is ZERO_DATE; another date that the calendar lacks is NO_DATE."""
    zero = np.int64(0)
    if code == DATE:
        v = le3(d, p)
        y, m, day = v >> 9, (v >> 5) & 15, v & 31
        if not is_date(y, m, day):
            return no_date(m, day), zero, y, m, day, zero, zero
        return FINE, days_from_civil(y, m, day), y, m, day, zero, zero
    if code == TIMESTAMP:
        v = be(d, p, 4)
        f = fraction(d, p + 4, digits)
        if f < 0:
            return CORRUPT, zero, zero, zero, zero, zero, zero
        if v == 0 and f == 0:
            return ZERO_DATE, zero, zero, zero, zero, zero, zero
        y, m, day = civil_from_days(v // 86400)
        return FINE, v * 1000000 + f, y, m, day, v % 86400, f
    v = be(d, p, 5) - 0x8000000000
    f = fraction(d, p + 5, digits)
    second, minute, hour = v & 63, (v >> 6) & 63, (v >> 12) & 31
    if v < 0 or f < 0 or hour > 23 or minute > 59 or second > 59:
        return CORRUPT, zero, zero, zero, zero, zero, zero
    day, y, m = (v >> 17) & 31, (v >> 22) // 13, (v >> 22) % 13
    of_day = hour * 3600 + minute * 60 + second
    if y > 9999:
        return CORRUPT, zero, zero, zero, zero, zero, zero
    if not is_date(y, m, day):
        return no_date(m, day), zero, y, m, day, of_day, f
    return FINE, (days_from_civil(y, m, day) * 86400 + of_day) * 1000000 + f, y, m, day, of_day, f


@njit
def put_digits(v, n, a8, pos):
    for i in range(n):
        a8[pos + n - 1 - i] = 48 + v % 10
        v //= 10
    return pos + n


@njit
def put_clock(second, micros, digits, a8, pos):
    """Write `HH:MM:SS.ffffff`; hours have at least two digits."""
    hours = second // 3600
    pos = put_digits(hours, 3 if hours > 99 else 2, a8, pos)
    a8[pos] = 58
    pos = put_digits(second // 60 % 60, 2, a8, pos + 1)
    a8[pos] = 58
    pos = put_digits(second % 60, 2, a8, pos + 1)
    if digits:
        a8[pos] = 46
        pos = put_digits(micros // POW10[6 - digits], digits, a8, pos + 1)
    return pos


@njit
def put_moment_text(d, p, code, digits, a8, pos):
    """A date or moment as the server prints it: (fault, position after it)."""
    fault, _, y, m, day, second, micros = read_moment(d, p, code, digits)
    if fault == CORRUPT:
        return CORRUPT, pos
    pos = put_digits(y, 4, a8, pos)
    a8[pos] = 45
    pos = put_digits(m, 2, a8, pos + 1)
    a8[pos] = 45
    pos = put_digits(day, 2, a8, pos + 1)
    if code != DATE:
        a8[pos] = 32
        pos = put_clock(second, micros, digits, a8, pos + 1)
    return FINE, pos


@njit
def put_time(d, p, digits, a8, pos):
    """A TIME as the server prints it: (fault, position after it)."""
    v = be(d, p, 3) - 0x800000
    if digits <= 4:
        n = (digits + 1) // 2
        f = be(d, p + 3, n)
        if v < 0 and f:
            v += 1
            f -= np.int64(1) << (8 * n)
        whole = (v << 24) + f * (10000 if n == 1 else 100)
    else:
        whole = be(d, p, 6) - 0x800000000000
    if whole < 0:
        a8[pos] = 45
        pos += 1
        whole = -whole
    hms = whole >> 24
    micros = whole & 0xFFFFFF
    hour, minute, second = (hms >> 12) & 1023, (hms >> 6) & 63, hms & 63
    if hms >> 22 or minute > 59 or second > 59 or micros > 999999 or hour > 838:
        return CORRUPT, pos
    return FINE, put_clock(hour * 3600 + minute * 60 + second, micros, digits, a8, pos)


@njit
def mul_add(high, low, m, a):
    """(high, low) * m + a in 128 bits, all unsigned, m and a below 2^32."""
    t0 = (low & MASK32) * m + a
    t1 = (low >> SHIFT32) * m + (t0 >> SHIFT32)
    return high * m + (t1 >> SHIFT32), (t1 << SHIFT32) | (t0 & MASK32)


@njit
def decimal_group(d, p, n, first, mask):
    """An unsigned group of `n` bytes. The first byte of the whole number has its top bit
    inverted."""
    v = np.int64(0)
    for i in range(n):
        b = byte(d, p + i)
        if i == 0 and first:
            b ^= 0x80
        v = (v << 8) | (b ^ mask)
    return v


@njit
def put_decimal(d, p, precision, scale, a64, at):
    """Write a number of at most 38 digits as 128 bits. Returns the fault."""
    whole = precision - scale
    negative = byte(d, p) & 0x80 == 0
    mask = 0xFF if negative else 0
    high, low = np.uint64(0), np.uint64(0)
    first = True
    for part in range(2):
        digits = whole if part == 0 else scale
        full, rest = digits // 9, digits % 9
        for g in range(full + 1):
            # The incomplete group is first in the whole part and last in the fraction.
            is_rest = g == (0 if part == 0 else full)
            n = rest if is_rest else 9
            if n == 0:
                continue
            size = DIGIT_BYTES[n]
            v = decimal_group(d, p, size, first, mask)
            if v >= POW10[n]:
                return CORRUPT
            first = False
            p += size
            high, low = mul_add(high, low, np.uint64(POW10[n]), np.uint64(v))
    if negative:
        low = ~low + np.uint64(1)
        high = ~high + np.uint64(low == np.uint64(0))
    a64[at] = np.int64(low)
    a64[at + 1] = np.int64(high)
    return FINE


@njit
def put_decimal_text(d, p, precision, scale, a8, pos):
    """A number of any size as the server prints it: (fault, position after it)."""
    whole = precision - scale
    negative = byte(d, p) & 0x80 == 0
    mask = 0xFF if negative else 0
    if negative:
        a8[pos] = 45
        pos += 1
    start = pos
    first = True
    for part in range(2):
        digits = whole if part == 0 else scale
        full, rest = digits // 9, digits % 9
        if part == 1:
            if pos == start:
                a8[pos] = 48
                pos += 1
            if scale == 0:
                break
            a8[pos] = 46
            pos += 1
        for g in range(full + 1):
            is_rest = g == (0 if part == 0 else full)
            n = rest if is_rest else 9
            if n == 0:
                continue
            size = DIGIT_BYTES[n]
            v = decimal_group(d, p, size, first, mask)
            if v >= POW10[n]:
                return CORRUPT, pos
            first = False
            p += size
            if part == 0 and pos == start:
                while n > 0 and v < POW10[n - 1]:
                    n -= 1
            pos = put_digits(v, n, a8, pos)
    return FINE, pos


@njit
def put_label(index, labels, starts, first, a8, pos):
    for i in range(starts[first + index], starts[first + index + 1]):
        a8[pos] = labels[i]
        pos += 1
    return pos


@njit
def put_chars(d, p, n, code, p1, p2, labels, starts, a8, pos):
    """Store a value of any length: (fault, position after it)."""
    if code == TEXT or code == BYTES:
        for i in range(n):
            a8[np.uint64(pos + i)] = d[np.uint64(p + i)]
        return FINE, pos + n
    if code == PADDED:
        if n > p1:
            return CORRUPT, pos
        for i in range(n):
            a8[pos + i] = d[np.uint64(p + i)]
        return FINE, pos + p1
    if code == GEOMETRY:
        if n < 9:
            return CORRUPT, pos
        for i in range(n - 4):
            a8[pos + i] = d[np.uint64(p + 4 + i)]
        return FINE, pos + n - 4
    if code == ENUM:
        v = le(d, p, n)
        if v > p2:
            return CORRUPT, pos
        return FINE, put_label(v - 1, labels, starts, p1, a8, pos) if v else pos
    if code == SET:
        v = le(d, p, n)
        if p2 < 64 and (v >> p2 or v < 0):
            return CORRUPT, pos
        start = pos
        for i in range(p2):
            if v & (np.int64(1) << i):
                if pos > start:
                    a8[pos] = 44
                    pos += 1
                pos = put_label(i, labels, starts, p1, a8, pos)
        return FINE, pos
    if code == TIME:
        return put_time(d, p, p1, a8, pos)
    if code == DECIMAL_TEXT:
        return put_decimal_text(d, p, p2, p1, a8, pos)
    return put_moment_text(d, p, code - MOMENT_TEXT, p1, a8, pos)


# --- filling a block -----------------------------------------------------------------------------------------------  # noqa: E501


@njit
def fill_valid(sent, n, at, a8):
    """Set the validity bits of a block from its NULLs; its first row is in byte `at`."""
    nulls = 0
    for first in range(0, n, 8):
        bits = 0
        for r in range(first, min(first + 8, n)):
            if sent[r]:
                bits |= 1 << (r - first)
            else:
                nulls += 1
        a8[at + (first >> 3)] = bits
    return nulls


@njit
def fill_int(d, sent, at, n, code, data, a16, a32, a64):
    if code == INT4:
        for r in range(n):
            if sent[r]:
                a32[np.uint64(data + r)] = le4(d, at[r])
    elif code == INT8:
        for r in range(n):
            if sent[r]:
                a64[np.uint64(data + r)] = le8(d, at[r])
    elif code == INT4 + UNSIGNED:
        for r in range(n):
            if sent[r]:
                a64[np.uint64(data + r)] = le4(d, at[r])
    elif code == INT8 + UNSIGNED:
        for r in range(n):
            if sent[r]:
                a64[np.uint64(data + 2 * r)] = le8(d, at[r])
    elif code == INT1:
        for r in range(n):
            if sent[r]:
                a16[data + r] = signed(byte(d, at[r]), 8)
    elif code == INT1 + UNSIGNED:
        for r in range(n):
            if sent[r]:
                a16[data + r] = byte(d, at[r])
    elif code == INT2:
        for r in range(n):
            if sent[r]:
                a16[data + r] = le2(d, at[r])
    elif code == INT2 + UNSIGNED:
        for r in range(n):
            if sent[r]:
                a32[data + r] = le2(d, at[r])
    elif code == INT3:
        for r in range(n):
            if sent[r]:
                a32[data + r] = signed(le3(d, at[r]), 24)
    else:
        for r in range(n):
            if sent[r]:
                a32[data + r] = le3(d, at[r])


@njit
def fill_moment(d, sent, at, n, code, digits, valid, data, a8, a32, a64):
    """Store dates and moments. An invalid one becomes NULL, or a fault: (fault, row, further
    NULLs). With MOMENT_ZERO only those without month or day become NULL, with MOMENT_FAIL none."""
    plain = code & ~(MOMENT_ZERO | MOMENT_FAIL)
    nulls = 0
    for r in range(n):
        if not sent[r]:
            continue
        fault, v, _, _, _, _, _ = read_moment(d, at[r], plain, digits)
        is_null = fault == ZERO_DATE and not code & MOMENT_FAIL
        if is_null or (fault == NO_DATE and code == plain):
            a8[valid + (r >> 3)] &= np.uint8(~(1 << (r & 7)))
            nulls += 1
        elif fault:
            return fault, r, nulls
        elif plain == DATE:
            a32[data + r] = v
        else:
            a64[data + r] = v
    return FINE, 0, nulls


@njit
def fill_bit(d, sent, at, size, n, width, data, a8, a64):
    """Store BIT(1) as a bit, wider ones as 64 bits, BIT(64) as 128: (fault, row)."""
    for r in range(n):
        if sent[r]:
            v = be(d, at[r], size[r])
            if width < 64 and (v >> width):
                return CORRUPT, r
            if width == 1:
                a8[data + (r >> 3)] |= np.uint8(v << (r & 7))
            elif width < 64:
                a64[data + r] = v
            else:
                a64[data + 2 * r] = v
    return FINE, 0


@njit
def fill_text(d, sent, at, size, n, offsets, pos, chars, a8, a32):
    for r in range(n):
        if sent[r]:
            p = at[r]
            length = size[r]
            for i in range(length):
                a8[np.uint64(pos + i)] = d[np.uint64(p + i)]
            pos += length
        a32[np.uint64(offsets + r + 1)] = pos - chars
    return pos


@njit
def fill_chars(d, sent, at, size, n, first, slots, s, labels, starts, a8, a32):
    """Store values of any length: (fault, row)."""
    code, p1, p2, pos = slots[s, S_CODE], slots[s, S_P1], slots[s, S_P2], slots[s, S_POS]
    offsets = slots[s, S_OFFSETS] + first
    if code == TEXT or code == BYTES:
        slots[s, S_POS] = fill_text(d, sent, at, size, n, offsets, pos, slots[s, S_CHARS], a8, a32)
        return FINE, 0
    for r in range(n):
        if sent[r]:
            fault, pos = put_chars(d, at[r], size[r], code, p1, p2, labels, starts, a8, pos)
            if fault:
                return fault, r
        a32[offsets + r + 1] = pos - slots[s, S_CHARS]
    slots[s, S_POS] = pos
    return FINE, 0


@njit
def fill_slot(d, sent, at, size, n, first, slots, s, labels, starts, a8, a16, a32, a64):
    """Store a block of one slot, whose first row is `first`: (fault, row of the block)."""
    code, p1, p2, data = slots[s, S_CODE], slots[s, S_P1], slots[s, S_P2], slots[s, S_DATA]
    valid = slots[s, S_VALID] + (first >> 3)
    if slots[s, S_VALID] >= 0:
        slots[s, S_NULLS] += fill_valid(sent, n, valid, a8)
    if code >= TEXT:
        return fill_chars(d, sent, at, size, n, first, slots, s, labels, starts, a8, a32)
    plain = code & ~(MOMENT_ZERO | MOMENT_FAIL)
    if plain == DATE or plain == DATETIME or plain == TIMESTAMP:
        fault, r, nulls = fill_moment(d, sent, at, n, code, p1, valid, data + first, a8, a32, a64)
        slots[s, S_NULLS] += nulls
        return fault, r
    if code < FLOAT:
        wide = 2 if code == INT8 + UNSIGNED else 1
        fill_int(d, sent, at, n, code, data + wide * first, a16, a32, a64)
    elif code == DECIMAL:
        for r in range(n):
            if sent[r]:
                if put_decimal(d, at[r], p2, p1, a64, data + 2 * (first + r)):
                    return CORRUPT, r
    elif code == FLOAT:
        for r in range(n):
            if sent[r]:
                a32[np.uint64(data + first + r)] = le4(d, at[r])
    elif code == DOUBLE:
        for r in range(n):
            if sent[r]:
                a64[np.uint64(data + first + r)] = le8(d, at[r])
    elif code == YEAR:
        for r in range(n):
            if sent[r]:
                v = byte(d, at[r])
                a16[data + first + r] = v + 1900 if v else 0
    elif code == BIT:
        place = data + (first >> 3 if p1 == 1 else (2 * first if p1 == 64 else first))
        return fill_bit(d, sent, at, size, n, p1, place, a8, a64)
    return FINE, 0


@njit(cache=True, nogil=True)
def fill(d, events, mine, widths, sizes, keys, slots, ops, row_event, struct_valid, labels, starts,
    block,
         a8, a16, a32, a64):  # fmt: skip
    """Store every value of a measured table: (fault, row, slot). `struct_valid[1]` counts the rows
    with `_before`.

    `slots` give the start of each buffer in the arena (seen as 1, 2, 4 and 8 byte integers).
    `struct_valid[0]` is the start of the validity of `_before` (-1: there is none),
    `struct_valid[2]` tells whether every update has one. `ops` and `row_event` receive a row's
    operation and the place of its event in `mine`. `labels` and `starts` hold the texts of all
    ENUMs and SETs. `block`: rows at a time, a multiple of 8.
    """
    n = len(widths)
    sent = np.zeros((2 * n, block), np.uint8)
    at = np.zeros((2 * n, block), np.int64)
    size = np.zeros((2 * n, block), np.int64)
    first = 0
    r = 0
    for m in range(len(mine)):
        e = mine[m]
        end, kind = events[e, E_END], events[e, E_KIND]
        _, p = rows_begin(d, events, e, n)
        while p < end:
            if kind == WRITE:
                p = read_image(d, p, widths, sizes, 0, r, sent, at, size)
                for c in range(n):
                    sent[n + c, r] = 0
            else:
                p = read_image(d, p, widths, sizes, n, r, sent, at, size)
                has_before = True
                if kind == UPDATE:
                    p = read_image(d, p, widths, sizes, 0, r, sent, at, size)
                    has_before = struct_valid[2] != 0 or is_moved(d, r, keys, sent, at, size)
                for c in range(n):
                    if kind == DELETE:
                        sent[c, r] = keys[c] and sent[n + c, r]
                        at[c, r] = at[n + c, r]
                        size[c, r] = size[n + c, r]
                    if not has_before:
                        sent[n + c, r] = 0
                if has_before and struct_valid[0] >= 0:
                    a8[struct_valid[0] + ((first + r) >> 3)] |= np.uint8(1 << (r & 7))
                    struct_valid[1] += 1
            ops[first + r] = kind - 1
            row_event[first + r] = m
            r += 1
            if r == block:
                for s in range(len(slots)):
                    j = slots[s, S_COLUMN]
                    fault, bad = fill_slot(
                        d,
                        sent[j],
                        at[j],
                        size[j],
                        r,
                        first,
                        slots,
                        s,
                        labels,
                        starts,
                        a8,
                        a16,
                        a32,
                        a64,
                    )
                    if fault:
                        return fault, first + bad, s
                first += r
                r = 0
    for s in range(len(slots)):
        j = slots[s, S_COLUMN]
        fault, bad = fill_slot(
            d, sent[j], at[j], size[j], r, first, slots, s, labels, starts, a8, a16, a32, a64
        )
        if fault:
            return fault, first + bad, s
    return FINE, 0, -1


# --- the stream: packets into framed events ------------------------------------------------------------------------  # noqa: E501

# Why the loop stopped.
(IDLE, BLOCK, OPEN, GROW, ROTATE, FORMAT, MAP, QUERY, HEARTBEAT, REFUSED, ENDED, BIG, FLUSH,
    BAD_CHECKSUM,
 BAD_EVENT, SPECIAL) = range(16)  # fmt: skip
# Fields of the state.
(P_USED, P_MESSAGES, P_CUT, P_CUT_MESSAGES, P_IS_OPEN, P_BODY_OPEN, P_OPEN_AT, P_OPEN_MESSAGES,
    P_HAS_CONTENT, P_WAS_SENT,
 P_OFFSET, P_CLOSED_OFFSET, P_OPEN_LIMIT, P_BLOCK_LIMIT, P_HAS_CRC, P_FIRST_AT, P_BEGUN_AT,
 P_IS_MARIADB, P_RUNS,
 P_SOURCE_A, P_SOURCE_B, P_NUMBER, P_READ, P_FILLED, P_EVENT_AT, P_EVENT_SIZE, P_BEGIN_SIZE,
 P_FIELDS) = range(28)  # fmt: skip
FORMAT_EVENT, ROTATE_EVENT, HEARTBEAT_EVENT, XA_PREPARE_EVENT, PAYLOAD_EVENT, INCIDENT_EVENT = (
    15,
    4,
    27,
    38,
    40,
    26,
)
QUERY_COMPRESSED_EVENT, PARTIAL_UPDATE_EVENT, EXECUTE_LOAD_EVENT = 165, 39, 18
IGNORABLE = 0x80
STANDALONE = 1
MAX_RUNS = 4096
# Stands for the second half of a source that is kept as text; the first half is then its number.
AS_TEXT = np.int64(-1)
NEVER = np.int64(2**62)


@njit
def forget_open(state):
    """Remove the open transaction's events from the buffer."""
    state[P_USED] = state[P_OPEN_AT]
    state[P_MESSAGES] = state[P_OPEN_MESSAGES]


@njit
def note_gtid(state, runs):
    """Note the GTID of the transaction that ends: extend the last run of numbers, or begin
    another."""
    a, b, number = state[P_SOURCE_A], state[P_SOURCE_B], state[P_NUMBER]
    if number <= 0:
        return
    n = state[P_RUNS]
    if n > 0 and runs[n - 1, 0] == a and runs[n - 1, 1] == b:
        if state[P_IS_MARIADB] or runs[n - 1, 3] == number - 1:
            runs[n - 1, 3] = number
            return
    runs[n, 0], runs[n, 1], runs[n, 2], runs[n, 3] = a, b, number, number
    state[P_RUNS] = n + 1


@njit
def close_transaction(state, runs):
    """Account for the end of a transaction at the last event."""
    if not state[P_IS_OPEN]:
        return
    if not state[P_HAS_CONTENT] and not state[P_WAS_SENT]:
        forget_open(state)
    else:
        state[P_CUT] = state[P_USED]
        state[P_CUT_MESSAGES] = state[P_MESSAGES]
        state[P_FIRST_AT] = min(state[P_FIRST_AT], state[P_BEGUN_AT])
    note_gtid(state, runs)
    state[P_IS_OPEN] = 0
    state[P_BODY_OPEN] = 0
    state[P_CLOSED_OFFSET] = state[P_OFFSET]


@njit
def keep(e, at, size, state, out):
    """Append an event to the used bytes; the buffer has room."""
    p = state[P_USED]
    for i in range(4):
        out[p + i] = (size >> (8 * i)) & 0xFF
    p += 4
    for i in range(size):
        out[np.uint64(p + i)] = e[np.uint64(at + i)]
    state[P_USED] = p + size
    state[P_MESSAGES] += 1


@njit
def begin_transaction(e, at, end, t, state):
    """Note the contents of a GTID event."""
    state[P_IS_OPEN] = 1
    state[P_BODY_OPEN] = 0
    state[P_OPEN_AT] = state[P_USED]
    state[P_OPEN_MESSAGES] = state[P_MESSAGES]
    state[P_HAS_CONTENT] = 0
    state[P_WAS_SENT] = 0
    state[P_NUMBER] = 0
    state[P_BEGUN_AT] = begin_time(e, at, end, t)
    p = at + HEADER
    if t == MARIADB_GTID_EVENT and end - p >= 13:
        state[P_NUMBER] = le8(e, p)
        state[P_SOURCE_A] = le4(e, p + 8)
        state[P_SOURCE_B] = le4(e, at + 5)
        state[P_BODY_OPEN] = 0 if byte(e, p + 12) & STANDALONE else 1
    elif t == GTID_EVENT and end - p >= 25:
        state[P_SOURCE_A] = le8(e, p + 1)
        state[P_SOURCE_B] = le8(e, p + 9)
        state[P_NUMBER] = le8(e, p + 17)


@njit
def begin_alone(e, at, end, t, state):
    """Begin a transaction for an incident alone: MariaDB logs one outside of any transaction."""
    if t == INCIDENT_EVENT and not state[P_IS_OPEN]:
        begin_transaction(e, at, end, t, state)


@njit
def is_unknown(e, at, t):
    """Whether an event's kind is newer than this reader and not marked ignorable by its server: it
    may hold rows."""
    return (42 < t < 160 or t > 171) and not byte(e, at + 17) & IGNORABLE


@njit
def moved_on(state, log_position, size):
    """Note where an event ends; False if the log goes backwards."""
    low = state[P_OFFSET] & 0xFFFFFFFF
    high = state[P_OFFSET] - low
    if log_position < low:
        if log_position + 0x80000000 > low:
            return False
        high += np.int64(1) << 32
    state[P_OFFSET] = high + log_position
    return True


@njit
def is_ours(e, at, ids, wanted):
    """Whether a row event belongs to a wanted table."""
    i = find(ids, le6(e, at + HEADER))
    return ids[i] != -1 and wanted[i] == 1


@njit(cache=True, nogil=True)
def take(e, at, size, state, out, runs, ids, wanted, known_at, known_size, known, tables):
    """Take one event. Returns IDLE, or what the caller has to do about it; then the event is not
    taken, unless noted otherwise.

    `ids` is a hash table of the table numbers seen, `wanted` says which are copied, `known` holds
    their TABLE_MAPs.
    """
    if size < HEADER or le4(e, at + 9) != size:
        return BAD_EVENT
    t = byte(e, at + 4)
    has_crc = state[P_HAS_CRC] == 1 and t != FORMAT_EVENT
    end = at + size - (CRC if has_crc else 0)
    if end < at + HEADER:
        return BAD_EVENT
    if has_crc and crc32(e, at, end, tables) != le4(e, end):
        return BAD_CHECKSUM
    if t == ROTATE_EVENT:
        return ROTATE
    if t == FORMAT_EVENT:
        return FORMAT
    if t == HEARTBEAT_EVENT:
        return HEARTBEAT
    if state[P_USED] + size + 8 > len(out):
        return GROW
    is_kept = closes = False
    if rows_kind(t) or t == PARTIAL_UPDATE_EVENT or 166 <= t <= 171:
        if end < at + HEADER + 8:
            return BAD_EVENT
        is_kept = is_ours(e, at, ids, wanted)
        state[P_HAS_CONTENT] |= is_kept
    elif t == TABLE_MAP_EVENT:
        if end < at + HEADER + 8:
            return BAD_EVENT
        i = find(ids, le6(e, at + HEADER))
        n = end - at - HEADER
        if (
            ids[i] == -1
            or known_size[i] != n
            or not is_same2(known, known_at[i], e, at + HEADER, n)
        ):
            return MAP
        is_kept = wanted[i] == 1
    elif t == GTID_EVENT or t == ANONYMOUS_EVENT or t == MARIADB_GTID_EVENT:
        if state[P_IS_OPEN]:
            return BAD_EVENT
        begin_transaction(e, at, end, t, state)
        state[P_BEGIN_SIZE] = size + 4
        is_kept = True
    elif t == XID_EVENT:
        closes = True
    elif t == XA_PREPARE_EVENT or t == TAGGED_EVENT:
        return SPECIAL
    elif t == PAYLOAD_EVENT or t == INCIDENT_EVENT or (state[P_IS_OPEN] and is_unknown(e, at, t)):
        begin_alone(e, at, end, t, state)
        closes = not state[P_BODY_OPEN]
        is_kept = True
        state[P_HAS_CONTENT] = 1
    elif t == QUERY_EVENT and is_plain_query(e, at, end):
        is_begin = byte(e, end - 5) == 66
        if is_begin:
            state[P_BODY_OPEN] = 1
        closes = not is_begin
    elif t == QUERY_EVENT or t == QUERY_COMPRESSED_EVENT or t == EXECUTE_LOAD_EVENT:
        return QUERY
    if is_kept and not state[P_IS_OPEN]:
        return BAD_EVENT
    log_position = le4(e, at + 13)
    if log_position and not moved_on(state, log_position, size):
        return BAD_EVENT
    if is_kept or (closes and state[P_WAS_SENT]):
        keep(e, at, size, state, out)
    if closes:
        close_transaction(state, runs)
    elif not state[P_IS_OPEN]:
        # An event between transactions, such as the server's own notes: a position may lie behind
        # it.
        state[P_CLOSED_OFFSET] = state[P_OFFSET]
    return IDLE


@njit
def is_same2(a, p, b, q, n):
    for i in range(n):
        if a[np.uint64(p + i)] != b[np.uint64(q + i)]:
            return False
    return True


@njit(cache=True, nogil=True)
def take_query(e, at, size, state, out, runs, opens, is_content):
    """Take a QUERY event that the caller examined. `opens`: events of the same transaction
    follow."""
    if not state[P_IS_OPEN]:
        return BAD_EVENT
    log_position = le4(e, at + 13)
    if log_position and not moved_on(state, log_position, size):
        return BAD_EVENT
    keep(e, at, size, state, out)
    state[P_HAS_CONTENT] |= is_content
    if opens:
        state[P_BODY_OPEN] = 1
    else:
        close_transaction(state, runs)
    return IDLE


@njit(cache=True, nogil=True)
def take_tagged(e, at, size, state, out, source, number):
    """Take a GTID event with a tag that the caller examined. `source` is the number of its source's
    text."""
    if state[P_IS_OPEN]:
        return BAD_EVENT
    begin_transaction(e, at, at + size, TAGGED_EVENT, state)
    state[P_BEGIN_SIZE] = size + 4
    state[P_SOURCE_A], state[P_SOURCE_B], state[P_NUMBER] = source, AS_TEXT, number
    log_position = le4(e, at + 13)
    if log_position and not moved_on(state, log_position, size):
        return BAD_EVENT
    keep(e, at, size, state, out)
    return IDLE


@njit(cache=True, nogil=True)
def take_prepare(e, at, size, state, out, runs, is_kept):
    """Take an XA_PREPARE event that the caller examined. If it is not kept, the whole transaction
    leaves the buffer."""
    if not state[P_IS_OPEN]:
        return BAD_EVENT
    log_position = le4(e, at + 13)
    if log_position and not moved_on(state, log_position, size):
        return BAD_EVENT
    if is_kept:
        keep(e, at, size, state, out)
    else:
        state[P_HAS_CONTENT] = 0
    close_transaction(state, runs)
    return IDLE


@njit(cache=True, nogil=True)
def pump(d, state, out, runs, ids, wanted, known_at, known_size, known, tables):
    """Take the packets in d[P_READ:P_FILLED] until no whole one is left, or the caller has to act;
    then P_EVENT_AT and P_EVENT_SIZE give the event."""
    while True:
        if state[P_CUT] >= state[P_BLOCK_LIMIT]:
            return BLOCK
        if (
            state[P_IS_OPEN]
            and state[P_HAS_CONTENT]
            and state[P_USED] - state[P_CUT] >= state[P_OPEN_LIMIT]
        ):
            return OPEN
        if state[P_RUNS] >= MAX_RUNS - 1:
            return FLUSH
        p = state[P_READ]
        left = state[P_FILLED] - p
        if left < 5:
            return IDLE
        size = le3(d, p)
        if size == 0xFFFFFF:
            return BIG
        if left < 4 + size:
            return IDLE
        if size == 0:
            return BAD_EVENT
        first = byte(d, p + 4)
        state[P_EVENT_AT], state[P_EVENT_SIZE] = p + 5, size - 1
        if first == 0xFF:
            return REFUSED
        if first == 0xFE and size < 9:
            return ENDED
        if first != 0:
            return BAD_EVENT
        todo = take(
            d, p + 5, size - 1, state, out, runs, ids, wanted, known_at, known_size, known, tables
        )
        if todo != IDLE:
            return todo
        state[P_READ] = p + 4 + size


# --- results of queries: the binary protocol -----------------------------------------------------------------------  # noqa: E501

ROWS_MORE, ROWS_ENDED, ROWS_REFUSED, ROWS_BIG, ROWS_DAMAGED = range(5)


@njit
def note_row(d, p, end, fixed, at, size, r):
    """Note where the values of the row d[p:end] lie; False if it is damaged."""
    columns = len(fixed)
    nulls = p + 1
    q = nulls + (columns + 9) // 8
    if q > end or byte(d, p) != 0:
        return False
    for c in range(columns):
        bit = c + 2
        if (byte(d, nulls + (bit >> 3)) >> (bit & 7)) & 1:
            size[c, r] = -1
            continue
        n = fixed[c]
        if n == 0:
            n, q = packed(d, q, end)
        if n < 0 or n > end - q:
            return False
        at[c, r] = q
        size[c, r] = n
        q += n
    return q == end


@njit(cache=True, nogil=True)
def split_rows(d, filled, fixed, at, size, r, p):
    """Note where the values of the whole rows in d[p:filled] lie, from row `r` on; a size of -1
    means NULL. Returns (rows noted in all, end of the last, what follows). `fixed`: bytes of each
    column's values; 0: a length stands before each value."""
    while r < at.shape[1]:
        if filled - p < 4:
            return r, p, ROWS_MORE
        n = le3(d, p)
        if n == 0xFFFFFF:
            return r, p, ROWS_BIG
        if filled - p - 4 < n or n == 0:
            return r, p, ROWS_MORE
        first = byte(d, p + 4)
        if first == 0xFE and n < 9:
            return r, p, ROWS_ENDED
        if first == 0xFF:
            return r, p, ROWS_REFUSED
        if not note_row(d, p + 4, p + 4 + n, fixed, at, size, r):
            return r, p, ROWS_DAMAGED
        p += 4 + n
        r += 1
    return r, p, ROWS_MORE


@njit(cache=True, nogil=True)
def split_big_row(d, fixed, at, size):
    """Do the same for one row joined from several packets; the row is d."""
    return note_row(d, 0, len(d), fixed, at, size, 0)


@njit(cache=True, nogil=True)
def gather(d, at, size, rows, data, offsets, valid):
    """Join a column's values end to end."""
    pos = 0
    for r in range(rows):
        n = size[r]
        if n >= 0:
            valid[r >> 3] |= np.uint8(1 << (r & 7))
            p = at[r]
            for i in range(n):
                data[np.uint64(pos + i)] = d[np.uint64(p + i)]
            pos += n
        offsets[r + 1] = pos


@njit(cache=True, nogil=True)
def gather_fixed(d, at, size, rows, width, data, valid):
    """Do the same for values of `width` bytes each; `data` has room for NULLs too."""
    for r in range(rows):
        if size[r] >= 0:
            valid[r >> 3] |= np.uint8(1 << (r & 7))
            p = at[r]
            for i in range(width):
                data[np.uint64(r * width + i)] = d[np.uint64(p + i)]


@njit(cache=True, nogil=True)
def gather_moments(d, at, size, rows, days, micros, valid, faults):
    """Do the same for dates (days since 1970) and moments (microseconds since then, if `micros` has
    room). Returns how many the calendar does not have. They are not valid, and `faults` says
    why."""
    none = 0
    for r in range(rows):
        n = size[r]
        if n < 0:
            continue
        p = at[r]
        if n < 4 or not is_date(le2(d, p), byte(d, p + 2), byte(d, p + 3)):
            none += 1
            faults[r] = ZERO_DATE if n < 4 else no_date(byte(d, p + 2), byte(d, p + 3))
            continue
        day = days_from_civil(le2(d, p), byte(d, p + 2), byte(d, p + 3))
        valid[r >> 3] |= np.uint8(1 << (r & 7))
        if len(micros) == 0:
            days[r] = day
            continue
        seconds = day * 86400
        if n >= 7:
            seconds += (byte(d, p + 4) * 60 + byte(d, p + 5)) * 60 + byte(d, p + 6)
        micros[r] = seconds * 1000000 + (le4(d, p + 7) if n >= 11 else 0)
    return none
