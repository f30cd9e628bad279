"""Compiled loops over pgoutput messages (protocol 1): index rows, measure a table's values, fill
Arrow buffers.

No Python object per row. `scan`, `index` and `measure` check every length before `fill` reads the
same bytes again. The file is long but must stay one: for a cached function numba notices only
changes of the function's own file, so functions in other files could stay compiled in an old form.
Message formats: PostgreSQL, "Logical Replication Message Formats"; value formats: each type's
`*_send` and `*_out`.
"""

# ruff: noqa: C901, SIM109, SIM110 - compiled code branches by type, and numba has neither cheap
# tuples nor all()

from __future__ import annotations

import numpy as np
from numba import njit

# Codes of a value's form; the code of an array is that of its items + ARRAY.
BOOL, INT2, INT4, INT8, OID, FLOAT4, FLOAT8, NUMERIC, DATE, TIME, TIMESTAMP, TIMESTAMPTZ = range(12)
TEXT, JSONB, UUID, BYTEA, NUMERIC_TEXT, AS_TEXT, FLOAT_TEXT = range(12, 19)
ARRAY = 32

# Faults of a value or a message.
FINE, CORRUPT, NAN, INFINITE, TOO_PRECISE, INFINITE_TIME, YEAR, DAY_END, DIMENSIONS, BINARY = range(
    10
)
NO_TRANSACTION, NO_RELATION = 10, 11

# Fields of a slot (an output column): `S_COLUMN` counts the before image's columns after those of
# the after image, `S_FORM` is the form of all its values, 98 (binary) or 116 (text), or 0, `S_POS`
# and `S_ITEMS` move while filling.
(S_COLUMN, S_CODE, S_SCALE, S_PRECISION, S_VALID, S_DATA, S_OFFSETS, S_POS,
 S_ITEM_VALID, S_ITEM_DATA, S_ITEM_OFFSETS, S_ITEMS, S_CHARS,
 S_FORM, S_FIELDS) = range(15)  # fmt: skip
# Fields of a slot's sizes.
Z_VALUES, Z_CHARS, Z_ITEMS, Z_ITEM_VALUES, Z_TEXTS, Z_UNSENT, Z_FIELDS = range(7)

EPOCH_DAYS = 10957
EPOCH_MICROS = 946684800000000
MIN_DAY, MAX_DAY = -719162, 2932896
MIN_MICROS, MAX_MICROS = -62135596800000000, 253402300799999999
DAY_MICROS = 86400000000
INT8_MIN, INT8_MAX = -(2**63), 2**63 - 1
MASK = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
ONE = np.uint64(1)
ZERO = np.uint64(0)
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
NAMES = np.frombuffer(b"NaNInfinity-Infinity", np.uint8)


# --- big-endian integers ---------------------------------------------------------------------------------------  # noqa: E501


# Unsigned indexes: numba then omits its test for negative ones, and the loads merge into one.


@njit
def byte(d, p):
    return np.int64(d[np.uint64(p)])


@njit
def be2(d, p):
    return (byte(d, p) << 8) | byte(d, p + 1)


@njit
def be4(d, p):
    return (byte(d, p) << 24) | (byte(d, p + 1) << 16) | (byte(d, p + 2) << 8) | byte(d, p + 3)


@njit
def be8(d, p):
    return (be4(d, p) << 32) | be4(d, p + 4)


@njit
def le4(d, p):
    return byte(d, p) | (byte(d, p + 1) << 8) | (byte(d, p + 2) << 16) | (byte(d, p + 3) << 24)


@njit
def signed(v, bits):
    return v - (np.int64(1) << bits) if v >> (bits - 1) else v


# --- the segment: messages and rows ----------------------------------------------------------------------------  # noqa: E501


@njit(cache=True, nogil=True)
def scan(d, relations):
    """Walk the messages: (rows, relation messages, begins, largest message, offset of damage or
    -1).

    The offsets of the first `len(relations)` Relation messages go into `relations`.
    """
    n = len(d)
    p = 0
    rows = 0
    found = 0
    begins = 0
    largest = np.int64(0)
    while p < n:
        if p + 5 > n:
            return rows, found, begins, largest, p
        size = le4(d, p)
        e = p + 4 + size
        if size < 1 or e > n:
            return rows, found, begins, largest, p
        largest = max(largest, size)
        t = d[p + 4]
        if t == 73 or t == 85 or t == 68:
            if size < 8:
                return rows, found, begins, largest, p
            rows += 1
        elif t == 66:
            if size != 21:
                return rows, found, begins, largest, p
            begins += 1
        elif t == 67:
            if size != 26:
                return rows, found, begins, largest, p
        elif t == 82:
            if found < len(relations):
                relations[found] = p
            found += 1
        elif t == 84:
            if size < 6 or be4(d, p + 5) * 4 != size - 6:
                return rows, found, begins, largest, p
            rows += be4(d, p + 5)
        elif t != 77 and t != 89 and t != 79:
            return rows, found, begins, largest, p
        p = e
    return rows, found, begins, largest, -1


@njit
def find(known, relid):
    low = 0
    high = len(known)
    while low < high:
        mid = (low + high) >> 1
        if known[mid] < relid:
            low = mid + 1
        else:
            high = mid
    if low < len(known) and known[low] == relid:
        return low
    return -1


