"""Reads what the files target wrote as a loader would: closed buckets only, through their
manifests. Knows the layout from `docs/files.md` and nothing of the plugin; what does not hold fails
here."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import zstandard

Record = dict[str, Any]


def generations(table: Path) -> list[Path]:
    """The folders of generations whose first copy is complete, the oldest first."""
    return sorted(p.parent for p in table.glob("g*/_resolved.json"))


def manifests(generation: Path) -> list[dict[str, Any]]:
    """The manifests of closed buckets, in order; each with its `folder`."""
    found = []
    for path in sorted(generation.glob("*/*/_manifest.json")):
        reported = json.loads(path.read_text())
        assert reported["bucket"] == path.parent.name
        assert path.parent.parent.name == reported["bucket"][:10]
        found.append({**reported, "folder": path.parent})
    return found


def closed_before(generation: Path) -> str:
    """How far the buckets are closed, as text."""
    return str(json.loads((generation / "_resolved.json").read_text())["closed_before"])


def records(generation: Path) -> Iterator[Record]:
    """Every change of the closed buckets, in the order of buckets and of file names, with values as
    Python has them."""
    last = -1
    seen: set[int] = set()
    for manifest in manifests(generation):
        counts: Counter[str] = Counter()
        names = [f["name"] for f in manifest["files"]]
        assert names == sorted(names)
        assert [e["url"].rpartition("/")[2] for e in manifest["entries"]] == names
        for file in manifest["files"]:
            path = manifest["folder"] / file["name"]
            assert path.stat().st_size == file["bytes"]
            found = list(_read(path, generation, file["schema_version"]))
            assert len(found) == file["rows"]
            assert found[0]["_sequence"] == file["first_sequence"]
            assert found[-1]["_sequence"] == file["last_sequence"]
            for record in found:
                sequence, operation = record["_sequence"], record["_operation"]
                assert sequence >= last, "an older change after a newer one"
                assert operation == "read" or sequence not in seen, "a change that is there twice"
                if operation != "read":
                    seen.add(sequence)
                last = sequence
                counts[operation] += 1
                yield record
        assert counts == manifest["operations"]
        assert sum(counts.values()) == manifest["rows"]


def rows(generation: Path) -> list[dict[str, Any]]:
    """The rows that the closed buckets' changes lead to: keyed rows by key, others as often as they
    were added."""
    keyed: dict[tuple[Any, ...], dict[str, Any]] = {}
    loose: Counter[str] = Counter()
    known: dict[str, dict[str, Any]] = {}
    for record in records(generation):
        operation = record["_operation"]
        if operation == "truncate":
            keyed.clear()
            loose.clear()
        elif "key" not in record:
            for image, count in ((record.get("before"), -1), (record["after"], 1)):
                if image is not None:
                    known[repr(image)] = image
                    loose[repr(image)] += count
        elif operation == "delete":
            keyed.pop(_key(record["key"]), None)
        else:
            old = keyed.pop(_key(record["old_key"] or record["key"]), {})
            unsent = record["_unsent"] or ()
            assert all(name in old for name in unsent), "an unsent value that nobody has"
            keyed[_key(record["key"])] = record["after"] | {n: old[n] for n in unsent}
    return [*keyed.values(), *(known[r] for r in loose.elements())]


def _key(values: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(repr(v) for v in values.values())


def _read(path: Path, generation: Path, version: int) -> Iterator[Record]:
    if path.suffix == ".parquet":
        yield from pq.ParquetFile(path).read().to_pylist()
        return
    schema = json.loads((generation / f"_schema-{version:04d}.json").read_text())["table"]
    types = {c["name"]: c["type"] for c in schema["columns"]}
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    for line in data.decode().removesuffix("\n").split("\n"):
        record = json.loads(line)
        record["_committed_at"] = _moment(record["_committed_at"])
        for image in ("key", "old_key", "after", "before"):
            if record.get(image) is not None:
                record[image] = {n: value(v, types[n]) for n, v in record[image].items()}
        yield record


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "Decimal": Decimal,
    "Bytes": base64.b64decode,
    "Date": date.fromisoformat,
    "Time": time.fromisoformat,
}


def value(found: Any, kind: dict[str, Any]) -> Any:
    """A value of JSON as Python has it, by the column's type in the schema's file."""
    name = kind["type"]
    if found is None:
        return None
    if name == "Array":
        return [value(v, kind["of"]) for v in found]
    if name == "Timestamp":
        return _moment(found) if kind["zone"] else datetime.fromisoformat(found)
    if name == "Int" and not kind["signed"]:
        return Decimal(found)
    if name == "Float":
        number = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        exact = number[found] if isinstance(found, str) else float(found)
        return float(np.float32(exact)) if kind["bits"] == 32 else exact
    return _PLAIN.get(name, lambda v: v)(found)
