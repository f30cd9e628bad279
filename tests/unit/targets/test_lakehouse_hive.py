"""How a Hive metastore is reached, and what its errors mean. No server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import (
    InvalidOperationException,
    MetaException,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from pyiceberg.catalog.sql import SqlCatalog
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.problem import Severity
from replicators.targets.lakehouse import PLUGIN, catalog, listing, metastore, trial
from replicators.targets.lakehouse.errors import code_of
from replicators.targets.lakehouse.params import LakehouseParams, places
from runners.engine.tasks.sharing.fitness import can_share

HIVE = {"warehouse": "/data/lake", "catalog": "hive", "catalog_uri": "thrift://hive.example:9083"}


@pytest.mark.parametrize("locks", [True, False])
def test_spark_is_told_of_the_metastore_and_its_locks(locks: bool) -> None:
    """Guards the lock: without it, an older metastore lets two commits win."""
    params = LakehouseParams(**HIVE, catalog_locks=locks)  # type: ignore[arg-type]
    start = "spark.sql.catalog.lakehouse."
    found = {k.removeprefix(start): v for k, v in PLUGIN.spark_conf(params).items()}
    assert (
        found.items()
        >= {
            "type": "hive",
            "uri": "thrift://hive.example:9083",
            "warehouse": "/data/lake",
            "hadoop.iceberg.engine.hive.lock-enabled": str(locks).lower(),
        }.items()
    )
    assert PLUGIN.modules(params)[0] == "pyiceberg.catalog.hive"
    assert PLUGIN.jars(params) == ("iceberg-spark-runtime-4.1_2.13",)
    assert ("host", "hive.example", 9083) in [(p.kind, p.value, p.port) for p in places(params)]
    assert PLUGIN.driver_environment(params) == {}
    assert PLUGIN.driver_properties(params, "/nonexistent") == {}


def test_locks_are_on_unless_somebody_turns_them_off() -> None:
    """Guards the default: whoever does not know the metastore's version is safe."""
    assert LakehouseParams(**HIVE).metastore.is_locked  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"catalog_uri": ""}, "catalog_uri"),
        ({"catalog_uri": "http://hive.example:9083"}, "catalog_uri"),
        ({"catalog_uri": "thrift://hive.example"}, "catalog_uri"),
        ({"catalog_uri": "thrift://me@hive.example:9083"}, "catalog_uri"),
        ({"catalog_uri": "thrift://hive.example:port"}, "catalog_uri"),
        ({"catalog_user": "me"}, "catalog_user"),
        ({"catalog_token": "t"}, "catalog_token"),
        ({"catalog_region": "eu"}, "catalog_region"),
    ],
)
def test_a_fault_in_hives_fields_is_named(values: dict[str, str], faulty: str) -> None:
    """Guards the form: a login that the metastore never sees would be believed to protect it."""
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, {**HIVE, **values})
    assert list(caught.value.errors) == [faulty]


@pytest.mark.parametrize(
    ("err", "code"),
    [
        (TTransportException(TTransportException.NOT_OPEN), "catalog-unreachable"),
        (TTransportException(TTransportException.TIMED_OUT), "catalog-unreachable"),
        (TTransportException(TTransportException.END_OF_FILE), "catalog-unknown"),
        (TApplicationException(), "catalog-unknown"),
        (RuntimeError("MetaException: AccessControlException: Permission denied: user=me"),
         "catalog-rights"),
    ],
)  # fmt: skip
def test_an_error_of_a_metastore_has_a_code(err: Any, code: str) -> None:
    """Guards the preflight's texts."""
    assert metastore.fault_of_opening(err) == f"target:{code}"


def test_an_error_of_spark_with_a_metastore_has_a_code() -> None:
    """Guards `code_of`: changes wait while the metastore is away."""
    raw = RuntimeError("RuntimeMetaException: Failed to connect to Hive Metastore")
    assert code_of(raw) == "target:catalog-unreachable"


def test_a_metastore_that_compares_columns_by_their_place_is_named() -> None:
    """Guards `code_of`: Iceberg does not know whether such a commit was done, and nothing may be
    tried again until somebody changes the metastore's settings."""
    said = "The following columns have types incompatible with the existing columns in their"
    raw = RuntimeError(f"iceberg.exceptions.CommitStateUnknownException: {said} respective")
    assert code_of(raw) == "target:catalog-columns"


DELTA = {
    "warehouse": "/data/lake",
    "format": "delta",
    "delta_catalog": "hive",
    "catalog_uri": "thrift://hive.example:9083",
}


