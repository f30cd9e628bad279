"""Checks a table's mode against the target and the table. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from replicators.config import ReplicatorConfig, mode_of
from replicators.connectors.model.modes import (
    FILTERED,
    NEEDS_EXACT,
    NEEDS_KEY,
    QUARANTINE,
    Mode,
    extra_columns,
    mode_for,
    text_of,
    why_inserts,
)
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.problems.problem import Problem, Severity


def modes_of(config: ReplicatorConfig) -> dict[TableId, Mode]:
    """Each chosen table's mode: its own, or the one that follows from the replicator's."""
    general = mode_of(config.target.name, "", config.options.mode)
    return {t.id: Mode(t.mode) if t.mode else general for t in config.tables}


def mode_problems(config: ReplicatorConfig, schemas: Iterable[TableSchema]) -> list[Problem]:
    """Problems with modes: the target does not have the mode, the mode needs a key or an exact
    snapshot, or the table has a column with the name of one that the mode adds."""
    modes, known = modes_of(config), config.target.capabilities.modes
    described = list(schemas)
    found = {s.id: mode_for(modes[s.id], s) for s in described}
    problems = [p for s in described for p in _of_table(s, found[s.id], known)]
    problems += _inserts(config, described, found)
    problems += _first_copy(config)
    if config.options.consistent == "on" and not config.target.capabilities.merges_together:
        problems.append(Problem.of("target:no-consistent", target=config.target.label))
    problems += _taken_over(config, described, found)
    problems += _two_way(config, described, found)
    chosen = {t.id: t for t in config.tables}
    problems += [p for s in described for p in _quarantine(config, chosen[s.id], s, found[s.id])]
    return problems + [
        p for t in config.tables if t.id in found for p in _chosen(config, t, found[t.id])
    ]


def _chosen(config: ReplicatorConfig, table: TableSelection, mode: Mode) -> Iterator[Problem]:
    """Problems with kinds of changes that can't be left out, row filters that can't be applied, and
    snapshots that are not exact."""
    is_exact = config.source.capabilities.has_exact_snapshot
    if mode in NEEDS_EXACT and not (is_exact or config.target.capabilities.keeps_rows):
        yield Problem.of("source:mode-inexact", table=table.id, mode=text_of(mode).label)
    if table.filter and not config.source.capabilities.has_row_filters:
        yield Problem.of("source:filter-unsupported", table=table.id)
    if table.filter and mode not in FILTERED:
        yield Problem.of("target:mode-filter", table=table.id, mode=text_of(mode).label)
    if mode is Mode.MULTISET and "updates" in table.excluded and "deletes" not in table.excluded:
        yield Problem.of("target:mode-updates", table=table.id)


def _first_copy(config: ReplicatorConfig) -> Iterator[Problem]:
    """The problem of a replicator that can't start without a copy."""
    how = config.options.first_copy
    if how == "copy":
        return
    can_take_over = config.target.capabilities.can_take_over
    if how == "take_over" and not can_take_over:
        yield Problem.of("target:no-take-over", target=config.target.label)
    elif how == "none" and not config.target.capabilities.takes_changes:
        yield Problem.of("target:needs-copy", target=config.target.label)
    elif config.source.capabilities.has_deliveries:
        yield Problem.of("source:needs-copy", source=config.source.label)


def _taken_over(
    config: ReplicatorConfig, schemas: Iterable[TableSchema], modes: Mapping[TableId, Mode]
) -> Iterator[Problem]:
    """Problems with tables that can't be taken over as they are copied."""
    if config.options.first_copy != "take_over" or not config.target.capabilities.can_take_over:
        return
    for schema in schemas:
        if modes[schema.id] is not Mode.MIRROR or not schema.key:
            yield Problem.of("target:take-over-mode", table=schema.id)


def _two_way(
    config: ReplicatorConfig, schemas: Iterable[TableSchema], modes: Mapping[TableId, Mode]
) -> Iterator[Problem]:
    """Problems with tables whose conflicts can't be settled, and with a source that would send back
    what came from there."""
    if not config.target.settles(config.target_params):
        return
    if not config.source.skips_marked(config.source_params):
        yield Problem.of("target:two-way-echo", severity=Severity.WARNING)
    chosen = {t.id: t for t in config.tables}
    for schema in schemas:
        is_whole = not chosen[schema.id].excluded
        if modes[schema.id] is not Mode.MIRROR or not schema.key or not is_whole:
            yield Problem.of("target:two-way-mode", table=schema.id)


def _inserts(
    config: ReplicatorConfig, schemas: Iterable[TableSchema], modes: Mapping[TableId, Mode]
) -> Iterator[Problem]:
    """Problems with tables whose inserts can't be left out."""
    chosen = {t.id: t for t in config.tables}
    for schema in schemas:
        table = chosen[schema.id]
        if table.follows_without_inserts:
            why = why_inserts(replace(schema, filter=table.filter), modes[schema.id])
            if why:
                yield Problem.of("target:mode-inserts", table=schema.id, why=why)


def _quarantine(
    config: ReplicatorConfig, table: TableSelection, schema: TableSchema, mode: Mode
) -> Iterator[Problem]:
    """Problems with tables whose rows can't be quarantined: an error if quarantine was chosen for
    this table, otherwise a warning."""
    if (table.unsupported or config.options.unsupported_values) != "quarantine":
        return
    severity = Severity.ERROR if table.unsupported else Severity.WARNING
    if not config.source.capabilities.can_quarantine:
        label = config.source.label
        yield Problem.of("source:no-quarantine", severity=severity, table=table.id, source=label)
    elif mode not in QUARANTINE or not schema.key:
        label = text_of(mode).label + ("" if schema.key else " without a key")
        yield Problem.of("target:mode-quarantine", severity=severity, table=table.id, mode=label)


def _of_table(schema: TableSchema, mode: Mode, known: tuple[Mode, ...]) -> Iterator[Problem]:
    label = text_of(mode).label
    if mode not in known:
        yield Problem.of("target:mode-missing", table=schema.id, mode=label)
    if mode in NEEDS_KEY and not schema.key:
        yield Problem.of("target:mode-needs-key", table=schema.id, mode=label)
    added = {c.name.casefold() for c in extra_columns(mode)}
    for column in schema.columns:
        if column.name.casefold() in added:
            yield Problem.of("target:mode-column", table=schema.id, column=column.name, mode=label)
