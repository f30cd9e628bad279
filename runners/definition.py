"""Changes the definition of a deployed replicator: its name, its connections, its options. No
HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from assessments.services import assess, log_fault, require_places
from replicators.audit import Thing, record
from replicators.config import ROLES, SecretAsked, plugin_of
from replicators.connectors.model.positions import Position
from replicators.connectors.params import Param, describe
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.models import DesiredState, Replicator
from replicators.options import Options
from replicators.services import (
    config_of,
    params_of,
    replicator_filled,
    replicator_update,
    source_of,
    target_of,
)
from runners.events.write import event_add
from runners.models import Progress, Run
from runners.services import back_off_clear, run_ask_stop
from runners.supervision.dispatch import nudge

LOOKS = 5
NEXT_START = frozenset(
    f"options.{f.name}" for f in fields(Options) if "next start" in f.metadata["applies"]
)


class ChangeRefused(Exception):
    """The change can't be applied to tables; `problems` name these tables and the reasons."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("Tables can't be copied in that mode, so nothing was changed.")
        self.problems = problems


class StaleReplicator(Exception):
    """Another person or program changed the replicator after `seen_at`."""


class AnotherServer(ReplicationError):
    """The log at the changed params does not continue the captured log; `errors` names the params
    that changed."""

    def __init__(self, reason: str, names: tuple[str, ...]) -> None:
        super().__init__("config:another-server", reason=reason)
        self.errors = dict.fromkeys(names, "leads to where the log does not go on")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (AnotherServer, (self.facts["reason"], tuple(self.errors)))


@dataclass(frozen=True, slots=True)
class Change:
    """What a change did. `fields` are those that differ now (`name`, `source.host`,
    `options.mode`). `is_restarted`: a run was asked to stop, so that the next one starts with the
    new definition."""

    replicator: Replicator
    fields: tuple[str, ...]
    is_restarted: bool = False

    @property
    def is_of_connection(self) -> bool:
        """Whether the next start uses another connection."""
        return any(name.startswith(("source.", "target.")) for name in self.fields)

    @property
    def waits_for_start(self) -> bool:
        """Whether some of the change takes effect only at the next start."""
        return self.is_of_connection or bool(NEXT_START & set(self.fields))


def replicator_change(
    *,
    replicator: Replicator,
    actor: User | None,
    restart: bool = False,
    accept_lost_position: bool = False,
    seen_at: datetime | None = None,
    **changes: Any,
) -> Change:
    """Change what `replicators.services.replicator_update` changes. A changed connection is tried
    at once. `restart` ends a live run, so that the next one starts with the whole change.

    Errors: InvalidConfig and `NameTaken` name fields. `SecretAsked`: stored secrets would go to
    another place. `AnotherServer`: the source says that its log does not continue
    (`accept_lost_position` accepts that). `StaleReplicator`: the replicator was changed after
    `seen_at`. `ChangeRefused`: tables can't have the new mode. `config:not-now`: the replicator is
    being deleted. `config:place-refused`: no connection may use the new place. Blocks while source
    and target answer.
    """
    now = Replicator.objects.get(pk=replicator.pk)
    with secrets_asked(now, actor):
        asked = replicator_filled(replicator=now, **changes)
    found = changed_fields(now, asked)
    _require_places(asked, found)
    if not accept_lost_position:
        _require_log(asked, found)
    if "options.mode" in found:
        _require_modes(asked)
    return _store(now, actor, found, changes, restart=restart, seen_at=seen_at)


@contextmanager
def secrets_asked(replicator: Replicator, actor: User | None) -> Iterator[None]:
    """Record that a change would have sent stored secrets to another place: somebody may be after
    them."""
    try:
        yield
    except SecretAsked as err:
        name = actor.get_username() if actor is not None else ""
        facts = {"fields": list(err.moved)}
        event_add("secret_asked", replicator=replicator, actor=name, facts=facts)
        record("secret_asked", Thing.of(replicator), actor=actor, new={"changed": list(err.moved)})
        raise


