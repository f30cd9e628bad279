"""A search node that is killed and comes back while changes flow."""

from __future__ import annotations

import base64
import re
from typing import Any, ClassVar

import pytest

from demo.postgres import HOST
from runners.models import Event
from tests.harness import Traffic, World, until
from tests.proxies import CuttingProxy
from tests.search_server import SearchServer
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]
KEYS = {"items": ("id",), "pairs": ("word", "part")}
AGAIN = re.compile(r"already had (\d+) of")
ANSWER_BYTES = 20
"""So many bytes of an answer arrive: the cluster has written the request, and we don't know it."""


class SlowTraffic(Traffic):
    """Most transactions change a key without sending its large value: each such row is read from
    the index by itself. So there are few of them, to be caught up with after an outage."""

    def _go(self) -> None:
        with self._database.connect() as connection:
            while not self._stop.wait(0.4):
                self.write(1, connection)


class SearchWorld(World):
    """From PostgreSQL, on the local twin of the tasks."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

    def target_params(self) -> tuple[str, dict[str, Any]]:
        return "elasticsearch", {"replicas": 0, "index": self.index("{table}"), **self.target}

    def index(self, table: str) -> str:
        """Where people search a table."""
        return f"{self.folder.name.replace('_', '-')}-{table}".lower()

    def documents(self, server: SearchServer, table: str) -> list[dict[str, Any]]:
        """Every document of a table."""
        server.ask("POST", f"/{self.index(table)}/_refresh")
        asked = {"size": 10_000, "track_total_hits": True}
        hits = server.ask("POST", f"/{self.index(table)}/_search", asked)["hits"]
        assert hits["total"]["value"] == len(hits["hits"]), "more than a search gives"
        return [h["_source"] for h in hits["hits"]]

    def written_again(self) -> int:
        """How many changes the cluster had already (409)."""
        return sum(int(n) for n in AGAIN.findall(self.log_text()))


def as_documents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The source's rows with the values of documents; times are compared elsewhere."""
    return [{n: _value(n, v) for n, v in row.items() if n not in {"at", "wall"}} for row in rows]


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if name == "price":
        return value and float(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def by_key(table: str, rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    found = {tuple(row[n] for n in KEYS[table]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_run_goes_on_over_kills_of_the_node(world_maker: MakeWorld) -> None:
    """Guards a cluster that loses its only node twice under writes, once after it wrote a
    request and before we had its answer. What is sent again is counted and no fault: the run goes
    on, no table fails, and in the end every document is that of its row."""
    with SearchServer() as server, CuttingProxy(server.port) as proxy:
        # The proxy answers first; where it does not, the node itself is asked.
        addresses = f"http://{HOST}:{proxy.port},{server.url}"
        made: Any = world_maker(kind=SearchWorld, tables=tuple(KEYS), target={"address": addresses})
        with made as world:
            traffic = SlowTraffic(world.database)
            world.start()
            world.until_states("replicating")
            with traffic.going_on():
                world.moves_on("items")
                proxy.cut_after(ANSWER_BYTES)
                world.until(lambda: proxy.cuts == 1, "an answer is cut")
                for _ in range(2):
                    captured = world.last_segment()
                    server.kill()
                    server.start()
                    assert world.last_segment() > captured, "capture went on meanwhile"
                    world.moves_on("items")
                    world.moves_on("pairs")
            world.settle()
            assert traffic.transactions > 20
            for table in KEYS:
                wanted = by_key(table, as_documents(world.source_rows(table)))

                def is_equal(table: str = table, wanted: Any = wanted) -> bool:
                    return by_key(table, as_documents(world.documents(server, table))) == wanted

                until(is_equal, f"the index of {table} has its rows", 30)
            assert world.written_again() > 0
            failed = Event.objects.filter(replicator=world.replicator, kind__contains="fail")
            assert list(failed) == []
            assert world.stop() == 0
