"""Iceberg in a container of Azurite, which asks for a key or a SAS token: the rows of the source,
over a kill."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyarrow.fs import FileSelector, FileType

from replicators.connectors.params import parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.stores.adls import Adls
from tests.azurite import Azurite, azurite
from tests.harness import CATALOG, NAMESPACE, World
from tests.integration.lake_path import TABLE, over_a_kill
from tests.refusing import refusing
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]


@pytest.fixture(scope="module")
def server() -> Iterator[Azurite]:
    with azurite() as made:
        yield made


class OnAzure(World):
    """The copies lie in a container of `server`."""

    server: ClassVar[Azurite]

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        where = {"warehouse": self.place, "adls_endpoint": self.server.endpoint}
        return name, {**params, **where}

    @property
    def place(self) -> str:
        return self.server.url(self.folder.name)

    def lake_table(self, name: str) -> Any:
        """pyiceberg with the files of this program: its own take no container@account."""
        from pyiceberg.catalog.sql import SqlCatalog

        found = Adls(self.server.host, self.server.endpoint, self.server.key).iceberg_properties()
        uri = f"sqlite:///{self.folder}/catalog.db"
        catalog = SqlCatalog(CATALOG, uri=uri, warehouse=self.place, **found)
        return catalog.load_table((NAMESPACE, name))


@pytest.mark.parametrize("signed_in", ["adls_key", "adls_sas"])
def test_a_container_of_azure_has_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld, server: Azurite, monkeypatch: pytest.MonkeyPatch, signed_in: str
) -> None:
    """Guards the file system that Spark needs there, the way of the secret to it, and the readers
    that this program asks for a table's token."""
    monkeypatch.setattr(OnAzure, "server", server, raising=False)
    secret = server.key if signed_in == "adls_key" else server.sas()
    target = {signed_in: secret}
    with world_maker(kind=OnAzure, tables=("items", "views"), target=target) as world:
        over_a_kill(world, secret)


def test_what_a_container_of_azure_refuses_is_said_before_a_run(
    server: Azurite, tmp_path: Path
) -> None:
    """Guards the preflight: a run that starts without its container, its key or a right fails
    minutes later, with an error of Spark."""

    with refusing(server.endpoint) as gate:

        def found(
            refused: str = "", key: str = server.key, warehouse: str = server.url("lake")
        ) -> list[tuple[str, Any]]:
            said = {"error": {"code": "AuthorizationFailure", "message": "refused"}}
            gate.refuse(refused, 403, json.dumps(said))
            given = {
                "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
                "warehouse": warehouse,
                "adls_endpoint": gate.url,
                "adls_key": key,
            }
            params: LakehouseParams = parse(LakehouseParams, given)
            with LakehouseChecks(params) as checks:
                problems = checks.connection() or checks.tables([TABLE], "")
            assert not any(key in str(p) for p in problems)
            return [(p.code, dict(p.facts).get("act")) for p in problems]

        assert found() == []
        wrong = base64.b64encode(b"another").decode()
        assert [c for c, _ in found(key=wrong)] == ["target:adls-key"]
        nowhere = server.url("lake", "nowhere")
        assert [c for c, _ in found(warehouse=nowhere)] == ["target:bucket-missing"]
        assert found("GET .*comp=list") == [("target:adls-rights", "list")]
        assert found("PUT .*trial") == [("target:adls-rights", "write to")]
        assert found("DELETE ") == [("target:adls-rights", "delete from")]


@pytest.mark.parametrize("signed_in", ["key", "sas"])
def test_folders_of_azure_have_a_mark_or_only_what_lies_in_them(
    server: Azurite, signed_in: str
) -> None:
    """Guards the files of this program and its tasks: Spark marks folders by blobs, and others
    don't."""
    secret = server.key if signed_in == "key" else server.sas()
    store = Adls(server.host, server.endpoint, **{signed_in: secret})
    system = pickle.loads(pickle.dumps(store.system("")))  # noqa: S301 - its own
    root = f"{server.container}/{signed_in}"
    system.create_dir(f"{root}/marked")
    system.create_dir(f"{root}/marked")
    blocks = [bytes([n]) * (5 << 20) for n in range(4)]
    with system.open_output_stream(f"{root}/plain/below/large", compression=None) as out:
        for block in blocks:
            out.write(block)
    with system.open_output_stream(f"{root}/marked/empty", compression=None):
        pass
    with system.open_input_file(f"{root}/plain/below/large") as found:
        assert found.read() == b"".join(blocks)
        found.seek(7 << 20)
        assert found.read(3) == b"\x01\x01\x01"
    kinds = {name: system.get_file_info(f"{root}/{name}").type.name for name in
        ("marked", "plain", "plain/below/large", "plai", "marked/empty")}  # fmt: skip
    assert kinds == {"marked": "Directory", "plain": "Directory", "plain/below/large": "File",
        "plai": "NotFound", "marked/empty": "File"}  # fmt: skip

    def below(path: str, recursive: bool = False) -> dict[str, str]:
        listed = system.get_file_info(FileSelector(path, recursive=recursive))
        return {i.path.removeprefix(f"{root}/"): i.type.name for i in listed}

    assert below(root) == {"marked": "Directory", "plain": "Directory"}
    assert below(root, recursive=True) == {
        **below(root),
        "marked/empty": "File",
        "plain/below": "Directory",
        "plain/below/large": "File",
    }
    with pytest.raises(FileNotFoundError):
        below(f"{root}/nothing")
    with pytest.raises(FileExistsError):
        system.create_dir(f"{root}/marked/empty")
    system.delete_dir(f"{root}/marked")
    system.delete_dir(f"{root}/plain")
    assert system.get_file_info(root).type == FileType.NotFound
