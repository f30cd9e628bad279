"""A program in the place of a run: makes a grandchild, then behaves as `FAKE_CHILD` says. Imports
nothing of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Modes: `wait` (until SIGTERM), `stubborn` (ignores it), `exit:<code>`. Writes its and its
    grandchild's pid."""
    mode = os.environ["FAKE_CHILD"]
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    worker = subprocess.Popen(
        [sys.executable, "-c", "import os, signal; os.setpgid(0, 0); signal.pause()"]
    )
    path = Path(os.environ["FAKE_CHILD_PIDS"])
    draft = path.with_suffix(".part")
    draft.write_text(f"{os.getpid()} {worker.pid}")
    draft.rename(path)
    if mode.startswith("exit:"):
        return int(mode.removeprefix("exit:"))
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
