"""The emulator of BigQuery that the lines into BigQuery load into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.into import IntoBigquery
from demo.bigquery import EmbeddedBigQuery

PROJECT = "bench-project"


@contextmanager
def emulated(folder: Path) -> Iterator[IntoBigquery]:
    """An emulator with its data in `folder`, which is stopped at the end."""
    with EmbeddedBigQuery(folder / "emulator") as emulator:
        yield IntoBigquery(emulator.url, PROJECT)
