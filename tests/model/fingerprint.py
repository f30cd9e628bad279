"""Order-independent fingerprints of tables: every row is hashed over all its columns, the hashes
are added up, so that two tables are equal exactly when each row is equally often in both. Knows no
database and no engine."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Row = Mapping[str, Any]
_MODULUS = 1 << 128


def _number(value: int | float | Decimal) -> str:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0 if value else 0.0)
    exact = Decimal(value)
    if exact.is_nan():
        return "nan"
    text = format(exact or Decimal(0), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _moment(value: dt.datetime | dt.date | dt.time) -> str:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
    return value.isoformat()


def canonical(value: Any) -> str:  # noqa: C901 - one line for each type
    """One text for each value, whatever driver gave it: 1.50 is 1.5, times with a zone are UTC,
    kinds are never mixed up. A value of a type that is not listed is an error, never compared by
    accident."""
    match value:
        case None:
            return "null"
        case bool():
            return f"b:{int(value)}"
        case int() | Decimal() | float():
            return f"n:{_number(value)}"
        case str():
            return f"s:{value}"
        case bytes() | bytearray() | memoryview():
            return f"x:{bytes(value).hex()}"
        case dt.datetime() | dt.date() | dt.time():
            return f"t:{_moment(value)}"
        case list() | tuple():
            return json.dumps(["list", *map(canonical, value)])
        case dict():
            inner = {str(k): canonical(v) for k, v in value.items()}
            return json.dumps(["map", sorted(inner.items())])
    raise TypeError(f"no canonical form for {type(value).__name__}")


def row_digest(row: Row, columns: Sequence[str]) -> bytes:
    """16 bytes for a row; lengths are part of what is hashed, so that no two rows run together."""
    digest = hashlib.blake2b(digest_size=16)
    for column in columns:
        text = canonical(row.get(column)).encode()
        digest.update(len(text).to_bytes(8, "big"))
        digest.update(text)
    return digest.digest()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Rows, and the sum of their hashes modulo 2**128."""

    rows: int
    total: int

    def __str__(self) -> str:
        return f"{self.rows} rows {self.total:032x}"


@dataclass(slots=True)
class TableImage:
    """What is kept of a table: its fingerprint and its rows' hashes with what is needed to name a
    row that differs."""

    columns: tuple[str, ...]
    digests: Counter[bytes] = field(default_factory=Counter)
    rows: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    @property
    def fingerprint(self) -> Fingerprint:
        """Of all rows, each as often as it is there."""
        total = sum(int.from_bytes(d, "big") * n for d, n in self.digests.items())
        return Fingerprint(self.digests.total(), total % _MODULUS)


def image(rows: Iterable[Row], columns: Sequence[str]) -> TableImage:
    """Read a table once. Every row is kept: for tables of up to a few million rows."""
    found = TableImage(tuple(columns))
    for row in rows:
        digest = row_digest(row, columns)
        found.digests[digest] += 1
        found.rows.setdefault(digest, dict(row))
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is not equally often in both: `lost` from the target, `extra` in it, or
    `changed` (the same key on both sides) with the columns that differ."""

    kind: str
    key: dict[str, Any]
    columns: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={str(v)[:60]}" for k, v in self.key.items())
        differing = f" in {', '.join(self.columns)}" if self.columns else ""
        return f"{self.kind} x{self.count}: {shown}{differing}"


def compare(source: TableImage, target: TableImage, key: Sequence[str]) -> list[Difference]:
    """What differs, by key; [] exactly when the fingerprints are equal."""
    columns = source.columns
    lost, extra = source.digests - target.digests, target.digests - source.digests
    shown = tuple(key) or columns

    def keyed(image_: TableImage, some: Counter[bytes]) -> dict[str, tuple[dict[str, Any], int]]:
        named = ((image_.rows[d], n) for d, n in some.items())
        return {json.dumps([canonical(r.get(k)) for k in shown]): (r, n) for r, n in named}

    gone, more = keyed(source, lost), keyed(target, extra)
    reported = []
    for name in sorted({*gone, *more}):
        row, count = gone.get(name) or more[name]
        named = {k: row.get(k) for k in shown}
        if name in gone and name in more:
            other = more[name][0]
            differing = tuple(
                c for c in columns if canonical(row.get(c)) != canonical(other.get(c))
            )
            reported.append(Difference("changed", named, differing, count))
        else:
            reported.append(Difference("lost" if name in gone else "extra", named, (), count))
    return reported
