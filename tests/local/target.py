"""The local target, for tests only: a `MergeTarget` over `LocalTable`s, `Rewindable` and
`Watermarked`, its token in its own commit."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode, stored
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import LogicalType, Unsupported
from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.ownership import LiveTable, Written, own_token
from replicators.connectors.params import param
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.connectors.target import (
    Fit,
    FitKind,
    FoldedBatch,
    KeptVersion,
    MergeResult,
    SnapshotPlace,
    TableVersion,
    TargetPlugin,
    TargetTable,
    Token,
)
from tests.local.applying import applied, filled, missing, numbered
from tests.local.held import HeldRows
from tests.local.tables import LocalTable, State

NAME = "local"


@dataclass(frozen=True, slots=True)
class LocalParams:
    """The folder of all tables."""

    folder: str = param("Folder", addresses=True)


def fit(kind: LogicalType) -> Fit:
    """What Arrow holds, fits."""
    if isinstance(kind, Unsupported):
        return Fit(FitKind.UNSUPPORTED, "", "it cannot be read")
    return Fit(FitKind.EXACT, type(kind).__name__.lower())


class LocalWriter:
    """Writes local tables; one thread at a time for each table."""

    def __init__(self, params: LocalParams, _: Any = None) -> None:
        self._root = Path(params.folder)
        self._written: dict[tuple[str, int], Written] = {}
        self._lock = threading.Lock()

    history_seconds = 3600.0

    def names(self, table: TableId) -> tuple[str, ...]:
        return (table.schema, table.name)

    def _table(self, table: TargetTable) -> LocalTable:
        return LocalTable(self._root.joinpath(*self.names(table.source)))

    def token(self, table: TargetTable) -> Token | None:
        state = self._table(table).state()
        if state is None:
            return None
        if state.generation == table.generation:
            self._written[_place(table)] = Written(state.sequence)
        return _token(state)

    def version(self, table: TargetTable) -> TableVersion | None:
        state = self._table(table).state()
        return TableVersion(_token(state), str(state.number)) if state else None

    # --- snapshot ------------------------------------------------------------------------------------------------  # noqa: E501
    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        stored(schema, table.mode)
        self._own(table)
        self._table(table).begin(table.generation)

    def _own(self, table: TargetTable) -> State | None:
        state = self._table(table).state()
        if state is not None and state.owner != table.replicator:
            taken = ".".join(self.names(table.source))
            raise ReplicationError("target:table-taken", table=table.source, target=taken)
        return state

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        folder = self._table(table).staging(table.generation) / "files" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return SnapshotPlace(str(folder), stored(schema, table.mode).arrow_schema())

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        root = self._table(table).staging(table.generation) / "files"
        if Path(folder).parent != root or not Path(folder).is_dir():
            return None
        return SnapshotPlace(folder, stored(schema, table.mode).arrow_schema())

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        self._table(table).stage(table.generation, paths)

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        live, state = self._table(table), self._own(table)
        if state and state.generation == table.generation:
            live.clear(table.generation)
            return state.uuid
        table_schema = stored(schema, table.mode)
        rows = live.staged(table.generation, table_schema.arrow_schema())
        made = live.commit(
            numbered(rows) if table.mode is Mode.MULTISET else rows,
            owner=table.replicator,
            generation=table.generation,
            sequence=sequence,
            uuid=state.uuid if state else uuid.uuid4().hex,
            ordinals={c.name: c.ordinal for c in schema.supported},
        )
        live.clear(table.generation)
        self._written[_place(table)] = Written(sequence)
        return made.uuid

    # --- merges --------------------------------------------------------------------------------------------------  # noqa: E501
    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        live, place = self._table(table), _place(table)
        state = live.state()
        shown = LiveTable(state.owner, state.uuid, _token(state)) if state else None
        token = own_token(shown, table, self._written.get(place))
        if batch.is_known(token.sequence):
            return MergeResult(False, token.table_uuid)
        rows = applied(live.rows(), table, batch)
        self._written[place] = Written(token.sequence, batch.sequence)
        live.commit(rows, sequence=batch.sequence)
        self._written[place] = Written(batch.sequence)
        return MergeResult(True, token.table_uuid)

    @contextmanager
    def open_rows(self, table: TargetTable, schema: TableSchema) -> Iterator[HeldRows]:
        live = self._table(table)
        if live.state() is None:
            raise ReplicationError("target:table-missing", table=table.source)
        yield HeldRows(live.rows(), schema, table.mode)

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        return missing(self._table(table).rows(), batch)

    # --- columns -------------------------------------------------------------------------------------------------  # noqa: E501
    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        live = self._table(table)
        state, rows = live.state(), live.rows()
        assert state is not None
        where = {number: name for name, number in state.ordinals.items() if number}
        reported, columns, fields = [], [], []
        for column in stored(new, table.mode).supported:
            field = stored(new, table.mode).arrow_schema().field(column.name)
            before = where.get(column.ordinal, "") if column.ordinal else column.name
            if before in rows.column_names:
                kind = rows.schema.field(before).type
                _require_wider(table, column.name, kind, field.type)
                if kind != field.type:
                    reported.append(f"column {column.name} widened to {field.type}")
                values = rows.column(before).cast(field.type)
                if before != column.name:
                    reported.append(f"column {before} renamed to {column.name}")
            else:
                values = pa.nulls(rows.num_rows, field.type)
                reported.append(f"column {column.name} added")
            columns.append(values)
            fields.append(field)
        known = {f.name for f in fields} | {c.name for c in old.columns}
        for name in (n for n in rows.column_names if n not in known):
            columns.append(rows.column(name))
            fields.append(rows.schema.field(name))
        ordinals = {c.name: c.ordinal for c in new.supported}
        live.commit(pa.Table.from_arrays(columns, schema=pa.schema(fields)), ordinals=ordinals)
        gone = {c.name for c in old.supported} - {c.name for c in new.supported}
        return reported + [
            f"column {name} dropped" for name in sorted(gone) if name in state.ordinals
        ]

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        live = self._table(table)
        live.commit(filled(live.rows(), column.name, value))

    # --- rewinds -------------------------------------------------------------------------------------------------  # noqa: E501
    def version_at(self, table: TargetTable, sequence: int) -> KeptVersion | None:
        own = [s for s in self._table(table).versions() if s.generation == table.generation]
        if not own:
            return None
        earlier = [s for s in own if s.sequence <= sequence]
        state = earlier[-1] if earlier else own[0]
        return KeptVersion(str(state.number), state.sequence, state.committed_at)

    def begin_rewind(self, table: TargetTable, version: str) -> None:
        live = self._table(table)
        (state,) = [s for s in live.versions() if str(s.number) == version]
        now = live.state()
        if now is None or now.ordinals != state.ordinals:
            raise ReplicationError("target:rewind-schema", table=table.source)
        live.begin(table.generation)
        live.stage(table.generation, [str(live.folder / state.file)])

    def merge_staged(self, table: TargetTable, batch: FoldedBatch) -> None:
        live = self._table(table)
        arrow = stored(batch.schema, table.mode).arrow_schema()
        rows = applied(live.staged(table.generation, arrow), table, batch)
        live.begin(table.generation)
        live.stage(table.generation, [str(live.folder / live.write(rows))])

    def abandon_rewind(self, table: TargetTable) -> None:
        live = self._table(table)
        if live.folder.is_dir():
            live.begin(table.generation)

    # --- watermarks ----------------------------------------------------------------------------------------------  # noqa: E501
    def publish_watermark(self, replicator: str, mark: Watermark) -> None:
        with self._lock, (self._root / f"{replicator}.marks").open("a") as out:
            versions = [[t.schema, t.name, v] for t, v in mark.versions.items()]
            out.write(json.dumps({"sequence": mark.sequence, "versions": versions}) + "\n")

    def forget_watermarks(self, replicator: str) -> None:
        (self._root / f"{replicator}.marks").unlink(missing_ok=True)

    def drop(self, table: TargetTable) -> None:
        state = self._table(table).state()
        if state is not None and state.owner == table.replicator:
            self._table(table).drop()


def _place(table: TargetTable) -> tuple[str, int]:
    return str(table.source), table.generation


def _token(state: State) -> Token:
    return Token(state.owner, state.generation, state.sequence, state.uuid)


def _require_wider(table: TargetTable, name: str, old: pa.DataType, new: pa.DataType) -> None:
    """As the lakehouse's: integers and floats may grow, decimals by digits before the point."""
    is_wider = (
        old == new
        or (pa.types.is_integer(old) and pa.types.is_integer(new) and old.bit_width < new.bit_width)
        or (old, new) == (pa.float32(), pa.float64())
        or (
            pa.types.is_decimal(old)
            and pa.types.is_decimal(new)
            and (old.scale, old.precision) <= (new.scale, new.precision)
            and old.scale == new.scale
        )
    )
    if not is_wider:
        raise ReplicationError("target:evolve", table=table.source, change=f"{name} {old} to {new}")


class LocalChecks:
    """The folder can be made."""

    def __init__(self, params: LocalParams) -> None:
        self._folder = Path(params.folder)

    def connection(self) -> list[Problem]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return [Problem.of("target:not-writable")]
        return []

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        return []

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


PLUGIN = TargetPlugin(
    name=NAME,
    label="Local",
    summary="Parquet files in a folder, for tests.",
    params=LocalParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        can_rewind=True,
        has_watermarks=True,
        is_replaced_at_once=True,
        modes=(Mode.MIRROR, Mode.MULTISET),
    ),
    fit=fit,
    checks=LocalChecks,
    writer=LocalWriter,
    history_seconds=lambda _: LocalWriter.history_seconds,
    is_hidden=True,
)
