"""Snowflake as a target keeps the promises of every target, seen in its emulator."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from replicators.targets.snowflake.naming import names, quoted
from tests.contract.sql_targets import NeutralRows, SqlTargetFixtures
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_target import asked, neutral_rows, params_of
from tests.sql_modes import SqlModes
from tests.sql_views import Shown, SqlViews, Statement

pytestmark = [pytest.mark.contract, pytest.mark.integration, pytest.mark.timeout(180)]
_NUMBERS = itertools.count(1)


class SnowflakeFixtures(SqlTargetFixtures):
    """Into a database of each test's own."""

    name = "snowflake"

    @pytest.fixture
    def params(self, plugin: TargetPlugin, snowflake: SnowflakeServer) -> Any:
        found = parse(plugin.params, params_of(snowflake, f"CONTRACT_{next(_NUMBERS)}"))
        return dataclasses.replace(found, schema="copies")

    def at_port(self, params: Any, port: int) -> Any:
        return dataclasses.replace(params, endpoint=f"http://127.0.0.1:{port}")

    @pytest.fixture
    def neutral(self, params: Any) -> NeutralRows:
        return lambda schema: neutral_rows(params, schema)


class TestSnowflakeTarget(SnowflakeFixtures, TargetContract):
    """Staging, token, generations, owners."""


@pytest.mark.long
class TestSnowflakeMerging(SnowflakeFixtures, MergeContract, ReadingContract):
    """Modes, columns, fences, and rows that are read back."""

    fixes_version = False

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
