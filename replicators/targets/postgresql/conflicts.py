"""Lists the changes that lost in tables which are replicated both ways."""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import psycopg

from replicators.connectors.conflicts import Conflict
from replicators.connectors.model.schema import TableId
from replicators.targets.postgresql import naming
from replicators.targets.postgresql.connections import connect
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.publishing import quoted

LISTED = """
SELECT target_table, key, kept, kept_at, lost, lost_at, found_at FROM {}
WHERE target_table = ANY(%s) ORDER BY id DESC LIMIT %s
"""


def conflicts(
    params: PostgresqlTargetParams, tables: Sequence[TableId], limit: int
) -> list[Conflict]:
    """The last ones of these tables, newest first."""
    by_schema: dict[str, dict[str, TableId]] = defaultdict(dict)
    for table in tables:
        schema, name = naming.names(params, table)
        by_schema[schema][name] = table
    found: list[Conflict] = []
    try:
        with connect(params) as connection:
            for schema, known in by_schema.items():
                place = quoted((schema, naming.CONFLICTS))
                there = connection.execute("SELECT to_regclass(%s)", [place]).fetchone()
                if there is None or there[0] is None:
                    continue
                listed = LISTED.format(place).encode()
                rows = connection.execute(listed, [list(known), limit]).fetchall()
                found += [_conflict(known[row[0]], row) for row in rows]
    except psycopg.Error as err:
        raise translate(err, params) from err
    return sorted(found, key=lambda one: one.found_at, reverse=True)[:limit]


def _conflict(table: TableId, row: tuple[Any, ...]) -> Conflict:
    _, key, kept, kept_at, lost, lost_at, found_at = row
    return Conflict(table, key, _row(kept), kept_at, _row(lost), lost_at, found_at)


def _row(text: str | None) -> dict[str, Any] | None:
    return None if text is None else dict(json.loads(text))
