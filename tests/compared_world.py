"""Deliveries as files, and the params of a source that compares them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replicators.sources.compared.params import ComparedParams

COLUMNS = ("id", "name", "amount")
SCHEMA_NAME = "delivered"


def line(number: int, name: str = "as it was", amount: str = "1.50") -> tuple[str, ...]:
    return (str(number), name, amount)


def csv_text(rows: Sequence[Sequence[str]], columns: Sequence[str] = COLUMNS) -> str:
    """Each value quoted, but for those that are empty."""
    lines = [",".join(columns)]
    lines += [",".join(f'"{v}"' if v else "" for v in row) for row in rows]
    return "\n".join(lines) + "\n"


class Inbox:
    """A folder in which deliveries arrive, and the state of the source."""

    def __init__(self, folder: Path, ending: str = "csv") -> None:
        self.folder = folder / "in"
        self.state = folder / "state"
        self.ending = ending
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(parents=True, exist_ok=True)

    def params(self, **values: Any) -> ComparedParams:
        """Params that read at once what arrived."""
        given: Mapping[str, Any] = {
            "files": f"{self.folder}/{{delivery}}/{{table}}.{self.ending}",
            "state": str(self.state),
            "keys": "id",
            "settle_seconds": 0,
        }
        return ComparedParams(**{**given, **values})

    def deliver(
        self,
        name: str,
        rows: Sequence[Sequence[str]],
        table: str = "people",
        columns: Sequence[str] = COLUMNS,
    ) -> Path:
        """A delivery of one table."""
        path = self.folder / name / f"{table}.{self.ending}"
        return self.write(path, csv_text(rows, columns))

    def write(self, path: Path, text: str) -> Path:
        """A file that appears whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.parent / f".{path.name}"
        part.write_text(text)
        os.replace(part, path)
        return path

    def age(self, path: Path, seconds: float) -> None:
        """The file was changed so many seconds ago."""
        at = time.time() - seconds
        os.utime(path, (at, at))
