"""Mirror and soft delete of a table whose inserts are left out. Only rows that the copy has are
changed. Text only.

A row may come from another key (`_origin`). If the copy has the row under that key, the new row is
put under its own key. If not, the row that the copy has under the new key is removed: another row
took this key. With soft delete, only living rows count. A key may then have several rows in a
batch: the last one with a living origin counts.
"""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse.dialect import image_ddl, quote, read_type, stored
from replicators.targets.lakehouse.statements import mirror, soft_delete
from replicators.targets.lakehouse.statements.keys import (
    key_match,
    key_ranges,
    unsent_bit,
    unsent_flag,
)
from replicators.targets.lakehouse.statements.soft_delete import DELETED, DELETED_AT


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's files."""
    fields = [image_ddl(batch.schema), "`_delete` BOOLEAN"]
    if batch.unsent:
        fields.append("`_unsent` BINARY")
    if batch.has_origins:
        key = ", ".join(
            f"{quote(n)}: {read_type(batch.schema.column(n).type)}" for n in batch.schema.key
        )
        fields.append(f"`_origin` STRUCT<{key}>")
    if batch.mode is Mode.SOFT_DELETE:
        fields += [f"{DELETED_AT} TIMESTAMP", "`_sequence` BIGINT"]
    return ", ".join(fields)


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """MERGE of a folded batch."""
    if batch.mode is Mode.SOFT_DELETE:
        return _soft(target, batch, view)
    return _mirror(target, batch, view)


def without_rows(target: str, batch: FoldedBatch) -> str:
    """The statement for a batch without rows: at most a TRUNCATE."""
    one = soft_delete if batch.mode is Mode.SOFT_DELETE else mirror
    text: str = one.without_rows(target, batch)
    return text


def _mirror(target: str, batch: FoldedBatch, view: str) -> str:
    shown = [*_images(batch), *_flags(batch)]
    source = f"{view} AS b"
    gone, moved = "b.`_delete`", ""
    if batch.has_origins:
        moved = _free(batch, "_is_moved")
        gone = "(b.`_delete` OR (b.`_origin` IS NOT NULL AND o.`_found` IS NULL))"
        origin = _same(batch, "b.`_origin`.{}")
        source += (
            f" LEFT JOIN ({_held(target, batch, '')}) AS o ON b.`_origin` IS NOT NULL AND {origin}"
        )
        shown.append(f"b.`_origin` IS NOT NULL AS {moved}")
    shown.append(f"{gone} AS `_delete`")
    names = ", ".join(quote(c.name) for c in batch.schema.supported)
    values = ", ".join(f"s.{quote(c.name)}" for c in batch.schema.supported)
    text = (
        f"MERGE INTO {target} AS t\nUSING (SELECT {', '.join(shown)} FROM {source}) AS s\n"
        f"ON {_on(batch)}\n"
        f"WHEN MATCHED AND s.`_delete` THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {_updates(batch)}"
    )
    if not moved:
        return text
    return (
        f"{text}\nWHEN NOT MATCHED AND NOT s.`_delete` AND s.{moved} THEN INSERT ({names}) "
        f"VALUES ({values})"
    )


def _soft(target: str, batch: FoldedBatch, view: str) -> str:
    shown = [*_images(batch), *_flags(batch), "b.`_delete` AS `_delete`", f"b.{DELETED_AT}"]
    source, moved = f"SELECT {', '.join(shown)} FROM {view} AS b", ""
    if batch.has_origins:
        moved = _free(batch, "_is_moved")
        source = _last_that_lives(target, batch, view, shown, moved)
    names = ", ".join(quote(c.name) for c in batch.schema.supported)
    values = ", ".join(f"s.{quote(c.name)}" for c in batch.schema.supported)
    lives = f"(s.{moved} OR NOT t.{DELETED})" if moved else f"NOT t.{DELETED}"
    text = (
        f"MERGE INTO {target} AS t\nUSING ({source}) AS s\nON {_on(batch)}\n"
        f"WHEN MATCHED AND {lives} THEN UPDATE SET {_updates(batch)}, "
        f"t.{DELETED} = s.`_delete`, t.{DELETED_AT} = s.{DELETED_AT}"
    )
    if moved:
        text += (
            f"\nWHEN NOT MATCHED AND s.{moved} THEN INSERT ({names}, {DELETED}, {DELETED_AT}) "
            f"VALUES ({values}, s.`_delete`, s.{DELETED_AT})"
        )
    return text + (soft_delete.rest_flagged(batch) if batch.truncate else "")


