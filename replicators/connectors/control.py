"""Small questions to a source and small actions at it, beside the stream of its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import P_contra
from replicators.connectors.snapshot import SnapshotWait


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the source says of its log: the bytes it keeps for us, and the hours until it would
    discard what we have not read. None hours: there is no limit, or it is not known yet (where the
    log `is_limited`). `bytes_per_second`: the rate that the hours assume; None where they depend on
    no rate."""

    retained_bytes: int = 0
    is_active: bool = False
    hours_left: float | None = None
    server_time: float = 0.0
    end: int = 0
    is_limited: bool = False
    bytes_per_second: float | None = None


class SourceControl(Closing, Protocol):
    """Small questions and actions beside the stream, on a connection of its own."""

    def heartbeat(self) -> int:
        """Write a heartbeat into the log, so that the stream moves on an idle database. Returns the
        log position after it."""
        ...

    def status(self, reached: Position | None = None) -> LogStatus:
        """How much log the source keeps, how long it keeps it for a stream that has reached
        `reached`, and the source's clock (seconds since the epoch)."""
        ...

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """Add these tables to the stream. Idempotent; committed when it returns. It returns those
        that the stream did not carry before: the source will never send the changes made to them
        until now. `wait` is called while locks keep it waiting."""
        ...

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Remove tables from the stream; idempotent."""
        ...

    def drop(self) -> None:
        """Remove everything that this replicator made at the source (slot, publication);
        idempotent. `source:unreachable` where the source does not answer."""
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
    """A control whose source lists the tables of the stream, and where others may change that
    list."""

    def unpublished(self, tables: Sequence[TableSchema]) -> Sequence[TableSchema]:
        """Those of `tables` that the stream does not carry now, or did not carry for some time."""
        ...


@runtime_checkable
class TellsRefused(Protocol):
    """A control whose source refuses writes to some tables while the stream carries them."""

    def refused(self, tables: Sequence[TableSchema]) -> Mapping[TableId, str]:
        """Those of `tables` that can't be followed as they are, each with the statement that mends
        it."""
        ...


@runtime_checkable
class TellsUnreadable(Protocol):
    """A control whose source sends changes of tables also to those who may not read them."""

    def unreadable(self, tables: Sequence[TableSchema]) -> Sequence[TableId]:
        """Those of `tables` that our user may not read now."""
        ...


class ControlOpener(Protocol[P_contra]):
    """Makes a `SourceControl`. `after`: a position that the stream has reached. All positions that
    the control returns are in one order with it, also where the stream has moved to another
    server."""

    def __call__(
        self, params: P_contra, name: str, after: Position | None = None, /
    ) -> SourceControl: ...
