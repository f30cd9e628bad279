"""Parses QUERY events: transaction control, DDL, and row changes logged as statements. Runs
nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from replicators.connectors.model.schema import TableId
from replicators.connectors.schema.steps import SchemaStep
from replicators.sources.mysql.alters import Alteration, alteration
from replicators.sources.mysql.charsets import decoder_of
from replicators.sources.mysql.expand import QUERY, expand
from replicators.sources.mysql.foreign_keys import ForeignKey, foreign_keys, parts
from replicators.sources.mysql.tablemaps import HEADER, Reader
from replicators.sources.mysql.words import Token, Words, tokens

EXECUTE_LOAD = 18
LOAD_FIELDS = 13
SQL_MODE, CHARSET = 1, 4
SIZES = {0: 4, 3: 4}
WITH_SIZE = {2: 1, 6: 0}
"""A QUERY event's variables before the client's character set: of fixed sizes; and those that tell
theirs, with what stands behind besides."""
NOTHING: Mapping[Any, Any] = {}
ANY = TableId("*", "*")
"""Stands for every table."""
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
    """What a statement does. `tables`: those it touches. `unlogged`: why their rows changed without
    being logged, in our words; "" if they did not. `opens`: rows follow in the same transaction, as
    after CREATE TABLE ... SELECT. `steps`: what an ALTER TABLE does to columns, without a position.
    `moved`: renamed tables with their new names. `gone`: the tables no longer exist. `keys`:
    foreign keys by which rows change from then on. `indexes`: those of the first table that are
    dropped, in lower case."""

    kind: Kind
    tables: tuple[TableId, ...] = ()
    unlogged: str = ""
    xid: str = ""
    opens: bool = False
    steps: tuple[SchemaStep, ...] = ()
    moved: tuple[tuple[TableId, TableId], ...] = ()
    gone: bool = False
    keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[str, ...] = ()


def query_of(event: bytes, charsets: Mapping[int, str] = NOTHING) -> tuple[str, str, int]:
    """Database, text and sql_mode of a QUERY event, or of the event that ends a LOAD DATA (with
    header, without checksum). ValueError if it is damaged. `charsets`: the character set of each
    collation."""
    reader = Reader(event, HEADER)
    reader.take(8)
    database_size = reader.number(1)
    reader.take(2)
    variables_size = reader.number(2)
    reader.take(LOAD_FIELDS if event[4] == EXECUTE_LOAD else 0)
    mode, collation = _settings(reader.take(variables_size))
    database = reader.take(database_size).decode(errors="replace")
    reader.take(1)
    return database, _text(reader.take(reader.left), charsets.get(collation, "utf8mb4")), mode


def _settings(variables: bytes) -> tuple[int, int]:
    """The sql_mode and the client's collation among a QUERY event's variables, as far as known; 0
    for one that is absent."""
    reader = Reader(variables)
    mode = 0
    while reader.left:
        code = reader.number(1)
        if code == CHARSET:
            return mode, reader.number(2)
        if code == SQL_MODE:
            mode = reader.number(8)
        elif code in WITH_SIZE:
            reader.take(reader.number(1) + WITH_SIZE[code])
        elif code in SIZES:
            reader.take(SIZES[code])
        else:
            break
    return mode, 0


def _text(raw: bytes, charset: str) -> str:
    """The text of a statement. The server logs it in the client's character set, as the client
    wrote it; statements that the server writes itself are in UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    try:
        return decoder_of(charset)(raw)
    except (KeyError, ValueError):
        return raw.decode(errors="replace")


def statement_in(
    event: bytes, has_checksums: bool, constants: Mapping[str, object] = NOTHING
) -> Statement:
    """The statement in an event, which may be compressed. `constants`: server settings, as contexts
    have them: `lowers` (see `statement`) and `charsets` (see `query_of`). ValueError or `Damaged`
    if the event can't be read."""
    reported = constants.get("charsets")
    charsets = reported if isinstance(reported, Mapping) else {}
    plain = event[:-4] if has_checksums else event
    if plain[4] not in (QUERY, EXECUTE_LOAD):
        framed = len(event).to_bytes(4, "little") + event
        plain = expand(np.frombuffer(framed, np.uint8), has_checksums).body[4:].tobytes()
    return statement(*query_of(plain, charsets), lowers=bool(constants.get("lowers")))


