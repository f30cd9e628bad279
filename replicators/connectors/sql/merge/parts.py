"""What the statements of all modes are made of: keys, their ranges, unsent values, and the rows
that the target has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Bytes, Timestamp
from replicators.connectors.sql import trees
from replicators.connectors.sql.dialect import Joined, SqlDialect
from replicators.connectors.sql.relation import Relation, relation
from replicators.connectors.sql.steps import ROW_MISSING, Check, Statement
from replicators.connectors.sql.trees import column
from replicators.connectors.target import FoldedBatch, KeyRange

TARGET, SOURCE, STAGED, HELD, READ = "t", "s", "b", "o", "r"
"""The names of relations: the target that changes, a MERGE's source, the staged relation, the
target's rows that a batch's rows come from, and the target where it is only read."""
_MOMENT = Column("", Timestamp(6, zone=True), "")


@dataclass(frozen=True, slots=True)
class Parts:
    """A batch on its way into a target table, in a dialect."""

    dialect: SqlDialect
    target: exp.Table
    staged: exp.Table | exp.Subquery
    batch: FoldedBatch
    relation: Relation

    @property
    def names(self) -> list[str]:
        """The names of the table's own columns."""
        return [c.name for c in self.relation.own]

    @property
    def key(self) -> list[Column]:
        """The key columns."""
        return [self.batch.schema.column(n) for n in self.batch.schema.key]

    def free(self, name: str) -> str:
        """The name, with underscores until neither the table nor the staged relation has it."""
        columns = (*self.batch.schema.columns, *self.relation.columns)
        taken = {c.name.casefold() for c in (*columns, *extra_columns(self.batch.mode))}
        while name.casefold() in taken:
            name += "_"
        return name

    @property
    def true(self) -> exp.Expression:
        """TRUE as a value."""
        return trees.raw(self.dialect.literals.true)

    @property
    def false(self) -> exp.Expression:
        """FALSE as a value."""
        return trees.raw(self.dialect.literals.false)

    @property
    def truncated_at(self) -> exp.Expression:
        """The time of the batch's first TRUNCATE."""
        native = self.dialect.native(extra_columns(self.batch.mode)[0 if self._is_history else 1])
        return self.dialect.literals.tree(_MOMENT, self.batch.truncated_at, native)

    @property
    def _is_history(self) -> bool:
        return self.batch.mode is Mode.HISTORY

    def match(self, left: str, right: str) -> exp.Expression:
        """Whether rows of two relations have one key."""
        return trees.all_of(
            *(self.dialect.same(column(c.name, left), column(c.name, right), c) for c in self.key)
        )

    def from_origin(self, staged: str, held: str) -> exp.Expression:
        """Whether a staged row comes from a row of the target with another key."""
        origins = self.relation.origin
        return trees.all_of(
            column(self.relation.moved, staged),
            *(
                self.dialect.same(column(origins(c.name), staged), column(c.name, held), c)
                for c in self.key
            ),
        )

    def from_row(self, staged: str, held: str) -> exp.Expression:
        """Whether a staged row comes from a row of the target, under another key or under its
        own."""
        if not self.relation.moved:
            return self.match(staged, held)
        return trees.all_of(
            *(self.dialect.same(self._came(c, staged), column(c.name, held), c) for c in self.key)
        )

    def _came(self, one: Column, staged: str) -> exp.Expression:
        origin = column(self.relation.origin(one.name), staged)
        return trees.either(column(self.relation.moved, staged), origin, column(one.name, staged))

    def ranges(self, alias: str = "") -> exp.Expression | None:
        """A condition on the target that is true for every key of the batch; None where there is
        none. Engines prune by literals, not by a join. A small number of keys is listed: then the
        text of Spark's compiled program is the same for every merge, and Spark compiles it
        once."""
        text = ranges(self.dialect, self.batch, alias)
        return trees.raw(text) if text else None

    def held(self, *conditions: exp.Expression | None, found: str = "") -> exp.Subquery:
        """The keys and the needed values of the target's rows, as `HELD`. `found`: a column that is
        true in each of them."""
        wanted = dict.fromkeys((*self.batch.schema.key, *self.batch.unsent))
        shown: list[exp.Expression] = [column(n) for n in wanted]
        if found:
            shown.append(trees.called(self.true, found))
        where = trees.both(*conditions, self.ranges(READ))
        return _subquery(trees.select(shown, trees.aliased(self.target, READ), where=where), HELD)

    def lost(self) -> Check:
        """Finds rows that lack values which the target does not have either. For dialects in which
        no expression fails."""
        return Check(self.missing(at_most=1), "target:row-missing")

    def missing(self, at_most: int = 0) -> exp.Select:
        """The keys of the rows that lack values which the target does not have either. A row with a
        changed key is looked up under its earlier key."""
        flags = [column(flag, STAGED) for _, flag in self.relation.unsent]
        lacks = trees.any_of(*flags) if flags else exp.false()
        there = None
        if not (self.batch.truncate and self.batch.mode is Mode.MIRROR):
            current = column("_is_current", READ) if self._is_history else None
            where = trees.all_of(self.from_row(STAGED, READ), current, self.ranges(READ))
            there = trees.no(trees.exists(trees.aliased(self.target, READ), where))
        found = trees.select(
            [column(n, STAGED) for n in self.batch.schema.key],
            trees.aliased(self.staged, STAGED),
            where=trees.all_of(lacks, trees.no(column(self.relation.delete, STAGED)), there),
        )
        return found.limit(at_most, copy=False) if at_most else found

    def checks(self) -> list[Check]:
        """The check for lost rows, where the dialect needs it."""
        return [self.lost()] if self.batch.unsent and self.dialect.fail is None else []

    def failing(
        self, condition: exp.Expression, value: exp.Expression, one: Column
    ) -> exp.Expression:
        """The value of a column; the statement fails where the condition holds."""
        native = self.dialect.native(one)
        return self.dialect.failing(condition, ROW_MISSING, value, native)

    def own(self, of: str) -> str:
        """How UPDATE and DELETE call the table that they change, which otherwise is `of`."""
        if self.dialect.joined is not Joined.NAMED:
            return of
        return str((self.staged if of == STAGED else self.target).name)

    def beside(self) -> str:
        """How UPDATE and DELETE call the staged relation, if the target changes."""
        return STAGED if self.own(TARGET).casefold() != STAGED else f"{STAGED}_"

    def update(
        self,
        of: str,
        sets: Sequence[tuple[str, exp.Expression]],
        where: exp.Expression,
        source: exp.Table | exp.Subquery | None = None,
    ) -> Statement:
        """UPDATE of the target (`TARGET`) or of the staged relation (`STAGED`), by the rows of
        another relation."""
        made = exp.Update(
            this=self._changed(of),
            expressions=[trees.equal(column(n), value) for n, value in sets],
            where=exp.Where(this=where),
        )
        if source is not None:
            made.set("from_", exp.From(this=source))
        return Statement(made)

    def delete(
        self,
        of: str,
        where: exp.Expression,
        source: exp.Table | exp.Subquery | None = None,
    ) -> Statement:
        """DELETE from the target (`TARGET`) or from the staged relation (`STAGED`), by the rows of
        another relation."""
        made = exp.Delete(this=self._changed(of))
        if self.dialect.joined is Joined.TABLES:
            made.set("tables", [trees.table((of,))])
        if source is None or self.dialect.joined is Joined.USING:
            made.set("where", exp.Where(this=where))
            made.set("using", [source] if source is not None else None)
        elif self.dialect.joined is Joined.NAMED:
            made.set("where", exp.Where(this=trees.exists(source, where)))
        else:
            made.this.set("joins", [trees.join(source, where)])
        return Statement(made)

    def _changed(self, of: str) -> exp.Table | exp.Subquery:
        plain = self.staged if of == STAGED else self.target
        if self.dialect.joined is Joined.NAMED:
            return plain.copy()
        return trees.aliased(plain, of)


