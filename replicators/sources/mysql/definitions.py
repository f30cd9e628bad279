"""Parses a column's definition in an ALTER TABLE: its type, and the value of existing rows. Runs
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicators.sources.mysql.words import (
    NO_AUTO_VALUE_ON_ZERO,
    PAD_CHAR_TO_FULL_LENGTH,
    STRICT_MODES,
    Token,
)

ALIASES = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "int4": "int",
    "int8": "bigint",
    "middleint": "mediumint", "bool": "tinyint", "boolean": "tinyint", "dec": "decimal",
    "numeric": "decimal",
    "fixed": "decimal", "real": "double", "float4": "float", "float8": "double",
    "character": "char",
}  # fmt: skip
TWO_WORDS = {
    ("double", "precision"): "double",
    ("character", "varying"): "varchar",
    ("char", "varying"): "varchar",
}
EMPTY, IMPLICIT = "", "~"
"""What old rows have: NULL; the type's own default. Otherwise `n` and a number, or `s` and a
text."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A column's definition. `type`: its text in lower case, without parts that do not affect
    values. `default`: `EMPTY`, `IMPLICIT`, a literal, or None if only the server knows.
    `is_unsafe`: old values may change although they fit."""

    type: str
    default: str | None
    is_unsafe: bool = False


def definition(words: Sequence[Token], mode: int) -> Definition:
    """Parse the words behind the column's name, up to the next comma, under that sql_mode."""
    kind, at = _type(words)
    rest = _outer(words[at:])
    upper = [w.upper for w in rest]
    is_required = _has(upper, "NOT", "NULL")
    is_made = bool({"GENERATED", "AS", "AUTO_INCREMENT", "SERIAL", "PRIMARY"} & set(upper))
    unsafe = is_required and not mode & STRICT_MODES
    # In this mode a CHAR that becomes a VARCHAR keeps its padding spaces.
    unsafe = unsafe or bool(mode & PAD_CHAR_TO_FULL_LENGTH)
    if "AUTO_INCREMENT" in upper and not mode & NO_AUTO_VALUE_ON_ZERO:
        kind += " auto_increment"
    is_own = bool({"GENERATED", "AS", "SERIAL", "PRIMARY"} & set(upper)) or kind.startswith(
        "serial"
    )
    default = None if is_made or kind.startswith("serial") else _default(rest, upper, is_required)
    if kind.startswith("timestamp") and default == EMPTY and not _says_null(upper):
        default = None  # by an old setting it is the time of the statement
    return Definition(kind, default, unsafe or is_own)


def _type(words: Sequence[Token]) -> tuple[str, int]:
    lower = [w.text.lower() for w in words]
    name, at = (lower[0], 1) if lower else ("", 0)
    if tuple(lower[:2]) in TWO_WORDS:
        name, at = TWO_WORDS[lower[0], lower[1]], 2
    text = ALIASES.get(name, name)
    if lower[at : at + 1] == ["("]:
        end = at + 1
        while end < len(words) and words[end].text != ")":
            end += 1
        text += "(" + "".join(w.text for w in words[at + 1 : end]) + ")"
        at = min(end + 1, len(words))
    while at < len(words) and lower[at] in ("unsigned", "signed", "zerofill"):
        text += " unsigned" if lower[at] != "signed" and "unsigned" not in text else ""
        at += 1
    return text, at


def _outer(words: Sequence[Token]) -> list[Token]:
    """The words outside of parentheses, and each outer opening parenthesis."""
    found, depth = [], 0
    for word in words:
        depth -= word.text == ")"
        if depth == 0 and word.text != ")":
            found.append(word)
        depth += word.text == "("
    return found


def _has(upper: Sequence[str], *wanted: str) -> bool:
    size = len(wanted)
    return any(tuple(upper[i : i + size]) == wanted for i in range(len(upper)))


def _says_null(upper: Sequence[str]) -> bool:
    return any(
        w == "NULL" and upper[i - 1 : i] not in (["NOT"], ["DEFAULT"]) for i, w in enumerate(upper)
    )


def _default(rest: Sequence[Token], upper: Sequence[str], is_required: bool) -> str | None:
    if "DEFAULT" not in upper:
        return IMPLICIT if is_required else EMPTY
    behind = list(rest[upper.index("DEFAULT") + 1 :])
    words = [w.upper for w in behind]
    if words[:1] == ["NULL"]:
        return EMPTY
    if words[:1] in (["TRUE"], ["FALSE"]):
        return f"n{int(words[0] == 'TRUE')}"
    if words[:1] and words[0][:1] == "'":
        return _text(behind)
    return _number([w.text for w in behind[:4]])


def _text(behind: Sequence[Token]) -> str | None:
    """A text literal that depends on no setting."""
    text = behind[0].text[1:-1].replace("''", "'")
    is_joined = len(behind) > 1 and behind[1].text[:1] in "'\""
    return None if is_joined or "\\" in text or not text.isascii() else f"s{text}"


def _number(texts: list[str]) -> str | None:
    """A number without an exponent, which may be in the token behind the digits or the point."""
    sign = texts.pop(0) if texts[:1] in (["+"], ["-"]) else ""
    found = texts.pop(0) if texts and texts[0].isdigit() else ""
    if texts[:1] == ["."]:
        found += texts.pop(0)
        if texts and (texts[0][0].isdigit() or texts[0][0] in "eE"):
            found += texts.pop(0)
    whole, _, part = found.partition(".")
    is_plain = (whole + part).isdigit() and found.isascii()
    return f"n{sign.strip('+')}{found.rstrip('.')}" if is_plain else None
