"""Iceberg and Delta in HDFS, which checks rights: the rows of the source, over a kill."""

from __future__ import annotations

import getpass
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
from replicators.targets.lakehouse.stores.hdfs import Hdfs as Store
from tests.harness import CATALOG, NAMESPACE, World
from tests.hdfs import Hdfs
from tests.integration.lake_path import TABLE, over_a_kill
from tests.refusing import refusing
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Hdfs]:
    """A cluster with a folder that belongs to a user who is nobody else there."""
    with Hdfs() as made:
        system = Store(made.web, getpass.getuser()).system(made.url)
        place = made.url.removeprefix("hdfs://")
        system.create_dir(f"{place}/lake")
        made.give("/lake", "lakes")
        yield made


class OnHdfs(World):
    """The copies lie in `cluster`."""

    cluster: ClassVar[Hdfs]

    def target_params(self) -> tuple[str, dict[str, Any]]:
        name, params = super().target_params()
        where = {"warehouse": self.place, "hdfs_web": self.cluster.web, "hdfs_user": "lakes"}
        return name, {**params, **where}

    @property
    def place(self) -> str:
        return f"{self.cluster.url}/lake/{self.folder.name}"

    def lake_table(self, name: str) -> Any:
        """pyiceberg with the files of this program: its own need Hadoop's libraries."""
        from pyiceberg.catalog.sql import SqlCatalog

        found = Store(self.cluster.web, "lakes").iceberg_properties()
        uri = f"sqlite:///{self.folder}/catalog.db"
        catalog = SqlCatalog(CATALOG, uri=uri, warehouse=self.place, **found)
        return catalog.load_table((NAMESPACE, name))

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        """deltalake has a client of HDFS, which knows the user that runs this program."""
        if self.format != "delta":
            return super().target_rows(name)
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(f"{self.place}/{NAMESPACE}/{name}")
        done = QueryBuilder().register("t", table).execute("SELECT * FROM t")
        return list(pa.table(done.read_all()).to_pylist())


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_hdfs_has_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld, cluster: Hdfs, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Guards the user's way to Spark, and the files of this program and its tasks by WebHDFS."""
    monkeypatch.setattr(OnHdfs, "cluster", cluster, raising=False)
    with world_maker(kind=OnHdfs, format=form, tables=("items", "views")) as world:
        over_a_kill(world)
        assert cluster.owners(f"/lake/{world.folder.name}") == {"lakes"}


def test_what_hdfs_refuses_is_said_before_a_run(cluster: Hdfs, tmp_path: Path) -> None:
    """Guards the preflight: a run that starts without its cluster or a right fails minutes later,
    with an error of Spark."""
    with refusing(cluster.web) as gate:

        def found(refused: str = "", status: int = 403, **fields: str) -> list[tuple[str, Any]]:
            gate.refuse(refused, status, json.dumps({"RemoteException": _REFUSED}))
            given = {
                "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
                "warehouse": f"{cluster.url}/lake/tried",
                "hdfs_web": gate.url,
                "hdfs_user": "lakes",
                **fields,
            }
            params: LakehouseParams = parse(LakehouseParams, given)
            with LakehouseChecks(params) as checks:
                problems = checks.connection() or checks.tables([TABLE], "")
            return [(p.code, dict(p.facts).get("act")) for p in problems]

        assert found() == []
        assert cluster.owners("/lake/tried") == set()
        assert found(hdfs_user="somebody") == [("target:hdfs-rights", "write to")]
        assert found("GET .*op=LISTSTATUS") == [("target:hdfs-rights", "list")]
        assert found("DELETE ") == [("target:hdfs-rights", "delete from")]
        assert [c for c, _ in found(hdfs_web="http://127.0.0.1:9")] == ["target:unreachable"]
        wrong = cluster.url.replace("hdfs:", "http:")
        assert [c for c, _ in found(hdfs_web=wrong)] == ["target:hdfs-unknown"]
        nowhere = "hdfs://127.0.0.1:9/lake"
        assert [c for c, _ in found(warehouse=nowhere)] == ["target:unreachable"]


_REFUSED = {"exception": "AccessControlException", "message": "refused"}


def test_files_in_hdfs_are_those_of_every_file_system(cluster: Hdfs) -> None:
    """Guards the files of this program and its tasks: names, large files, what is not there."""
    system = pickle.loads(pickle.dumps(Store(cluster.web, "lakes").system(cluster.url)))  # noqa: S301 - its own
    root = f"{cluster.url.removeprefix('hdfs://')}/lake/files"
    blocks = [bytes([n]) * (5 << 20) for n in range(4)]
    with system.open_output_stream(f"{root}/a b%~/large", compression=None) as out:
        for block in blocks:
            out.write(block)
    with system.open_output_stream(f"{root}/empty", compression=None):
        pass
    with system.open_input_file(f"{root}/a b%~/large") as found:
        assert found.read() == b"".join(blocks)
        found.seek(7 << 20)
        assert found.read(3) == b"\x01\x01\x01"
    system.create_dir(f"{root}/folder")
    listed = system.get_file_info(FileSelector(root, recursive=True))
    assert {i.path.removeprefix(f"{root}/"): (i.type.name, i.size) for i in listed} == {
        "a b%~": ("Directory", None),
        "a b%~/large": ("File", 20 << 20),
        "empty": ("File", 0),
        "folder": ("Directory", None),
    }
    with pytest.raises(FileNotFoundError):
        system.get_file_info(FileSelector(f"{root}/nothing"))
    assert system.get_file_info(FileSelector(f"{root}/nothing", allow_not_found=True)) == []
    with pytest.raises(FileNotFoundError):
        system.delete_file(f"{root}/nothing")
    with pytest.raises(FileExistsError):
        system.create_dir(f"{root}/empty")
    system.delete_file(f"{root}/empty")
    system.delete_dir(root)
    assert system.get_file_info(root).type == FileType.NotFound
