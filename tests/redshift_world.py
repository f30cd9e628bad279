"""Worlds whose target is Redshift, as a PostgreSQL server plays it, with an S3 server. Their runs
need no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

from pyarrow import fs

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.sql.places import one_per_table
from replicators.connectors.sql.state import PROGRESS
from replicators.connectors.storage import Storage
from replicators.targets.redshift.client import RedshiftClient
from replicators.targets.redshift.naming import OWN, names, quoted
from replicators.targets.redshift.params import RedshiftParams
from tests.harness import World
from tests.redshift_server import LOADER, RedshiftServer
from tests.redshift_target import neutral_rows, params_of
from tests.servers import Database


@dataclass
class RedshiftWorld(World):
    """The copies lie in the database `copies`, in the source's schema."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    played: RedshiftServer | None = None
    copies: Database | None = None

    def target_params(self) -> tuple[str, dict[str, Any]]:
        assert self.played is not None and self.copies is not None
        found = params_of(self.played, self.copies, LOADER)
        folder = f"{found['staging']}/{self.folder.name}"
        return "redshift", {**found, "staging": folder, **self.target}

    @property
    def params(self) -> RedshiftParams:
        """The target's params."""
        return RedshiftParams(**self.target_params()[1])

    def place(self, name: str) -> tuple[str, ...]:
        """Where the copy of a table lies."""
        return names(self.params, TableId(self.schema, name))

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        return neutral_rows(self.params, TableSchema.from_json(self.row(name).schema))

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        with closing(RedshiftClient(self.params)) as client:
            found = client.table(self.place(name))
        return tuple(found.columns if found else ()), iter(self.target_rows(name))

    def target_names(self) -> set[str]:
        """Every table of the schema."""
        with closing(RedshiftClient(self.params)) as client:
            return set(client.tables((self.schema,), ""))

    def has_target(self, name: str) -> bool:
        return name in self.target_names()

    def left_over(self, name: str) -> set[str]:
        """Our own tables besides the progress tables, and files that wait in the bucket."""
        own = {n for n in self.target_names() if n.startswith(OWN)}
        return {n for n in own if not n.startswith(PROGRESS)} | self.files()

    def files(self) -> set[str]:
        """What lies in the staging folder."""
        system, path = Storage(self.params.store).open(self.params.folder)
        found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        return {f.path for f in found if f.type == fs.FileType.File}

    def tokens(self, name: str) -> list[int]:
        """The sequence that the copy reached."""
        progress = quoted(one_per_table(self.place(name)))
        with closing(RedshiftClient(self.params)) as client:
            return [int(n) for (n,) in client.rows(f"SELECT sequence FROM {progress}")]
