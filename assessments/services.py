"""Asks sources and targets before a replicator runs. Stores nothing. Every question is a look
(`assessments.looks`): it has a time limit, and raises `TooManyLooks` if too many looks are
active."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.conf import settings

from assessments.looks import LookTimedOut, look
from assessments.modes import mode_problems, modes_of
from assessments.report import Report, fit_problems, missing_tables, of_target, report_of
from replicators import audit
from replicators.config import (
    ReplicatorConfig,
    masked,
    parse_params,
    plain,
    plugin_of,
    source_plugin,
    target_plugin,
)
from replicators.connectors.conflicts import Conflict
from replicators.connectors.model.modes import mode_for
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection, TableSummary
from replicators.connectors.problems.errors import ReplicationError, driver_of
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.source import SourcePlugin
from replicators.connectors.take_over import TakeOverChecks
from replicators.connectors.target import TargetPlugin
from replicators.connectors.view_fields import VIEWED, ViewChecks
from replicators.reach import require_reach

TEST_SECONDS = 10.0
T = TypeVar("T")


@contextmanager
def translated(plugin: SourcePlugin | TargetPlugin, params: Any = None) -> Iterator[None]:
    """Raise a driver's exceptions as `ReplicationError`s. With `params`, first check the places
    that they lead to."""
    try:
        if params is not None:
            require_reach(plugin, params)
        yield
    except ReplicationError:
        raise
    except ImportError as err:
        role = "source" if isinstance(plugin, SourcePlugin) else "target"
        raise ReplicationError(f"{role}:driver-missing", driver=driver_of(err)) from err
    except Exception as err:
        raise _translate(plugin, err) from err


def _translate(plugin: SourcePlugin | TargetPlugin, err: Exception) -> Exception:
    found = plugin.translate(err) if isinstance(plugin, SourcePlugin) else None
    if isinstance(found, ReplicationError):
        return found
    return ReplicationError("internal:unexpected", name_of_error=type(err).__name__)


def problem_of(err: ReplicationError) -> Problem:
    """The error as a problem."""
    return Problem(err.code, table=err.table, facts=tuple(err.facts.items()))


def _params(role: str, kind: str, params: Any) -> Any:
    return parse_params(role, kind, params) if isinstance(params, Mapping) else params


def connection_test(*, role: str, kind: str, params: Any) -> list[Problem]:
    """Test whether the server can be reached and used. Answers within `TEST_SECONDS`. `params` are
    raw (secrets in clear) or the params object. Raises only InvalidConfig and `TooManyLooks`."""
    values = _params(role, kind, params)
    plugin = plugin_of(role, kind)

    def ask() -> list[Problem]:
        with translated(plugin, values), plugin.checks(values) as checks:
            return list(checks.connection())

    try:
        found = _looked(role, ask, min(TEST_SECONDS, settings.LOOK_SECONDS))
    except ReplicationError as err:
        found = [problem_of(err)]
    test_record(role=role, kind=kind, params=plain(values), problems=found)
    return found


def test_record(
    *, role: str, kind: str, params: Mapping[str, Any], problems: Sequence[Problem]
) -> None:
    """Record in the audit trail which server was tested, and the result."""
    is_ok = all(p.severity is not Severity.ERROR for p in problems)
    new = {"ok": is_ok, "problems": [p.code for p in problems]}
    new |= {k: v for k, v in masked(role, kind, params).items() if v not in (None, "")}
    thing = audit.Thing("connection", name=f"{kind} ({role})")
    audit.record("connection_tested", thing, new=new)


def _looked(role: str, ask: Callable[[], T], seconds: float | None = None) -> T:
    """The result of `ask`. If it takes too long, a `timeout` error of the source or the target."""
    seconds = settings.LOOK_SECONDS if seconds is None else seconds
    try:
        return look(ask, seconds)
    except LookTimedOut as err:
        raise ReplicationError(f"{role}:timeout", seconds=f"{seconds:g}") from err


def require_places(*, role: str, kind: str, params: Any) -> None:
    """Raise `config:place-refused` if the params object leads to a place that no connection may
    use. Does nothing if this can't be decided in time."""
    plugin = plugin_of(role, kind)
    try:
        _looked(
            role, lambda: require_reach(plugin, params), min(TEST_SECONDS, settings.LOOK_SECONDS)
        )
    except ReplicationError as err:
        if err.code == "config:place-refused":
            raise


