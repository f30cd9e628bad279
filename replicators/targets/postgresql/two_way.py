"""A target that others write to as well, and that is replicated back: the later commit wins.

A merge first takes those rows out of its staging table that lost, and records them. A row lost
where the target's row has a later commit time, and was neither merged nor copied by us. A row that
the target does not have lost where somebody deleted it here later: a trigger notes what is deleted.
At one time a delete wins, and otherwise the row whose text is larger. Both sides decide alike, so
they end equal.
"""

# ruff: noqa: S608 - names and texts are quoted

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.postgres import sql
from replicators.connectors.postgres.connections import SETTINGS
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import merge, trees
from replicators.connectors.sql.client import Names, SqlClient
from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.merge.parts import parts
from replicators.connectors.sql.places import SqlPlaces
from replicators.connectors.sql.relation import Relation, relation
from replicators.connectors.sql.state import Progress
from replicators.connectors.sql.steps import Check, Statement, Step
from replicators.connectors.sql.together import TogetherTarget
from replicators.connectors.target import FoldedBatch, MergeResult, TargetTable
from replicators.targets.postgresql.naming import CONFLICTS, DELETES
from replicators.targets.postgresql.origins import MERGING
from replicators.targets.postgresql.publishing import quoted

COPIED, EMPTIED = "copied", "emptied"
"""Keys of `DELETES` that are no row's: these begin with a parenthesis."""
KEPT_DAYS = 7
"""A delete is remembered so long. A change that arrives later may bring its row back."""
MOST_CONFLICTS = 10_000
TRIES = 10
"""Tries of a merge while others write to the same rows."""
MAKE_DELETES = """
CREATE TABLE IF NOT EXISTS {} (
    target_table text, key text, at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (target_table, key))
"""
MAKE_CONFLICTS = """
CREATE TABLE IF NOT EXISTS {} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, target_table text NOT NULL,
    key text NOT NULL, kept jsonb, kept_at timestamptz NOT NULL, lost jsonb,
    lost_at timestamptz NOT NULL, found_at timestamptz NOT NULL DEFAULT pg_catalog.now())
"""
MAKE_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
{settings} AS $replicator$
DECLARE gone text := '{emptied}';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF {new} = {old} THEN RETURN NULL; END IF;
    END IF;
    IF TG_OP <> 'TRUNCATE' THEN gone := {old}; END IF;
    INSERT INTO {deletes} AS d (target_table, key) VALUES ({table}, gone)
    ON CONFLICT (target_table, key) DO UPDATE SET at = excluded.at;
    RETURN NULL;
END $replicator$
"""
MAKE_TRIGGERS = (
    """
CREATE OR REPLACE TRIGGER _replicator_deleted AFTER DELETE OR UPDATE OF {key} ON {live}
FOR EACH ROW WHEN ({is_theirs}) EXECUTE FUNCTION {function}()
""",
    """
CREATE OR REPLACE TRIGGER _replicator_emptied AFTER TRUNCATE ON {live}
FOR EACH STATEMENT WHEN ({is_theirs}) EXECUTE FUNCTION {function}()
""",
)
IS_WATCHED = """
SELECT count(*) = 2 AS is_watched FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = pg_catalog.to_regclass({live}) AND p.oid = pg_catalog.to_regproc({function})
"""
LOST = """
WITH judged AS (
    SELECT s.ctid AS place, ROW({s_key})::text AS key, s.{delete} AS is_delete,
           s.{committed} AS lost_at, t.tableoid IS NOT NULL AS is_there,
           CASE WHEN t.tableoid IS NULL THEN gone.at
                WHEN own.origin = (SELECT roident FROM pg_catalog.pg_replication_origin
                                   WHERE roname = {origin}) THEN NULL
                WHEN own.at <= {copied_at} THEN NULL
                ELSE own.at END AS kept_at,
           ROW({t_row})::text COLLATE "C" > ROW({s_row})::text COLLATE "C" AS is_larger,
           (SELECT pg_catalog.to_jsonb(one) FROM (SELECT {t_all}) AS one) AS kept,
           (SELECT pg_catalog.to_jsonb(one) FROM (SELECT {s_sent}) AS one) AS lost
    FROM {staged} AS s
    LEFT JOIN {live} AS t ON {match}
    LEFT JOIN LATERAL pg_catalog.pg_xact_commit_timestamp_origin(t.xmin) AS own(at, origin) ON true
    LEFT JOIN LATERAL (
        SELECT max(pg_catalog.pg_xact_commit_timestamp(d.xmin)) AS at FROM {deletes} AS d
        WHERE t.tableoid IS NULL AND d.target_table = {table}
          AND d.key IN (ROW({s_key})::text, '{emptied}')
    ) AS gone ON true
), lost AS MATERIALIZED (
    SELECT * FROM judged
    WHERE CASE WHEN is_there THEN kept_at > lost_at
                    OR (kept_at = lost_at AND NOT is_delete AND is_larger)
               ELSE NOT is_delete AND kept_at >= lost_at END
), recorded AS (
    INSERT INTO {conflicts} (target_table, key, kept, kept_at, lost, lost_at)
    SELECT {table}, key, CASE WHEN is_there THEN kept END, kept_at,
           CASE WHEN NOT is_delete THEN lost END, lost_at FROM lost
)
DELETE FROM {staged} AS s USING lost WHERE s.ctid = lost.place
"""
EMPTY = """
DELETE FROM {live} AS t WHERE coalesce((
    SELECT own.at <= {at} OR own.at <= {copied_at}
        OR own.origin = (SELECT roident FROM pg_catalog.pg_replication_origin
                         WHERE roname = {origin})
    FROM pg_catalog.pg_xact_commit_timestamp_origin(t.xmin) AS own(at, origin)), true)
