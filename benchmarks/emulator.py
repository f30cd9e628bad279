"""The servers and emulators that the lines beside dlt load into, and dlt's ways into each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import into_mysql, into_redshift, into_snowflake, into_spanner
from benchmarks.dlt_into import Way
from benchmarks.into import Into, IntoBigquery
from demo.bigquery import EmbeddedBigQuery

PROJECT = "bench-project"
INSERTS = (Way("pyarrow", "insert_values"), Way("connectorx", "insert_values"))
MUTATIONS = Way("the client library's batches", "mutations", "spanner")
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
    """As many as a first copy has. A backlog inserts a quarter of them."""


EMULATED = {
    "bigquery": Emulated("an emulator of BigQuery", _bigquery),
    "mysql": Emulated("a MySQL server that allows LOAD DATA LOCAL", into_mysql.served),
    "redshift": Emulated(
        "a PostgreSQL server that plays Redshift", into_redshift.served, INSERTS, 1_000_000
    ),
    "snowflake": Emulated("an emulator of Snowflake", into_snowflake.served, rows=1_000_000),
    "spanner": Emulated(
        "the tests' server that plays Spanner", into_spanner.served, (MUTATIONS,), 400_000
    ),
}


def of(line: str) -> Emulated:
    """What the lines `KIND-copy` and `KIND-backlog` load into."""
    return EMULATED[line.partition("-")[0]]