def changed_fields(before: Replicator, after: Replicator) -> tuple[str, ...]:
    """The names of the fields that differ. Where the stored secrets can't be read any more, every
    secret that is set now counts as different."""
    was, now = _values(before), _values(after)
    return tuple(name for name, value in now.items() if was[name] != value)


def _require_places(asked: Replicator, found: tuple[str, ...]) -> None:
    """`config:place-refused` where changed params lead to a place that no connection may use."""
    for role, params_object in (("source", source_of), ("target", target_of)):
        if any(name.startswith(f"{role}.") for name in found):
            kind = getattr(asked, f"{role}_kind")
            require_places(role=role, kind=kind, params=params_object(asked))


def _values(row: Replicator) -> dict[str, Any]:
    found: dict[str, Any] = {"name": row.name, "description": row.description}
    for role in ROLES:
        values = {p.name: p.default for p in _params(row, role)}
        try:
            values |= params_of(row, role)
        except ReplicationError:
            values |= getattr(row, f"{role}_params")
        found |= {f"{role}.{name}": value for name, value in values.items()}
    options = Options.parse(row.options).to_json()
    return found | {f"options.{name}": value for name, value in options.items()}


def _params(row: Replicator, role: str) -> tuple[Param, ...]:
    return describe(plugin_of(role, getattr(row, f"{role}_kind")).params)


def _require_log(asked: Replicator, found: tuple[str, ...]) -> None:
    """Ask the source whether its log continues, where params other than secrets changed; new
    secrets alone do not mean another server. A live run moves the log position meanwhile, so a
    refusal counts only while the position stands still."""
    said = {f"source.{p.name}" for p in _params(asked, "source") if not p.secret}
    names = tuple(n for n in found if n in said)
    position = _position(asked) if names else None
    for _ in range(LOOKS):
        if position is None:
            return
        fault = log_fault(
            kind=asked.source_kind,
            params=source_of(asked),
            name=asked.slot_name,
            position=position,
        )
        if fault is None:
            return
        seen, position = position, _position(asked)
        if position == seen:
            title = fault.message.title
            reason = fault.facts.get("reason") or f"{title[:1].lower()}{title[1:]}"
            raise AnotherServer(reason, names)


def _position(replicator: Replicator) -> Position | None:
    """The log position up to which changes were captured; None before the first capture."""
    progress = Progress.objects.filter(replicator=replicator).first()
    return Position.from_json(progress.position) if progress and progress.position else None


def _require_modes(asked: Replicator) -> None:
    """Refuse a mode that tables can't have. Other errors do not count: the tables are copied
    already."""
    config = config_of(asked)
    own = {t.id for t in config.tables if t.mode}
    mine = tuple(p for p in assess(config).problems if ":mode-" in p.code and p.table not in own)
    if any(p.severity is Severity.ERROR for p in mine):
        raise ChangeRefused(mine)


@transaction.atomic
def _store(
    replicator: Replicator,
    actor: User | None,
    found: tuple[str, ...],
    changes: Mapping[str, Any],
    *,
    restart: bool,
    seen_at: datetime | None,
) -> Change:
    locked = Replicator.objects.select_for_update(no_key=True).get(pk=replicator.pk)
    if seen_at is not None and locked.updated_at != seen_at:
        raise StaleReplicator
    name = actor.get_username() if actor is not None else ""
    row = replicator_update(replicator=replicator, actor=actor, **changes)
    if found:
        event_add("replicator_changed", replicator=row, actor=name, facts={"fields": list(found)})
    wanted = restart and row.desired_state == DesiredState.RUNNING
    run = Run.objects.active().filter(replicator=row).first() if wanted else None
    if run is not None:
        run_ask_stop(run=run, origin="change", actor=name)
    change = Change(row, found, is_restarted=run is not None)
    if change.is_of_connection:
        back_off_clear(row)
    nudge()
    return change
