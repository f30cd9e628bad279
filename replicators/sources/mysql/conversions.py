"""Decides whether MODIFY or CHANGE leaves every value as it is; True only where that is certain.
Pure.

The log does not hold rows that a conversion changes, so a table is copied afresh where this is not
certain. In strict mode most lossy conversions fail, but not all: trailing spaces and decimals are
cut without an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Decimal, Enum, Float, String, Timestamp
from replicators.connectors.schema.diff import is_wider

INTEGERS = {
    "tiny": (-(2**7), 2**7 - 1), "utiny": (0, 2**8 - 1), "small": (-(2**15), 2**15 - 1),
    "usmall": (0, 2**16 - 1),
    "medium": (-(2**23), 2**23 - 1), "umedium": (0, 2**24 - 1), "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1), "big": (-(2**63), 2**63 - 1), "ubig": (0, 2**64 - 1),
}  # fmt: skip
TEXTS = {"tinytext": 8, "text": 16, "mediumtext": 24, "longtext": 32}
BYTES = {"tinyblob": 8, "blob": 16, "mediumblob": 24, "longblob": 32}
FLOATS = {("float", "float"), ("float", "double"), ("double", "double")}
UNICODE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32"})
MOST_BYTES_OF_A_CHARACTER = 4
NUMBERED = " auto_increment"
LABEL = re.compile(r"('(?:[^'\\]|''|\\.)*')", re.DOTALL)


def keeps_values(old: Column, new: Column, said: str) -> bool:
    """Whether values of `old` stay the same as values of `new`; `said` is the type in the
    statement."""
    if said.endswith(NUMBERED):
        said = said.removesuffix(NUMBERED)
        if not old.native.endswith(NUMBERED):
            return False  # rows with 0 got a number
    if old.wire in INTEGERS and new.wire in INTEGERS:
        (low, high), (least, most) = INTEGERS[old.wire], INTEGERS[new.wire]
        return least <= low and high <= most
    if _reported(old.native) == _reported(said) and old.wire == new.wire:
        return True
    if old.wire == new.wire == "bytes":
        return _keeps_bytes(old.native, said)
    return _keeps_others(old, new, said)


def _keeps_others(old: Column, new: Column, said: str) -> bool:
    before, after = _word(old.native), _word(said)
    loses_signs = "unsigned" in said and "unsigned" not in old.native.lower()
    match old.type, new.type:
        case Decimal(), Decimal():
            return is_wider(old.type, new.type) and not loses_signs
        case Float(), Float():
            return (before, after) in FLOATS and "(" not in said and not loses_signs
        case Enum(), Enum():
            return is_wider(old.type, new.type) and old.wire == new.wire
        case Timestamp(), Timestamp():
            return is_wider(old.type, new.type) and before == after
        case String(), String() if old.wire.startswith("text:") and new.wire.startswith("text:"):
            is_same = old.wire == new.wire
            return (is_same or _is_unicode(new.wire)) and _keeps_text(old.native, said, is_same)
    return False


def _reported(native: str) -> str:
    """The type without blanks, in lower case. Labels of an ENUM or a SET stay, because they are
    values."""
    parts = LABEL.split(native.removesuffix(NUMBERED))
    return "".join(p if at % 2 else re.sub(r"\s+", "", p.lower()) for at, p in enumerate(parts))


def _word(native: str) -> str:
    found = re.match(r"[a-z]+", native.lower())
    return found.group() if found else ""


def _length(native: str) -> int:
    found = re.match(r"[a-z]+\((\d+)\)", native.lower())
    return int(found.group(1)) if found else 0


def _is_unicode(wire: str) -> bool:
    return wire.partition(":")[2] in UNICODE


def _is_any_size(native: str, sizes: Mapping[str, int]) -> bool:
    """Whether this is `text(9)` or the like, for which the server chooses the smallest of these
    types that is large enough."""
    return _word(native) in sizes and "(" in native


def _keeps_text(old: str, said: str, is_same_charset: bool) -> bool:
    """Whether the new type is long enough: in another character set a text may need more bytes."""
    before, after = _word(old), _word(said)
    if _is_any_size(old, TEXTS) or _is_any_size(said, TEXTS):
        return False
    if after in TEXTS:
        if before in TEXTS:
            return TEXTS[after] >= TEXTS[before] + (0 if is_same_charset else 1)
        return MOST_BYTES_OF_A_CHARACTER * _length(old) < 1 << TEXTS[after]
    is_limited = before in ("char", "varchar") and after in ("char", "varchar")
    cuts_spaces = before == "varchar" and after == "char"
    return is_limited and not cuts_spaces and _length(said) >= _length(old) > 0


def _keeps_bytes(old: str, said: str) -> bool:
    before, after = _word(old), _word(said)
    if _is_any_size(old, BYTES) or _is_any_size(said, BYTES):
        return False
    if after in BYTES:
        if before in BYTES:
            return BYTES[after] >= BYTES[before]
        return before in ("binary", "varbinary") and _length(old) < 1 << BYTES[after]
    is_limited = before in ("binary", "varbinary") and after == "varbinary"
    return is_limited and _length(said) >= _length(old) > 0
