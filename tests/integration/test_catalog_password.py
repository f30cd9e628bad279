"""An Iceberg catalog on a PostgreSQL that asks for a password: the test of the connection and a
real run both get in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from assessments.services import connection_test
from demo.postgres import EmbeddedPostgres
from replicators.targets.lakehouse import catalog
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import CATALOG, NAMESPACE, World
from tests.servers import fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]
USER, PASSWORD = "lake:keeper", r"s3cret:with\colon and 'quote' é"


class CatalogWorld(World):
    """A world whose catalog lies in PostgreSQL."""

    def lake_table(self, name: str) -> Any:
        """The Iceberg table as a reader opens it."""
        params = LakehouseParams(warehouse=str(self.warehouse), catalog_name=CATALOG, **self.target)
        return catalog.open_catalog(params).load_table((NAMESPACE, name))


def command_words(pid: int) -> list[str]:
    """The words of the command lines of a process and its descendants; one that has ended meanwhile
    has none."""
    words = psutil.Process(pid).cmdline()
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            words += child.cmdline()
    return words


@pytest.fixture
def target(postgres: EmbeddedPostgres) -> Iterator[dict[str, str]]:
    """The target's values for a catalog of a user who needs a password."""
    with fresh_database(postgres) as made:
        quoted = PASSWORD.replace("'", "''")
        made.execute(f"""CREATE ROLE "{USER}" LOGIN PASSWORD '{quoted}'""")
        made.execute(f'ALTER DATABASE {made.name} OWNER TO "{USER}"')
        try:
            yield {
                "catalog_uri": f"postgresql://{postgres.host}:{postgres.port}/{made.name}",
                "catalog_user": USER,
                "catalog_password": PASSWORD,
            }
        finally:
            made.execute(
                f'ALTER DATABASE {made.name} OWNER TO postgres; DROP OWNED BY "{USER}" CASCADE'
            )
            made.execute(f'DROP ROLE "{USER}"')


def test_a_run_gets_into_a_catalog_with_a_password(
    world_maker: MakeWorld, target: dict[str, str], tmp_path: Path
) -> None:
    """Guards `driver_properties` and `properties_for`: the connection's test passed, and every
    merge failed since nothing told Java's driver the password."""
    values = {"warehouse": str(tmp_path), "catalog_name": CATALOG, **target}
    with world_maker(tables=("items",), target=target, kind=CatalogWorld) as world:
        assert connection_test(role="target", kind="lakehouse", params=values) == []
        child = world.start()
        world.assert_equal("items")
        world.database.execute("UPDATE shop.items SET note = 'changed' WHERE id < 20")
        world.assert_equal("items")
        assert not any("s3cret" in word for word in command_words(child.pid))
        (secret,) = (world.folder / "spark").rglob("*.pgpass")
        assert secret.stat().st_mode & 0o777 == 0o600
        assert world.stop() == 0
        assert not secret.parent.exists()
        assert "s3cret" not in child.output.read_text()
        assert "s3cret" not in world.log_text()
