"""The peers' virtual environments: made once from their pinned lists, below var/peers, and asked by JSON."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setup.machine import Missing
from setup.work import Stamp, run

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "var" / "peers"
NAMES = ("debezium", "dlt", "replication")
NETWORK = "It needs the network."
logger = logging.getLogger("benchmarks")


def python(name: str) -> Path | None:
    """The interpreter of a peer's environment, installed where it is not; None where that fails."""
    place, listing = FOLDER / name, HERE / f"{name}.txt"
    stamp = Stamp(place / ".packages", (listing,))
    found = place / "bin" / "python"
    if stamp.is_valid() and found.exists():
        return found
    shutil.rmtree(place, ignore_errors=True)
    pip = [str(found), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    try:
        run(f"peer-{name}", [sys.executable, "-m", "venv", str(place)], needs=NETWORK)
        run(f"peer-{name}", [*pip, "--requirement", str(listing)], needs=NETWORK)
    except Missing as err:
        logger.warning("The peer %s is not there: %s", name, err)
        return None
    stamp.write()
    return found


class Conversation:
    """A peer's process that is spoken to line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, **values: Any) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(values) + "\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The next answer; RuntimeError where the peer ended without one. Lines that are not answers are its log."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise RuntimeError(f"the peer ended with {self._process.wait()}")


@contextmanager
def talk(name: str, module: str, folder: Path) -> Iterator[Conversation]:
    """Start a peer's module in `folder`; it is killed at the end. `Missing` where it can't be installed."""
    interpreter = python(name)
    if interpreter is None:
        raise Missing(f"{name} could not be installed")
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(interpreter), str(HERE / f"{module}.py")], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        yield Conversation(process)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(0 if all(map(python, NAMES)) else 1)
