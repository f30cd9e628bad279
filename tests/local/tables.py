"""The tables of the local target: a folder each, whose `live.json` names a Parquet file with all
rows and carries the token; replacing that file is the commit."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LIVE, VERSIONS = "live.json", "versions"


@dataclass(frozen=True, slots=True)
class State:
    """What a commit says: whose table it is, what it remembers, where its rows lie, and the
    source's number of each column."""

    owner: str
    generation: int
    sequence: int
    uuid: str
    file: str
    ordinals: dict[str, int] = field(default_factory=dict)
    number: int = 1
    committed_at: float = 0.0


class LocalTable:
    """One table's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def state(self) -> State | None:
        """The last commit; None where there is no table."""
        try:
            return State(**json.loads((self.folder / LIVE).read_text()))
        except FileNotFoundError:
            return None

    def rows(self, state: State | None = None) -> pa.Table:
        """All rows of a commit, by default the last one."""
        found = state or self.state()
        if found is None:
            raise FileNotFoundError(self.folder)
        return pq.read_table(self.folder / found.file)

    def commit(self, rows: pa.Table | None, **values: Any) -> State:
        """Rows (None: as they are) and what is to be remembered, in one step."""
        before = self.state()
        kept = asdict(before) if before else {"file": "", "ordinals": {}, "number": 0}
        if rows is not None:
            values["file"] = self.write(rows)
        number = int(kept["number"]) + 1
        state = State(**{**kept, **values, "number": number, "committed_at": time.time()})
        text = json.dumps(asdict(state))
        (self.folder / VERSIONS).mkdir(exist_ok=True)
        (self.folder / VERSIONS / f"{number:08d}.json").write_text(text)
        fresh = self.folder / f"{LIVE}.{uuid.uuid4().hex}"
        fresh.write_text(text)
        os.replace(fresh, self.folder / LIVE)
        return state

    def write(self, rows: pa.Table) -> str:
        """A new file of rows; its name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{uuid.uuid4().hex}.parquet"
        pq.write_table(rows, self.folder / name)
        return name

    def versions(self) -> list[State]:
        """The commits that can still be opened, oldest first."""
        found = sorted((self.folder / VERSIONS).glob("*.json"))
        return [State(**json.loads(p.read_text())) for p in found]

    def staging(self, generation: int) -> Path:
        """Where the next rows of a generation are gathered."""
        return self.folder / f"staging-{generation}"

    def begin(self, generation: int) -> Path:
        """An empty staging folder; those of other generations go."""
        for old in self.folder.glob("staging-*"):
            shutil.rmtree(old, ignore_errors=True)
        place = self.staging(generation)
        (place / "files").mkdir(parents=True)
        return place

    def clear(self, generation: int) -> None:
        """Remove a generation's staging folder."""
        shutil.rmtree(self.staging(generation), ignore_errors=True)

    def stage(self, generation: int, paths: Sequence[str]) -> None:
        """Note loaded files."""
        place = self.staging(generation) / "loaded.json"
        known = json.loads(place.read_text()) if place.exists() else []
        place.write_text(json.dumps([*known, *paths]))

    def staged(self, generation: int, arrow: pa.Schema) -> pa.Table:
        """The rows of all loaded files."""
        place = self.staging(generation) / "loaded.json"
        paths = json.loads(place.read_text()) if place.exists() else []
        tables = [pq.read_table(path).cast(arrow) for path in paths]
        return pa.concat_tables(tables) if tables else arrow.empty_table()

    def drop(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)