"""
# A row that others wrote has other values than those that the log left out.
LACKING = """
SELECT {s_key} FROM {staged} AS s JOIN {live} AS t ON {from_row}
CROSS JOIN LATERAL pg_catalog.pg_xact_commit_timestamp_origin(t.xmin) AS own(at, origin)
WHERE ({is_partial}) AND NOT s.{delete} AND NOT coalesce(own.at <= {copied_at}, own.at IS NULL)
  AND own.origin IS DISTINCT FROM (SELECT roident FROM pg_catalog.pg_replication_origin
                                   WHERE roname = {origin})
"""
COPIED_AT = """
(SELECT pg_catalog.pg_xact_commit_timestamp(d.xmin) FROM {deletes} AS d
 WHERE d.target_table = {table} AND d.key = '{copied}')
"""
NOTE_COPY = """
INSERT INTO {deletes} AS d (target_table, key) VALUES ({table}, '{copied}')
ON CONFLICT (target_table, key) DO UPDATE SET at = excluded.at
"""
NOTE_BEGINNING = """
INSERT INTO {deletes} (target_table, key) VALUES ({table}, '{copied}') ON CONFLICT DO NOTHING
"""
FORGET = (
    "DELETE FROM {deletes} WHERE key <> '{copied}' AND at < now() - interval '{days} days'",
    "DELETE FROM {conflicts} WHERE id <= (SELECT max(id) FROM {conflicts}) - {most}",
)


class TwoWayTarget(TogetherTarget):
    """Tables that are replicated both ways. `origin`: the origin of its transactions."""

    settles = True

    def __init__(
        self,
        client: SqlClient,
        places: SqlPlaces,
        types: Types,
        before: Sequence[Step] = (),
        *,
        origin: str,
    ) -> None:
        super().__init__(client, places, types, before)
        self._origin = origin
        self._watched: set[Names] = set()

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """See `MergeTarget`. `target:postgresql-two-way-copy` where a live table would be replaced,
        with what others wrote into it."""
        names = self.names(table.source)
        _require_mirror(table, schema)
        with self._of(table):
            if self._client.table(names) is not None and self.token(table) is not None:
                raise ReplicationError("target:postgresql-two-way-copy", table=table.source)
        super().begin_snapshot(table, schema)

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """See `MergeTarget`."""
        with self._of(table):
            self._make_tables(self.names(table.source))
        made = super().publish_snapshot(table, schema, sequence)
        self._watch(table, schema)
        return made

    def take_over(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """See `TakesOver`."""
        made = super().take_over(table, schema, sequence)
        self._watch(table, schema)
        return made

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """See `MergeTarget`. What others write meanwhile refuses a merge, which is then made
        anew."""
        for left in reversed(range(TRIES)):
            try:
                return super().merge(table, batch)
            except ReplicationError as err:
                if not left or err.code not in ("target:conflict", "target:postgresql-constraint"):
                    raise
        raise AssertionError("the last try returns or raises")

    def _prepared(
        self, table: TargetTable, batch: FoldedBatch, *, is_own: bool = False
    ) -> tuple[Progress, list[Step]]:
        if self.names(table.source) not in self._watched:
            self._watch(table, batch.schema)
        return super()._prepared(table, batch, is_own=is_own)

    # What is there beside the tables

    def _make_tables(self, names: Names) -> None:
        namespace = names[:-1]
        self._client.make_namespace(namespace)
        texts = {DELETES: MAKE_DELETES, CONFLICTS: MAKE_CONFLICTS}
        for name, text in texts.items():
            if self._client.table((*namespace, name)) is None:
                made = text.format(quoted((*namespace, name)))
                self._client.change([_step(made)], job=self._job("two_way"))

    def _watch(self, table: TargetTable, schema: TableSchema) -> None:
        """Note from now on what others delete in the live table. Rows that it has when it is first
        looked at count as copied: both sides have them."""
        names = self.names(table.source)
        _require_mirror(table, schema)
        with self._of(table):
            self._make_tables(names)
            values = self._values(names)
            mark = hashlib.sha256(repr((names[-1], schema.key)).encode()).hexdigest()[:12]
            values["function"] = quoted((*names[:-1], f"{DELETES}_{mark}"))
            shown = {n: sql.literal(values[n]) for n in ("live", "function")}
            found = self._client.query(trees.raw(IS_WATCHED.format(**shown)))  # type: ignore[arg-type]
            if not found["is_watched"][0].as_py():
                values |= {f"{r.lower()}": _key_text(schema.key, r) for r in ("OLD", "NEW")}
                key = sql.names(schema.key)
                texts = [t.format(**values, key=key) for t in _WATCHING]
                self._client.change([_step(t) for t in texts], job=self._job("watch"))
        with self._lock:
            self._watched.add(names)

    def _values(self, names: Names) -> dict[str, str]:
        """Names and literals of the statements about a table."""
        beside = {
            "deletes": quoted((*names[:-1], DELETES)),
            "conflicts": quoted((*names[:-1], CONFLICTS)),
        }
        values = {
            **beside,
            "live": quoted(names),
            "table": sql.literal(names[-1]),
            "origin": sql.literal(self._origin),
            "copied": COPIED,
            "emptied": EMPTIED,
            "days": str(KEPT_DAYS),
            "most": str(MOST_CONFLICTS),
            "settings": " ".join(f"SET {n} = {sql.literal(v)}" for n, v in _TEXTS.items()),
            "is_theirs": f"coalesce(pg_catalog.current_setting('{MERGING}', true), '') <> 'on'",
        }
        return values | {"copied_at": COPIED_AT.format(**values)}

    # What a transaction does

    def _publishing(self, live: Names) -> Sequence[Step]:
        return [_step(NOTE_COPY.format(**self._values(live)))]

    def _merging(self, live: Names, staged: Names, batch: FoldedBatch) -> Sequence[Step]:
        if not batch.timed:
            return super()._merging(live, staged, batch)
        values, steps = self._values(live), list(FORGET)
        if batch.truncate and batch.truncated_at is not None:
            values["at"] = f"{sql.literal(batch.truncated_at.isoformat())}::timestamptz"
            steps.append(EMPTY)
            batch = replace(batch, truncate=False, truncated_at=None)
        if merge.has_rows(batch):
            values |= self._rows(live, staged, batch, relation(batch))
            steps.append(LOST)
        made: list[Step] = [_step(text.format(**values)) for text in steps]
        if "is_partial" in values:
            lacking = trees.raw(f"{LACKING.format(**values)} LIMIT 1")
            made.append(Check(lacking, "target:row-missing"))  # type: ignore[arg-type]
        return [*made, *super()._merging(live, staged, batch)]

    def _missing(self, live: Names, staged: Names, batch: FoldedBatch) -> exp.Query:
        absent = super()._missing(live, staged, batch)
        if not (batch.timed and batch.unsent):
            return absent
        values = self._values(live) | self._rows(live, staged, batch, relation(batch))
        text = f"{self._dialect.sql(absent)} UNION {LACKING.format(**values)}"
        return trees.raw(text)  # type: ignore[return-value]

    def _rows(
        self, live: Names, staged: Names, batch: FoldedBatch, shown: Relation
    ) -> dict[str, str]:
        """The columns of a staged row and of the live one."""
        names = sorted(c.name for c in shown.own)
        sent = [n for n in names if not shown.flag(n)]
        both = parts(self._dialect, trees.table(live), trees.table(staged), batch)
        partial = [f"s.{sql.name(flag)}" for _, flag in shown.unsent]
        more = {"is_partial": " OR ".join(partial)} if partial else {}
        return more | {
            "staged": quoted(staged),
            "match": self._dialect.sql(both.match("t", "s")),
            "from_row": self._dialect.sql(both.from_row("s", "t")),
            "delete": sql.name(shown.delete),
            "committed": sql.name(shown.committed),
            "s_key": _of("s", batch.schema.key),
            "s_row": _of("s", sent),
            "t_row": _of("t", sent),
            "s_sent": _of("s", sent),
            "t_all": _of("t", names),
        }


_WATCHING = (NOTE_BEGINNING, MAKE_FUNCTION, *MAKE_TRIGGERS)
_TEXTS = {n: v for n, v in SETTINGS.items() if not n.endswith("timeout")}
"""Settings by which a key's text is the same in every session."""


def _require_mirror(table: TargetTable, schema: TableSchema) -> None:
    if table.mode is not Mode.MIRROR or not schema.key:
        raise ReplicationError("target:two-way-mode", table=table.source)


def _of(relation: str, names: Sequence[str]) -> str:
    return ", ".join(f"{relation}.{sql.name(n)}" for n in names)


def _key_text(key: Sequence[str], row: str) -> str:
    return f"ROW({_of(row, key)})::text"


def _step(text: str) -> Statement:
    return Statement(trees.raw(text.strip()))
