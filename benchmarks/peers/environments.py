"""The peers' virtual environments below var/peers: each is made once from its pinned list. Their
processes are asked by JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import programs
from setup.machine import Missing
from setup.work import Stamp, run

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "var" / "peers"
NAMES = ("datadiff", "debezium", "dlt", "replication", "sling", "ingestr", "search", "spanner")
NETWORK = "It needs the network."
REASON_CHARACTERS = 200
logger = logging.getLogger("benchmarks")


def installed(name: str) -> Path | None:
    """The interpreter of a peer's environment; None where the environment was not made from the
    present list."""
    found = FOLDER / name / "bin" / "python"
    return found if _stamp(name).is_valid() and found.exists() else None


def python(name: str) -> Path:
    """The interpreter of a peer's environment, which is installed where it is missing. Raises
    `Missing` where that fails."""
    place, listing = FOLDER / name, HERE / f"{name}.txt"
    if found := installed(name):
        return found
    shutil.rmtree(place, ignore_errors=True)
    found = place / "bin" / "python"
    pip = [str(found), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    run(f"peer-{name}", [sys.executable, "-m", "venv", str(place)], needs=NETWORK)
    run(f"peer-{name}", [*pip, "--requirement", str(listing)], needs=NETWORK)
    _stamp(name).write()
    return found


def _stamp(name: str) -> Stamp:
    return Stamp(FOLDER / name / ".packages", (HERE / f"{name}.txt",))


def reason(err: Exception) -> str:
    """Why a peer has no figure, in one line of the table: `not installed: ...`, or `failed: ...`
    where it was installed."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    told = [line for line in lines if line.lower().startswith("error")] or lines
    said = told[0] if told else type(err).__name__
    how = "not installed" if isinstance(err, Missing) else "failed"
    return f"{how}: {said[:REASON_CHARACTERS]}"


class Conversation:
    """A peer's process with requests and answers as lines."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def say(self, **values: Any) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(values) + "\n")
        self._process.stdin.flush()

    def hear(self, limit_seconds: float = programs.LIMIT_SECONDS) -> dict[str, Any]:
        """The next answer. Raises RuntimeError where the peer ended without one, or was ended
        because none came in time. Lines that are not answers are its log."""
        assert self._process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            programs.end(self._process)

        timer = threading.Timer(limit_seconds, end)
        timer.daemon = True
        timer.start()
        try:
            for line in self._process.stdout:
                with contextlib.suppress(ValueError):
                    if isinstance(told := json.loads(line), dict):
                        return told
        finally:
            timer.cancel()
        if late.is_set():
            raise RuntimeError(f"the peer gave no answer within {limit_seconds:.0f} s")
        code = self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        raise RuntimeError(f"the peer ended with {code}: {lines[-1] if lines else 'no word'}")


@contextmanager
def talk(name: str, module: str, folder: Path) -> Iterator[Conversation]:
    """Start a peer's module in `folder`, and kill it at the end. Raises `Missing` where the peer
    can't be installed."""
    interpreter, path = python(name), folder / f"{name}.log"
    with path.open("ab") as log:
        process = subprocess.Popen(
            [str(interpreter), str(HERE / f"{module}.py")], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        yield Conversation(process, path)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # the peer no longer reads
                assert pipe is not None
                pipe.close()


def main() -> int:
    """Install all peers; 1 where one could not be installed."""
    missing = 0
    for name in NAMES:
        try:
            python(name)
        except Missing as err:
            logger.warning("%s is %s", name, reason(err))
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
