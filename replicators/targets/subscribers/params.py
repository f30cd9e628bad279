"""The settings of a subscribers target. Parsing only; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.addresses import Place
from replicators.connectors.locations import folder_of, location_fault, location_places
from replicators.connectors.params import InvalidParams, param

_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class SubscribersParams:
    """Where changes are kept, and for how long."""

    location: str = param(
        "Location",
        help="Folder or object store that keeps the changes, for example /data/feeds or "
        "s3://bucket/feeds. The run, the workers and the web process read it. "
        "Settings and keys of a store are read from this program's environment.",
        secrets_go="a store's settings and keys are read from this program's environment",
        check=location_fault,
    )
    keep_hours: int = param(
        "Keep for at most (hours)",
        help="Changes wait so long for the slowest subscriber. One that is further behind must "
        "take a snapshot again.",
        default=72,
    )
    keep_megabytes: int = param(
        "Keep at most (MB of a table)",
        help="Changes of a table wait up to this size for the slowest subscriber.",
        default=10_000,
    )

    def __post_init__(self) -> None:
        faults = {
            name: f"must be a number from 1 to {_MOST:,}"
            for name in ("keep_hours", "keep_megabytes")
            if not 1 <= getattr(self, name) <= _MOST
        }
        if faults:
            raise InvalidParams(faults)

    @property
    def root(self) -> str:
        """The location without a trailing slash. A local location is a path."""
        return folder_of(self.location)


def places(params: SubscribersParams) -> tuple[Place, ...]:
    """The folder or the server that keeps the changes."""
    return location_places(params.location, "Location")
