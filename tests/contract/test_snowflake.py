"""Snowflake as a target keeps the promises of every target, seen in its emulator."""

from __future__ import annotations

import dataclasses
import itertools
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract, TargetFixtures
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import MergeTarget, TargetPlugin
from replicators.targets.snowflake.naming import names, quoted
from runners.engine.tasks.local import LocalTasks
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import asked, neutral_rows, params_of
from tests.sql_modes import Records, SqlModes
from tests.sql_views import Shown, SqlViews, Statement

pytestmark = [pytest.mark.contract, pytest.mark.integration, pytest.mark.timeout(180)]
_NUMBERS = itertools.count(1)


class SnowflakeFixtures(TargetFixtures):
    """Into a database of each test's own."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["snowflake"]

    @pytest.fixture
    def params(self, plugin: TargetPlugin, snowflake: SnowflakeServer) -> Any:
        found = parse(plugin.params, params_of(snowflake, f"CONTRACT_{next(_NUMBERS)}"))
        return dataclasses.replace(found, schema="copies")

    @pytest.fixture
    def dead_params(self, params: Any) -> Any:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return dataclasses.replace(params, endpoint=f"http://127.0.0.1:{free.getsockname()[1]}")

    @pytest.fixture
    def writer(self, plugin: TargetPlugin, params: Any, tmp_path: Path) -> Iterator[MergeTarget]:
        made: Any = plugin.writer(params, LocalTasks(folder=str(tmp_path / "files")))
        yield made
        made.close()

    @pytest.fixture
    def read(self, params: Any) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            return sorted((tuple(r.values()) for r in neutral_rows(params, schema)), key=_first)

        return rows


def _first(row: tuple[Any, ...]) -> Any:
    return row[0]


class TestSnowflakeTarget(SnowflakeFixtures, TargetContract):
    """Staging, token, generations, owners."""


@pytest.mark.long
class TestSnowflakeMerging(SnowflakeFixtures, MergeContract, ReadingContract):
    """Modes, columns, fences, and rows that are read back."""

    fixes_version = False

    @pytest.fixture
    def another(
        self, plugin: TargetPlugin, params: Any, tmp_path: Path
    ) -> Iterator[Callable[[], MergeTarget]]:
        with ExitStack() as stack:

            def made() -> MergeTarget:
                one = plugin.writer(params, LocalTasks(folder=str(tmp_path / "other")))
                return stack.enter_context(closing(one))

            yield made

    @pytest.fixture
    def replaced_by_hand(self, params: Any) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            """A table made by hand has no comment; the emulator keeps that of its name."""
            place = quoted(names(params, schema.id))
            asked(
                params,
                f"CREATE OR REPLACE TABLE {place} AS SELECT * FROM {place} WHERE FALSE",
                f"COMMENT ON TABLE {place} IS ''",
            )

        return replaced


@pytest.mark.long
class TestSnowflakeModes(SnowflakeFixtures, SqlModes):
    """Every mode against a naive replay."""

    @pytest.fixture
    def records(self, params: Any) -> Records:
        def rows(schema: TableSchema) -> list[dict[str, Any]]:
            wanted = [c.name for c in schema.columns]
            return [{n: row[n] for n in wanted} for row in neutral_rows(params, schema)]

        return rows


@pytest.mark.long
class TestSnowflakeViews(SnowflakeFixtures, SqlViews):
    """Views of the living rows. A view that shows a column that is gone can't be read for a
    moment."""

    @pytest.fixture
    def shown(self, params: Any) -> Shown:
        def rows(name: str) -> list[dict[str, Any]]:
            place = quoted((params.database, params.schema, name))
            return asked(params, f"SELECT * FROM {place} ORDER BY 1")

        return rows

    @pytest.fixture
    def statement(self, params: Any) -> Statement:
        place = quoted((params.database, params.schema))
        return lambda text: asked(params, text.replace("{", f'{place}."').replace("}", '"'))
