"""Keys of a bucket that a REST catalog lends: the form's fields, what Spark is told, and keys that
are asked for again before they end."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.storage import Storage, tried
from replicators.targets.lakehouse import conf, trial
from replicators.targets.lakehouse.errors import translate
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.servers import DELEGATION, CatalogServer
from replicators.targets.lakehouse.stores import Store, python_io
from replicators.targets.lakehouse.stores.lent import Lent
from replicators.targets.lakehouse.stores.renewed import Renewed, Within

GIVEN = {
    "warehouse": "s3://bucket/lake",
    "catalog": "rest",
    "catalog_uri": "https://catalog.example",
    "catalog_user": "me",
    "catalog_password": "s3cret",
    "s3_region": "eu-central-1",
    "store_keys": "lent",
}
NAMES = ("shop", "items")
METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/lake/shop/items/1",
    "last-sequence-number": 0,
    "last-updated-ms": 1,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
}


def params(**values: str) -> LakehouseParams:
    found: LakehouseParams = parse(LakehouseParams, {**GIVEN, **values})
    return found


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"catalog": "jdbc", "catalog_uri": "sqlite:////c.db"}, "store_keys"),
        ({"format": "delta"}, "store_keys"),
        ({"warehouse": "gs://bucket/lake", "s3_region": ""}, "store_keys"),
        ({"warehouse": "/data/lake", "s3_region": ""}, "store_keys"),
        ({"s3_access_key": "AK", "s3_secret_key": "SK"}, "s3_access_key"),
        ({"store_keys": "theirs"}, "store_keys"),
    ],
)
def test_a_fault_in_the_choice_of_lent_keys_is_named(values: dict[str, str], faulty: str) -> None:
    """Guards the form: only a REST catalog lends, and no key is ignored in silence."""
    with pytest.raises(InvalidParams) as caught:
        params(**values)
    assert faulty in caught.value.errors


def test_spark_asks_the_catalog_for_keys_and_has_none_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards that the environment's keys are never taken: they would hide that none are lent."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    given = params(s3_endpoint="http://127.0.0.1:9000")
    settings = conf.spark_conf(given)
    prefix = "spark.sql.catalog.lakehouse."
    own = {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
    assert own["io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert own[f"header.{DELEGATION}"] == "vended-credentials"
    assert own["s3.access-key-id"] == own["s3.secret-access-key"] == "none-lent"
    assert own["s3.path-style-access"] == "true"
    assert own["client.region"] == "eu-central-1"
    assert not any(name.startswith("spark.hadoop.fs") for name in settings)
    assert conf.driver_properties(given, str(tmp_path)) == {}
    assert "of-the-environment" not in str(settings) and "s3cret" not in str(settings)
    assert {"s3-2", "kms-2"} <= set(conf.jars(given)), "Iceberg's class of S3 names KMS"


class Lender:
    """A catalog with one table. It lends keys with a number, which live `seconds`."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.seconds = 3600.0
        self.lent = 0
        self.lends = True
        self.is_in_config = False

    def clock(self) -> float:
        return self.now

    def table(self, asks: bool) -> dict[str, Any]:
        config: dict[str, str] = {}
        if asks and self.lends:
            self.lent += 1
            config = {
                "s3.access-key-id": f"AK{self.lent}",
                "s3.secret-access-key": "SK",
                "s3.session-token": "ST",
            }
            if self.seconds:
                ends = 1000 * (self.now + self.seconds)
                config["s3.session-token-expires-at-ms"] = f"{ends:.0f}"
        place = f"{METADATA['location']}/metadata/1.json"
        found: dict[str, Any] = {"metadata-location": place, "metadata": METADATA, "config": {}}
        if self.is_in_config:
            found["config"] = config
        elif config:
            found["storage-credentials"] = [{"prefix": METADATA["location"], "config": config}]
        return found


@contextmanager
def served(lender: Lender) -> Iterator[Lent]:
    """The bucket of its table, as its clients reach it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asks = self.headers.get(DELEGATION) == "vended-credentials"
            said: dict[str, Any] = {"defaults": {}, "overrides": {}}
            if "/tables/" in self.path:
                said = lender.table(asks)
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        at = CatalogServer(f"http://127.0.0.1:{server.server_port}", token="t0ken")  # noqa: S106
        yield Lent(at, "", "eu-west-1", NAMES, clock=lender.clock)
        server.shutdown()


def keys(number: int) -> fs.FileSystem:
    """The file system with the keys of this number."""
    return fs.S3FileSystem(
        access_key=f"AK{number}", secret_key="SK", session_token="ST", region="eu-west-1"
    )


@pytest.mark.parametrize("is_in_config", [False, True])
def test_keys_are_asked_for_once_and_again_before_they_end(is_in_config: bool) -> None:
    """Guards reads that last longer than keys, said in either of a catalog's ways."""
    lender = Lender()
    lender.is_in_config = is_in_config
    with served(lender) as store:
        handler: Any = store.system("s3://bucket").handler
        assert handler._now == keys(1) and handler._now == keys(1)
        lender.now += 3200
        assert handler._now == keys(1)
        lender.now += 200
        assert handler._now == keys(2)
        lender.seconds = 60
        lender.now += 3600
        assert handler._now == keys(3) and handler._now == keys(3)
        lender.now += 31
        assert handler._now == keys(4), "keys of a minute are not asked for with each request"
    assert lender.lent == 4


