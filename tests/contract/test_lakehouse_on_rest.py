"""Iceberg in a REST catalog keeps the promises of Iceberg in a database's: the contracts, rewinds,
fences and the progress table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import TargetTable
from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.iceberg import Iceberg
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.contract.test_lakehouse import LakehouseFixtures
from tests.iceberg_rest import FOREVER, WAREHOUSE, Gate, RestCatalogServer
from tests.lakehouse_views import LakehouseViews
from tests.spark import test_lakehouse_conflict as conflict
from tests.spark import test_lakehouse_progress as progress
from tests.spark import test_lakehouse_rewind as rewind
from tests.spark import test_lakehouse_writer as writing
from tests.spark.lakehouses import Lakehouse
from tests.sql_views import Opened

pytestmark = [pytest.mark.contract, pytest.mark.spark, pytest.mark.long]
NAME = "served"


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with RestCatalogServer() as server, Gate(server.port) as made:
        yield made


@pytest.fixture
def params(
    gate: Gate, lakehouse_root: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> LakehouseParams:
    """The session of all tests began without the catalog: its settings are set in each of its
    sessions, with the secret in the place of its variable."""
    place = str(lakehouse_root / "rest")
    made = LakehouseParams(**gate.fields(warehouse=place, catalog_name=NAME))  # type: ignore[arg-type]
    secrets = {f"env:{k}": v for k, v in PLUGIN.driver_environment(made).items()}
    own = {k: secrets.get(v, v) for k, v in PLUGIN.spark_conf(made).items()
        if k.startswith(f"spark.sql.catalog.{NAME}")}  # fmt: skip
    for name, value in own.items():
        spark.conf.set(name, value)
    monkeypatch.setattr(Iceberg, "session_conf", {**Iceberg.session_conf, **own})
    return made


class Served(Lakehouse):
    """Its tables are listed by the server."""

    def catalog(self) -> Any:
        from pyiceberg.catalog.rest import RestCatalog

        how = {"uri": self.params.catalog_uri, "token": FOREVER, "warehouse": WAREHOUSE}
        return RestCatalog(NAME, **how)


class RestFixtures(LakehouseFixtures):
    """Read by pyiceberg from the server."""

    @pytest.fixture
    def params(self, params: LakehouseParams) -> LakehouseParams:
        return params

    @pytest.fixture
    def form(self) -> str:
        return "iceberg"

    @pytest.fixture
    def dead_params(self, tmp_path: Path) -> LakehouseParams:
        dead = "http://127.0.0.1:9"
        return LakehouseParams(warehouse=str(tmp_path), catalog="rest", catalog_uri=dead)

    @pytest.fixture
    def read(
        self, params: LakehouseParams, writer: Any, tmp_path: Path
    ) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        return Served(params, writer, tmp_path).read


class TestServed(RestFixtures, TargetContract):
    """Staging, token, generations, owners."""


class TestServedMerging(RestFixtures, MergeContract):
    """Modes, columns and fences."""


class TestServedViews(RestFixtures, LakehouseViews):
    """Views of the living rows."""

    def test_pyiceberg_gives_the_text_and_the_columns_of_a_view(
        self, viewing: Opened, wide: TableSchema, params: LakehouseParams, tmp_path: Path
    ) -> None:
        """Guards what the documentation says of other readers, and the assessment's trial."""
        viewed = replace(params, current_views=True)
        with LakehouseChecks(viewed) as checks:
            assert checks.tables([wide], "") == []
        table = TargetTable(wide.id, "r1", 1, mode=Mode.HISTORY)
        self.copy(viewing(), wide, table, 1)
        catalog = Served(params, viewing(), tmp_path).catalog()  # type: ignore[arg-type]
        name = f"{wide.id.name}_current"
        assert ("contract", name) in catalog.list_views("contract")
        found = catalog.load_view(("contract", name)).metadata
        assert [f.name for f in found.schemas[-1].fields] == ["id", "name", "note"]
        text = found.versions[-1].representations[0].root
        assert text.dialect == "spark"
        assert "`_is_current`" in text.sql

    def test_a_server_that_refuses_views_is_told_before(
        self, gate: Gate, wide: TableSchema, params: LakehouseParams
    ) -> None:
        """Guards the trial: it names what is refused, and leaves nothing."""
        viewed = replace(params, current_views=True)
        with LakehouseChecks(viewed) as checks:
            gate.forbidden = ["POST .*/views$"]
            refused = checks.tables([wide], "")
            gate.forbidden = []
            assert checks.tables([wide], "") == []
        assert [(p.code, dict(p.facts)["act"]) for p in refused] == [
            ("target:catalog-rights", "create a view")
        ]


class TestServedReading(RestFixtures, ReadingContract):
    """Rows that are read back."""


@pytest.fixture
def house(params: LakehouseParams, spark: Any, tmp_path: Path) -> Lakehouse:
    own = replace(params, namespace=f"served_{tmp_path.name.split('_')[-1]}"[:40])
    return Served(own, LakehouseWriter(own, spark), tmp_path)


@pytest.mark.parametrize(
    "holds",
    [
        conflict.test_a_merge_that_another_process_did_meanwhile_is_not_done_again,
        conflict.test_a_merge_that_lost_against_an_earlier_one_is_planned_again_on_top_of_it,
        conflict.test_a_commit_whose_end_is_unknown_is_not_done_again,
        conflict.test_an_append_of_an_older_run_that_went_on_past_its_lease_is_seen,
        rewind.test_an_older_version_is_brought_level_beside_the_live_rows_and_published_in_one_step,
        progress.test_a_table_of_somebody_else_is_not_written_and_the_name_is_kept,
        progress.test_a_version_that_was_the_current_one_within_the_history_stays,
        writing.test_tables_merged_side_by_side_keep_their_own_tokens,
        writing.test_upkeep_keeps_rows_and_token,
        writing.test_a_table_that_was_dropped_and_copied_again_is_merged_into,
    ],
    ids=lambda case: case.__name__.removeprefix("test_"),
)
def test_what_holds_in_a_database_holds_on_a_server(
    house: Lakehouse, holds: Callable[[Lakehouse], None]
) -> None:
    """Guards the rules that a commit's token keeps (CORRECTNESS 13, 14, 29) where a server compares
    and swaps."""
    holds(house)
