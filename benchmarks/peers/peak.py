"""This program's peak memory, for the modules beside it. Not `ru_maxrss`: that includes the memory
of the process before it became this program."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> int:
    """The peak so far, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) >> 10