def _last_that_lives(
    target: str, batch: FoldedBatch, view: str, shown: list[str], moved: str
) -> str:
    """Each key's last row whose origin lives at the target."""
    place = _free(batch, "_place")
    key = ", ".join(f"b.{quote(n)}" for n in batch.schema.key)
    order = f"row_number() OVER (PARTITION BY {key} ORDER BY b.`_sequence` DESC) AS {place}"
    own = "CASE WHEN b.`_origin` IS NULL THEN b.{0} ELSE b.`_origin`.{0} END"
    rows = ", ".join([*shown, f"b.`_origin` IS NOT NULL AS {moved}", order])
    held = _held(target, batch, f"NOT r.{DELETED}")
    joined = f"{view} AS b JOIN ({held}) AS o ON {_same(batch, own)}"
    return f"SELECT * FROM (SELECT {rows} FROM {joined}) WHERE {place} = 1"


def _held(target: str, batch: FoldedBatch, condition: str) -> str:
    """The keys and needed values of the target's rows that the batch's rows may come from."""
    names = ", ".join(quote(n) for n in dict.fromkeys((*batch.schema.key, *batch.unsent)))
    wanted = " AND ".join(filter(None, [condition, key_ranges(batch, "r")]))
    where = f" WHERE {wanted}" if wanted else ""
    return f"SELECT {names}, TRUE AS `_found` FROM {target} AS r{where}"


def _same(batch: FoldedBatch, ours: str) -> str:
    return " AND ".join(
        f"{stored(batch.schema.column(n).type, ours.format(quote(n)))} <=> o.{quote(n)}"
        for n in batch.schema.key
    )


def _images(batch: FoldedBatch) -> list[str]:
    return [f"{_image(batch, c)} AS {quote(c.name)}" for c in batch.schema.supported]


def _image(batch: FoldedBatch, column: Column) -> str:
    plain = stored(column.type, f"b.{quote(column.name)}")
    if column.name not in batch.unsent or not batch.has_origins:
        return plain
    taken = f"b.`_origin` IS NOT NULL AND {unsent_bit(batch, column.name)}"
    return f"CASE WHEN {taken} THEN o.{quote(column.name)} ELSE {plain} END"


def _flags(batch: FoldedBatch) -> list[str]:
    """Flags for the values that the row under the key keeps."""
    own = " AND b.`_origin` IS NULL" if batch.has_origins else ""
    return [
        f"({unsent_bit(batch, n)}{own}) AS {quote(unsent_flag(batch, n))}" for n in batch.unsent
    ]


def _updates(batch: FoldedBatch) -> str:
    found = []
    for column in batch.schema.supported:
        name = quote(column.name)
        value = f"s.{name}"
        if column.name in batch.unsent:
            flag = f"s.{quote(unsent_flag(batch, column.name))}"
            value = f"CASE WHEN {flag} THEN t.{name} ELSE s.{name} END"
        found.append(f"t.{name} = {value}")
    return ", ".join(found)


def _on(batch: FoldedBatch) -> str:
    ranges = "" if batch.truncate else key_ranges(batch, "t")
    return key_match(batch.schema, "t", "s") + (f"\n  AND {ranges}" if ranges else "")


def _free(batch: FoldedBatch, name: str) -> str:
    """The quoted name, with underscores appended until no column of the table has it."""
    names = {c.name.casefold() for c in batch.schema.columns}
    while name in names:
        name += "_"
    return quote(name)
