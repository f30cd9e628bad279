"""The state of a generation: its deliveries, and up to where its buckets are closed. This state is
stored beside the files.

The notes of deliveries decide: a file that no note names is not part of the copy. A note is written
when all its files exist, and removed when all its buckets are closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from replicators.connectors import files
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.files import layout
from replicators.targets.files.lanes import DataFile
from replicators.targets.files.redshift import SCRIPT

JOINED = 100
"""This many notes are joined into one, so that a new run has few to read."""


Copies = Callable[[str, list[dict[str, Any]], dict[str, Any]], str]
"""Makes the COPY of a bucket, from its manifest's path, the schemas of its files, and the
manifest."""


@dataclass(frozen=True, slots=True)
class Note:
    """One delivery: the files of a snapshot's lanes, or of the changes after `after` up to
    `sequence`. `covers` lists the paths of older notes whose files this note contains too."""

    path: str
    number: int
    is_snapshot: bool
    after: int
    sequence: int
    files: tuple[DataFile, ...]
    covers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "is_snapshot": self.is_snapshot,
            "after": self.after,
            "sequence": self.sequence,
            "files": [f.to_json() for f in self.files],
            "covers": list(self.covers),
        }


@dataclass(slots=True)
class Generation:
    """One generation of a table, as its folder holds it. Buckets that begin before `closed` are
    closed. No later row goes into a bucket before `newest`. `is_swept`: no file of an interrupted
    attempt remains. `schemas` gives the version of each known schema."""

    folder: str
    buckets: layout.Buckets
    closed: int = 0
    is_whole: bool = False
    notes: list[Note] = field(default_factory=list)
    schemas: dict[str, int] = field(default_factory=dict)
    is_swept: bool = False

    # --- reading -------------------------------------------------------------------------------------------------  # noqa: E501
    @classmethod
    def load(cls, folder: str, buckets: layout.Buckets) -> Generation:
        """Read the generation from the folder. Raises OSError."""
        made = cls(folder, buckets)
        reported = files.read_if_there(f"{folder}/{layout.RESOLVED}")
        if reported is not None:
            known = json.loads(reported)
            made.closed, made.is_whole = known["closed_micros"], known["is_copy_complete"]
        made.notes = _notes(f"{folder}/{layout.DELIVERIES}")
        for path, _ in files.listed(folder):
            name = path.rpartition("/")[2]
            if name.startswith("_schema-"):
                schema = json.loads(bytes(files.read(path)))
                made.schemas[json.dumps(schema["table"], sort_keys=True)] = schema["version"]
        for bucket in made.open_buckets():
            if files.is_there(made.manifest_path(bucket)):
                made.closed = max(made.closed, buckets.end(bucket))
        return made

    @property
    def newest(self) -> int:
        """The newest bucket that has rows."""
        return max((f.bucket for n in self.notes for f in n.files), default=self.closed)

    def manifest_path(self, bucket: int) -> str:
        """The path of the manifest. The bucket is closed if this file exists."""
        return f"{self.folder}/{self.buckets.folder(bucket)}/{layout.MANIFEST}"

    def open_buckets(self) -> list[int]:
        """The buckets that have files and are not closed, oldest first."""
        return sorted({f.bucket for f in self.files() if f.bucket >= self.closed})

    def files(self) -> list[DataFile]:
        """The files that notes name. For a snapshot's lane, only those of its last write."""
        lanes: dict[int, list[DataFile]] = {}
        changes: list[DataFile] = []
        for note in self.notes:
            if note.is_snapshot:
                by_lane: dict[int, list[DataFile]] = {}
                for made in note.files:
                    by_lane.setdefault(made.lane, []).append(made)
                lanes |= by_lane
            else:
                changes += note.files
        return [*(f for some in lanes.values() for f in some), *changes]

    def can_begin(self, upto: int) -> bool:
        """Whether readers may use the generation once the buckets before `upto` are closed: these
        then hold the whole snapshot."""
        return self.is_whole or all(
            f.bucket < upto for n in self.notes if n.is_snapshot for f in n.files
        )

    # --- writing -------------------------------------------------------------------------------------------------  # noqa: E501
    def version(self, schema: TableSchema) -> int:
        """The version of a table's schema; a new schema is written to a file."""
        table_schema = _schema(schema)
        key = json.dumps(table_schema, sort_keys=True)
        if key not in self.schemas:
            version = max(self.schemas.values(), default=0) + 1
            _put(
                f"{self.folder}/{layout.schema_name(version)}",
                {"version": version, "table": table_schema},
            )
            self.schemas[key] = version
        return self.schemas[key]

    def forget_after(self, sequence: int) -> None:
        """Undo deliveries after `sequence`, which were never recorded. Removes first the notes,
        then their files."""
        gone = [n for n in self.notes if not n.is_snapshot and n.sequence > sequence]
        if gone:
            files.remove_all(n.path for n in gone)
            self.notes = [n for n in self.notes if n not in gone]
            files.remove_all(f"{self.folder}/{f.path}" for n in gone for f in n.files)

    def sweep(self) -> None:
        """Remove data files of open buckets that no note names."""
        if self.is_swept:
            return
        known = {f.path for f in self.files()}
        for path, _ in files.listed(f"{self.folder}/{layout.DELIVERIES}"):
            if path.endswith(".part"):
                files.remove(path)
        first = layout.day_name(self.closed)
        for day in files.folders(self.folder):
            if day[:1].isdigit() and day >= first:
                for path in files.listed_below(f"{self.folder}/{day}"):
                    inner = path.removeprefix(f"{self.folder}/")
                    bucket = inner.split("/")[1] if inner.count("/") == 2 else ""
                    is_open = bucket >= self.buckets.name(self.closed)
                    if is_open and inner not in known and not inner.endswith(layout.MANIFEST):
                        files.remove(path)
        self.is_swept = True

    def note(
        self,
        *,
        is_snapshot: bool,
        after: int,
        sequence: int,
        made: Sequence[DataFile],
        attempt: str,
    ) -> None:
        """Write a delivery's note. Its files count from now on."""
        superseded = self._superseded(made) if is_snapshot else []
        number = 1 + max((n.number for n in self.notes), default=0)
        self._write(number, is_snapshot, after, sequence, tuple(made), (), attempt)
        files.remove_all(f"{self.folder}/{f.path}" for f in superseded)
        self._join(attempt)

    def _superseded(self, made: Iterable[DataFile]) -> list[DataFile]:
        lanes = {f.lane for f in made}
        return [f for n in self.notes if n.is_snapshot for f in n.files if f.lane in lanes]

    def _write(
        self,
        number: int,
        is_snapshot: bool,
        after: int,
        sequence: int,
        made: tuple[DataFile, ...],
        covers: tuple[str, ...],
        attempt: str,
    ) -> Note:
        folder = f"{self.folder}/{layout.DELIVERIES}"
        files.make_durable_folder(folder, self.folder)
        name = f"{number:09d}-{attempt}{'-joined' if covers else ''}.json"
        note = Note(f"{folder}/{name}", number, is_snapshot, after, sequence, made, covers)
        _put(note.path, note.to_json())
        self.notes = sorted([*self.notes, note], key=lambda n: n.number)
        return note

    def _join(self, attempt: str) -> None:
        """Join all notes but the last into one. The last one may not be recorded yet."""
        for is_snapshot in (True, False):
            some = [n for n in self.notes[:-1] if n.is_snapshot is is_snapshot and not n.covers]
            if len(some) < JOINED:
                continue
            wanted = {f.path for f in self.files()}
            made = tuple(f for n in some for f in n.files if f.path in wanted)
            last = some[-1]
            covers = tuple(n.path for n in some)
            self.notes = [n for n in self.notes if n not in some]
            self._write(
                last.number, is_snapshot, some[0].after, last.sequence, made, covers, attempt
            )
            files.remove_all(covers)

    def close(self, upto: int, mark: dict[str, Any], copies: Copies | None = None) -> None:
        """Close all buckets that begin before `upto`. Writes a manifest for each bucket with files,
        oldest first, then `_resolved.json`. A bucket's COPY is there before its manifest. Raises
        `target:table-replaced` if somebody else closed one of them."""
        self.is_whole = True
        open_files: dict[int, list[DataFile]] = {}
        for made in self.files():
            if self.closed <= made.bucket < upto:
                open_files.setdefault(made.bucket, []).append(made)
        for bucket in sorted(open_files):
            path = self.manifest_path(bucket)
            if files.is_there(path):
                table = TableId(mark["schema"], mark["table"])
                raise ReplicationError("target:table-replaced", table=table)
            told = self._manifest(bucket, open_files[bucket], mark)
            if copies is not None:
                used = told["schema_versions"]
                schemas = [json.loads(text) for text, n in self.schemas.items() if n in used]
                beside = f"{path.rpartition('/')[0]}/{SCRIPT}"
                files.publish(beside, copies(path, schemas, told).encode())
            _put(path, told)
            self.closed = self.buckets.end(bucket)
        reported = {
            "closed_before": layout.iso(upto),
            "is_copy_complete": True,
            "resolved_at": mark["resolved_at"],
            "sequence": mark["sequence"],
            "closed_micros": upto,
        }
        _put(f"{self.folder}/{layout.RESOLVED}", reported)
        self.closed = upto
        done = [n for n in self.notes if all(f.bucket < upto for f in n.files)]
        self.notes = [n for n in self.notes if n not in done]
        files.remove_all(n.path for n in done)

    def _manifest(self, bucket: int, made: list[DataFile], mark: dict[str, Any]) -> dict[str, Any]:
        made = sorted(made, key=lambda f: f.name)
        operations: dict[str, int] = {}
        for one in made:
            for name, rows in one.operations.items():
                operations[name] = operations.get(name, 0) + rows
        place = f"{self.folder}/{self.buckets.folder(bucket)}"
        return {
            **mark,
            "bucket": self.buckets.name(bucket),
            "from": layout.iso(bucket),
            "to": layout.iso(self.buckets.end(bucket)),
            "rows": sum(f.rows for f in made),
            "bytes": sum(f.size for f in made),
            "operations": operations,
            "first_sequence": made[0].first,
            "last_sequence": max(f.last for f in made),
            "schema_versions": sorted({f.version for f in made}),
            "files": [
                {
                    "name": f.name, "rows": f.rows, "bytes": f.size, "operations": f.operations,
                    "first_sequence": f.first, "last_sequence": f.last, "schema_version": f.version,
                }
                for f in made
            ],
            "entries": [
                {
                    "url": f"{place}/{f.name}", "mandatory": True,
                    "meta": {"content_length": f.size},
                }
                for f in made
            ],
        }  # fmt: skip


