"""Iceberg tables in a REST catalog that asks for a token: the rows of the source, over a kill and
over answers that get lost, read by pyiceberg."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import CATALOG, NAMESPACE, Child, Traffic, World, make_shop, until
from tests.iceberg_rest import (
    FOREVER,
    LOST,
    SECRET,
    TOKENS,
    WAREHOUSE,
    Gate,
    RestCatalogServer,
    hadoop_on,
)
from tests.integration.test_catalog_password import command_words
from tests.signatures import Signer
from tests.stores import RIGHTS, Keys, ObjectStore, object_store
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
TABLE = TableSchema(TableId("shop", "items"), (Column("id", Int(64), "bigint"),), ("id",))
SECONDS = 5.0
"""How long a token lives: less than any test of a run takes."""
SIGNER = Signer(Keys("AKIASIGNER", SECRET.replace(" ", "-")), "eu-west-1", "glue")
UNKNOWN = {"target:unreachable", "target:catalog-unreachable"}
"""The codes of a commit whose end is not known: a new run looks."""


@pytest.fixture(scope="module")
def server() -> Iterator[RestCatalogServer]:
    with RestCatalogServer() as made:
        yield made


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as made:
        yield made


@pytest.fixture(scope="module")
def keys(store: ObjectStore) -> Keys:
    """Who may do in the bucket what the documentation asks for."""
    made = store.user(*RIGHTS)
    store.require_keys()
    return made


@pytest.fixture(scope="module")
def server_on_s3(store: ObjectStore, keys: Keys) -> Iterator[RestCatalogServer]:
    with RestCatalogServer(hadoop=hadoop_on(store, keys)) as made:
        yield made


@pytest.fixture
def gate(server: RestCatalogServer) -> Iterator[Gate]:
    with Gate(server.port, SECONDS) as made:
        yield made


@contextmanager
def web_page() -> Iterator[str]:
    """The address of a server that is no catalog: it answers everything with a page."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<html>welcome</html>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{page.server_port}"
        page.shutdown()


class OnRest(World):
    """The tables are listed by a REST catalog."""

    uri: ClassVar[str] = ""
    reader: ClassVar[dict[str, str]] = {}

    def lake_table(self, name: str) -> Any:
        from pyiceberg.catalog.rest import RestCatalog

        how = {"uri": self.uri, "token": FOREVER, "warehouse": WAREHOUSE, **self.reader}
        catalog = RestCatalog(CATALOG, **how)
        return catalog.load_table((self.namespace, name))

    @property
    def namespace(self) -> str:
        """The server has one catalog for all worlds."""
        return f"{NAMESPACE}_{self.folder.name}"


def over_a_kill(world: World, gate: Gate) -> None:
    """A first copy, changes, a SIGKILL while batches are merged, a new column, a fresh copy."""
    params: LakehouseParams = parse(LakehouseParams, world.target_params()[1])
    with LakehouseChecks(params) as checks:
        assert [p.code for p in checks.connection() + checks.tables([TABLE], "")] == []
    traffic = Traffic(world.database)
    world.start()
    world.until_states("replicating")
    with traffic.going_on():
        world.moves_on("items")
        world.kill()
    world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int DEFAULT 7")
    traffic.write(10)
    child = world.start()
    world.assert_equal()
    words = command_words(child.pid)
    assert any("spark" in word.lower() for word in words)
    assert not any(SECRET in word for word in words)
    for name in world.tables:
        world.resync(name)
    traffic.write(5)
    world.assert_equal()
    assert world.stop() == 0
    logged = "".join(p.read_text() for p in world.folder.glob("*.log")) + world.log_text()
    assert SECRET not in logged
    assert gate.counts["given"] > 2
    assert gate.counts["refused"] == 0


