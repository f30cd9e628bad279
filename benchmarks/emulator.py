"""The servers and emulators that the lines beside dlt load into, and dlt's ways into each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import into_mysql
from benchmarks.dlt_into import Way
from benchmarks.into import Into, IntoBigquery
from demo.bigquery import EmbeddedBigQuery

PROJECT = "bench-project"
PARQUET = (Way("pyarrow", "parquet"), Way("connectorx", "parquet"))


@contextmanager
def _bigquery(folder: Path) -> Iterator[IntoBigquery]:
    """An emulator with its data in `folder`, which is stopped at the end."""
    with EmbeddedBigQuery(folder / "emulator") as emulator:
        yield IntoBigquery(emulator.url, PROJECT)


@dataclass(frozen=True, slots=True)
class Emulated:
    """Where a kind of target is loaded into."""

    said: str
    open: Callable[[Path], AbstractContextManager[Into]]
    ways: tuple[Way, ...] = PARQUET
    rows: int = 4_000_000


EMULATED = {
    "bigquery": Emulated("an emulator of BigQuery", _bigquery),
    "mysql": Emulated("a MySQL server", into_mysql.served),
}


def of(line: str) -> Emulated:
    """What the lines `KIND-copy` and `KIND-backlog` load into."""
    return EMULATED[line.partition("-")[0]]
