"""Worlds whose target is the Snowflake emulator, read as anybody reads Snowflake. Their runs need
no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.sql.places import one_per_table
from replicators.connectors.sql.state import PROGRESS
from replicators.targets.snowflake.naming import OWN, names, quoted
from replicators.targets.snowflake.params import SnowflakeParams
from tests.harness import World
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import asked, neutral_rows, params_of


@dataclass
class SnowflakeWorld(World):
    """The copies lie in a database of this world's own, in the source's schema."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    server_of_copies: SnowflakeServer | None = None

    def target_params(self) -> tuple[str, dict[str, Any]]:
        assert self.server_of_copies is not None
        database = f"WORLD_{self.folder.name.replace('-', '_')}".upper()
        return "snowflake", {**params_of(self.server_of_copies, database), **self.target}

    @property
    def params(self) -> SnowflakeParams:
        """The target's params."""
        return SnowflakeParams(**self.target_params()[1])

    def place(self, name: str) -> tuple[str, ...]:
        """Where the copy of a table lies."""
        return names(self.params, TableId(self.schema, name))

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        schema = TableSchema.from_json(self.row(name).schema)
        return neutral_rows(self.params, schema)

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        found = asked(self.params, f"DESCRIBE TABLE {quoted(self.place(name))}")
        return tuple(r["name"] for r in found), iter(self.target_rows(name))

    def target_names(self) -> set[str]:
        """Every table of the schema."""
        place = quoted(self.place("")[:2])
        return {r["name"] for r in asked(self.params, f"SHOW OBJECTS IN SCHEMA {place}")}

    def has_target(self, name: str) -> bool:
        return name in self.target_names()

    def left_over(self, name: str) -> set[str]:
        """Our own tables besides the progress tables."""
        own = {n for n in self.target_names() if n.startswith(OWN)}
        return {n for n in own if not n.startswith(PROGRESS)}

    def tokens(self, name: str) -> list[int]:
        """The sequence that the copy reached."""
        progress = quoted(one_per_table(self.place(name)))
        return [int(r["sequence"]) for r in asked(self.params, f"SELECT * FROM {progress}")]