def test_sparks_own_catalog_is_the_metastore_that_lists_deltas_tables() -> None:
    """Guards the names of Delta's tables, and other replicators: a Spark whose own catalog is a
    metastore is not shared."""
    params = LakehouseParams(**DELTA)  # type: ignore[arg-type]
    conf = PLUGIN.spark_conf(params)
    wanted = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": "thrift://hive.example:9083",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    assert wanted.items() <= conf.items()
    assert not can_share(PLUGIN, params)
    assert ("host", "hive.example", 9083) in [(p.kind, p.value, p.port) for p in places(params)]
    assert PLUGIN.modules(params)[:2] == ("deltalake", "pyiceberg.catalog.hive")
    assert [s.title for s in PLUGIN.setup(DELTA)][1:] == ["Let this program use the Hive metastore"]
    plain = LakehouseParams("/data/lake", "delta")
    assert "spark.sql.catalogImplementation" not in PLUGIN.spark_conf(plain)
    assert can_share(PLUGIN, plain)


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"catalog_uri": ""}, "catalog_uri"),
        ({"catalog_uri": "sqlite:////data/catalog.db"}, "catalog_uri"),
        ({"catalog_user": "me"}, "catalog_user"),
        ({"format": "iceberg", "catalog": "hive"}, "delta_catalog"),
    ],
)
def test_a_fault_in_the_fields_of_deltas_catalog_is_named(
    values: dict[str, str], faulty: str
) -> None:
    """Guards the form: the metastore has an address, and lists Iceberg's tables another way."""
    with pytest.raises(InvalidParams) as info:
        parse(LakehouseParams, {**DELTA, **values})
    assert list(info.value.errors) == [faulty]


@pytest.mark.parametrize(
    ("location", "path", "folder", "is_ours"),
    [
        ("file:/data/lake/shop.db/t-__PLACEHOLDER__", "/data/lake/shop/t", "/data/lake/shop/t", 1),
        ("file:///data/lake/shop/t/", None, "/data/lake/shop/t", 1),
        ("x", "s3a://lake/shop/t", "s3://lake/shop/t", 1),
        ("file:/data/lake/shop.db/t", "/data/other/t", "/data/lake/shop/t", 0),
        (None, None, "/data/lake/shop/t", 0),
    ],
)
def test_an_entry_is_known_by_its_folder(
    location: str | None, path: str | None, folder: str, is_ours: int
) -> None:
    """Guards other tables of that name: neither a copy nor a drop touches them. Spark writes the
    folder beside a place that it never uses."""
    serde = SerDeInfo(parameters={"path": path} if path else {})
    entry = Table(sd=StorageDescriptor(location=location, serdeInfo=serde))
    assert listing.is_at(entry, folder) is bool(is_ours)


class _Metastore:
    """A metastore's client whose answer to ALTER is an error."""

    def __init__(self, said: Exception) -> None:
        self.said = said

    def __enter__(self) -> _Metastore:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def get_table(self, **_: str) -> Table:
        return Table(sd=StorageDescriptor())

    def alter_table(self, **_: Any) -> None:
        raise self.said


class _Opened(SqlCatalog):
    """Iceberg's own catalog, whose tables a metastore lists."""

    _client: _Metastore
    refuses_rename = False

    def rename_table(self, from_identifier: Any, to_identifier: Any) -> Any:
        if self.refuses_rename:
            raise RuntimeError("no rename here")
        return super().rename_table(from_identifier, to_identifier)


_COMPARED = "The following columns have types incompatible with the existing columns"


@pytest.mark.parametrize(
    ("said", "refuses_rename", "code", "severity"),
    [
        (InvalidOperationException(_COMPARED), False, "catalog-columns", Severity.WARNING),
        (InvalidOperationException(_COMPARED), True, "catalog-trial", Severity.ERROR),
        (MetaException("another authorizer says no"), False, "catalog-trial", Severity.ERROR),
        (AttributeError("_client"), False, "catalog-trial", Severity.ERROR),
        (TTransportException(TTransportException.TIMED_OUT), False, "catalog-unreachable",
         Severity.ERROR),
    ],
)  # fmt: skip
def test_a_trial_goes_on_after_columns_that_a_metastore_compares(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: Exception,
    refuses_rename: bool,
    code: str,
    severity: Severity,
) -> None:
    """Guards the assessment: what is refused after the columns is an error, and so is any other
    answer to the change of columns. It leaves no table."""
    opened = _Opened("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake"))
    opened._client = _Metastore(said)
    opened.refuses_rename = refuses_rename
    monkeypatch.setattr(catalog, "open_catalog", lambda *_, **__: opened)
    given = {**HIVE, "warehouse": str(tmp_path / "lake")}
    found = trial.failed(LakehouseParams(**given), ["shop"])  # type: ignore[arg-type]
    assert found is not None
    assert (found.code, found.severity) == (f"target:{code}", severity)
    assert opened.list_namespaces() == []
