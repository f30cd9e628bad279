"""Line `elasticsearch-backlog`: 320,000 row changes of PostgreSQL wait in the change log. The line
measures from the begin of the delivery until OpenSearch has acknowledged every document. Peers are
two programs that a person might write with the plain client (opensearch-py): a loop with the
client's bulk helper, and one that sends a request for each change. Both read the same change files
and write into an index with the same mapping. The node, the tasks and the JVM share the machine's
cores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import place
from benchmarks.capture import Taken
from benchmarks.changes import SERVER
from benchmarks.peers.environments import reason, talk
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu, turn
from benchmarks.sinks import deliver, session
from benchmarks.workload import STEP, TABLE, Workload
from demo.postgres import EmbeddedPostgres
from replicators.connectors import registry
from replicators.connectors.target import Resolved, TargetTable
from replicators.targets.elasticsearch.params import ElasticsearchParams
from replicators.targets.elasticsearch.writer import ElasticsearchSink
from runners.engine.tasks.local import LocalTasks
from runners.engine.tasks.on_spark import SparkTasks
from setup.machine import Missing
from tests.search_server import SearchServer

PLUGIN = registry.targets()["elasticsearch"]
ONE_BY_ONE = place.scaled(4_000, STEP)
"""Changes of the peer that sends each in a request of its own: all of them would take too long."""
BULK, ONE = "opensearch-py bulk helper", "opensearch-py, a request each"
WRONG = "failed: its index does not hold what the source holds"
Facts = tuple[int, int, int]


def measure(line: str) -> list[Result]:
    """Rounds of ours and of the bulk helper, alternating, so that the node is as warm for both. The
    first pair does not count. Then the peer with a request each, on a part."""
    ours, theirs, checked, spent = [], [], True, ""
    with (
        place.folder(line) as folder,
        EmbeddedPostgres(fsync=False, options=SERVER) as server,
        SearchServer() as search,
    ):
        load = Workload(server, 1, inserts=place.scaled(200_000, STEP)).make()
        with session(folder, PLUGIN, _params(search, "any")) as spark:
            taken = Taken(load.stream("ours_0"), folder / "taken", spark).run()
            files = [f.path for f in sorted(taken.files, key=lambda f: f.first_sequence)]
            tasks = SparkTasks(spark, str(folder / "target"))
            for number in range(place.ROUNDS + 1):
                index, cpu = f"ours{number}", Cpu()
                with turn():
                    sink, began = ElasticsearchSink(_params(search, index), tasks), time.monotonic()
                    sent = deliver(sink, load, taken)
                    ours.append(time.monotonic() - began)
                spent = cpu.said()
                place.logger.info("delivered %d in %.1f s: %s", sent, ours[-1], spent)
                checked = checked and _facts(search, index) == wanted(load)
                search.ask("DELETE", f"/{index}-g1")
                theirs.append(_peer(folder, search, load, files, "bulk"))
        one = _peer(folder, search, load, files, "one")
    rate = load.changes / place.median(ours[1:])
    bulk = middle(theirs[1:])
    ratio = round(rate / bulk.value, 2) if bulk.value else None
    note = (
        f"The median of {place.ROUNDS} rounds that alternate: from the change log to the last "
        f"acknowledgement, {load.changes:,} changes of seven columns into one index of one shard. "
        f"The node has 512 MiB and shares the two cores with its client. Changes a second of ours: "
        f"{shown(load, ours[1:])}; of the helper: {', '.join(str(p.value) for p in theirs[1:])}. "
        f"CPU seconds of our last round: {spent} (JVM: Spark's and the node's). The ratio is to "
        f"{BULK} (one loop, the helper's own settings). {ONE}, is measured on the first "
    )
    return [
        Result(line, "changes/s", round(rate), 3, (bulk, one), ratio, checked=checked, note=note)
    ]


def shown(load: Workload, seconds: Sequence[float]) -> str:
    """Changes a second of each round."""
    return ", ".join(f"{load.changes / s:.0f}" for s in seconds)


def middle(rounds: Sequence[Peer]) -> Peer:
    """The median round of a peer; one without a figure where any has none."""
    missing = [p for p in rounds if p.value is None]
    return missing[0] if missing else sorted(rounds, key=lambda p: p.value or 0)[len(rounds) // 2]


def _params(search: SearchServer, index: str) -> ElasticsearchParams:
    return ElasticsearchParams(address=search.url, index=index, replicas=0)


def wanted(load: Workload, changes: int = 0) -> Facts:
    """What an index has after so many changes (0: all): the documents, those that are returned, and
    the sum of their amounts in cents."""
    changes = changes or load.changes
    inserts = min(load.inserts, changes)
    updates = max(0, min(load.updates, changes - inserts))
    deletes = max(0, changes - inserts - updates)
    ids = np.arange(deletes + 1, inserts + 1, dtype=np.int64)
    returned = int((ids <= updates).sum())
    return len(ids), returned, int((ids * 37 % 100000).sum()) + 100 * returned


def _facts(search: SearchServer, index: str) -> Facts:
    """The same of an index, without the last small transaction."""
    search.ask("POST", f"/{index}/_refresh")
    asked = {
        "size": 0,
        "track_total_hits": True,
        "query": {"range": {"id": {"gte": 1}}},
        "aggs": {
            "cents": {"sum": {"field": "amount"}},
            "returned": {"filter": {"term": {"status.keyword": "returned"}}},
        },
    }
    found = search.ask("POST", f"/{index}/_search", asked)
    told = found["aggregations"]
    cents = round(100 * told["cents"]["value"])
    return found["hits"]["total"]["value"], told["returned"]["doc_count"], cents


def _peer(
    folder: Path, search: SearchServer, load: Workload, files: Sequence[str], way: str
) -> Peer:
    """A peer's documents a second; no figure where its index is not right."""
    name, rows = (BULK, 0) if way == "bulk" else (ONE, min(ONE_BY_ONE, load.changes))
    place.logger.info("begins: %s", name)
    table = TargetTable(TABLE, "bench", 1)
    sink = ElasticsearchSink(_params(search, way), LocalTasks(1))
    sink.begin(table, load.tables[0])
    sink.resolved(table, Resolved(0, 0.0))
    asked = {"url": search.url, "index": f"{way}-g1", "files": files, "way": way, "rows": rows}
    try:
        with talk("search", "search_load", folder) as peer:
            peer.say(**asked)
            told = peer.hear()
    except (Missing, RuntimeError, OSError) as err:
        place.logger.warning("%s: %s", name, err)
        return Peer(name, None, missing=reason(err))
    place.logger.info("%s: %s", name, told)
    is_right = _facts(search, way) == wanted(load, rows)
    search.ask("DELETE", f"/{way}-g1")
    if not is_right:
        return Peer(name, None, missing=WRONG)
    return Peer(name, round(told["rows"] / told["seconds"]), round(told["peak_mib"] / 1024, 2))
