"""The messages of a feed, as its documentation says it (`docs/feeds.md`), one change after the
other. It shares no code with the encoder, whose messages are compared with these."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from replicators.connectors.feed.options import FeedOptions
from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import TableSchema

Row = dict[str, Any]
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class Change:
    """A change as a source reports it. `before` is what the log has of the old row."""

    op: Op
    row: Row
    before: Row | None = None
    unsent: tuple[str, ...] = ()
    transaction: int = 1


@dataclass
class Told:
    """A message: `value` None for a tombstone, and absent names mean what was left out."""

    op: Op
    key: list[Any] | None
    value: Any
    sequence: int
    part: int


@dataclass
class Version:
    """A row's version on its way to a message. `before` is "unknown" where nobody knows it."""

    op: Op
    sequence: int
    part: int
    transaction: int
    key: tuple[Any, ...] | None
    after: Row | None
    before: Row | str | None
    unsent: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)


def batch(schema: TableSchema, changes: list[Change]) -> pa.RecordBatch:
    """The changes in the form of a change file."""
    rows = []
    for i, change in enumerate(changes, 1):
        lost = [n for n in change.unsent if change.row.get(n) is None]
        assert len(lost) == len(change.unsent)
        rows.append(
            {
                "_sequence": i,
                "_op": int(change.op),
                "_committed_at": at(change.transaction),
                "_transaction": change.transaction,
                "_position": change.transaction,
                "_unchanged": _bits(schema, change.unsent) if change.unsent else None,
                "_before": change.before,
                **change.row,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=change_schema(schema))


def at(transaction: int) -> datetime:
    """When a transaction was committed."""
    return START + timedelta(microseconds=1001 * transaction)


def expected(schema: TableSchema, options: FeedOptions, changes: list[Change]) -> list[Told]:
    """The messages that these changes must give, values as Python objects."""
    versions: list[Version] = []
    for number, change in enumerate(changes, 1):
        versions += _versions(schema, number, change)
    if options.truncates == "skip":
        versions = [v for v in versions if v.op != Op.TRUNCATE]
    if options.last_only:
        versions = _last(versions)
    told = []
    for version in versions:
        told += _told(schema, options, version)
    return told


def _bits(schema: TableSchema, names: tuple[str, ...]) -> bytes:
    made = bytearray((len(schema.columns) + 7) // 8)
    for i, column in enumerate(schema.columns):
        made[i >> 3] |= (column.name in names) << (i & 7)
    return bytes(made)


def _versions(schema: TableSchema, number: int, change: Change) -> list[Version]:
    names = [c.name for c in schema.columns]
    row = {n: change.row.get(n) for n in names}
    whole = change.before if schema.full_before else None
    unsent = list(change.unsent)
    if whole is not None:
        row |= {n: whole[n] for n in unsent}
        unsent = []

    def version(op: Op, part: int, key: Row, after: Any, before: Any) -> Version:
        found = tuple(key[n] for n in schema.key) if schema.key and op != Op.TRUNCATE else None
        lost = [n for n in names if n in unsent] if after else []
        lacks = []
        if op == Op.DELETE and before is not None and whole is None:
            lacks = [n for n in names if n not in schema.key]
        return Version(op, number, part, change.transaction, found, after, before, lost, lacks)

    if change.op in {Op.INSERT, Op.READ}:
        return [version(change.op, 0, row, row, None)]
    if change.op == Op.TRUNCATE:
        return [version(Op.TRUNCATE, 0, row, None, None)]
    old_key = change.before or row
    shown: Any = whole or ({n: old_key[n] for n in schema.key} or None)
    if change.op == Op.DELETE:
        return [version(Op.DELETE, 0, old_key, None, shown)]
    if schema.key and change.before and any(change.before[n] != row[n] for n in schema.key):
        return [
            version(Op.DELETE, 0, change.before, None, shown),
            version(Op.INSERT, 2, row, row, None),
        ]
    return [version(Op.UPDATE, 0, row, row, "unknown" if whole is None else whole)]


def _last(versions: list[Version]) -> list[Version]:
    groups: dict[Any, list[Version]] = {}
    for i, v in enumerate(versions):
        place = (v.transaction, v.key) if v.key is not None else i
        groups[place] = [*groups.pop(place, []), v]
    return [_merged(group) for group in groups.values()]


def _merged(group: list[Version]) -> Version:
    first, now = group[0], group[-1]
    if first is now:
        return now
    op, before, lacks = now.op, first.before, first.lacks
    if now.op == Op.UPDATE and first.op == Op.INSERT:
        op = Op.INSERT
    if now.op == Op.INSERT and first.op not in {Op.INSERT, Op.READ}:
        op = Op.UPDATE
    if op == Op.DELETE and not isinstance(before, dict):
        before, lacks = now.before, now.lacks
    if op == Op.UPDATE and lacks:
        before, lacks = "unknown", []
    after, unsent = now.after, now.unsent
    for was in reversed(group[:-1] if after is not None else []):
        if was.after is None:
            continue
        after = {**(after or {}), **{n: was.after[n] for n in unsent if n not in was.unsent}}
        unsent = [n for n in unsent if n in was.unsent]
    return Version(
        op, now.sequence, now.part, now.transaction, now.key, after, before, unsent, lacks
    )


def _told(schema: TableSchema, options: FeedOptions, v: Version) -> list[Told]:
    key = None if v.key is None else list(v.key)
    value = _value(schema, options, v)
    made = [Told(v.op, key, value, v.sequence, v.part)]
    is_wrapped = options.envelope in {"diff", "debezium"} or options.record == "ALL"
    if v.op == Op.DELETE and is_wrapped and options.tombstones and schema.key:
        made.append(Told(v.op, key, None, v.sequence, v.part + 1))
    return made


def _value(schema: TableSchema, options: FeedOptions, v: Version) -> Any:
    after, before = _images(schema, options, v)
    moment = at(v.transaction)
    stamp = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if options.envelope == "key_only":
        return None if v.op == Op.DELETE else b""
    if options.envelope == "debezium":
        return _debezium(schema, v, after, before)
    if options.envelope == "none" and options.record != "ALL":
        if v.op == Op.DELETE:
            return None
        value = {"_operation": "truncate"} if after is None else after
        return value | ({"_updated": stamp} if options.updated else {})
    value = {"after": after} | ({} if before == "unknown" else {"before": before})
    value |= {"operation": "truncate"} if v.op == Op.TRUNCATE else {}
    return value | ({"updated": stamp} if options.updated else {})


def _images(schema: TableSchema, options: FeedOptions, v: Version) -> tuple[Row | None, Any]:
    after = None if v.after is None else {n: x for n, x in v.after.items() if n not in v.unsent}
    if after is not None and v.unsent:
        after["_unsent"] = v.unsent
    before: Any = v.before
    if isinstance(before, dict):
        before = {n: x for n, x in before.items() if n not in v.lacks}
        if v.lacks:
            before["_unsent"] = v.lacks
    if options.record == "CHANGE" and v.op == Op.UPDATE and after is not None:
        after.pop("_unsent", None)
        if isinstance(before, dict):
            same = {n for n in after if after[n] == before[n]} - set(schema.key)
            after = {n: x for n, x in after.items() if n not in same}
            before = {n: x for n, x in before.items() if n not in same}
    return after, before


def _debezium(schema: TableSchema, v: Version, after: Row | None, before: Any) -> Row:
    micros = (at(v.transaction) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return {
        "before": None if before == "unknown" else before,
        "after": after,
        "source": {
            "connector": "postgresql", "name": "shop", "db": "d",
            "schema": schema.id.schema, "table": schema.id.name,
            "ts_ms": micros // 1000, "ts_us": micros,
            "snapshot": "true" if v.op == Op.READ else "false",
            "txId": v.transaction, "sequence": str(v.sequence),
        },
        "op": "cudtr"[v.op],
        "ts_ms": micros // 1000,
        "transaction": None,
    }  # fmt: skip