def statement(database: str, text: str, mode: int = 0, *, lowers: bool = False) -> Statement:
    """What a statement does, with `database` as the default and under that sql_mode. `lowers`: the
    server keeps table names in lower case, however a statement writes them."""
    said = _statement(database, text, mode)
    if not lowers:
        return said
    moved = tuple((_lower(old), _lower(new)) for old, new in said.moved)
    return replace(said, tables=tuple(_lower(t) for t in said.tables), moved=moved)


def _lower(table: TableId) -> TableId:
    """The name in lower case as the servers convert it: one character for each."""
    return TableId(*("".join(c.lower()[0] for c in name) for name in (table.schema, table.name)))


ANALYZED = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "FORMAT", "SELECT"})
"""What MariaDB's ANALYZE runs; in front of TABLE or TABLES it only counts."""


def _statement(database: str, text: str, mode: int) -> Statement:
    words = _without_settings(tokens(text, mode))
    first = words[0].upper if words else ""
    second = words[1].upper if len(words) > 1 else ""
    if first in ("BEGIN", "COMMIT", "SAVEPOINT", "ROLLBACK", "START"):
        return Statement(_control(first, {w.upper for w in words}))
    if first == "XA":
        return _xa(second, text)
    is_analyzed = first == "ANALYZE" and second in ANALYZED
    if is_analyzed or first in ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH"):
        return Statement(Kind.ROWS, tuple(_named(words, database)))
    if first == "SELECT":
        # A statement called a function that changed rows; its name does not tell which rows.
        return Statement(Kind.ROWS, (ANY,))
    handlers = {
        "TRUNCATE": _truncate,
        "RENAME": _rename,
        "DROP": _drop,
        "CREATE": _create,
    }
    if first == "ALTER":
        return _alter(words, database, mode)
    if first in handlers:
        return handlers[first](words, database)
    return Statement(Kind.OTHER)


def _without_settings(words: list[Token]) -> list[Token]:
    """The statement behind `SET STATEMENT variable = value, ... FOR`. MariaDB logs this prefix too,
    and it may be repeated."""
    while [w.upper for w in words[:2]] == ["SET", "STATEMENT"]:
        depth = at = 0
        while at < len(words) and (depth or words[at].upper != "FOR"):
            depth += {"(": 1, ")": -1}.get(words[at].text, 0)
            at += 1
        words = words[at + 1 :]
    return words


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
    """Every name that may be a table's."""
    for i, word in enumerate(words):
        if word.is_string or not word.name:
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
    why = _swap(pairs) or "a rename of the table"
    return Statement(Kind.CHANGE, tables, why, moved=tuple(pairs))


def _swap(pairs: list[tuple[TableId, TableId]]) -> str:
    """Whether this RENAME is the last step of an online schema change: the table takes one shadow's
    name, and another shadow takes the table's name. Only the names are checked: they do not prove
    what a shadow holds."""
    for old, gone in pairs:
        for fresh, new in pairs:
            for started, ended, program in SWAPS:
                is_shadow = _is_shadow(fresh.name, old.name, started)
                if new == old and is_shadow and _is_shadow(gone.name, old.name, ended):
                    return f"an online schema change ({program})"
    return ""


def _is_shadow(name: str, table: str, ending: str) -> bool:
    """Whether this is a shadow's name, such as `_t_gho`. It may have more underscores or a time if
    a name was taken, and is cut if it was too long."""
    bare = name.lstrip("_")
    return bare != name and bare.endswith(ending) and bare.startswith(table.lstrip("_")[:40])