def _put(path: str, data: dict[str, Any]) -> None:
    files.publish(path, json.dumps(data, ensure_ascii=False, indent=1).encode())


def _schema(schema: TableSchema) -> dict[str, Any]:
    """What a reader must know about a table's schema. A different result is a new version."""
    return {
        "schema": schema.id.schema,
        "name": schema.id.name,
        "key": list(schema.key),
        "has_whole_old_rows": schema.full_before,
        "columns": [
            {k: v for k, v in c.to_json().items() if k in {"name", "type", "native", "nullable"}}
            for c in schema.columns
        ],
    }


def _notes(folder: str) -> list[Note]:
    """The notes in a folder, oldest first, without those that another note covers."""
    paths = [p for p, _ in files.listed(folder) if p.endswith(".json")]
    with ThreadPoolExecutor(files.SIDE_BY_SIDE) as pool:
        texts = list(pool.map(files.read_if_there, paths))
    found = []
    for path, text in zip(paths, texts, strict=True):
        if text is None:
            continue
        known = json.loads(text)
        made = tuple(DataFile.from_json(f) for f in known["files"])
        found.append(
            Note(
                path,
                known["number"],
                known["is_snapshot"],
                known["after"],
                known["sequence"],
                made,
                tuple(known["covers"]),
            )  # fmt: skip
        )
    covered = {p for n in found for p in n.covers}
    return sorted((n for n in found if n.path not in covered), key=lambda n: n.number)