def test_keys_whose_end_is_not_said_are_asked_for_again_in_minutes() -> None:
    lender = Lender()
    lender.seconds = 0
    with served(lender) as store:
        handler: Any = store.system("s3://bucket").handler
        assert handler._now == keys(1)
        lender.now += 899
        assert handler._now == keys(2)


def test_keys_that_were_taken_hold_for_a_table_that_is_gone() -> None:
    """Guards the removal of a dropped table's files: its catalog lends no more keys for it."""
    lender = Lender()
    with served(lender) as store:
        taken = store.taken()
    lender.now += 1e6
    handler: Any = taken.system("s3://bucket").handler  # type: ignore[union-attr]
    assert handler._now == keys(1)


def test_a_task_that_reads_asks_the_catalog_itself() -> None:
    """Guards the way of a scan into tasks: the secret of the catalog goes along, no key does."""
    lender = Lender()
    with served(lender) as store:
        sent = pickle.dumps(store)
        assert b"AK1" not in sent
        arrived: Any = python_io.store_in(pickle.loads(sent).iceberg_properties())  # noqa: S301 - its own
        assert arrived == store
        assert "t0ken" not in repr(arrived)
        lender.now = 4e9
        assert arrived.system("s3://bucket").handler._now == keys(1)


def test_a_catalog_that_lends_nothing_is_named() -> None:
    lender = Lender()
    lender.lends = False
    login = {"catalog_user": "", "catalog_password": "", "catalog_token": "t0ken"}
    with served(lender) as store:
        found = tried(store, "s3://bucket/lake/shop/items/1/data")
        assert found is not None and found.code == "target:keys-not-lent"
        with pytest.raises(trial._Failed) as failed:
            trial._borrowed(params(**login, catalog_uri=store.server.uri), NAMES)
    assert failed.value.problem is not None
    assert failed.value.problem.code == "target:keys-not-lent"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("AWS Error ACCESS_DENIED during PutObject operation: x", "lent-rights"),
        ("Access Denied (Service: S3, Status Code: 403, Request ID: x)", "lent-rights"),
        ("AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation", "lent-keys"),
        ("does not exist in our records. (Service: S3, Status Code: 403, Request", "lent-keys"),
        ("The provided token has expired. (Service: S3, Status Code: 400)", "lent-keys"),
        ("during PutObject operation: Unable to parse ExceptionName: ExpiredToken", "lent-keys"),
    ],
)
def test_an_error_of_a_run_with_lent_keys_has_a_code_of_its_own(said: str, code: str) -> None:
    """Guards that a run asks again: such an error is not the fault of what somebody entered."""
    store = params().store
    assert translate(RuntimeError(said), store=store).code == f"target:{code}"
    assert translate(RuntimeError(said), store=Store()).code != f"target:{code}"
    assert translate(RuntimeError("CommitFailedException"), store=store).code == "target:conflict"
    refused = RuntimeError("NotAuthorizedException: SignatureDoesNotMatch or invalid_token")
    assert translate(refused, store=store).code == "target:catalog-refused"


class Narrow(Renewed):
    """Local files as keys of one folder show them: what lies above it may not be touched, and the
    folder's own name not looked at."""

    def __init__(self, folder: Path) -> None:
        local = fs.LocalFileSystem()
        super().__init__(lambda: (local, inf))
        self.folder = str(folder)

    def _within(self, path: str) -> None:
        if not path.startswith(f"{self.folder}/"):
            raise PermissionError(path)

    def get_file_info(self, paths: Any) -> Any:
        for path in paths:
            self._within(path)
        return super().get_file_info(paths)

    def delete_dir(self, path: str) -> None:
        self._within(path)
        super().delete_dir(path)

    def create_dir(self, path: str, recursive: bool) -> None:
        raise PermissionError(path)


def test_keys_of_one_folder_are_enough_to_use_and_remove_it(tmp_path: Path) -> None:
    """Guards what is asked of lent keys: nothing above the table's folder."""
    folder = tmp_path / "lake" / "items"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "1").write_bytes(b"1")
    (folder / "2").write_bytes(b"2")
    narrow = fs.PyFileSystem(Narrow(folder))

    class Here(Store):
        def system(self, url: str) -> fs.FileSystem:
            return fs.PyFileSystem(Within(lambda: (narrow, inf)))

    storage = Storage(Here())
    url = f"s3://{folder}"
    assert storage.has_folder(url)
    storage.remove_folder(url)
    assert list(folder.iterdir()) == []
    assert not storage.has_folder(f"{url}/data")