def _drop(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    if rest.skip("DATABASE") or rest.skip("SCHEMA"):
        rest.skip("IF", "EXISTS")
        name = rest.table("")
        return Statement(
            Kind.CHANGE,
            (TableId(name.name, "*"),) if name else (),
            "a drop of its database",
            gone=True,
        )
    if rest.skip("INDEX") or rest.skip("ONLINE", "INDEX") or rest.skip("OFFLINE", "INDEX"):
        return _drop_index(rest, database)
    if not (rest.skip("TABLE") or rest.skip("TABLES")):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    tables = []
    while (table := rest.table(database)) is not None:
        tables.append(table)
        if not rest.skip(","):
            break
    return Statement(Kind.CHANGE, tuple(tables), "a drop of the table", gone=True)


def _drop_index(rest: Words, database: str) -> Statement:
    rest.skip("IF", "EXISTS")
    name = rest.table("")
    table = rest.table(database) if rest.skip("ON") else None
    if name is None or table is None:
        return Statement(Kind.OTHER)
    said = Alteration()
    said.drop_index(name.name)
    return Statement(Kind.CHANGE, (table,), said.unlogged, indexes=tuple(said.indexes))


def _create(words: list[Token], database: str) -> Statement:
    rest = Words(words, 1)
    is_replacing = rest.skip("OR", "REPLACE")
    if is_replacing and (rest.skip("DATABASE") or rest.skip("SCHEMA")):
        name = rest.table("")
        every = (TableId(name.name, "*"),) if name else ()
        return Statement(Kind.CHANGE, every, "a replacement of its database", gone=True)
    if not rest.skip("TABLE"):
        return Statement(Kind.OTHER)
    # IF NOT EXISTS is logged even if the table exists, and changes nothing then.
    is_certain = not rest.skip("IF", "NOT", "EXISTS")
    table = rest.table(database)
    why = "a replacement of the table" if is_replacing else ""
    opens = [w.upper for w in words[-2:]] == ["START", "TRANSACTION"]
    keys = tuple(foreign_keys(words[rest.at :])) if is_certain else ()
    return Statement(Kind.CHANGE, (table,) if table else (), why, opens=opens, keys=keys)


def _alter(words: list[Token], database: str, mode: int) -> Statement:
    rest = Words(words, 1)
    is_ignoring = False
    while rest.next in ("ONLINE", "IGNORE"):
        is_ignoring = is_ignoring or rest.next == "IGNORE"
        rest.at += 1
    if not rest.skip("TABLE"):
        return Statement(Kind.OTHER)
    rest.skip("IF", "EXISTS")
    table = rest.table(database)
    if table is None:
        return Statement(Kind.OTHER)
    while rest.next in ("WAIT", "NOWAIT") or rest.next.isdigit():
        rest.at += 1
    said = alteration(rest.words[rest.at :], database, mode)
    why = said.unlogged or ("an ALTER IGNORE, which may drop rows" if is_ignoring else "")
    steps, indexes = tuple(said.steps), tuple(said.indexes)
    if said.renamed is None:
        tables = (table, *_partners(rest.words[rest.at :], database))
        return Statement(Kind.CHANGE, tables, why, steps=steps, keys=said.keys, indexes=indexes)
    moved = ((table, said.renamed),)
    return Statement(Kind.CHANGE, moved[0], why, steps=steps, moved=moved, keys=said.keys)


def _partners(words: list[Token], database: str) -> Iterator[TableId]:
    """The tables that an ALTER TABLE exchanges with a partition, or converts to or from one."""
    for action in parts(words):
        rest = Words(action)
        if rest.skip("CONVERT", "TABLE"):
            found = rest.table(database)
        elif rest.skip("EXCHANGE", "PARTITION") or rest.skip("CONVERT", "PARTITION"):
            rest.at += 1
            is_named = rest.skip("WITH", "TABLE") or rest.skip("TO", "TABLE")
            found = rest.table(database) if is_named else None
        else:
            continue
        if found is not None:
            yield found
