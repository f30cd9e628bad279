"""Lines `lag-s3` and `backlog-s3`: the lakehouse lies on an S3 server of this machine, and on its
disk in the same run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import place
from benchmarks.backlog import OPTIONS, drained
from benchmarks.binlog import BinlogLoad, sums, sums_of
from benchmarks.lag import measured, minutes
from benchmarks.report import Peer, Result
from benchmarks.s3_server import s3_server
from tests.mysql_servers import MysqlServer
from tests.stores import ObjectStore

DISK = "this machine's disk"
S3 = "an S3 server"
Found = TypeVar("Found")


def on_server(store: ObjectStore) -> dict[str, Any]:
    """The form's fields."""
    env = store.environment
    return {
        "warehouse": f"s3a://{store.bucket}/warehouse",
        "s3_endpoint": store.endpoint,
        "s3_region": env["AWS_DEFAULT_REGION"],
        "s3_access_key": env["AWS_ACCESS_KEY_ID"],
        "s3_secret_key": env["AWS_SECRET_ACCESS_KEY"],
    }


def in_turn(line: str, measure: Callable[..., Found]) -> tuple[dict[str, Found], str]:
    """The same measured on the disk, then on the server; and which server it was."""
    found, server = {}, ""
    for name in (DISK, S3):
        with ExitStack() as stack:
            folder = stack.enter_context(place.folder(line))
            where = {}
            if name == S3:
                store, server = stack.enter_context(s3_server(folder))
                where = on_server(store)
            found[name] = measure(folder, **where)
    return found, server


def measure(line: str) -> list[Result]:
    """One of the two lines."""
    return [_lag(line) if line == "lag-s3" else _backlog(line)]


def _lag(line: str) -> Result:
    found, server = in_turn(line, measured)
    (p50, p99), (near50, near99) = found[S3].percentiles(), found[DISK].percentiles()
    note = (
        f"The median of {found[S3].every.size:,} changes in {minutes():g} minutes, "
        f"{found[S3].rate:.0f} a second over {len(found[S3].by)} tables. p99: {p99:.2f} s on the "
        f"server, {near99:.2f} s on the disk. {server}"
    )
    return Result(
        line, "s", round(p50, 2), 1.5, (Peer(DISK, round(near50, 2)),), round(p50 / near50, 2),
        at_most=True, checked=all(one.checked for one in found.values()), note=note,
    )  # fmt: skip


def _backlog(line: str) -> Result:
    found, server = in_turn(line, _drained)
    (mine, right), (near, near_right) = found[S3], found[DISK]
    note = f"The disk comes first. {server}"
    return Result(
        line, "row changes/s", round(mine), None, (Peer(DISK, round(near)),),
        round(mine / near, 2), checked=right and near_right, note=note,
    )  # fmt: skip


def _drained(folder: Path, **where: Any) -> tuple[float, bool]:
    """Changes a second, and whether the table has the source's rows."""
    with MysqlServer(options=OPTIONS) as server:
        load = BinlogLoad(server).prepare()
        seconds = drained(server, load, folder, **where)
        table = place.iceberg_table(place.target_params(folder, **where), "bench", "events")
        return load.changes / seconds, sums(table.scan().to_arrow()) == sums_of(server)