def parts(
    dialect: SqlDialect,
    target: exp.Table,
    staged: exp.Table | exp.Subquery,
    batch: FoldedBatch,
) -> Parts:
    """The parts of a batch's statements. Keys are listed only up to the dialect's number."""
    if len(batch.keys) > dialect.most_keys:
        batch = replace(batch, keys=())
    return Parts(dialect, target, staged, batch, relation(batch))


def _subquery(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=trees.name(alias)))


def ranges(dialect: SqlDialect, batch: FoldedBatch, alias: str) -> str:
    """See `Parts.ranges`."""
    schema = batch.schema
    if not (batch.ranges or batch.keys) or not schema.key:
        return ""
    first = schema.column(schema.key[0])
    if isinstance(first.type, Array) or not (batch.keys or dialect.orders(first)):
        return ""
    written = _Written(dialect, first, dialect.sql(column(first.name, alias)))
    try:
        if batch.keys:
            return f"{written.name} IN ({', '.join(map(written.literal, batch.keys))})"
        return f"({written.halved(batch.ranges)})"
    except ValueError:
        return ""


def digests(dialect: SqlDialect, batch: FoldedBatch, digest: str, alias: str) -> str:
    """A condition that is true for every digest of the batch; '' if there are too many to list."""
    if not batch.keys:
        return ""
    one = Column(digest, Bytes(16), "")
    written = _Written(dialect, one, dialect.sql(column(digest, alias)))
    return f"{written.name} IN ({', '.join(map(written.literal, batch.keys))})"


class _Written:
    """A column's conditions as text: there may be a thousand literals."""

    def __init__(self, dialect: SqlDialect, one: Column, name: str) -> None:
        self._literals, self._column, self.name = dialect.literals, one, name
        self._native = dialect.native(one)

    def literal(self, value: object) -> str:
        return self._literals.literal(self._column, value, self._native)

    def halved(self, all_of: Sequence[KeyRange]) -> str:
        """True if one of the ascending ranges holds. The ranges are halved again and again, so that
        a row costs a few comparisons, not two for each range."""
        if len(all_of) == 1:
            return self._range(all_of[0])
        middle = len(all_of) // 2
        left, right = all_of[:middle], all_of[middle:]
        low, high = self.literal(right[0].low), self.literal(left[-1].high)
        if "NULL" in (low, high):
            return " OR ".join(map(self._range, all_of))
        return (
            f"{self.name} <= {high} AND ({self.halved(left)}) "
            f"OR {self.name} >= {low} AND ({self.halved(right)})"
        )

    def _range(self, one: KeyRange) -> str:
        low, high = self.literal(one.low), self.literal(one.high)
        if low == "NULL" or high == "NULL":
            return f"{self.name} IS NULL"
        if low == high:
            return f"{self.name} = {low}"
        return f"{self.name} BETWEEN {low} AND {high}"
