"""A world whose target is the BigQuery emulator, read as anybody reads BigQuery."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Iterator
from typing import Any, ClassVar

from google.cloud.bigquery import Client

from replicators.connectors.sql.places import one_per_table
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.params import BigQueryParams
from tests.harness import World, until

PROJECT = "world-project"


class BigQueryWorld(World):
    """Its run needs no JVM. `target` has the emulator's endpoint, and more params."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    def target_params(self) -> tuple[str, dict[str, Any]]:
        dataset = f"world_{self.folder.name.replace('-', '_')}"
        return "bigquery", {"project": PROJECT, "dataset": dataset, "location": "EU", **self.target}

    @property
    def params(self) -> BigQueryParams:
        """The target's params."""
        return BigQueryParams(**self.target_params()[1])

    def client(self) -> Client:
        """A reader's client."""
        return open_client(self.params)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query in the dataset."""
        with self.client() as client:
            return [dict(r) for r in client.query_and_wait(sql)]

    def has_target(self, name: str) -> bool:
        return name in self.target_names()

    def target_names(self) -> set[str]:
        """Every table of the dataset."""
        with self.client() as client:
            return {t.table_id for t in client.list_tables(self.params.dataset)}

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        rows = self.query(f"SELECT * FROM `{PROJECT}`.`{self.params.dataset}`.`{name}`")
        return [{c: _as_text(v) for c, v in row.items()} for row in rows]

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        rows = self.target_rows(name)
        columns = tuple(rows[0]) if rows else self._columns(name)
        return columns, iter(rows)

    def _columns(self, name: str) -> tuple[str, ...]:
        with self.client() as client:
            return tuple(f.name for f in client.get_table(f"{self.params.dataset}.{name}").schema)

    @property
    def can_be_away(self) -> bool:
        return False

    def tokens(self, name: str) -> list[int]:
        """The sequence that the copy reached."""
        place = one_per_table((PROJECT, self.params.dataset, name))[-1]
        table = f"`{PROJECT}`.`{self.params.dataset}`.`{place}`"
        return [r["sequence"] for r in self.query(f"SELECT sequence FROM {table}")]

    def until_dead(self, place: str) -> None:
        """Wait until the run killed itself at a failpoint."""
        child = self.child
        assert child is not None
        until(child.is_dead, lambda: f"death at {place}\n{self.states()}\n{child.tail()}")
        assert child.wait() == -signal.SIGKILL, child.tail()
        child.end()

    def left_over(self, name: str) -> set[str]:
        return {n for n in self.target_names() if n.startswith("_replicator_") and "_copy_" in n}

    def source_rows(self, name: str) -> list[dict[str, Any]]:
        """The source's rows. BigQuery's arrays have no NULL, and are never NULL themselves."""
        rows = super().source_rows(name)
        arrays = {c for row in rows for c, v in row.items() if isinstance(v, list)}
        return [{c: _dense(v) if c in arrays else v for c, v in row.items()} for row in rows]


def _dense(value: Any) -> Any:
    return [v for v in value or () if v is not None]


def _as_text(value: Any) -> Any:
    """Times of day as the source's rows show them."""
    return value.isoformat("microseconds") if isinstance(value, dt.time) else value
