"""Worlds whose target is Spanner, as the tests' server plays it. Their runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.targets.spanner.naming import decoded, encoded, names
from replicators.targets.spanner.params import SpannerParams
from tests.harness import World
from tests.spanner_server import SpannerServer
from tests.spanner_target import neutral_rows, params_of

OWN = ("rpl_replicator_progress", "rpl_replicator_journal")


@dataclass
class SpannerWorld(World):
    """The copies lie in a database of this world's own."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    played: SpannerServer | None = None
    made: str = ""

    def target_params(self) -> tuple[str, dict[str, Any]]:
        assert self.played is not None
        if not self.made:
            self.made = f"w{self.folder.name}".lower().replace("_", "-")[-30:].strip("-")
            self.made = f"w{self.made[1:]}"
            params_of(self.played, self.made)
        found = {"project": "test-project", "instance": "main", "database": self.made}
        return "spanner", {**found, "endpoint": self.played.url, **self.target}

    @property
    def params(self) -> SpannerParams:
        """The target's params."""
        return SpannerParams(**self.target_params()[1])

    def place(self, name: str) -> str:
        """The copy's name at the server."""
        return encoded(names(self.params, TableId(self.schema, name))[-1])

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        assert self.played is not None
        schema = TableSchema.from_json(self.row(name).schema or {})
        return neutral_rows(self.played, self.made, schema)

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        assert self.played is not None
        columns = self.played.database(self.made).table(self.place(name)).columns
        shown = tuple(decoded(n) for n in columns if n != "rpl_row_id")
        return shown, iter(self.target_rows(name))

    def target_names(self) -> set[str]:
        """Every table of the database."""
        assert self.played is not None
        return set(self.played.database(self.made).tables)

    def has_target(self, name: str) -> bool:
        return self.place(name) in self.target_names()

    def left_over(self, name: str) -> set[str]:
        """Our own tables besides progress and journal, and what is written down in the journal."""
        assert self.played is not None
        own = {n for n in self.target_names() if n.startswith("rpl_replicator")} - set(OWN)
        journal = self.played.rows(self.made, OWN[1])
        return own | {str(row["target_table"]) for row in journal}

    def tokens(self, name: str) -> list[int]:
        """The sequence that the copy reached."""
        assert self.played is not None
        found = self.played.rows(self.made, OWN[0])
        return [int(r["sequence"]) for r in found if r["target_table"] == self.place(name)]
