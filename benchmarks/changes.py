"""Lines `changes-mysql` and `changes-postgresql`: from the log to durable change files, 1.6 million
row changes, on two cores shared with the server. The peer is Debezium's embedded engine, whose
records are counted and thrown away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import place, programs
from benchmarks.binlog import BinlogLoad
from benchmarks.capture import SERVER, Taken, is_right
from benchmarks.debezium import MARKS, Told, debezium, for_mysql, for_postgresql
from benchmarks.peers.environments import reason
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu, turn
from benchmarks.workload import Workload
from demo.postgres import EmbeddedPostgres
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MysqlServer

RAW = "mysqlbinlog --raw"


def _rounds(ours: Callable[[int], Taken], changes: int) -> tuple[list[float], list[Taken], str]:
    taken = []
    for number in range(place.ROUNDS + 1):
        cpu = Cpu()
        with turn():
            taken.append(ours(number))
        place.logger.info("CPU seconds: %s", cpu.said())
    return [changes / t.seconds for t in taken[1:]], taken, cpu.said()


def _result(
    line: str, target: float, rates: list[float], told: Told, checked: bool, note: str,
    others: tuple[Peer, ...] = (),
) -> Result:  # fmt: skip
    mine = place.median(rates)
    rate = told.rate
    shown = ", ".join(f"{r:,.0f}" for r in rates)
    return Result(
        line, "row changes/s", round(mine), target, (told.peer(rate and round(rate)), *others),
        round(mine / rate, 1) if rate else None, checked=checked,
        note=f"rounds: {shown}. The ratio is to Debezium, which runs once, with no warm-up but "
             "one event, where ours is the "
        f"median of {len(rates)} rounds after one that does not count. Its clock runs from its "
        "first batch to its last, without its start; its "
        f"records are counted and thrown away. {note}",
    )  # fmt: skip


def measure(line: str) -> list[Result]:
    """One of the two lines."""
    with place.folder(line) as folder:
        return [(_mysql if line == "changes-mysql" else _postgresql)(line, folder)]


def _mysql(line: str, folder: Path) -> Result:
    options = {"max-binlog-size": "1G", "innodb-buffer-pool-size": "256M"}
    with MysqlServer(options=options) as server:
        made = BinlogLoad(server).prepare()
        server.execute(MARKS)
        with debezium(for_mysql(server.port, folder), folder, server.execute) as peer:
            made.change()
            raw = _copied(server, folder, made.changes)
            with place.spark(folder, place.target_params(folder)) as spark:
                rates, taken, spent = _rounds(
                    lambda n: Taken(made.stream(), folder / str(n), spark).run(), made.changes
                )
                checked = all(made.is_right([pq.read_table(p) for p in t.paths()]) for t in taken)
            told = peer.ask(events=made.changes)
    times = f"{raw.value / place.median(rates):.1f} times as fast" if raw.value else "not measured"
    note = (
        f"The raw copy of the log is {times} (wanted: 10 at most). CPU seconds of a round: {spent}."
    )
    return _result(line, 25, rates, told, checked, note, (raw,))


def _copied(server: MysqlServer, folder: Path, changes: int) -> Peer:
    """`mysqlbinlog --raw`, which copies the server's log into files without decoding; no figure
    where the files' size differs from the server's."""
    try:
        logs = [(str(name), int(size)) for name, size, *_ in server.execute("SHOW BINARY LOGS")]
        runs = [_dumped(server, folder, logs[0][0]) for _ in range(place.ROUNDS)]
        sizes = [(name, (folder / f"raw-{name}").stat().st_size) for name, _ in logs]
    except (RuntimeError, OSError) as err:
        place.logger.warning("mysqlbinlog: %s", err)
        return Peer(RAW, None, missing=reason(err))
    if sizes != logs:
        place.logger.error("mysqlbinlog: %s, the server has %s", sizes, logs)
        return Peer(RAW, None, missing="failed: its files are not as large as the server's")
    rate = place.median([changes / r.seconds for r in runs])
    return Peer(RAW, round(rate), max(r.memory_gib for r in runs))


def _dumped(server: MysqlServer, folder: Path, first: str) -> programs.Ran:
    for path in folder.glob("raw-*"):
        path.unlink()
    command = [
        *programs.mysql("usr/bin/mysqlbinlog"), "--no-defaults", "--read-from-remote-server",
        "--raw", "--to-last-log",
        f"--host={HOST}", f"--port={server.port}", f"--user={ADMIN}", f"--password={PASSWORD}",
        f"--result-file={folder}/raw-", first,
    ]  # fmt: skip
    return programs.run("mysqlbinlog", command, folder / "mysqlbinlog.log")


def _postgresql(line: str, folder: Path) -> Result:
    with EmbeddedPostgres(fsync=False, options=SERVER) as server:
        load = Workload(server, place.ROUNDS + 1).prepare()
        server.execute(MARKS)
        with debezium(for_postgresql(load.params, folder), folder, server.execute) as peer:
            load.change()
            with place.spark(folder, place.target_params(folder)) as spark:
                rates, taken, spent = _rounds(
                    lambda n: Taken(load.stream(f"ours_{n}"), folder / str(n), spark).run(),
                    load.changes,
                )
                checked = all(is_right(t.paths(), load) for t in taken)
            told = peer.ask(events=load.changes)
    note = f"Both wait for the server's decoding process. CPU seconds of a round: {spent}."
    return _result(line, 8, rates, told, checked, note)
