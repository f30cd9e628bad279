"""Finds foreign keys that a statement creates and by which the server changes rows of their table.
Text only; `cascades` handles existing keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from replicators.sources.mysql.words import Token

NONE, NAMED, ALL = "", "named", "all"
"""Which of them change rows without that being logged: none; those with FOREIGN KEY; also those
that a column's definition makes, which MySQL before 9.0 passes over."""
INLINE_SINCE = (9, 0, 0)
IF_NOT_EXISTS = ("IF", "NOT", "EXISTS")
RULES = (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"))


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key. `constraint`: its name, or its columns in parentheses if the server chooses
    the name. `rule`: `DELETE CASCADE, ON UPDATE SET NULL`. `is_inline`: part of a column's
    definition."""

    constraint: str
    rule: str
    is_inline: bool


def unlogged(keys: Iterable[ForeignKey], which: str) -> ForeignKey | None:
    """The first key that changes rows without logging it."""
    return next((k for k in keys if which == ALL or (which == NAMED and not k.is_inline)), None)


def parts(words: Iterable[Token]) -> Iterator[list[Token]]:
    """The parts between the outer commas."""
    part: list[Token] = []
    depth = 0
    for word in words:
        depth += {"(": 1, ")": -1}.get(word.text, 0)
        if word.text == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(word)
    if part:
        yield part


def foreign_keys(words: Sequence[Token]) -> Iterator[ForeignKey]:
    """The keys that change rows, from the parts of an ALTER TABLE or CREATE TABLE."""
    for part in parts(words):
        outer, groups = _outer(part)
        upper = [w.upper for w in outer]
        if "REFERENCES" not in upper:
            for group in groups:
                yield from foreign_keys(group)
            continue
        at = upper.index("REFERENCES")
        rules = list(_rules(upper[at:]))
        if rules:
            is_inline = "FOREIGN" not in upper[:at]
            yield ForeignKey(_name(outer[:at], upper[:at], groups), ", ON ".join(rules), is_inline)


def _outer(part: Sequence[Token]) -> tuple[list[Token], list[list[Token]]]:
    """The words outside of parentheses, and the contents of each outer pair."""
    outer: list[Token] = []
    groups: list[list[Token]] = []
    depth = 0
    for word in part:
        depth -= word.text == ")"
        if depth > 0:
            groups[-1].append(word)
        elif word.text == "(":
            groups.append([])
        elif word.text != ")":
            outer.append(word)
        depth += word.text == "("
    return outer, groups


def _rules(upper: Sequence[str]) -> Iterator[str]:
    for i, word in enumerate(upper):
        act = upper[i + 1] if word == "ON" and i + 1 < len(upper) else ""
        if act in ("DELETE", "UPDATE"):
            rule = next((r for r in RULES if tuple(upper[i + 2 : i + 2 + len(r)]) == r), None)
            if rule:
                yield f"{act} {' '.join(rule)}"


def _name(outer: Sequence[Token], upper: Sequence[str], groups: Sequence[Sequence[Token]]) -> str:
    for word, size in (("CONSTRAINT", 1), ("FOREIGN", 2)):
        at = upper.index(word) + size if word in upper else len(upper)
        at += 3 * (tuple(upper[at : at + 3]) == IF_NOT_EXISTS)
        if at < len(outer) and upper[at] != "FOREIGN":
            return outer[at].name
    if "FOREIGN" in upper and groups:
        columns = groups[0]
    else:
        columns = [w for w in outer if w.upper not in ("ADD", "COLUMN", *IF_NOT_EXISTS)][:1]
    return "(" + ", ".join(w.name for w in columns if w.text != ",") + ")"
