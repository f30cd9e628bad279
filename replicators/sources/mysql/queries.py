"""What QUERY events say: transaction control, DDL, and row changes written as statements. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from replicators.connectors.schema import TableId
from replicators.sources.mysql.alters import alteration
from replicators.sources.mysql.expand import QUERY, expand
from replicators.sources.mysql.tablemaps import HEADER, Reader
from replicators.sources.mysql.words import Token, Words, tokens

EXECUTE_LOAD = 18
SWAPS = (("_gho", "_del", "gh-ost"), ("_new", "_old", "pt-online-schema-change"))


class Kind(StrEnum):
    """What a statement does."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO = "rollback to"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    TRUNCATE = "truncate"
    CHANGE = "change"  # DDL that touches tables
    ROWS = "rows"  # a row change as a statement
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Statement:
    """`tables`: those it touches. `unlogged`: why their rows changed without being logged, in our words; "" where they
    did not. `opens`: rows follow in the same transaction, as after CREATE TABLE ... SELECT. `added` and `dropped`: columns of
    an ALTER TABLE."""

    kind: Kind
    tables: tuple[TableId, ...] = ()
    unlogged: str = ""
    xid: str = ""
    opens: bool = False
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def query_of(event: bytes) -> tuple[str, str]:
    """Database and text of a QUERY event (with header, without checksum); ValueError where it is damaged."""
    reader = Reader(event, HEADER)
    reader.take(8)
    database_size = reader.number(1)
    reader.take(2)
    reader.take(reader.number(2))
    database = reader.take(database_size).decode(errors="replace")
    reader.take(1)
    return database, reader.take(reader.left).decode(errors="replace")


def statement_in(event: bytes, has_checksums: bool, wanted: Iterable[TableId]) -> Statement:
    """What an event of a statement says, also a compressed one; a LOAD DATA could touch any table. ValueError or `Damaged`
    where it can't be read."""
    plain = event[:-4] if has_checksums else event
    if plain[4] == EXECUTE_LOAD:
        return Statement(Kind.ROWS, tuple(wanted))
    if plain[4] != QUERY:
        framed = len(event).to_bytes(4, "little") + event
        plain = expand(np.frombuffer(framed, np.uint8), has_checksums).body[4:].tobytes()
    return statement(*query_of(plain))


def statement(database: str, text: str) -> Statement:
    """What a statement does, with `database` as its default one."""
    words = tokens(text)
    first = words[0].upper if words else ""
    second = words[1].upper if len(words) > 1 else ""
    if first in ("BEGIN", "COMMIT", "SAVEPOINT", "ROLLBACK", "START"):
        return Statement(_control(first, {w.upper for w in words}))
    if first == "XA":
        return _xa(second, text)
    if first in ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH"):
        return Statement(Kind.ROWS, tuple(_named(words, database)))
    handlers = {
        "TRUNCATE": _truncate,
        "RENAME": _rename,
        "DROP": _drop,
        "ALTER": _alter,
        "CREATE": _create,
    }
    if first in handlers:
        return handlers[first](words, database)
    return Statement(Kind.OTHER)


def _control(first: str, words: set[str]) -> Kind:
    if first == "ROLLBACK":
        return Kind.ROLLBACK_TO if "TO" in words else Kind.ROLLBACK
    kinds = {"SAVEPOINT": Kind.OTHER, "COMMIT": Kind.COMMIT}
    return kinds.get(first, Kind.BEGIN)


def _xa(second: str, text: str) -> Statement:
    kinds = {
        "START": Kind.XA_START,
        "BEGIN": Kind.XA_START,
        "END": Kind.XA_END,
        "COMMIT": Kind.XA_COMMIT,
        "ROLLBACK": Kind.XA_ROLLBACK,
    }
    parts = text.split(None, 2)
    return Statement(kinds.get(second, Kind.OTHER), xid=parts[2].strip() if len(parts) > 2 else "")


def _named(words: list[Token], database: str) -> Iterator[TableId]:
    """Every name that could be a table's."""
    for i, word in enumerate(words):
        if word.text[:1] in "'\"" or not word.name:
            continue
        if i + 2 < len(words) and words[i + 1].text == ".":
            yield TableId(word.name, words[i + 2].name)
        if i == 0 or words[i - 1].text != ".":
            yield TableId(database, word.name)


def _truncate(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    rest.skip("TABLE")
    table = rest.table(database)
    return Statement(Kind.TRUNCATE, (table,) if table else ())


def _rename(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    if not (rest.skip("TABLE") or rest.skip("TABLES")):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    pairs: list[tuple[TableId, TableId]] = []
    while True:
        old = rest.table(database)
        while rest.next in ("WAIT", "NOWAIT") or rest.next.isdigit():
            rest.at += 1
        if old is None or not rest.skip("TO"):
            break
        new = rest.table(database)
        if new is None:
            break
        pairs.append((old, new))
        if not rest.skip(","):
            break
    tables = tuple(dict.fromkeys(t for pair in pairs for t in pair))
    return Statement(Kind.CHANGE, tables, _swap(pairs) or "a rename of the table")


def _swap(pairs: list[tuple[TableId, TableId]]) -> str:
    """Whether this is how an online schema change ends: the table goes to one shadow's name, and comes from another's."""
    moved = {(old.name, new.name) for old, new in pairs}
    for old, new in moved:
        for fresh, gone, program in SWAPS:
            if new == f"_{old}{gone}" and (f"_{old}{fresh}", old) in moved:
                return f"an online schema change ({program})"
    return ""


def _drop(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    if rest.skip("DATABASE") or rest.skip("SCHEMA"):
        rest.skip("IF", "EXISTS")
        name = rest.table("")
        return Statement(
            Kind.CHANGE, (TableId(name.name, "*"),) if name else (), "a drop of its database"
        )
    if not (rest.skip("TABLE") or rest.skip("TABLES")):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    tables = []
    while (table := rest.table(database)) is not None:
        tables.append(table)
        if not rest.skip(","):
            break
    return Statement(Kind.CHANGE, tuple(tables), "a drop of the table")


def _create(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    is_replacing = rest.skip("OR", "REPLACE")
    if not rest.skip("TABLE"):
        return Statement(Kind.OTHER)
    rest.skip("IF", "NOT", "EXISTS")
    table = rest.table(database)
    why = "a replacement of the table" if is_replacing else ""
    opens = [w.upper for w in words[-2:]] == ["START", "TRANSACTION"]
    return Statement(Kind.CHANGE, (table,) if table else (), why, opens=opens)


def _alter(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    rest.skip("ONLINE")
    rest.skip("IGNORE")
    if not rest.skip("TABLE"):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    table = rest.table(database)
    if table is None:
        return Statement(Kind.OTHER)
    while rest.next in ("WAIT", "NOWAIT") or rest.next.isdigit():
        rest.at += 1
    said = alteration(rest.words[rest.at :])
    return Statement(Kind.CHANGE, (table,), said.unlogged, added=said.added, dropped=said.dropped)


KEPT_DROPPED = 500


def with_dropped(
    known: tuple[tuple[str, str, str], ...], said: Statement
) -> tuple[tuple[str, str, str], ...]:
    """The columns that were dropped, the last ones, after a statement: with those that it drops, without those it makes."""
    made = {name.lower() for name in said.added}
    kept = [d for d in known if not (d[2] in made and TableId(d[0], d[1]) in said.tables)]
    kept += [(t.schema, t.name, c.lower()) for t in said.tables for c in said.dropped]
    return tuple(dict.fromkeys(kept))[-KEPT_DROPPED:]
