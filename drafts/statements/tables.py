"""Finds the tables that a statement names among those of its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from assessments.services import describe_table, list_tables
from drafts.statements.errors import StatementError
from drafts.statements.sources import Source
from drafts.statements.tokens import Kind, Token
from drafts.statements.tree import Name, Watched
from replicators.connectors.model.modes import CHOICES
from replicators.connectors.model.schema import EXCLUDABLE, UNSUPPORTED, TableId

SHOWN = 5


class Tables:
    """The tables of a source, asked for once."""

    def __init__(self, text: str, source: Source) -> None:
        self._text = text
        self._source = source
        found = list_tables(kind=source.kind, params=source.params)
        self._all = [t.id for t in found]
        self._database = str(source.params.get("database") or "")

    def selections(self, watched: Sequence[Watched]) -> list[dict[str, Any]]:
        """The tables of all items, in order. A table that is named and also in a watched database
        is taken as it is named."""
        named = [(w, self._find(w.name)) for w in watched if not w.is_database]
        found: dict[TableId, dict[str, Any]] = {}
        for item, table in named:
            if table in found:
                raise StatementError(f"{table} is named twice.", self._text, item.name.at)
            found[table] = self._selection(item, table)
        for item in watched:
            for table in self._of_database(item.name) if item.is_database else ():
                found.setdefault(table, _plain(table))
        return list(found.values())

    def _find(self, name: Name) -> TableId:
        """The one table of that name: `table`, `schema.table` or `database.schema.table`."""
        parts = [p.value for p in name.parts]
        if len(parts) > 1 and parts[0] == self._database and TableId(*parts[-2:]) not in self._all:
            parts = parts[1:]
        elif len(parts) == 3:
            self._require_database(name)
            parts = parts[1:]
        found = [t for t in self._all if [t.schema, t.name][-len(parts) :] == parts]
        if len(found) == 1:
            return found[0]
        if found:
            listed = _listed(str(t) for t in found)
            text = f"Several tables are called `{name}`: {listed}. Write its schema too."
            raise StatementError(text, self._text, name.at)
        raise StatementError(self._missing(str(name)), self._text, name.at)

    def _require_database(self, name: Name) -> None:
        if name.parts[0].value != self._database:
            text = f"The source is not in the database `{name.parts[0].value}`."
            if self._database:
                text = f"{text[:-1]}, but in `{self._database}`."
            raise StatementError(text, self._text, name.at)

    def _missing(self, name: str) -> str:
        known = {str(t): str(t) for t in self._all} | {t.name: str(t) for t in self._all}
        near = get_close_matches(name, known, 1)
        meant = f" Did you mean {known[near[0]]}?" if near else ""
        return f"The source has no table `{name}`, or its user may not see it.{meant}"

    def _of_database(self, name: Name) -> list[TableId]:
        """Every table of a database or schema. `database.x` is a schema of that database or, where
        there is none, its table x."""
        parts = [p.value for p in name.parts]
        if parts[0] == self._database:
            if len(parts) == 1:
                return self._some(self._all, name)
            parts = parts[1:]
        if len(parts) == 1:
            found = [t for t in self._all if t.schema == parts[0]]
            if found or len(name.parts) == 1:
                return self._some(found, name)
        return [self._find(name)]

    def _some(self, found: list[TableId], name: Name) -> list[TableId]:
        if not found:
            schemas = sorted({t.schema for t in self._all})
            known = [*schemas, self._database] if self._database else schemas
            text = f"The source has no tables in `{name}`. It has: {_listed(known)}."
            raise StatementError(text, self._text, name.at)
        return found

    def _selection(self, item: Watched, table: TableId) -> dict[str, Any]:
        if item.partitions:
            text = (
                "Partitions can't be watched by name. Name the partition as a table where the "
                "source lists it as one, or choose rows: VALUES FROM (…) TO (…)."
            )
            raise StatementError(text, self._text, item.partitions[0].at)
        words = {
            "excluded": [self._one_of(t, EXCLUDABLE) for t in item.without],
            "mode": self._one_of(item.mode, CHOICES) if item.mode else "",
            "unsupported": self._one_of(item.unsupported, UNSUPPORTED) if item.unsupported else "",
        }
        columns = self._columns(item, table) if item.columns else []
        return {**_plain(table), **words, "columns": columns, "filter": self._filter(item, table)}

    def _one_of(self, token: Token, words: Sequence[str]) -> str:
        if token.value.lower() in words:
            return token.value.lower()
        text = f"Expected {', '.join(words[:-1])} or {words[-1]}, but here is {token.shown}."
        raise StatementError(text, self._text, token.at)

    def _columns(self, item: Watched, table: TableId) -> list[str]:
        schema = describe_table(kind=self._source.kind, params=self._source.params, table=table)
        known = [c.name for c in schema.columns]
        for token in item.columns:
            if token.value not in known:
                near = get_close_matches(token.value, known, 1)
                meant = f" Did you mean {near[0]}?" if near else ""
                text = f"{table} has no column `{token.value}`.{meant}"
                raise StatementError(text, self._text, token.at)
        return [t.value for t in item.columns]

    def _filter(self, item: Watched, table: TableId) -> str:
        if not item.low:
            return item.where.value if item.where else ""
        schema = describe_table(kind=self._source.kind, params=self._source.params, table=table)
        key = schema.primary_key or schema.key
        for values in (item.low, item.high):
            if not key or len(values) > len(key):
                many = f"{len(key)} column{'s' if len(key) > 1 else ''}" if key else "none"
                text = f"More values than the key of {table} has columns: it has {many}."
                raise StatementError(text, self._text, values[min(len(key), len(values) - 1)].at)
        within = f"{_bound(key, item.low, '>')} AND {_bound(key, item.high, '<')}"
        return f"{within} AND ({item.where.value})" if item.where else within


def _bound(key: Sequence[str], values: Sequence[Token], sign: str) -> str:
    """`key >= values` or `key < values`, column by column as an index orders them."""
    column, value = f'"{key[0]}"', _literal(values[0])
    if len(values) == 1:
        return f"{column} {'>=' if sign == '>' else sign} {value}"
    rest = _bound(key[1:], values[1:], sign)
    return f"({column} {sign} {value} OR ({column} = {value} AND {rest}))"


def _literal(token: Token) -> str:
    if token.kind is Kind.NUMBER:
        return token.value.replace("_", "")
    return "'" + token.value.replace("'", "''") + "'"


def _plain(table: TableId) -> dict[str, Any]:
    return {"schema": table.schema, "name": table.name}


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
