"""What really happened at the source, kept by triggers in the transactions that did it, and validators that hold change
files against it (after CockroachDB's cdctest: order, gap, duplicates, before and after). Knows no engine: a change file
is a Parquet file with `_sequence`, `_op` (0 insert, 1 update, 2 delete, 3 truncate) and the row's columns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.model.fingerprint import canonical

INSTALL = """
CREATE SCHEMA IF NOT EXISTS history;
CREATE TABLE history.events (n bigserial PRIMARY KEY, tab text, op int, old text, new text, version bigint);
CREATE FUNCTION history.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE key text := TG_ARGV[0];
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO history.events (tab, op) VALUES (TG_TABLE_NAME, 3);
    RETURN NULL;
  END IF;
  INSERT INTO history.events (tab, op, old, new, version) VALUES (
    TG_TABLE_NAME, CASE TG_OP WHEN 'INSERT' THEN 0 WHEN 'UPDATE' THEN 1 ELSE 2 END,
    CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) ->> key END,
    CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) ->> key END,
    CASE WHEN TG_OP <> 'DELETE' THEN (to_jsonb(NEW) ->> 'version')::bigint END);
  RETURN NULL;
END $$;
"""
WATCH = """
CREATE TRIGGER history_rows AFTER INSERT OR UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION history.note('{key}');
CREATE TRIGGER history_truncates AFTER TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION history.note('{key}');
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one row: operation, its key after it (before it, for a delete), and the row's own version after it."""

    op: int
    key: str
    version: int | None


def source_events(rows: Iterable[Sequence[Any]]) -> list[Event]:
    """From `SELECT op, old, new, version FROM history.events WHERE tab = ... ORDER BY n`."""
    return [Event(op, old if op == 2 else new or "", version) for op, old, new, version in rows]


def numbered_events(rows: Iterable[Sequence[Any]], table: str) -> list[tuple[int, Event]]:
    """One table's of (number, table, operation, old key, new key, version), by number."""
    found = [row for row in rows if row[1] == table]
    return list(
        zip((row[0] for row in found), source_events(row[2:] for row in found), strict=True)
    )


def file_events(paths: Iterable[Path], key: str) -> list[tuple[int, Event]]:
    """Sequence and event of each row of a table's change files, file by file, as they lie there."""
    found = []
    for path in paths:
        table = pq.ParquetFile(path).read()
        for row in table.to_pylist():
            op = int(row["_op"])
            at = row["_before"][key] if op == 2 else row.get(key)
            version = row.get("version") if op in {0, 1} else None
            found.append((int(row["_sequence"]), Event(op, "" if op == 3 else str(at), version)))
    return found


def failures(history: Sequence[Event], found: Sequence[tuple[int, Event]]) -> list[str]:
    """What is wrong with the change files of one table; [] where they are a gapless end of the history.

    - a sequence that is there twice (the same change listed twice),
    - an event out of order, missing, or invented: in the order of their sequences the events must be, one by one, the
      last events of the history."""
    told = []
    sequences = [s for s, _ in found]
    twice = len(sequences) - len(set(sequences))
    if twice:
        told.append(f"{twice} sequences are listed twice ({100 * twice / len(sequences):.2f} %)")
    events = [e for _, e in sorted(dict(found).items())]
    if len(events) > len(history):
        return [*told, f"{len(events)} events, but only {len(history)} happened"]
    tail = history[len(history) - len(events) :]
    for at, (expected, seen) in enumerate(zip(tail, events, strict=True)):
        if expected != seen:
            told.append(f"event {at} of {len(events)}: expected {expected}, found {seen}")
            break
    return told


def order_failures(events: Iterable[Event]) -> list[str]:
    """A key's versions never go back (each write of a workload takes the next number)."""
    last: dict[str, int] = defaultdict(int)
    told = []
    for event in events:
        if event.version is None:
            continue
        if event.version < last[event.key]:
            told.append(f"key {event.key}: version {event.version} after {last[event.key]}")
        last[event.key] = max(last[event.key], event.version)
    return told


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows in a form to be printed beside a seed."""
    return json.dumps([{k: canonical(v) for k, v in r.items()} for r in rows], indent=1)