@pytest.mark.parametrize(
    ("tables", "rows"),
    [
        (("items",), 1000),
        pytest.param(("items", "pairs", "views"), 3000, marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_a_rest_catalog_has_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    tables: tuple[str, ...],
    rows: int,
) -> None:
    """Guards the settings of Spark and of pyiceberg, the way of the secret to each of them, and
    tokens that are asked for again while the run goes on."""
    monkeypatch.setattr(OnRest, "uri", gate.url)
    filled = partial(make_shop, rows=rows)
    with world_maker(kind=OnRest, tables=tables, target=gate.fields(), prepare=filled) as world:
        over_a_kill(world, gate)


@pytest.mark.long
def test_a_rest_catalog_lists_tables_in_a_bucket(
    world_maker: MakeWorld,
    server_on_s3: RestCatalogServer,
    store: ObjectStore,
    keys: Keys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards both kinds of secrets at once: those of the store and those of the catalog. The
    server's own settings say nothing of how this program reads files."""
    given = {"endpoint": store.endpoint, "region": "us-east-1"}
    reader = {"access-key-id": keys.access, "secret-access-key": keys.secret, **given}
    monkeypatch.setattr(OnRest, "reader", {f"s3.{k}": v for k, v in reader.items()})
    fields = {"access_key": keys.access, "secret_key": keys.secret, **given}
    with Gate(server_on_s3.port, SECONDS) as gate:
        monkeypatch.setattr(OnRest, "uri", gate.url)
        target = {**gate.fields(warehouse=f"s3://{store.bucket}/lake"),
            **{f"s3_{k}": v for k, v in fields.items()}}  # fmt: skip
        with world_maker(kind=OnRest, tables=("items", "views"), target=target) as world:
            over_a_kill(world, gate)


@pytest.mark.long
def test_a_commit_whose_answer_gets_lost_is_done_once(
    world_maker: MakeWorld, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the codes of a commit whose end is unknown (CORRECTNESS 14): the table without a key
    is appended to, so a batch that is merged twice shows. A 503 makes Iceberg's client ask
    again."""
    monkeypatch.setattr(OnRest, "uri", gate.url)
    with world_maker(kind=OnRest, tables=("views",), target=gate.fields()) as world:
        child = world.start()
        world.assert_equal()
        traffic = Traffic(world.database)
        for number, how in enumerate(LOST, start=1):
            gate.lose("views", how)
            traffic.write(5)
            mark = world.mark()

            def has_ended(child: Child = child, mark: int = mark) -> bool:
                return child.is_dead() or world.is_merged(mark, ("views",))

            until(has_ended, f"a commit's answer is lost: {how}")
            assert gate.counts["lost 200"] == number
            if child.is_dead():
                child.end()
                assert child.run.error_code in UNKNOWN
                child = world.start()
            world.assert_equal()
        assert world.stop() == 0


@contextmanager
def signed(server: RestCatalogServer) -> Iterator[Gate]:
    """A gate that checks signatures, as services of Amazon do."""
    with Gate(server.port, signer=SIGNER) as made:
        yield made


def signing(gate: Gate, **more: str) -> dict[str, str]:
    """What a form says of it."""
    return {
        "catalog": "rest",
        "catalog_uri": gate.url,
        "catalog_warehouse": WAREHOUSE,
        "catalog_signing": SIGNER.service,
        "catalog_region": SIGNER.region,
        "catalog_user": SIGNER.keys.access,
        "catalog_password": SIGNER.keys.secret,
        **more,
    }


class Signed(OnRest):
    """Readers sign too."""

    def lake_table(self, name: str) -> Any:
        from pyiceberg.catalog.rest import RestCatalog

        how = {
            "uri": self.uri,
            "warehouse": WAREHOUSE,
            "rest.sigv4-enabled": "true",
            "rest.signing-name": SIGNER.service,
            "rest.signing-region": SIGNER.region,
            "client.access-key-id": SIGNER.keys.access,
            "client.secret-access-key": SIGNER.keys.secret,
        }
        return RestCatalog(CATALOG, **how).load_table((self.namespace, name))


@pytest.mark.long
def test_requests_to_a_rest_catalog_are_signed_over_a_kill(
    world_maker: MakeWorld, server: RestCatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the settings of Spark's signer and of pyiceberg's, and the way of the keys to them."""
    with signed(server) as gate:
        monkeypatch.setattr(OnRest, "uri", gate.url)
        with world_maker(kind=Signed, tables=("items",), target=signing(gate)) as world:
            params: LakehouseParams = parse(LakehouseParams, world.target_params()[1])
            with LakehouseChecks(params) as checks:
                assert [p.code for p in checks.connection() + checks.tables([TABLE], "")] == []
            traffic = Traffic(world.database)
            world.start()
            world.until_states("replicating")
            with traffic.going_on():
                world.moves_on("items")
                world.kill()
            traffic.write(10)
            child = world.start()
            world.assert_equal()
            assert not any(SIGNER.keys.secret in word for word in command_words(child.pid))
            assert world.stop() == 0
            logged = "".join(p.read_text() for p in world.folder.glob("*.log"))
            assert SIGNER.keys.secret not in logged + world.log_text()
            assert gate.counts["signed"] > 20
            assert gate.counts["InvalidSignatureException"] == 0


@pytest.mark.long
def test_what_is_wrong_with_a_signature_is_said_before_a_run(
    server: RestCatalogServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the preflight where requests are signed. Guards also the test's own check: it refuses
    another key, another region and another service."""
    nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"}
    for name, value in nothing.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with signed(server) as gate:

        def told(**fields: str) -> list[str]:
            given = signing(gate, warehouse=str(tmp_path), **fields)
            params: LakehouseParams = parse(LakehouseParams, given)
            with LakehouseChecks(params) as checks:
                problems = checks.connection() or checks.tables([TABLE], "")
            return [p.code.removeprefix("target:catalog-") for p in problems]

        assert told() == []
        assert told(catalog_password="another") == ["refused"]  # noqa: S106 - a wrong one
        assert told(catalog_region="us-east-1") == ["refused"]
        assert told(catalog_signing="execute-api") == ["refused"]
        assert told(catalog_signing="none", catalog_region="", catalog_user="",
            catalog_password="") == ["refused"]  # fmt: skip
        assert told(catalog_user="", catalog_password="") == ["refused"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", SIGNER.keys.access)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SIGNER.keys.secret)
        assert told(catalog_user="", catalog_password="") == []
        assert told(catalog_uri="http://127.0.0.1:9") == ["unreachable"]
    assert list(tmp_path.iterdir()) == []


def test_what_a_rest_catalog_refuses_is_said_before_a_run(gate: Gate, tmp_path: Path) -> None:
    """Guards the preflight: a run whose catalog is not there, or lacks a right, fails minutes
    later, with an error of Spark."""

    def found(**fields: str) -> list[tuple[str, str]]:
        given = {**gate.fields(warehouse=str(tmp_path)), **fields}
        params: LakehouseParams = parse(LakehouseParams, given)
        with LakehouseChecks(params) as checks:
            problems = checks.connection() or checks.tables([TABLE], "")
        assert SECRET not in str(problems)
        return [(p.code.removeprefix("target:catalog-"), dict(p.facts).get("act", ""))
            for p in problems]  # fmt: skip

    def told(**fields: str) -> list[str]:
        return [code for code, _ in found(**fields)]

    nobody = {"catalog_user": "", "catalog_password": ""}
    alone = {"catalog_token_uri": "", "catalog_scope": ""}
    assert found() == []
    assert found(catalog_token_uri="") == [], "the catalog gives tokens itself"
    assert found(**nobody, **alone, catalog_token=FOREVER) == []
    assert told(**nobody, **alone, catalog_token="another") == ["refused"]
    assert told(**nobody, **alone) == ["refused"]
    assert told(catalog_password="another") == ["refused"]
    assert told(catalog_user="another") == ["refused"]
    assert told(catalog_scope="more") == ["refused"]
    assert told(catalog_warehouse="another") == ["warehouse"]
    assert told(catalog_uri="http://127.0.0.1:9") == ["unreachable"]
    assert told(catalog_token_uri=f"http://127.0.0.1:9{TOKENS}") == ["unreachable"]
    with web_page() as page:
        assert told(**nobody, **alone, catalog_uri=page) == ["unknown"]
        assert told(catalog_token_uri=page) == ["unknown"]
    acts = {
        "POST .*/namespaces$": "create a namespace",
        "POST .*/tables$": "create a table",
        "POST .*/tables/[^/]+$": "change a table",
        "POST .*/rename$": "rename a table",
        "DELETE .*/tables/": "drop a table",
        "GET .*/tables/": "read its tables",
    }
    for pattern, act in acts.items():
        gate.forbidden = [pattern]
        assert found() == [("rights", act)]
    of_views = {
        "POST .*/views$": "create a view",
        "GET .*/views/": "read a view",
        "DELETE .*/views/": "drop a view",
    }
    for pattern, act in of_views.items():
        gate.forbidden = [pattern]
        assert found() == []
        assert found(current_views="true") == [("rights", act)]
    gate.forbidden = []
    assert found(current_views="true") == []
    assert list(tmp_path.iterdir()) == [], "a trial leaves nothing"
