"""What a source plugin provides. Every object made from params is a context manager whose `close`
always runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, runtime_checkable

import pyarrow as pa

from replicators.connectors.addresses import Place
from replicators.connectors.capabilities import SourceCapabilities
from replicators.connectors.closing import Closing
from replicators.connectors.control import ControlOpener
from replicators.connectors.log import ByteLog
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import (
    Column,
    TableId,
    TableSchema,
    TableSelection,
    TableSummary,
)
from replicators.connectors.params import P, P_contra
from replicators.connectors.poll import ChangePoll
from replicators.connectors.problems.message import Message
from replicators.connectors.problems.problem import Problem
from replicators.connectors.setup import SetupStep, no_setup
from replicators.connectors.snapshot import SnapshotOpener
from replicators.connectors.uris import UriScheme


class Catalog(Closing, Protocol):
    """Looks into the source's tables."""

    def list_tables(self) -> list[TableSummary]:
        """Every table that could be copied, ordered by name; estimates only, no counting."""
        ...

    def describe(self, tables: Sequence[TableSelection]) -> dict[TableId, TableSchema]:
        """The schemas of those tables that exist, with the chosen columns only (and always the
        key). Missing tables are left out."""
        ...


@runtime_checkable
class FindsByNumber(Protocol):
    """A catalog whose source numbers its tables; a number stays when its table is renamed."""

    def find(self, numbers: Sequence[int]) -> Mapping[int, TableId]:
        """The present names of the tables with these numbers (`TableSchema.native_id`)."""
        ...


class Checks(Closing, Protocol):
    """Checks before a run."""

    def connection(self) -> list[Problem]:
        """Can the source be reached, logged in to, followed? It returns faults that a user can mend
        as problems and never raises them. It takes at most 10 s."""
        ...

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        """Problems of the chosen tables: rights, keys, types, names."""
        ...


class RowReader(Closing, Protocol):
    """Reads rows by key as they are now. This is the last resort for values that the log did not
    carry (CORRECTNESS 9)."""

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        """Returns those of the rows that exist, with `table.arrow_schema()`, in any order, and a
        log position. Whatever the rows show was committed at or before that position. `keys` has
        the key's columns, and at most a few thousand rows."""
        ...


class RepairReader(Protocol[P_contra]):
    """Makes a `RowReader`. `after`: as in `ControlOpener`."""

    def __call__(self, params: P_contra, name: str, after: Position | None, /) -> RowReader: ...


@dataclass(frozen=True, slots=True)
class SourcePlugin(Generic[P]):
    """A source's light descriptor: every callable imports its driver inside. `P`: the class of its
    params.

    Either `log` or `poll` says how changes come. `control` and `snapshot_again` are for both kinds.
    `chunk_reader` is called in tasks, so it is named by dotted path. `setup` gets raw params, also
    half-filled ones, and says what a person has to do at the source beforehand. `objects` gives
    kind and name of everything that a replicator of that slot name makes at the source; deleting
    the replicator removes these objects. `places`: the hosts and files that the params lead to, so
    that they are checked before anything is opened. `messages`: the texts of the codes that only
    this source has. `rank`: pages list lower ranks first. `uri`: how statements write the params as
    an address.

    `repair_reader`: reads rows by key for repairs and verifications, where positions are counted
    from the one that the stream has reached. What the log has when it is asked can be read. Without
    it, they use `row_reader`.

    Where columns are known BY_STATEMENTS: `keeps_values` says whether a statement with that type's
    text converts one column to the other and leaves every value as it is. `schema_at` gets a schema
    from the catalog, the position up to which the log is captured, and the position of some rows.
    It returns the schema as those rows would show it (None: they don't fit).

    `skips_marked`: whether it leaves out what another replicator wrote there, and marked.
    """

    name: str
    label: str
    summary: str
    params: type[P]
    capabilities: SourceCapabilities
    catalog: Callable[[P], Catalog]
    checks: Callable[[P], Checks]
    control: ControlOpener[P]
    snapshot_again: SnapshotOpener[P]
    chunk_reader: str
    translate: Callable[[BaseException], Exception]
    log: ByteLog[P] | None = None
    poll: ChangePoll[P] | None = None
    setup: Callable[[Mapping[str, Any]], tuple[SetupStep, ...]] = no_setup
    row_reader: Callable[[P], RowReader] | None = None
    repair_reader: RepairReader[P] | None = None
    objects: Callable[[str], list[tuple[str, str]]] = lambda name: []
    keeps_values: Callable[[Column, Column, str], bool] | None = None
    schema_at: Callable[[TableSchema, Position, int], TableSchema | None] | None = None
    skips_marked: Callable[[P], bool] = lambda _: False
    places: Callable[[P], tuple[Place, ...]] = lambda _: ()
    messages: Mapping[str, Message] = field(default_factory=dict)
    jars: Callable[[P], tuple[str, ...]] = lambda _: ()
    uri: UriScheme = field(default_factory=UriScheme)
    icon: str = "database"
    rank: int = 100
    is_hidden: bool = False

    def __post_init__(self) -> None:
        if (self.log is None) == (self.poll is None):
            raise ValueError(f"source {self.name} needs one of `log` and `poll`")

    @property
    def stream(self) -> ByteLog[P] | ChangePoll[P]:
        """The part that says how changes come."""
        stream = self.log or self.poll
        assert stream is not None
        return stream

    @property
    def task_modules(self) -> tuple[str, ...]:
        """The modules of everything that is called in tasks."""
        paths = (self.log.decoder if self.log else "", self.chunk_reader)
        return tuple(path.partition(":")[0] for path in paths if path)
