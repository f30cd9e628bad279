"""Iceberg in a bucket of a server that speaks the protocol of Google Cloud Storage: the rows of the
source, over a kill, read by pyiceberg."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from replicators.connectors.params import parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.stores.gcs import Gcs
from tests.gcs import GcsServer, gcs_server
from tests.google_tokens import google_tokens, key
from tests.hadoop_shell import hadoop
from tests.harness import CATALOG, NAMESPACE, World
from tests.integration.lake_path import TABLE, over_a_kill
from tests.refusing import refusing
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
_BY_KEY = "SERVICE_ACCOUNT_JSON_KEYFILE"
"""An emulator of a form has no key; this one looks at none."""


@pytest.fixture(scope="module")
def server() -> Iterator[GcsServer]:
    with gcs_server() as made:
        yield made


class OnGcs(World):
    """The copies lie in a bucket of `server`. People write its scheme in both ways."""

    server: ClassVar[GcsServer]

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        where = {"warehouse": f"gcs://{self.place}", "gcs_endpoint": self.server.endpoint}
        return name, {**params, **where}

    @property
    def place(self) -> str:
        return f"{self.server.bucket}/{self.folder.name}"

    def lake_table(self, name: str) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        found = {
            "gcs.service.host": self.server.endpoint,
            "gcs.oauth2.token": "nobody looks at it",
            "gcs.oauth2.token-expires-at": str(int(time.time() + 3600) * 1000),
        }
        uri = f"sqlite:///{self.folder}/catalog.db"
        catalog = SqlCatalog(CATALOG, uri=uri, warehouse=f"gs://{self.place}", **found)
        return catalog.load_table((NAMESPACE, name))


@pytest.mark.long
def test_a_bucket_of_google_has_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld, server: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the file system that Spark needs there, and the readers that this program asks for a
    table's token."""
    monkeypatch.setattr(OnGcs, "server", server, raising=False)
    with world_maker(kind=OnGcs, tables=("items", "views")) as world:
        over_a_kill(world)


def test_what_a_bucket_of_google_refuses_is_said_before_a_run(
    server: GcsServer, tmp_path: Path
) -> None:
    """Guards the preflight: a run that starts without its bucket or a right fails minutes later,
    with an error of Spark. The server asks for no rights, so a gate before it refuses."""
    with refusing(server.endpoint) as gate:

        def found(
            refused: str = "", status: int = 403, bucket: str = server.bucket
        ) -> list[tuple[str, Any]]:
            said = {"error": {"code": status, "message": "refused", "errors": []}}
            gate.refuse(refused, status, json.dumps(said))
            given = {
                "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
                "warehouse": f"gs://{bucket}/lake",
                "gcs_endpoint": gate.url,
            }
            params: LakehouseParams = parse(LakehouseParams, given)
            with LakehouseChecks(params) as checks:
                problems = checks.connection() or checks.tables([TABLE], "")
            return [(p.code, dict(p.facts).get("act")) for p in problems]

        assert found() == []
        left = [n for n in server.names() if n.startswith("lake/")]
        assert left == ["lake/"], "a trial leaves at most the mark of the folder"
        assert [c for c, _ in found(bucket="nowhere")] == ["target:bucket-missing"]
        assert found("GET .*/o\\?") == [("target:gcs-rights", "list")]
        assert found("POST .*/o\\?") == [("target:gcs-rights", "write to")]
        assert found("DELETE ") == [("target:gcs-rights", "delete from")]
        assert [c for c, _ in found(".", status=401)] == ["target:gcs-key"]


@pytest.mark.long
def test_a_key_of_a_service_account_reaches_sparks_file_system(
    server: GcsServer, tmp_path: Path
) -> None:
    """Guards the way of the key into the JVM: a setting that refers to a Java property, which names
    a private file. Google's file system for Hadoop asks for a token with it."""
    with google_tokens() as tokens:
        store = Gcs(server.endpoint, key(tokens.url))
        settings = {**store.spark_conf(), "spark.hadoop.fs.gs.auth.type": _BY_KEY}
        assert "PRIVATE" not in str(settings)

        class Signed(Gcs):
            def spark_conf(self) -> dict[str, str]:
                return settings

        signed = Signed(store.where, store.key)
        place = f"gs://{server.bucket}/by-shell"
        done = hadoop(signed, "-mkdir", "-p", place, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert tokens.asked == 1
        assert f"{place.rpartition('/')[2]}/" in server.names()
        assert "PRIVATE" not in done.stdout + done.stderr
