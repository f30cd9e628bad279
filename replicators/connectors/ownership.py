"""Whether a replicator may write to a target table, by what the table remembers (CORRECTNESS 13).
Shared by every merge target."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetTable, Token


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table that exists at the target: its owner, its UUID, its token, the version with that
    token, and its number of rows. The rows are None if unknown; deleted rows may be counted."""

    owner: str
    uuid: str
    token: Token | None
    columns: dict[str, str] = field(default_factory=dict)
    version: str = ""
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A table's token as one process knows it: the sequence that it found or wrote last, and the
    sequence of a commit whose outcome is unknown."""

    last: int
    tried: int | None = None

    def fits(self, sequence: int) -> bool:
        """Whether nobody else has written a token since then."""
        return sequence in (self.last, self.tried)


def own_token(live: LiveTable | None, table: TargetTable, written: Written | None) -> Token:
    """The token of a table that may be merged into; `written` is the token as this process knows
    it. If the sequence fits neither of its two, another run of the same replicator wrote it after
    its lease ended: the rows it appended may exist twice.

    Raises `target:table-missing`, `target:table-replaced`, `target:table-behind`,
    `target:table-ahead`.
    """
    if live is None:
        raise ReplicationError("target:table-missing", table=table.source)
    is_ours = live.owner == table.replicator and (
        not table.table_uuid or live.uuid == table.table_uuid
    )
    if not is_ours or live.token is None or live.token.replicator != table.replicator:
        raise ReplicationError("target:table-replaced", table=table.source)
    if live.token.generation > table.generation:
        raise ReplicationError("target:table-ahead", table=table.source)
    is_older = written is not None and live.token.sequence < written.last
    if live.token.generation < table.generation or is_older:
        raise ReplicationError("target:table-behind", table=table.source)
    if written is not None and not written.fits(live.token.sequence):
        raise ReplicationError("target:table-ahead", table=table.source)
    return live.token
