"""What the store remembers of data sets that arrived whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replicators.connectors.poll import DeliveryReport


class Deliveries(Protocol):
    """The part of the store that remembers deliveries."""

    def record_deliveries(self, reports: Sequence[DeliveryReport]) -> None:
        """Each table's deliveries, by their names and marks; one that is known already is replaced.
        A new one that was refused also writes an event."""
        ...


class MemoryDeliveries:
    """The twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.deliveries: dict[tuple[str, str, str], DeliveryReport] = {}

    def _write(self) -> None:
        raise NotImplementedError

    def record_deliveries(self, reports: Sequence[DeliveryReport]) -> None:
        self._write()
        self.deliveries |= {(str(r.table), r.name, r.mark): r for r in reports}
