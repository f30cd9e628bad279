"""The GTIDs of the transactions that a stream has read; knows no connection."""

from __future__ import annotations

import struct

import numpy as np

from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.offsets import MariadbGtids, gtids_of
from replicators.sources.mysql.tagged import tagged_gtid


class Executed:
    """A set of GTIDs. It grows by the runs of numbers that the compiled loop notes."""

    def __init__(self, flavour: str, text: str) -> None:
        self._gtids = gtids_of(flavour, text)
        self._sources: dict[str, int] = {}

    def flush(self, state: np.ndarray, runs: np.ndarray) -> None:
        """Add the runs of numbers that the loop noted."""
        for a, b, first, last in runs[: int(state[k.P_RUNS])].tolist():
            if isinstance(self._gtids, MariadbGtids):
                self._gtids.add(a, b, last)
            elif b == k.AS_TEXT:
                self._gtids.add(list(self._sources)[a], first, last)
            else:
                raw = struct.pack("<qq", a, b).hex()
                source = f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
                self._gtids.add(source, first, last)
        state[k.P_RUNS] = 0

    def of_event(self, event: bytes) -> tuple[int, int]:
        """For a GTID event with a tag (without checksum): the number of the source's text, and the
        transaction's number. ValueError if the event is damaged."""
        gtid = tagged_gtid(event)
        return self._sources.setdefault(gtid.source, len(self._sources)), gtid.number

    def __str__(self) -> str:
        return str(self._gtids)