@njit(cache=True, nogil=True)
def index(d, known, current, event_relation, event_version, begins, row_at, row_version, row_begin):
    """Find every row's message, version and transaction: (fault, offset). `scan` has checked the
    frames.

    `known` holds the relations' OIDs, sorted. `current` holds the version in force of each (-2: not
    yet told; below: not selected); the events change it in order. `begins` receives (position,
    committed at, xid). Its first line is the open transaction at the start, with xid -1 where there
    is none. A TRUNCATE is a row of each relation in it.
    """
    n = len(d)
    p = 0
    row = 0
    event = 0
    begin = 0
    last = 0
    is_open = begins[0, 2] >= 0
    last_relid = np.int64(-1)
    where = -1
    while p < n:
        size = le4(d, p)
        t = d[p + 4]
        if t == 73 or t == 85 or t == 68 or t == 84:
            if not is_open:
                return NO_TRANSACTION, p
            count = 1
            q = p + 5
            if t == 84:
                count = be4(d, p + 5)
                q = p + 10
            for i in range(count):
                relid = be4(d, q + 4 * i)
                if relid != last_relid:
                    where = find(known, relid)
                    last_relid = relid
                if where < 0 or current[where] == -2:
                    return NO_RELATION, p
                row_at[row] = p
                row_version[row] = current[where]
                row_begin[row] = begin
                row += 1
        elif t == 66:
            last += 1
            begin = last
            is_open = True
            stamp = be8(d, p + 13)
            if stamp < MIN_MICROS - EPOCH_MICROS or stamp > MAX_MICROS - EPOCH_MICROS:
                return CORRUPT, p
            begins[begin, 0] = be8(d, p + 5)
            begins[begin, 1] = stamp + EPOCH_MICROS
            begins[begin, 2] = be4(d, p + 21)
        elif t == 67:
            is_open = False
        elif t == 82:
            current[event_relation[event]] = event_version[event]
            event += 1
        p += 4 + size
    return FINE, n


@njit(cache=True, nogil=True)
def group(row_version, starts, order):
    """Counting sort of rows by version. `order` receives the row numbers, `starts` (zeros) the
    start of each version."""
    for r in range(len(row_version)):
        v = row_version[r]
        if v >= 0:
            starts[v + 1] += 1
    for v in range(1, len(starts)):
        starts[v] += starts[v - 1]
    at = starts.copy()
    for r in range(len(row_version)):
        v = row_version[r]
        if v >= 0:
            order[at[v]] = r
            at[v] += 1


# --- one row: where its values are -----------------------------------------------------------------------------  # noqa: E501


@njit
def read_tuple(d, q, e, count, i, step, kind, at, size):
    """Find a tuple's values and store them at i, i + step ... Returns the offset after it, or -1 if
    the tuple does not fit into its message."""
    if q + 2 > e or be2(d, q) != count:
        return -1
    q += 2
    for _ in range(count):
        if q >= e:
            return -1
        k = byte(d, q)
        q += 1
        length = np.int64(0)
        if k == 98 or k == 116:
            if q + 4 > e:
                return -1
            length = be4(d, q)
            q += 4
            if length > e - q:
                return -1
        elif k != 110 and k != 117:
            return -1
        kind[np.uint64(i)] = k
        at[np.uint64(i)] = q
        size[np.uint64(i)] = length
        i += step
        q += length
    return q


@njit
def has_unsent(kind, i, step, count):
    for _ in range(count):
        if kind[np.uint64(i)] == 117:
            return True
        i += step
    return False


@njit
def read_row(d, p, keys, r, step, kind, at, size):
    """Find the values of a message, as row r of a block. The after image goes into the lines
    0..count, the before image into count..2 count. Returns (fault, whether a before image was
    sent). Unsent values come from the before image if it has them. A NULL there says nothing, even
    in a whole row: a partition identified by its key sends its key as its root's whole row."""
    count = len(keys)
    old = count * step + r
    e = p + 4 + le4(d, p)
    t = byte(d, p + 4)
    if t == 84:
        for j in range(count):
            kind[j * step + r] = 110
        return FINE, False
    q = p + 9
    tag = byte(d, q)
    q += 1
    has_old = t != 73 and (tag == 79 or tag == 75)
    if has_old:
        q = read_tuple(d, q, e, count, old, step, kind, at, size)
        if q < 0 or has_unsent(kind, old, step, count):
            return CORRUPT, False
        if t == 85:
            if q >= e:
                return CORRUPT, False
            tag = byte(d, q)
            q += 1
    if t == 68:
        if not has_old or q != e:
            return CORRUPT, False
        for j in range(count):
            i = j * step + r
            kind[i] = kind[old + j * step] if keys[j] else np.uint8(110)
            at[i] = at[old + j * step]
            size[i] = size[old + j * step]
        return FINE, True
    if tag != 78:
        return CORRUPT, False
    q = read_tuple(d, q, e, count, r, step, kind, at, size)
    if q != e or (t == 73 and has_unsent(kind, r, step, count)):
        return CORRUPT, False
    if has_old:
        for j in range(count):
            i = j * step + r
            o = old + j * step
            if kind[i] == 117 and kind[o] != 110:
                kind[i] = kind[o]
                at[i] = at[o]
                size[i] = size[o]
    return FINE, has_old


@njit
def read_block(d, row_at, rows, first, n, keys, slots, first_before, kind, at, size, has_before):
    """Find the values of n rows: (fault, row of the block)."""
    step = kind.shape[1]
    kinds = kind.reshape(-1)
    places = at.reshape(-1)
    sizes = size.reshape(-1)
    for r in range(n):
        p = np.int64(row_at[rows[first + r]])
        fault, has_old = read_row(d, p, keys, r, step, kinds, places, sizes)
        if fault:
            return fault, r
        has_before[r] = has_old
    for s in range(first_before, len(slots)):
        line = kind[slots[s, S_COLUMN]]
        for r in range(n):
            if not has_before[r]:
                line[r] = 110
    return FINE, 0