def log_fault(*, kind: str, params: Any, name: str, position: Position) -> ReplicationError | None:
    """The reason why the source's log can't continue at `position` for the replicator that reads it
    as `name`. None if it can, or if nobody can say within `TEST_SECONDS`. Changes nothing at the
    source."""
    plugin = source_plugin(kind)

    def ask() -> None:
        with translated(plugin, params), plugin.stream.reader(params, name) as reader:
            reader.prepare((), position)

    try:
        _looked("source", ask, min(TEST_SECONDS, settings.LOOK_SECONDS))
    except ReplicationError as err:
        return err if err.message.ends_log else None
    return None


def list_tables(*, kind: str, params: Any) -> list[TableSummary]:
    """The tables of a source. Raises ReplicationError if the source can't be asked."""
    values = _params("source", kind, params)
    plugin = source_plugin(kind)

    def ask() -> list[TableSummary]:
        with translated(plugin, values), plugin.catalog(values) as catalog:
            return catalog.list_tables()

    return _looked("source", ask)


def describe_table(*, kind: str, params: Any, table: TableId) -> TableSchema:
    """The schema of a table. Raises `source:table-missing` if there is no such table."""
    values = _params("source", kind, params)
    plugin = source_plugin(kind)

    def ask() -> dict[TableId, TableSchema]:
        with translated(plugin, values), plugin.catalog(values) as catalog:
            return catalog.describe([TableSelection(table)])

    found = _looked("source", ask)
    if table not in found:
        raise ReplicationError("source:table-missing", table=table)
    return found[table]


def _ask_source(config: ReplicatorConfig) -> tuple[dict[TableId, TableSchema], list[Problem]]:
    plugin = config.source
    with translated(plugin, config.source_params), plugin.checks(config.source_params) as checks:
        problems = list(checks.connection())
        if any(p.severity is Severity.ERROR and p.table is None for p in problems):
            return {}, problems
        problems += checks.tables(config.tables)
    with translated(plugin), plugin.catalog(config.source_params) as catalog:
        schemas = catalog.describe(config.tables)
    return schemas, problems + missing_tables(config.tables, schemas)


def _ask_target(config: ReplicatorConfig, schemas: list[TableSchema]) -> list[Problem]:
    with (
        translated(config.target, config.target_params),
        config.target.checks(config.target_params) as checks,
    ):
        problems = list(checks.connection())
        problems += checks.tables(schemas, config.replicator)
        if config.options.first_copy == "take_over" and isinstance(checks, TakeOverChecks):
            problems = [p for p in problems if p.code != "target:table-taken"]
            problems += checks.take_over(schemas, config.replicator)
        if isinstance(checks, ViewChecks):
            modes = modes_of(config)
            viewed = [s for s in schemas if mode_for(modes[s.id], s) in VIEWED]
            problems += checks.views(viewed, schemas, config.replicator)
        return problems


def conflicts(*, kind: str, params: Any, tables: Sequence[TableId], limit: int) -> list[Conflict]:
    """The last changes that lost at a target which is replicated back, newest first; none where it
    is not."""
    plugin = target_plugin(kind)
    ask = plugin.conflicts
    if ask is None or not plugin.settles(params):
        return []

    def look_up() -> list[Conflict]:
        with translated(plugin, params):
            return ask(params, tables, limit)

    return _looked("target", look_up, TEST_SECONDS)


def assess(config: ReplicatorConfig) -> Report:
    """The report on a whole configuration. A server that can't be reached in time is a problem in
    the report, never an exception. Raises only `TooManyLooks`, which says nothing about the
    configuration."""
    schemas: dict[TableId, TableSchema] = {}
    problems: list[Problem] = []
    try:
        schemas, problems = _looked("source", lambda: _ask_source(config))
    except ReplicationError as err:
        problems.append(problem_of(err))
    chosen = [schemas[t.id] for t in config.tables if t.id in schemas]
    try:
        problems += _looked("target", lambda: _ask_target(config, chosen))
    except ReplicationError as err:
        problems.append(problem_of(err))
    fit = config.target.fits
    problems = [p for p in (of_target(p, schemas, fit) for p in problems) if p is not None]
    problems += [p for schema in chosen for p in fit_problems(schema, fit)]
    problems += mode_problems(config, chosen)
    return report_of(chosen, fit, problems, modes_of(config))
