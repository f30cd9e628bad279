"""History: every version of a row is kept with the time in which it was valid. Text only."""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Timestamp
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.dialect import image_ddl, literal, quote, stored
from replicators.targets.lakehouse.statements.keys import (
    failing,
    key_match,
    key_ranges,
    unsent_bit,
    unsent_ddl,
)
from replicators.targets.lakehouse.types import fit

FROM, TO, CURRENT = (quote(c.name) for c in extra_columns(Mode.HISTORY))


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's files. A row with `_delete` ends the key's
    current row; every other row is a version."""
    times = f"{FROM} TIMESTAMP, {TO} TIMESTAMP"
    return ", ".join([image_ddl(batch.schema), *unsent_ddl(batch), times])


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """MERGE of a folded batch: ends current rows and adds versions in one commit. No version begins
    before its key's last version in the target. Unsent values come from the current row under the
    row's previous key. If there is no such row, the statement fails. A TRUNCATE ends every other
    current row."""
    columns = batch.schema.supported
    names = ", ".join(quote(c.name) for c in columns)
    values = ", ".join(f"s.{quote(c.name)}" for c in columns)
    ranges = "" if batch.truncate else key_ranges(batch, "t")
    on = f"s.`_delete` AND t.{CURRENT} AND {key_match(batch.schema, 't', 's')}"
    return (
        f"MERGE INTO {target} AS t\nUSING ({_source(target, batch, view)}) AS s\n"
        f"ON {on}{f' AND {ranges}' if ranges else ''}\n"
        f"WHEN MATCHED THEN UPDATE SET t.{TO} = s.{FROM}, t.{CURRENT} = FALSE\n"
        f"WHEN NOT MATCHED AND NOT s.`_delete` THEN INSERT ({names}, {FROM}, {TO}, {CURRENT}) "
        f"VALUES ({values}, s.{FROM}, s.{TO}, s.{TO} IS NULL)"
    ) + (_rest_ended(batch) if batch.truncate else "")


def _source(target: str, batch: FoldedBatch, view: str) -> str:
    key = batch.schema.key
    shown = [_column(batch, c) for c in batch.schema.supported]
    shown.append("b.`_delete` AS `_delete`")
    shown.append(f"greatest(b.{FROM}, p.{FROM}) AS {FROM}")
    shown.append(f"CASE WHEN b.{TO} IS NOT NULL THEN greatest(b.{TO}, p.{FROM}) END AS {TO}")
    names = ", ".join(quote(n) for n in key)
    ranges = key_ranges(batch, "r")
    where = f" WHERE {ranges}" if ranges else ""
    past = (
        f"SELECT {names}, max(coalesce(r.{TO}, r.{FROM})) AS {FROM} FROM {target} AS r{where} "
        f"GROUP BY {names}"
    )
    joined = f"{view} AS b LEFT JOIN ({past}) AS p ON {_same_key(batch, 'b.', 'p')}"
    if batch.unsent:
        inner = ", ".join(quote(n) for n in dict.fromkeys((*key, *batch.unsent)))
        living = f"r.{CURRENT}" + (f" AND {ranges}" if ranges else "")
        joined += (
            f" LEFT JOIN (SELECT {inner}, TRUE AS `_found` FROM {target} AS r WHERE {living}) AS o "
            f"ON b.`_origin` IS NOT NULL AND {_same_key(batch, 'b.`_origin`.', 'o')}"
        )
    return f"SELECT {', '.join(shown)} FROM {joined}"


def _same_key(batch: FoldedBatch, ours: str, theirs: str) -> str:
    return " AND ".join(
        f"{stored(batch.schema.column(n).type, ours + quote(n))} <=> {theirs}.{quote(n)}"
        for n in batch.schema.key
    )


def _column(batch: FoldedBatch, column: Column) -> str:
    name, plain = quote(column.name), stored(column.type, f"b.{quote(column.name)}")
    if column.name not in batch.unsent:
        return f"{plain} AS {name}"
    found = failing("o.`_found` IS NULL", f"o.{name}", fit(column.type).native)
    return f"CASE WHEN {unsent_bit(batch, column.name)} THEN {found} ELSE {plain} END AS {name}"


def _rest_ended(batch: FoldedBatch) -> str:
    at = literal(Timestamp(6, zone=True), batch.truncated_at)
    return (
        f"\nWHEN NOT MATCHED BY SOURCE AND t.{CURRENT} THEN UPDATE SET "
        f"{TO} = greatest({at}, t.{FROM}), {CURRENT} = FALSE"
    )


def without_rows(target: str, batch: FoldedBatch) -> str:
    """For a TRUNCATE, end every current row. Otherwise only the token moves."""
    if not batch.truncate:
        return dialect.touch(target)
    none = f"SELECT {', '.join(quote(k) for k in batch.schema.key)} FROM {target} WHERE FALSE"
    on = key_match(batch.schema, "t", "s")
    return f"MERGE INTO {target} AS t\nUSING ({none}) AS s\nON {on}{_rest_ended(batch)}"