@njit
def block_rows(columns):
    """Rows in a block, a multiple of 8, so that the places of its values fit into the cache."""
    return max(16, 1024 // max(columns, 1)) // 8 * 8


# --- measuring -------------------------------------------------------------------------------------------------  # noqa: E501


@njit
def digits_of(v):
    if v >= 1000:
        return 4
    if v >= 100:
        return 3
    return 2 if v >= 10 else 1


@njit
def numeric_text_size(d, q, length):
    """Characters of a binary numeric as text: (fault, count)."""
    if length < 8 or length != 8 + 2 * be2(d, q):
        return CORRUPT, 0
    sign = be2(d, q + 4)
    if sign == 0xC000:
        return FINE, 3
    if sign == 0xD000:
        return FINE, 8
    if sign == 0xF000:
        return FINE, 9
    if sign != 0 and sign != 0x4000:
        return CORRUPT, 0
    groups = be2(d, q)
    weight = signed(be2(d, q + 2), 16)
    scale = be2(d, q + 6)
    for i in range(groups):
        if be2(d, q + 8 + 2 * i) > 9999:
            return CORRUPT, 0
    whole = np.int64(1)
    if groups and weight >= 0:
        whole = 4 * weight + digits_of(be2(d, q + 8))
    return FINE, whole + (1 + scale if scale else 0) + (1 if sign else 0)


@njit
def measure_value(d, q, length, is_text, code):
    """Check a value's length. For a value of variable size, count the bytes it takes: (fault,
    bytes)."""
    if code == TEXT:
        return FINE, length
    if is_text:
        if code == BYTEA:
            if length < 2 or length & 1 or d[q] != 92 or d[q + 1] != 120:
                return CORRUPT, 0
            return FINE, (length - 2) >> 1
        if code == UUID and length != 36:
            return CORRUPT, 0
        if length < 1 and code != JSONB and code != AS_TEXT:
            return CORRUPT, 0
        return FINE, length
    if code == BYTEA:
        return FINE, length
    if code == BOOL:
        return (FINE if length == 1 else CORRUPT), 0
    if code == INT2:
        return (FINE if length == 2 else CORRUPT), 0
    if code == INT4 or code == OID or code == FLOAT4 or code == DATE:
        return (FINE if length == 4 else CORRUPT), 0
    if code == INT8 or code == FLOAT8 or code == TIME or code == TIMESTAMP or code == TIMESTAMPTZ:
        return (FINE if length == 8 else CORRUPT), 0
    if code == NUMERIC:
        return (FINE if length >= 8 and length == 8 + 2 * be2(d, q) else CORRUPT), 0
    if code == UUID:
        return (FINE if length == 16 else CORRUPT), 36
    if code == JSONB:
        return (FINE if length >= 1 and d[q] == 1 else CORRUPT), length - 1
    if code == NUMERIC_TEXT:
        return numeric_text_size(d, q, length)
    return BINARY, 0


@njit
def array_head(d, q, length, is_text):
    """Where an array's first item begins: (fault, offset of it, number of items or -1 for text,
    end)."""
    e = q + length
    if is_text:
        if length and d[q] == 91:
            while q < e and d[q] != 61:
                q += 1
            q += 1
        if q + 2 > e or d[q] != 123 or d[e - 1] != 125:
            return CORRUPT, q, 0, e
        return FINE, q + 1, -1, e
    if length < 12:
        return CORRUPT, q, 0, e
    dimensions = be4(d, q)
    if dimensions == 0:
        return (FINE if length == 12 else CORRUPT), e, 0, e
    if dimensions != 1:
        return (DIMENSIONS if dimensions <= 6 else CORRUPT), q, 0, e
    if length < 20:
        return CORRUPT, q, 0, e
    count = be4(d, q + 12)
    if count * 4 > length - 20:
        return CORRUPT, q, 0, e
    return FINE, q + 20, count, e


@njit
def text_item(d, q, e, scratch):
    """Copy an array's next item, unescaped, into `scratch`: (fault, offset after it, bytes or -1
    for NULL)."""
    n = 0
    if d[q] == 34:
        q += 1
        while q < e and d[q] != 34:
            if d[q] == 92:
                q += 1
                if q >= e:
                    return CORRUPT, q, 0
            scratch[n] = d[q]
            n += 1
            q += 1
        q += 1
    else:
        if d[q] == 123:
            return DIMENSIONS, q, 0
        while q < e and d[q] != 44 and d[q] != 125:
            scratch[n] = d[q]
            n += 1
            q += 1
        if (
            n == 4
            and scratch[0] == 78
            and scratch[1] == 85
            and scratch[2] == 76
            and scratch[3] == 76
        ):
            n = -1
        elif n == 0:
            return CORRUPT, q, 0
    if q >= e or (d[q] != 44 and d[q] != 125):
        return CORRUPT, q, 0
    return FINE, q, n


@njit
def measure_array(d, q, length, is_text, code, scratch, read):
    """Check an array and count: (fault, items, items that are not NULL, bytes)."""
    start = np.int64(0)
    items = 0
    values = 0
    chars = np.int64(0)
    fault, q, count, e = array_head(d, q, length, is_text)
    if fault:
        return fault, items, values, chars
    if is_text:
        if q == e - 1:
            return FINE, items, values, chars
        while True:
            fault, q, n = text_item(d, q, e, scratch)
            if fault:
                return fault, items, values, chars
            items += 1
            if n >= 0:
                values += 1
                fault, more = measure_value(read, start, n, is_text, code)
                if fault:
                    return fault, items, values, chars
                chars += more
            if d[q] == 125:
                return (FINE if q == e - 1 else CORRUPT), items, values, chars
            q += 1
            if q >= e:
                return CORRUPT, items, values, chars
    for _ in range(count):
        if q + 4 > e:
            return CORRUPT, items, values, chars
        n = signed(be4(d, q), 32)
        q += 4
        items += 1
        if n >= 0:
            if n > e - q:
                return CORRUPT, items, values, chars
            values += 1
            fault, more = measure_value(d, q, n, False, code)
            if fault:
                return fault, items, values, chars
            chars += more
            q += n
        elif n != -1:
            return CORRUPT, items, values, chars
    return (FINE if q == e else CORRUPT), items, values, chars


@njit
def width_of(code):
    """Bytes of a binary value that needs no check but its size, else 0."""
    if code == INT8 or code == FLOAT8 or code == TIMESTAMP or code == TIMESTAMPTZ:
        return 8
    if code == INT4 or code == FLOAT4:
        return 4
    return 1 if code == BOOL else 0


@njit
def measure_slot(d, kind, at, size, n, code, totals, scratch, read):
    """Check the values of a block in one slot and add up their sizes: (fault, row of the block)."""
    binary = 0
    texts = 0
    unsent = 0
    for r in range(n):
        binary += kind[r] == 98
        texts += kind[r] == 116
        unsent += kind[r] == 117
    totals[Z_UNSENT] += unsent
    totals[Z_VALUES] += binary + texts
    totals[Z_TEXTS] += texts
    width = 0 if texts else width_of(code)
    if code == TEXT:
        chars = np.int64(0)
        for r in range(n):
            chars += size[r] if kind[r] == 98 or kind[r] == 116 else 0
        totals[Z_CHARS] += chars
        return FINE, 0
    if width:
        for r in range(n):
            if kind[r] == 98 and size[r] != width:
                return CORRUPT, r
        return FINE, 0
    for r in range(n):
        k = kind[r]
        if k != 98 and k != 116:
            continue
        is_text = k == 116
        if code < ARRAY:
            fault, chars = measure_value(d, at[r], size[r], is_text, code)
            if fault:
                return fault, r
            totals[Z_CHARS] += chars
        else:
            fault, items, values, chars = measure_array(
                d, at[r], size[r], is_text, code - ARRAY, scratch, read
            )
            if fault:
                return fault, r
            totals[Z_ITEMS] += items
            totals[Z_ITEM_VALUES] += values
            totals[Z_CHARS] += chars
    return FINE, 0


@njit(cache=True, nogil=True)
def measure(d, row_at, rows, keys, slots, first_before, sizes, facts, scratch, read):
    """Check every row of a table and add up its slots' sizes: (fault, row, slot or -1).

    `facts` gets rows with unsent columns and rows with a before image.
    """
    count = len(keys)
    block = block_rows(count)
    kind = np.empty((2 * count + 1, block), np.uint8)
    at = np.empty((2 * count + 1, block), np.int64)
    size = np.empty((2 * count + 1, block), np.int64)
    has_before = np.empty(block, np.bool_)
    for first in range(0, len(rows), block):
        n = min(block, len(rows) - first)
        fault, r = read_block(
            d, row_at, rows, first, n, keys, slots, first_before, kind, at, size, has_before
        )
        if fault:
            return fault, first + r, -1
        unsent = -sizes[:, Z_UNSENT].sum()
        for s in range(len(slots)):
            j = slots[s, S_COLUMN]
            fault, r = measure_slot(
                d, kind[j], at[j], size[j], n, slots[s, S_CODE], sizes[s], scratch, read
            )
            if fault:
                return fault, first + r, s
        unsent += sizes[:, Z_UNSENT].sum()
        for r in range(n):
            facts[1] += has_before[r]
            for s in range(first_before if unsent else 0):
                if kind[slots[s, S_COLUMN], r] == 117:
                    facts[0] += 1
                    break
    return FINE, 0, -1


# --- values: numbers -------------------------------------------------------------------------------------------  # noqa: E501


@njit
def times(high, low, factor, more):
    """(high, low) * factor + more, in 128 bits."""
    a = (low & MASK) * factor + more
    b = (low >> SHIFT) * factor + (a >> SHIFT)
    return high * factor + (b >> SHIFT), (b << SHIFT) | (a & MASK)


@njit
def power(n):
    v = 1
    for _ in range(n):
        v *= 10
    return v


@njit
def store_decimal(a64, i, high, low, is_negative):
    if is_negative:
        low = ~low + ONE
        high = ~high + (ONE if low == ZERO else ZERO)
    a64[i] = np.int64(low)
    a64[i + 1] = np.int64(high)


@njit
def put_numeric(d, q, scale, precision, a64, i):
    """A binary numeric into a decimal128 at a64[i], a64[i + 1]."""
    groups = be2(d, q)
    weight = signed(be2(d, q + 2), 16)
    sign = be2(d, q + 4)
    if sign == 0xC000:
        return NAN
    if sign == 0xD000 or sign == 0xF000:
        return INFINITE
    if sign != 0 and sign != 0x4000:
        return CORRUPT
    if groups == 0:
        return FINE
    top = be2(d, q + 8)
    if weight >= 0 and 4 * weight + digits_of(top) + scale > precision:
        return TOO_PRECISE
    exponent = 4 * weight + scale
    small = np.int64(0)
    high = ZERO
    low = ZERO
    is_small = exponent <= 12
    rest = exponent
    for g in range(groups):
        digit = be2(d, q + 8 + 2 * g)
        if digit > 9999:
            return CORRUPT
        factor = 10000
        if exponent < 0:
            if exponent <= -4:
                if digit:
                    return TOO_PRECISE
                continue
            cut = power(-exponent)
            if digit % cut:
                return TOO_PRECISE
            digit //= cut
            factor = 10000 // cut
        rest = exponent if exponent > 0 else 0
        if is_small:
            small = small * factor + digit
        else:
            high, low = times(high, low, np.uint64(factor), np.uint64(digit))
        exponent -= 4
    if is_small:
        small *= power(max(rest, 0))
        if sign:
            small = -small
        a64[i] = small
        a64[i + 1] = small >> 63
        return FINE
    for _ in range(rest):
        high, low = times(high, low, np.uint64(10), ZERO)
    store_decimal(a64, i, high, low, sign != 0)
    return FINE


@njit
def put_numeric_from_text(d, q, length, scale, precision, a64, i):
    """A numeric's text into a decimal128."""
    e = q + length
    is_negative = d[q] == 45
    if is_negative:
        q += 1
    if q < e and d[q] == 73:
        return INFINITE
    if q < e and d[q] == 78:
        return NAN
    high = ZERO
    low = ZERO
    digits = 0
    seen = 0
    after = -1
    while q < e:
        c = np.int64(d[q])
        q += 1
        if c == 46 and after < 0:
            after = 0
            continue
        if c < 48 or c > 57:
            return CORRUPT
        seen += 1
        if after >= scale:
            if c != 48:
                return TOO_PRECISE
            continue
        if after >= 0:
            after += 1
        if digits or c != 48:
            digits += 1
            if digits > precision:
                return TOO_PRECISE
            high, low = times(high, low, np.uint64(10), np.uint64(c - 48))
    if not seen:
        return CORRUPT
    for _ in range(max(after, 0), scale):
        if digits:
            digits += 1
            if digits > precision:
                return TOO_PRECISE
            high, low = times(high, low, np.uint64(10), ZERO)
    store_decimal(a64, i, high, low, is_negative)
    return FINE


@njit
def put_numeric_text(d, q, a8, pos):
    """A binary numeric as numeric_out writes it, at a8[pos]; the position after it."""
    groups = be2(d, q)
    weight = signed(be2(d, q + 2), 16)
    sign = be2(d, q + 4)
    scale = be2(d, q + 6)
    if sign >= 0xC000:
        first = 0
        last = 3
        if sign == 0xD000:
            first = 3
            last = 11
        elif sign == 0xF000:
            first = 11
            last = 20
        for i in range(first, last):
            a8[pos] = NAMES[i]
            pos += 1
        return pos
    if sign:
        a8[pos] = 45
        pos += 1
    if groups == 0 or weight < 0:
        a8[pos] = 48
        pos += 1
    else:
        for g in range(weight + 1):
            v = be2(d, q + 8 + 2 * g) if g < groups else np.int64(0)
            width = digits_of(v) if g == 0 else 4
            for k in range(width):
                a8[pos + width - 1 - k] = 48 + v % 10
                v //= 10
            pos += width
    if scale:
        a8[pos] = 46
        pos += 1
        for k in range(scale):
            g = weight + 1 + (k >> 2)
            v = be2(d, q + 8 + 2 * g) if 0 <= g < groups else np.int64(0)
            for _ in range(3 - (k & 3)):
                v //= 10
            a8[pos] = 48 + v % 10
            pos += 1
    return pos


@njit
def parse_int(d, q, e):
    """A decimal integer of 64 bits between q and e: (fault, value)."""
    is_negative = q < e and d[q] == 45
    if is_negative:
        q += 1
    if q >= e or e - q > 19:
        return CORRUPT, np.int64(0)
    v = ZERO
    for p in range(q, e):
        c = d[p]
        if c < 48 or c > 57:
            return CORRUPT, np.int64(0)
        v = v * np.uint64(10) + np.uint64(c - 48)
    if v > np.uint64(INT8_MAX) + (ONE if is_negative else ZERO):
        return CORRUPT, np.int64(0)
    return FINE, np.int64(~v + ONE) if is_negative else np.int64(v)


# --- values: dates and times -----------------------------------------------------------------------------------  # noqa: E501


@njit
def parse_number(d, q, e, least):
    """A run of at least `least` and at most 8 digits: (offset after it or -1, value)."""
    v = np.int64(0)
    n = 0
    while q < e and 48 <= d[q] <= 57:
        v = v * 10 + (np.int64(d[q]) - 48)
        n += 1
        q += 1
        if n > 8:
            return -1, v
    return (q if n >= least else -1), v


@njit
def days_in(year, month):
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month in (4, 6, 9, 11) else 31


@njit
def parse_date(d, q, e):
    """`2024-01-31`: (fault, days since 1970, offset after it)."""
    if q < e and (d[q] == 105 or (d[q] == 45 and q + 1 < e and d[q + 1] == 105)):
        return INFINITE_TIME, 0, q
    q, year = parse_number(d, q, e, 4)
    if q < 0 or q >= e or d[q] != 45:
        return CORRUPT, 0, q
    q, month = parse_number(d, q + 1, e, 2)
    if q < 0 or q >= e or d[q] != 45:
        return CORRUPT, 0, q
    q, day = parse_number(d, q + 1, e, 2)
    if q >= 0 and e - q >= 3 and d[e - 2] == 66 and d[e - 1] == 67:
        # The leap years before our era are shifted: 1 BC is one.
        return YEAR, 0, q
    if q < 0 or month < 1 or month > 12 or day < 1 or day > days_in(year, month):
        return CORRUPT, 0, q
    if year < 1 or year > 9999:
        return YEAR, 0, q
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return FINE, era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468, q


@njit
def parse_time(d, q, e):
    """`23:59:59.123456`: (fault, microseconds, offset after it)."""
    q, hour = parse_number(d, q, e, 2)
    if q < 0 or q >= e or d[q] != 58:
        return CORRUPT, np.int64(0), q
    q, minute = parse_number(d, q + 1, e, 2)
    if q < 0 or q >= e or d[q] != 58:
        return CORRUPT, np.int64(0), q
    q, second = parse_number(d, q + 1, e, 2)
    if q < 0 or hour > 24 or minute > 59 or second > 59:
        return CORRUPT, np.int64(0), q
    micros = ((hour * 60 + minute) * 60 + second) * np.int64(1000000)
    if q < e and d[q] == 46:
        start = q + 1
        q, part = parse_number(d, start, e, 1)
        if q < 0 or q - start > 6:
            return CORRUPT, np.int64(0), q
        micros += part * power(6 - (q - start))
    return (FINE if micros < DAY_MICROS else DAY_END), micros, q


@njit
def parse_offset(d, q, e):
    """`+05:30`: (fault, microseconds)."""
    if q >= e or (d[q] != 43 and d[q] != 45):
        return CORRUPT, np.int64(0)
    sign = 1 if d[q] == 43 else -1
    unit = np.int64(3600)
    total = np.int64(0)
    for _ in range(3):
        q, v = parse_number(d, q + 1, e, 2)
        if q < 0 or v > 59:
            return CORRUPT, np.int64(0)
        total += v * unit
        unit //= 60
        if q == e:
            return FINE, sign * total * 1000000
        if d[q] != 58:
            return CORRUPT, np.int64(0)
    return CORRUPT, np.int64(0)


@njit
def parse_timestamp(d, q, e, has_zone):
    """`2024-01-31 23:59:59.5[+00]`: (fault, microseconds since 1970)."""
    fault, days, q = parse_date(d, q, e)
    if fault:
        return fault, np.int64(0)
    if q >= e or d[q] != 32:
        return CORRUPT, np.int64(0)
    fault, micros, q = parse_time(d, q + 1, e)
    if fault:
        return CORRUPT, np.int64(0)
    micros += days * DAY_MICROS
    if has_zone:
        fault, offset = parse_offset(d, q, e)
        if fault:
            return fault, np.int64(0)
        micros -= offset
    elif q != e:
        return CORRUPT, np.int64(0)
    if micros < MIN_MICROS or micros > MAX_MICROS:
        return YEAR, np.int64(0)
    return FINE, micros


# --- values: storing -------------------------------------------------------------------------------------------  # noqa: E501


@njit
def put_uuid(d, q, a8, pos):
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            a8[pos] = 45
            pos += 1
        b = d[q + i]
        a8[pos] = HEX[b >> 4]
        a8[pos + 1] = HEX[b & 15]
        pos += 2


@njit
def nibble(c):
    if 48 <= c <= 57:
        return np.int64(c) - 48
    if 97 <= c <= 102:
        return np.int64(c) - 87
    return np.int64(99)


@njit
def is_number(d, q, e):
    """Whether the characters are those of a number as numeric_out writes it."""
    if q < e and d[q] == 45:
        q += 1
    if e - q == 3 and d[q] == 78:
        return d[q + 1] == 97 and d[q + 2] == 78
    if e - q == 8 and d[q] == 73:
        for i in range(8):
            if d[q + i] != NAMES[3 + i]:
                return False
        return True
    for p in range(q, e):
        if d[p] != 46 and (d[p] < 48 or d[p] > 57):
            return False
    return q < e


@njit
def put_text_form(d, q, length, code, scale, precision, i, data, pos, a8, a16, a32, a64):
    """Store a value that came as text: (fault, position after its characters)."""
    e = q + length
    if code == BYTEA:
        for p in range(q + 2, e, 2):
            v = nibble(d[p]) * 16 + nibble(d[p + 1])
            if v > 255 or nibble(d[p + 1]) > 15:
                return CORRUPT, pos
            a8[pos] = v
            pos += 1
        return FINE, pos
    if code == UUID:
        for p in range(length):
            is_dash = p == 8 or p == 13 or p == 18 or p == 23
            if (d[q + p] != 45) if is_dash else (nibble(d[q + p]) > 15):
                return CORRUPT, pos
    if code == NUMERIC_TEXT and not is_number(d, q, e):
        return CORRUPT, pos
    if code >= TEXT:
        for p in range(length):
            a8[pos + p] = d[q + p]
        return FINE, pos + length
    if code == BOOL:
        if length != 1 or (d[q] != 116 and d[q] != 102):
            return CORRUPT, pos
        if d[q] == 116:
            a8[data + (i >> 3)] |= np.uint8(1 << (i & 7))
        return FINE, pos
    if code == NUMERIC:
        return put_numeric_from_text(d, q, length, scale, precision, a64, data + 2 * i), pos
    if code == DATE:
        fault, days, q = parse_date(d, q, e)
        if fault == FINE and q != e:
            fault = CORRUPT
        a32[data + i] = days
        return fault, pos
    if code == TIME:
        fault, v, q = parse_time(d, q, e)
        a64[data + i] = v
        return (CORRUPT if fault == FINE and q != e else fault), pos
    if code == TIMESTAMP or code == TIMESTAMPTZ:
        fault, v = parse_timestamp(d, q, e, code == TIMESTAMPTZ)
        a64[data + i] = v
        return fault, pos
    fault, v = parse_int(d, q, e)
    if fault:
        return fault, pos
    if code == INT2:
        if v < -32768 or v > 32767:
            return CORRUPT, pos
        a16[data + i] = v
    elif code == INT4:
        if v < -2147483648 or v > 2147483647:
            return CORRUPT, pos
        a32[data + i] = v
    elif code == INT8 or (code == OID and 0 <= v <= 4294967295):
        a64[data + i] = v
    else:
        return CORRUPT, pos
    return FINE, pos


@njit
def put_binary_form(d, q, length, code, scale, precision, i, data, pos, a8, a16, a32, a64):
    """Store a value that came in binary: (fault, position after its characters)."""
    if code == INT8 or code == FLOAT8:
        a64[data + i] = be8(d, q)
    elif code == INT4 or code == FLOAT4:
        a32[data + i] = be4(d, q)
    elif code == TIMESTAMP or code == TIMESTAMPTZ:
        v = be8(d, q)
        if v == INT8_MIN or v == INT8_MAX:
            return INFINITE_TIME, pos
        if v < MIN_MICROS - EPOCH_MICROS or v > MAX_MICROS - EPOCH_MICROS:
            return YEAR, pos
        a64[data + i] = v + EPOCH_MICROS
    elif code == TEXT or code == BYTEA:
        for p in range(length):
            a8[pos + p] = d[q + p]
        return FINE, pos + length
    elif code == NUMERIC:
        return put_numeric(d, q, scale, precision, a64, data + 2 * i), pos
    elif code == BOOL:
        if d[q] > 1:
            return CORRUPT, pos
        if d[q]:
            a8[data + (i >> 3)] |= np.uint8(1 << (i & 7))
    elif code == JSONB:
        for p in range(length - 1):
            a8[pos + p] = d[q + 1 + p]
        return FINE, pos + length - 1
    elif code == UUID:
        put_uuid(d, q, a8, pos)
        return FINE, pos + 36
    elif code == DATE:
        v = signed(be4(d, q), 32)
        if v == 2147483647 or v == -2147483648:
            return INFINITE_TIME, pos
        if v + EPOCH_DAYS < MIN_DAY or v + EPOCH_DAYS > MAX_DAY:
            return YEAR, pos
        a32[data + i] = v + EPOCH_DAYS
    elif code == TIME:
        v = be8(d, q)
        if v < 0 or v > DAY_MICROS:
            return CORRUPT, pos
        if v == DAY_MICROS:
            return DAY_END, pos
        a64[data + i] = v
    elif code == INT2:
        a16[data + i] = be2(d, q)
    elif code == OID:
        a64[data + i] = be4(d, q)
    elif code == NUMERIC_TEXT:
        return FINE, put_numeric_text(d, q, a8, pos)
    else:
        return BINARY, pos
    return FINE, pos


@njit
def put_array(d, q, length, is_text, slots, s, scratch, read, a8, a16, a32, a64):
    """Append a row's array items to those of the rows before."""
    code = slots[s, S_CODE] - ARRAY
    fault, q, count, e = array_head(d, q, length, is_text)
    if is_text and q == e - 1:
        return FINE
    start = np.int64(0)
    i = slots[s, S_ITEMS]
    pos = slots[s, S_POS]
    while count != 0:
        if is_text:
            fault, q, n = text_item(d, q, e, scratch)
        else:
            n = signed(be4(d, q), 32)
            q += 4
        if n >= 0:
            if slots[s, S_ITEM_VALID] >= 0:
                a8[slots[s, S_ITEM_VALID] + (i >> 3)] |= np.uint8(1 << (i & 7))
            if is_text:
                fault, pos = put_text_form(
                    read, start, n, code, slots[s, S_SCALE], slots[s, S_PRECISION], i,
                    slots[s, S_ITEM_DATA], pos,
                    a8, a16, a32, a64,
                )  # fmt: skip
            else:
                fault, pos = put_binary_form(
                    d, q, n, code, slots[s, S_SCALE], slots[s, S_PRECISION], i,
                    slots[s, S_ITEM_DATA], pos,
                    a8, a16, a32, a64,
                )  # fmt: skip
                q += n
            if fault:
                return fault
        i += 1
        if code >= TEXT:
            a32[slots[s, S_ITEM_OFFSETS] + i] = pos - slots[s, S_CHARS]
        if is_text:
            if d[q] == 125:
                break
            q += 1
        else:
            count -= 1
    slots[s, S_ITEMS] = i
    slots[s, S_POS] = pos
    return FINE


@njit
def fill_valid(kind, n, at, a8):
    """Set the validity bits of a block; `at` is the byte of its first row."""
    for first in range(0, n, 8):
        bits = 0
        for r in range(first, min(first + 8, n)):
            if kind[r] == 98 or kind[r] == 116:
                bits |= 1 << (r - first)
        a8[at + (first >> 3)] = bits


@njit
def fill_fixed(d, kind, at, n, code, scale, precision, data, a8, a32, a64):
    """Store a block of the most common values of fixed size, all in binary: (fault, row of the
    block)."""
    if code == INT8 or code == FLOAT8:
        for r in range(n):
            if kind[r] == 98:
                a64[np.uint64(data + r)] = be8(d, at[r])
    elif code == INT4 or code == FLOAT4:
        for r in range(n):
            if kind[r] == 98:
                a32[np.uint64(data + r)] = be4(d, at[r])
    elif code == NUMERIC:
        for r in range(n):
            if kind[r] == 98:
                fault = put_numeric(d, at[r], scale, precision, a64, data + 2 * r)
                if fault:
                    return fault, r
    elif code == BOOL:
        for r in range(n):
            if kind[r] == 98:
                if byte(d, at[r]) > 1:
                    return CORRUPT, r
                a8[np.uint64(data + (r >> 3))] |= np.uint8(byte(d, at[r]) << (r & 7))
    else:
        for r in range(n):
            if kind[r] == 98:
                v = be8(d, at[r])
                if v == INT8_MIN or v == INT8_MAX:
                    return INFINITE_TIME, r
                if v < MIN_MICROS - EPOCH_MICROS or v > MAX_MICROS - EPOCH_MICROS:
                    return YEAR, r
                a64[np.uint64(data + r)] = v + EPOCH_MICROS
    return FINE, 0


@njit
def fill_chars(d, kind, at, size, n, skip, offsets, pos, start, a8, a32):
    """Store a block of characters, without the first `skip` bytes of each. Returns the position
    after them."""
    for r in range(n):
        if kind[r] == 98 or kind[r] == 116:
            q = at[r] + skip
            length = size[r] - skip
            for i in range(length):
                a8[np.uint64(pos + i)] = d[np.uint64(q + i)]
            pos += length
        a32[np.uint64(offsets + r + 1)] = pos - start
    return pos


@njit
def fill_others(d, kind, at, size, n, first, slots, s, scratch, read, a8, a16, a32, a64):
    """Store a block of values of any kind: (fault, row of the block)."""
    code = slots[s, S_CODE]
    scale = slots[s, S_SCALE]
    precision = slots[s, S_PRECISION]
    data = slots[s, S_DATA]
    pos = slots[s, S_POS]
    fault = FINE
    for r in range(n):
        if kind[r] == 98 or kind[r] == 116:
            if code >= ARRAY:
                fault = put_array(
                    d, at[r], size[r], kind[r] == 116, slots, s, scratch, read, a8, a16, a32, a64
                )
            elif kind[r] == 98:
                fault, pos = put_binary_form(
                    d, at[r], size[r], code, scale, precision, first + r, data, pos,
                    a8, a16, a32, a64,
                )  # fmt: skip
            else:
                fault, pos = put_text_form(
                    d, at[r], size[r], code, scale, precision, first + r, data, pos,
                    a8, a16, a32, a64,
                )  # fmt: skip
            if fault:
                return fault, r
        if code >= ARRAY:
            a32[slots[s, S_OFFSETS] + first + r + 1] = slots[s, S_ITEMS]
        elif code >= TEXT:
            a32[slots[s, S_OFFSETS] + first + r + 1] = pos - slots[s, S_CHARS]
    if code < ARRAY:
        slots[s, S_POS] = pos
    return FINE, 0


@njit
def fill_slot(d, kind, at, size, n, first, slots, s, scratch, read, a8, a16, a32, a64):
    """Store a block of one slot, whose first row is `first`: (fault, row of the block)."""
    code = slots[s, S_CODE]
    form = slots[s, S_FORM]
    if slots[s, S_VALID] >= 0:
        fill_valid(kind, n, slots[s, S_VALID] + (first >> 3), a8)
    if code == TEXT or (code == BYTEA and form == 98) or code == JSONB:
        skip = 1 if code == JSONB and form == 98 else 0
        if code != JSONB or form != 0:
            slots[s, S_POS] = fill_chars(
                d, kind, at, size, n, skip, slots[s, S_OFFSETS] + first, slots[s, S_POS],
                slots[s, S_CHARS], a8, a32,
            )  # fmt: skip
            return FINE, 0
    if form == 98 and (
        code == INT8
        or code == INT4
        or code == FLOAT8
        or code == FLOAT4
        or code == NUMERIC
        or code == BOOL
        or code == TIMESTAMP
        or code == TIMESTAMPTZ
    ):
        data = slots[s, S_DATA]
        data += first >> 3 if code == BOOL else (2 * first if code == NUMERIC else first)
        return fill_fixed(
            d, kind, at, n, code, slots[s, S_SCALE], slots[s, S_PRECISION], data, a8, a32, a64
        )
    return fill_others(d, kind, at, size, n, first, slots, s, scratch, read, a8, a16, a32, a64)


@njit
def fill_unsent(kind, n, first, slots, count, unsent, a8, a32):
    """Store a block of `_unchanged`; `unsent` are its (validity, offsets, characters, characters so
    far)."""
    width = (count + 7) >> 3
    for r in range(n):
        is_partial = False
        for s in range(count):
            if kind[slots[s, S_COLUMN], r] == 117:
                is_partial = True
                a8[unsent[2] + unsent[3] + (s >> 3)] |= np.uint8(1 << (s & 7))
        if is_partial:
            a8[unsent[0] + ((first + r) >> 3)] |= np.uint8(1 << (r & 7))
            unsent[3] += width
        a32[unsent[1] + first + r + 1] = unsent[3]


@njit(cache=True, nogil=True)
def fill(d, row_at, rows, keys, slots, first_before, ops, unsent, struct_valid, scratch, read,
         a8, a16, a32, a64):  # fmt: skip
    """Store every value of a measured table: (fault, row, slot).

    `slots` say where in the arena (seen as 1, 2, 4 and 8 byte integers) each buffer begins.
    `unsent` are the places of `_unchanged` (see `fill_unsent`), `struct_valid` the validity of
    `_before`; -1 where there is none.
    """
    count = len(keys)
    block = block_rows(count)
    kind = np.empty((2 * count + 1, block), np.uint8)
    at = np.empty((2 * count + 1, block), np.int64)
    size = np.empty((2 * count + 1, block), np.int64)
    has_before = np.empty(block, np.bool_)
    for first in range(0, len(rows), block):
        n = min(block, len(rows) - first)
        read_block(d, row_at, rows, first, n, keys, slots, first_before, kind, at, size, has_before)
        for r in range(n):
            t = byte(d, np.int64(row_at[rows[first + r]]) + 4)
            ops[first + r] = 0 if t == 73 else (1 if t == 85 else (2 if t == 68 else 3))
            if struct_valid >= 0 and has_before[r]:
                a8[struct_valid + ((first + r) >> 3)] |= np.uint8(1 << (r & 7))
        for s in range(len(slots)):
            j = slots[s, S_COLUMN]
            fault, r = fill_slot(
                d, kind[j], at[j], size[j], n, first, slots, s, scratch, read, a8, a16, a32, a64
            )
            if fault:
                return fault, first + r, s
        if unsent[0] >= 0:
            fill_unsent(kind, n, first, slots, first_before, unsent, a8, a32)
    return FINE, 0, -1


# --- rows of a COPY in binary: a count, then a length (-1: NULL) and the bytes of each value ---------------------  # noqa: E501


@njit
def read_copied_block(d, row_at, first, n, count, kind, at, size):
    """Find the values of n rows: (fault, row of the block). Row r lies between row_at[r] and
    row_at[r + 1]."""
    step = kind.shape[1]
    kinds = kind.reshape(-1)
    places = at.reshape(-1)
    sizes = size.reshape(-1)
    for r in range(n):
        q = row_at[first + r]
        e = row_at[first + r + 1]
        if q + 2 > e or be2(d, q) != count:
            return CORRUPT, r
        q += 2
        i = r
        for _ in range(count):
            if q + 4 > e:
                return CORRUPT, r
            length = signed(be4(d, q), 32)
            q += 4
            if length < -1 or length > e - q:
                return CORRUPT, r
            kinds[np.uint64(i)] = 110 if length < 0 else 98
            places[np.uint64(i)] = q
            sizes[np.uint64(i)] = max(length, 0)
            q += max(length, 0)
            i += step
        if q != e:
            return CORRUPT, r
    return FINE, 0


@njit(cache=True, nogil=True)
def measure_copied(d, row_at, slots, sizes, scratch, read):
    """Check every row of a COPY and add up its slots' sizes: (fault, row, slot or -1). One slot for
    each column."""
    count = len(slots)
    rows = len(row_at) - 1
    block = block_rows(count)
    kind = np.empty((count, block), np.uint8)
    at = np.empty((count, block), np.int64)
    size = np.empty((count, block), np.int64)
    for first in range(0, rows, block):
        n = min(block, rows - first)
        fault, r = read_copied_block(d, row_at, first, n, count, kind, at, size)
        if fault:
            return fault, first + r, -1
        for s in range(count):
            fault, r = measure_slot(
                d, kind[s], at[s], size[s], n, slots[s, S_CODE], sizes[s], scratch, read
            )
            if fault:
                return fault, first + r, s
    return FINE, 0, -1


@njit(cache=True, nogil=True)
def fill_copied(d, row_at, slots, scratch, read, a8, a16, a32, a64):
    """Store every value of a measured COPY: (fault, row, slot)."""
    count = len(slots)
    rows = len(row_at) - 1
    block = block_rows(count)
    kind = np.empty((count, block), np.uint8)
    at = np.empty((count, block), np.int64)
    size = np.empty((count, block), np.int64)
    for first in range(0, rows, block):
        n = min(block, rows - first)
        read_copied_block(d, row_at, first, n, count, kind, at, size)
        for s in range(count):
            fault, r = fill_slot(
                d, kind[s], at[s], size[s], n, first, slots, s, scratch, read, a8, a16, a32, a64
            )
            if fault:
                return fault, first + r, s
    return FINE, 0, -1
