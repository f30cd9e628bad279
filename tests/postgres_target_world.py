"""Worlds whose target is a PostgreSQL database. Their runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from replicators.targets.postgresql import naming
from tests.harness import World, table_rows
from tests.integration.case_world import CaseWorld
from tests.integration.source_cases import Case
from tests.model.reading import PostgresTable
from tests.mysql_world import MysqlWorld
from tests.postgres_target import ROLE, writer_params
from tests.servers import Database

PROGRESS = '"{}"."_replicator_progress"'


@dataclass
class PostgresTargetWorld(World):
    """The copies lie in the database `copies`, written by a plain role."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    copies: Database | None = None

    @property
    def there(self) -> Database:
        """The target's database."""
        assert self.copies is not None
        return self.copies

    def target_params(self) -> tuple[str, dict[str, Any]]:
        params = writer_params(self.there)
        given = {n: getattr(params, n) for n in ("host", "port", "database", "user", "password")}
        return "postgresql", {**given, "schema": self.target_schema, **self.target}

    @property
    def target_schema(self) -> str:
        """The schema of all copies; empty: each in its source's."""
        return ""

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        with self.there.connect() as connection:
            return table_rows(connection, self.target_schema or self.schema, name)

    def has_target(self, name: str) -> bool:
        found = self.there.execute(
            "SELECT to_regclass(%s) IS NOT NULL", [f'"{self.schema}"."{name}"']
        )
        return bool(found[0][0])

    def copied(self, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
        found = PostgresTable(self.there.dsn, self.target_schema or self.schema, name)
        return found.columns, found.rows()

    can_be_away = True

    @contextmanager
    def target_away(self) -> Iterator[None]:
        """Its role gets no connection, and loses those that it has."""
        self.there.execute(
            f"ALTER ROLE {ROLE} CONNECTION LIMIT 0;"
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'"
        )
        try:
            yield
        finally:
            self.there.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")

    def left_over(self, name: str) -> set[str]:
        """Our own tables besides the progress table."""
        found = self.there.execute(
            "SELECT relname FROM pg_class WHERE starts_with(relname, %s) AND relkind = 'r'"
            " AND relname <> %s",
            [naming.OWN, naming.PROGRESS],
        )
        return {row[0] for row in found}

    def tokens(self, name: str) -> list[int]:
        """The sequence that the copy reached."""
        progress = PROGRESS.format(self.target_schema or self.schema)
        text = f"SELECT sequence FROM {progress} WHERE target_table = %s"
        return [row[0] for row in self.there.execute(text, [name])]


@dataclass
class MysqlToPostgresWorld(PostgresTargetWorld, MysqlWorld):
    """From MariaDB or MySQL."""


@dataclass
class PostgresTargetCases(PostgresTargetWorld, CaseWorld):
    """A source's unusual tables into PostgreSQL."""

    cases: ClassVar[Sequence[Case]] = ()

    def _copy(self, case: Case) -> Any:
        found = PostgresTable(self.there.dsn, naming.cut(case.schema), naming.cut(case.name))
        return found.columns, found.rows()
