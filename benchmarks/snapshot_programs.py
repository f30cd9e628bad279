"""Other programs that copy the table of the lines `snapshot` and `snapshot-mysql`: dlt, sling and
ingestr. Each writes Parquet files, which must equal the source."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import place, programs
from benchmarks.copied import Copied, sums
from benchmarks.peers.environments import python, reason, talk
from benchmarks.report import Peer
from setup.machine import Missing

BACKENDS = ("pyarrow", "connectorx")
PROGRAMS = ("sling", "ingestr")
COLUMNS = ["id", "customer", "status", "amount", "note", "at", "ok"]
WRONG = "failed: its files do not hold what the source holds"
SLING = "lib/python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64"


def checked(name: str, ran: programs.Ran, files: Sequence[Path], right: tuple[int, ...]) -> Peer:
    """A peer's figure; no figure where its files differ from the source."""
    try:
        found = sums(pq.read_table([str(f) for f in files], columns=COLUMNS)) if files else ()
    except (ValueError, KeyError, NotImplementedError) as err:  # Arrow raises subclasses of these
        place.logger.error("%s: %s", name, err)
        found = ()
    if found != right:
        place.logger.error("%s: found %s, expected %s", name, found, right)
        return Peer(name, None, missing=WRONG)
    return Peer(name, round(right[0] / ran.seconds), round(ran.memory_gib, 2))


def copy_by_dlt(folder: Path, made: Copied, right: tuple[int, ...]) -> list[Peer]:
    """Rows a second with each of dlt's backends."""
    return [_by_dlt(folder / f"dlt_{backend}", made, right, backend) for backend in BACKENDS]


def _by_dlt(folder: Path, made: Copied, right: tuple[int, ...], backend: str) -> Peer:
    name = f"dlt {backend}"
    more = {"backend_kwargs": made.connectorx} if backend == "connectorx" else {}
    folder.mkdir()
    try:
        with talk("dlt", "dlt_copy", folder) as peer:
            peer.say(
                url=made.url, schema="bench", table="events", backend=backend, folder=str(folder),
                **more
            )  # fmt: skip
            told = peer.hear()
        place.logger.info("%s: %s", name, told)
        ran = programs.Ran(told["seconds"], told["peak_mib"] / 1024)
        return checked(name, ran, [Path(f) for f in told["files"]], right)
    except (Missing, RuntimeError, OSError) as err:
        place.logger.warning("%s: %s", name, err)
        return Peer(name, None, missing=reason(err))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy_by_programs(
    folder: Path, made: Copied, right: tuple[int, ...], names: Sequence[str] = PROGRAMS
) -> list[Peer]:
    """Rows a second of sling and of ingestr, in versions whose packages contain the program itself.
    The newest versions download a program at first use. So does sling's usual way to write Parquet,
    which is off here."""
    return [_by_program(folder / name, made, right, name) for name in names]


def _by_program(folder: Path, made: Copied, right: tuple[int, ...], name: str) -> Peer:
    folder.mkdir()
    target = folder / "events.parquet"
    source = made.program_url
    try:
        program = _program(name)
        command = {
            "sling": [
                program, "run", "--src-conn", source, "--src-stream", "bench.events",
                "--tgt-object", f"file://{target}",
            ],
            "ingestr": [
                program, "ingest", "--yes", "--progress", "log", "--source-uri", source,
                "--source-table", "bench.events",
                "--dest-uri", f"parquet://{target}", "--dest-table", "bench.events",
            ],
        }[name]  # fmt: skip
        quiet = {
            "HOME": str(folder), "SLING_HOME_DIR": str(folder / "home"),
            "SLING_DISABLE_TELEMETRY": "true",
            "SLING_DUCKDB_COMPUTE": "false", "DISABLE_TELEMETRY": "true",
        }  # fmt: skip
        log = folder / f"{name}.log"
        ran = programs.run(name, command, log, cwd=folder, env={**os.environ, **quiet})
        place.logger.info("%s: %s", name, ran)
        return checked(name, ran, [target], right)
    except (Missing, RuntimeError, OSError) as err:
        place.logger.warning("%s: %s", name, err)
        return Peer(name, None, missing=reason(err))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    """The path of the program itself, without the Python that starts it."""
    home = python(name).parents[1]
    found = sorted(home.glob(SLING if name == "sling" else f"bin/{name}"))
    if not found:
        raise Missing(f"The package {name} does not hold its program for this machine.")
    return str(found[0])
