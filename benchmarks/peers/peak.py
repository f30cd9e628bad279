"""How much memory this program had at its peak, for the modules beside it. Not `ru_maxrss`: that
begins with what the process held before it became this program."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> int:
    """The peak so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) >> 10
