"""Runs a step: shows it, logs it, stamps it with the hash of its inputs, and repairs it after an
interruption."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from setup.machine import ROOT, Missing

LOGS = ROOT / "var" / "setup"
TICK_SECONDS = 15.0


def say(text: str) -> None:
    """Print a line for the person who waits."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Stamp:
    """A file with the hash of a step's inputs. It is written last, so an interrupted step has
    none."""

    path: Path
    inputs: tuple[Path, ...]
    salt: str = ""

    def digest(self) -> str:
        """The hash of the present inputs."""
        total = hashlib.sha256(self.salt.encode())
        for path in self.inputs:
            total.update(path.read_bytes())
        return total.hexdigest()

    def is_valid(self) -> bool:
        """Whether the step finished with exactly these inputs."""
        return self.path.is_file() and self.path.read_text().strip() == self.digest()

    def clear(self) -> None:
        """Remove the stamp. Call it before the step's first change."""
        self.path.unlink(missing_ok=True)

    def write(self) -> None:
        """Write the stamp. Call it after the step's last change."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.digest() + "\n")


def run(
    name: str,
    command: Sequence[str],
    *,
    needs: str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command with its output in a log. Say so while it runs. If it fails, show the log's end
    and `needs`."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / f"{name}.log"
    with log_path.open("wb") as log:
        child = subprocess.Popen(
            list(command), cwd=cwd, env=env and dict(env), stdout=log, stderr=subprocess.STDOUT
        )
        done = threading.Event()
        teller = threading.Thread(target=_tell, args=(name, log_path, done), daemon=True)
        teller.start()
        try:
            code = child.wait()
        except BaseException:
            child.terminate()
            child.wait()
            raise
        finally:
            done.set()
    if code:
        tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-15:])
        raise Missing(f"{tail}\n\nThe step «{name}» failed (whole output: {log_path}).\n{needs}")


def _tell(name: str, log_path: Path, done: threading.Event) -> None:
    started = time.monotonic()
    while not done.wait(TICK_SECONDS):
        lines = log_path.read_text(errors="replace").splitlines()
        last = lines[-1].strip()[:100] if lines else ""
        say(f"      ... {name}, {time.monotonic() - started:.0f} s  {last}")
