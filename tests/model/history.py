"""What really happened at the source, kept by triggers in the transactions that did it, and
validators that hold change files against it (after CockroachDB's cdctest: order, gap, duplicates,
before and after). Knows no engine: a change file is a Parquet file with `_sequence`, `_op` (0
insert, 1 update, 2 delete, 3 truncate) and the row's columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.model.fingerprint import canonical

INSTALL = """
CREATE SCHEMA IF NOT EXISTS history;
CREATE TABLE history.events (
  n bigserial PRIMARY KEY, transaction bigint DEFAULT txid_current(), tab text, op int, old text, new text,
  version bigint, before jsonb, after jsonb);
CREATE FUNCTION history.image(whole jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT CASE WHEN whole ->> 'big' IS NULL THEN whole ELSE
    whole || jsonb_build_object('big', encode(sha256(convert_to(whole ->> 'big', 'UTF8')), 'hex')) END
$$;
CREATE FUNCTION history.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  key text := TG_ARGV[0];
  gone jsonb := CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN to_jsonb(OLD) END;
  come jsonb := CASE WHEN TG_OP IN ('INSERT', 'UPDATE') THEN to_jsonb(NEW) END;
BEGIN
  INSERT INTO history.events (tab, op, old, new, version, before, after) VALUES (
    TG_TABLE_NAME, CASE TG_OP WHEN 'INSERT' THEN 0 WHEN 'UPDATE' THEN 1 WHEN 'DELETE' THEN 2 ELSE 3 END,
    gone ->> key, come ->> key, (come ->> 'version')::bigint, history.image(gone), history.image(come));
  RETURN NULL;
END $$;
"""  # noqa: E501
WATCH = """
CREATE TRIGGER history_rows AFTER INSERT OR UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION history.note('{key}');
CREATE TRIGGER history_truncates AFTER TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION history.note('{key}');
"""  # noqa: E501
LARGE = "big"
"""The column of which images hold the SHA-256."""
Image = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one row: operation, its key after it (before it, for a delete), the row's own
    version after it, and its images, each None where there is none or none was kept. Those of a
    change file hold what was sent."""

    op: int
    key: str
    version: int | None
    before: Image | None = field(default=None, compare=False, repr=False)
    after: Image | None = field(default=None, compare=False, repr=False)


def numbered_events(
    rows: Iterable[Sequence[Any]], table: str, images: Mapping[int, Sequence[Image | None]]
) -> list[tuple[int, Event]]:
    """One table's of (number, transaction, table, operation, old key, new key, version), by number;
    `images` are the rows before and after, by number, where they were kept."""
    return [
        (number, Event(op, old if op == 2 else new or "", version, *images.get(number, ())))
        for number, _, tab, op, old, new, version in rows
        if tab == table
    ]


def kept_image(text: str | None) -> Image | None:
    """An image as a trigger keeps it, with exact numbers."""
    return None if text is None else json.loads(text, parse_float=Decimal)


def file_events(paths: Iterable[Path], key: str) -> list[tuple[int, Event]]:
    """Sequence and event of each row of a table's change files, file by file, as they lie there."""
    return [event for path in paths for event in _of_file(pq.ParquetFile(path).read(), key)]


def _of_file(table: pa.Table, key: str) -> Iterator[tuple[int, Event]]:
    columns = [name for name in table.column_names if not name.startswith("_")]
    for row in table.to_pylist():
        op, before = int(row["_op"]), row["_before"]
        after = {c: row[c] for c in _sent(columns, row["_unchanged"])} if op in {0, 1} else None
        at = "" if op == 3 else str((before if op == 2 else row)[key])
        version = row.get("version") if op in {0, 1} else None
        yield int(row["_sequence"]), Event(op, at, version, before, after)


def _sent(columns: Sequence[str], unchanged: bytes | None) -> list[str]:
    """The columns without those whose bit says that the log did not carry them."""
    marks = unchanged or b""
    return [
        c for i, c in enumerate(columns) if not (i < 8 * len(marks) and marks[i // 8] >> i % 8 & 1)
    ]


def failures(history: Sequence[Event], found: Sequence[tuple[int, Event]]) -> list[str]:
    """What is wrong with the change files of one table; [] where they are a gapless end of the
    history.

    - a sequence that is there twice (the same change listed twice),
    - an event out of order, missing, or invented: in the order of their sequences the events must
      be, one by one, the last events of the history,
    - a value of an image that is not what it was."""
    reported = []
    sequences = [s for s, _ in found]
    twice = len(sequences) - len(set(sequences))
    if twice:
        reported.append(
            f"{twice} sequences are listed twice ({100 * twice / len(sequences):.2f} %)"
        )
    events = [e for _, e in sorted(dict(found).items())]
    if len(events) > len(history):
        return [*reported, f"{len(events)} events, but only {len(history)} happened"]
    tail = history[len(history) - len(events) :]
    for at, (expected, seen) in enumerate(zip(tail, events, strict=True)):
        if expected != seen:
            reported.append(f"event {at} of {len(events)}: expected {expected}, found {seen}")
            break
        if wrong := image_failures(expected, seen):
            reported.append(f"event {at} of {len(events)}, {expected}: {'; '.join(wrong)}")
            break
    return reported


def image_failures(expected: Event, seen: Event) -> list[str]:
    """What is wrong with the images of a change that is the right one; [] where the history keeps
    none. The log carries an old image where a row is deleted or its key changed, at least."""
    if expected.before is None and expected.after is None:
        return []
    reported = []
    for word in ("before", "after"):
        was, found = getattr(expected, word), getattr(seen, word)
        if found is None:
            continue
        reported += [
            f"{column} {word} is {str(value)[:80]!r}, but was {str((was or {}).get(column))[:80]!r}"
            for column, value in found.items()
            if was is None or not _is_same(column, was.get(column), value)
        ]
    if expected.op == 1 and seen.before is None and expected.before and expected.after:
        reported += (
            []
            if _key_of(expected.before) == _key_of(expected.after)
            else ["the old key is not reported"]
        )
    return reported


def _key_of(image: Image) -> Any:
    """Of the tables whose images are kept."""
    return image["id"]


def _is_same(column: str, was: Any, value: Any) -> bool:
    """Whether a value is the one that a trigger saw: documents by what they say, the large column
    by its digest."""
    if isinstance(value, str) and isinstance(was, dict | list):
        return bool(json.loads(value, parse_float=Decimal) == was)
    if column == LARGE and value is not None:
        value = hashlib.sha256(str(value).encode()).hexdigest()
    return canonical(was) == canonical(value)
