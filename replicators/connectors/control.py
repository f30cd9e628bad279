"""Small questions to a source, and acts at it, beside the stream of its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.snapshot import SnapshotWait


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the source says of its log: bytes it keeps for us, hours until it would give up what was
    not read (None: no limit, or, where it `is_limited`, not known yet). `bytes_per_second`: the
    rate that the hours assume, None where they do not depend on one."""

    retained_bytes: int = 0
    is_active: bool = False
    hours_left: float | None = None
    server_time: float = 0.0
    end: int = 0
    is_limited: bool = False
    bytes_per_second: float | None = None


class SourceControl(Closing, Protocol):
    """Small questions and acts beside the stream, on a connection of its own."""

    def heartbeat(self) -> int:
        """Write a mark into the log, so that the stream moves on an idle database; the log position
        after it."""
        ...

    def status(self, reached: Position | None = None) -> LogStatus:
        """How much log the source keeps, and for how long for a stream that has come to `reached`;
        its clock (seconds since the epoch)."""
        ...

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """Let the stream carry these tables too; idempotent; committed when it returns. Those that
        it did not carry before: what was done to them until now it will never tell. `wait` hears of
        locks that keep it waiting."""
        ...

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Take tables out of the stream; idempotent."""
        ...

    def drop(self) -> None:
        """Remove everything this replicator made at the source (slot, publication); idempotent.
        `source:unreachable` where it can't be asked."""
        ...

    def drop_statements(self) -> list[str]:
        """The statements a person would run to do the same."""
        ...


@runtime_checkable
class HasMembers(Protocol):
    """A control whose source numbers the tables that the stream carries."""

    def members(self, tables: Sequence[TableSchema]) -> Mapping[TableId, int]:
        """Each table's number in the stream (`TableSchema.member`)."""
        ...


@runtime_checkable
class TellsUnpublished(Protocol):
    """A control whose source lists the tables that the stream carries, and where others may change
    that list."""

    def unpublished(self, tables: Sequence[TableSchema]) -> Sequence[TableSchema]:
        """Those of `tables` that the stream does not carry, or did not carry for a time."""
        ...


@runtime_checkable
class TellsRefused(Protocol):
    """A control whose source refuses writes to some tables while the stream carries them."""

    def refused(self, tables: Sequence[TableSchema]) -> Mapping[TableId, str]:
        """Those of `tables` that can't be followed as they are, with the statement that mends
        it."""
        ...


class ControlOpener(Protocol):
    """Makes a `SourceControl`. `after`: a position that the stream has reached; the positions that
    are told are in one order with it, also where the stream has gone on at another server."""

    def __call__(
        self, params: Any, name: str, after: Position | None = None, /
    ) -> SourceControl: ...
