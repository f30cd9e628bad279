"""Preflight of a files target. It checks whether the location can be used, and which replicator
owns the tables' folders."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Self

from replicators.connectors import files, looks
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.preflight import reported, unsupported_columns
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.targets.files import layout
from replicators.targets.files.errors import translated
from replicators.targets.files.marker import is_used, read_marker
from replicators.targets.files.params import FilesParams
from replicators.targets.files.types import fit


class FilesChecks:
    """`TargetChecks`. A connection test only reads. An assessment of chosen tables also writes a
    probe file and removes it again, if the location exists."""

    def __init__(self, params: FilesParams) -> None:
        self._params = params

    def close(self) -> None:
        """Nothing stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def connection(self) -> list[Problem]:
        """Check that the folder exists or can be made, and that the store answers."""
        root = self._params.root
        if not files.is_url(root):
            found = looks.folder(root)
            return [found] if found else []
        return reported(translated, lambda: looks.store(root))

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Report folders that belong to others, and types that do not fit. Then test whether files
        can be written, read, listed and removed."""
        found = unsupported_columns(tables, fit)
        try:
            with translated():
                found += [p for t in tables if (p := self._owner(t, replicator))]
        except ReplicationError as err:
            return [*found, Problem.of(err.code)]
        return [*found, *(reported(translated, self._probe) if tables else [])]

    def _owner(self, table: TableSchema, replicator: str) -> Problem | None:
        root = layout.table_folder(self._params.root, table.id)
        known = read_marker(root)
        if known is None and not is_used(root):
            return None
        if known is not None and replicator and known.replicator == replicator:
            return None
        return Problem.of("target:table-taken", table=table.id, target=root.rpartition("/")[2])

    def _probe(self) -> None:
        root = self._params.root
        if not files.is_url(root) and not looks.is_folder(root):
            return
        path, data = f"{root}/_probe-{uuid.uuid4().hex}", b"probe"
        files.write(path, data)
        try:
            if files.read(path).to_pybytes() != data:
                raise ReplicationError("target:probe-lost", fault="read with another content")
            if path not in {p for p, _ in files.listed(root)}:
                raise ReplicationError("target:probe-lost", fault="missing in the list of files")
        finally:
            files.remove(path)
