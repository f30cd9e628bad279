"""Multiset: a table without a key, which holds each row as often as the source does (CORRECTNESS
12). Text only.

Every row of the copy has a digest and a number among its equal rows: 1 to n without a gap. In a
batch this number is the change in the row's count: above 0 for more rows, below 0 for fewer. Joined
with the copy's present count, it gives the numbers to insert, or the highest numbers to delete.
"""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH
from replicators.connectors.model.types import Bytes
from replicators.connectors.target import FoldedBatch
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.dialect import image_ddl, literal, quote, stored, text

ROW_ABSENT = "replicator: row absent"
_HASH, _NUMBER = quote(ROW_HASH), quote(OCCURRENCE)
_ABSENT = f"CAST(raise_error({text(ROW_ABSENT)}) AS BIGINT)"


def batch_ddl(batch: FoldedBatch) -> str:
    """The schema that Spark uses to read the batch's Parquet files."""
    return f"{image_ddl(batch.schema)}, {_HASH} BINARY, {_NUMBER} BIGINT"


def _counts(batch: FoldedBatch, view: str) -> str:
    """The batch with each digest once. Several files may hold the same digest."""
    if len(batch.paths) == 1:
        return view
    image = ", ".join(
        f"any_value({quote(c.name)}) AS {quote(c.name)}" for c in batch.schema.supported
    )
    return (
        f"(SELECT {image}, {_HASH}, sum({_NUMBER}) AS {_NUMBER} FROM {view} "
        f"GROUP BY {_HASH} HAVING sum({_NUMBER}) <> 0)"
    )


def _hashes(batch: FoldedBatch, alias: str) -> str:
    """A predicate that is true for every digest of the batch; '' if there are too many to list."""
    if not batch.keys:
        return ""
    return f"{alias}.{_HASH} IN ({', '.join(literal(Bytes(16), k) for k in batch.keys)})"


def _names(batch: FoldedBatch) -> list[str]:
    return [*(quote(c.name) for c in batch.schema.supported), _HASH, _NUMBER]


def _image(batch: FoldedBatch) -> list[str]:
    own = [
        f"{stored(c.type, f'b.{quote(c.name)}')} AS {quote(c.name)}" for c in batch.schema.supported
    ]
    return [*own, f"b.{_HASH} AS {_HASH}"]


def merge_source(target: str, batch: FoldedBatch, view: str) -> str:
    """A query with one line for each row to insert or, with `_delete`, to remove. If there are
    fewer rows than it removes, the statement fails with `ROW_ABSENT`."""
    where = _hashes(batch, "r")
    present = (
        f"SELECT r.{_HASH} AS `_found`, count(*) AS `_present` FROM {target} AS r"
        f"{f' WHERE {where}' if where else ''} GROUP BY r.{_HASH}"
    )
    after = f"(coalesce(p.`_present`, 0L) + b.{_NUMBER})"
    numbers = (
        f"CASE WHEN b.{_NUMBER} > 0 THEN sequence({after} - b.{_NUMBER} + 1L, {after}) "
        f"WHEN {after} < 0L THEN sequence({_ABSENT}, 0L) "
        f"ELSE sequence({after} + 1L, {after} - b.{_NUMBER}) END"
    )
    return (
        f"SELECT {', '.join(_image(batch))}, explode({numbers}) AS {_NUMBER}, b.{_NUMBER} < 0L "
        "AS `_delete`\n"
        f"FROM {_counts(batch, view)} AS b LEFT JOIN ({present}) AS p ON b.{_HASH} = p.`_found`"
    )


def merge(target: str, batch: FoldedBatch, view: str) -> str:
    """MERGE that applies the changes in counts."""
    names = _names(batch)
    where = _hashes(batch, "t")
    return (
        f"MERGE INTO {target} AS t\nUSING ({merge_source(target, batch, view)}) AS s\n"
        f"ON t.{_HASH} = s.{_HASH} AND t.{_NUMBER} = "
        f"s.{_NUMBER}{f' AND {where}' if where else ''}\n"
        f"WHEN MATCHED AND s.`_delete` THEN DELETE\n"
        f"WHEN NOT MATCHED AND NOT s.`_delete` THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f's.{n}' for n in names)})"
    )


def replace(target: str, batch: FoldedBatch, view: str) -> str:
    """INSERT OVERWRITE: the batch's rows become the whole table."""
    last = f"CASE WHEN b.{_NUMBER} < 0L THEN {_ABSENT} ELSE b.{_NUMBER} END"
    return (
        f"INSERT OVERWRITE {target} ({', '.join(_names(batch))})\n"
        f"SELECT {', '.join(_image(batch))}, explode(sequence(1L, {last})) AS {_NUMBER} "
        f"FROM {_counts(batch, view)} AS b"
    )


def statement(target: str, batch: FoldedBatch, view: str) -> str:
    """The statement that applies the batch's rows in one commit."""
    return replace(target, batch, view) if batch.truncate else merge(target, batch, view)


def without_rows(target: str, batch: FoldedBatch) -> str:
    """The statement for a batch without rows: at most a TRUNCATE."""
    return dialect.truncate(target) if batch.truncate else dialect.touch(target)
