"""Carries a statement out: each is one act of the services that pages and REST use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from drafts.services import replicator_make
from drafts.statements.addresses import kind_called, params_given
from drafts.statements.definition import cdc_name, definition_of, settings_read, table_named
from drafts.statements.errors import StatementError
from drafts.statements.parser import parse
from drafts.statements.placing import placed
from drafts.statements.shown import statement_of
from drafts.statements.tree import Alter, Create, DropCdc, Named, ShowAll, Statement
from replicators.models import DesiredState, Replicator
from replicators.permissions import NOT_YOURS, NoRight, can_change, can_make, can_view
from runners.definition import replicator_change
from runners.selectors import replicators_found
from runners.services import replicator_delete, replicator_pause, replicator_resume
from runners.shown import ReplicatorView

LISTED = 500
"""The most replicators that SHOW CHANGEFEEDS lists."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement did. `act`: created, paused, resumed, dropped, altered or shown. `text` says
    it in a sentence. `statement`: the one that makes the replicator, after SHOW CREATE, CREATE and
    ALTER. `feeds`: the lines of SHOW CHANGEFEEDS."""

    act: str
    text: str
    replicator: Replicator | None = None
    statement: str = ""
    feeds: list[ReplicatorView] = field(default_factory=list)


def statement_run(*, text: str, actor: User | None, source: str = "") -> Outcome:
    """Read and carry out one statement. `source`: the replicator or draft whose source CREATE uses
    where the statement has no FROM SOURCE. `actor` None: the machine's administrator, who may do
    everything.

    `StatementError` says where the statement is wrong. `NoRight`. Also raises what the services
    raise: `DeployRefused`, `IllegalTransition`, `ReplicationError` and others. A statement that is
    refused changes nothing.
    """
    if actor is not None and not can_view(actor):
        raise NoRight("Your user may not see replicators.")
    statement = parse(text)
    is_shown = isinstance(statement, ShowAll)
    is_shown |= isinstance(statement, Named) and statement.act == "show"
    if actor is not None and not is_shown and not can_make(actor):
        raise NoRight("Your user may look, but not change anything. Ask for the group editor.")
    return _RUN[type(statement)](statement, actor, source)


def _create(statement: Create, actor: User | None, source: str) -> Outcome:
    made = definition_of(statement, source, actor)
    with placed(statement.text, made.places):
        replicator = replicator_make(actor=actor, **made.fields)
    count = len(replicator.tables)
    many = "1 table" if count == 1 else f"{count} tables"
    text = f"{replicator.name} is made with {many}, and starts."
    return Outcome("created", text, replicator, statement_of(replicator))


def _require_change(actor: User | None, row: Replicator) -> None:
    if actor is not None and not can_change(actor, row):
        raise NoRight(NOT_YOURS)


def _found(statement: Statement, name: Any) -> Replicator:
    row = Replicator.objects.filter(name=name.value).first()
    if row is None:
        same = list(Replicator.objects.filter(name__iexact=name.value)[:2])
        meant = f" Did you mean `{same[0].name}`?" if len(same) == 1 else ""
        text = f"There is no changefeed `{name.value[:64]}`.{meant}"
        raise StatementError(text, statement.text, name.at)
    return row


def _named(statement: Named, actor: User | None, _: str) -> Outcome:
    row = _found(statement, statement.name)
    if statement.act != "show":
        _require_change(actor, row)
    match statement.act:
        case "show":
            text = statement_of(row)
            if not text:
                gone = f"The connectors of {row.name} are not installed any more."
                raise StatementError(gone, statement.text, statement.name.at)
            return Outcome("shown", "Secrets are not in it.", row, text)
        case "pause":
            row = replicator_pause(replicator=row, actor=actor)
            return Outcome("paused", f"{row.name} is paused: its run seals what it has.", row)
        case "resume":
            row = replicator_resume(replicator=row, actor=actor)
            return Outcome("resumed", f"{row.name} runs again.", row)
    return _dropped(row, actor)


def _dropped(row: Replicator, actor: User | None) -> Outcome:
    row = replicator_delete(replicator=row, actor=actor, keep_target=True)
    return Outcome("dropped", f"{row.name} is being deleted. What it delivered stays.", row)


def _drop_cdc(statement: DropCdc, actor: User | None, _: str) -> Outcome:
    """The stream that CREATE CDC made of that table."""
    into = statement.into
    kind = kind_called(statement.text, "target", into.value, into.at) if into else ""
    parts = [p.value for p in statement.table.parts][-2:]
    rows = [
        row
        for row in Replicator.objects.filter(deleting_since=None)
        if len(row.tables) == 1
        and [row.tables[0]["schema"], row.tables[0]["name"]][-len(parts) :] == parts
        and row.name == cdc_name(table_named(row.tables[0]), row.target_kind)
        and kind in ("", row.target_kind)
    ]
    if len(rows) == 1:
        _require_change(actor, rows[0])
        return _dropped(rows[0], actor)
    text = f"No CDC stream of {statement.table} was made by CREATE CDC."
    if rows:
        kinds = " or ".join(sorted({r.target_kind.upper() for r in rows}))
        text = f"{statement.table} has {len(rows)} CDC streams: add INTO {kinds}."
        if len({r.target_kind for r in rows}) < len(rows):
            text = f"{statement.table} has {len(rows)} CDC streams: write its schema too."
    raise StatementError(text, statement.text, statement.table.at)


def _show_all(_: ShowAll, __: User | None, ___: str) -> Outcome:
    feeds = list(replicators_found()[:LISTED])
    many = "1 changefeed" if len(feeds) == 1 else f"{len(feeds)} changefeeds"
    return Outcome("shown", f"{many}.", feeds=feeds)


def _alter(statement: Alter, actor: User | None, _: str) -> Outcome:
    row = _found(statement, statement.name)
    _require_change(actor, row)
    if row.desired_state != DesiredState.PAUSED:
        text = f"Pause it first: PAUSE CHANGEFEED {statement.name.raw}."
        raise StatementError(text, statement.text, statement.name.at)
    changes, places = _changes(statement, row)
    with placed(statement.text, places):
        change = replicator_change(replicator=row, actor=actor, **changes)
    names = ", ".join(f"`{n.rpartition('.')[2]}`" for n in change.fields)
    text = f"Changed: {names}." if names else "Nothing differs from before."
    return Outcome("altered", text, change.replicator, statement_of(change.replicator))


def _changes(statement: Alter, row: Replicator) -> tuple[dict[str, Any], dict[str, int]]:
    """What changes, for `replicator_change`, and the place of each value."""
    if statement.into is not None:
        into = statement.into
        kind, given = params_given(statement.text, "target", into)
        if kind != row.target_kind:
            text = f"{row.name} writes into {row.target_kind}: make another changefeed for {kind}."
            raise StatementError(text, statement.text, into.inside(0))
        places = {f"target.{g.name}": into.inside(g.at) for g in given}
        return {"target_params": {g.name: g.value for g in given}}, {"target": into.at, **places}
    if moved := [s for s in statement.settings if s.name == "cursor"]:
        text = (
            "The cursor of a changefeed that exists can't be moved. Re-sync its tables to deliver "
            "their rows again, or make another one with cursor = 'now'."
        )
        raise StatementError(text, statement.text, moved[0].key.at)
    read = settings_read(statement.text, row.target_kind, statement.settings)
    changes = {"target_params": read.params, "options": read.options}
    if read.description is not None:
        changes["description"] = read.description  # type: ignore[assignment]
    at = statement.settings[0].at
    return changes, {"target": at, "options": at, "description": at, **read.places}


_RUN: dict[type[Statement], Callable[[Any, User | None, str], Outcome]] = {
    Create: _create,
    Named: _named,
    DropCdc: _drop_cdc,
    ShowAll: _show_all,
    Alter: _alter,
}
