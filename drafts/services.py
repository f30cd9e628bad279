"""Fills, assesses and deploys drafts. Only this module writes their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from assessments.report import Report
from assessments.services import assess
from drafts.models import Draft
from drafts.reports import report_of, report_store
from replicators import audit
from replicators.config import (
    InvalidConfig,
    SecretAsked,
    plugin_of,
    require_plain,
)
from replicators.connectors.params import describe
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.models import Replicator
from replicators.permissions import require_make
from replicators.services import (
    audited_values,
    changes_record,
    config_of,
    name_require_free,
    params_of,
    params_store,
    replicator_create,
)
from runners.services import replicator_start

_PLAIN = ("name", "description", "tables", "options", "accepted")
_KINDS = {"name": str, "description": str, "tables": list, "options": dict, "accepted": list}
_LENGTHS = {"name": 64, "description": 400}
_ROLES = ("source", "target")
_FIELDS = frozenset(_PLAIN) | {f"{r}_{f}" for r in _ROLES for f in ("kind", "params")}


class StaleDraft(Exception):
    """Somebody else has saved the draft meanwhile. `version` is the newest version."""

    def __init__(self, version: int) -> None:
        super().__init__("The draft was changed elsewhere; load it again.")
        self.version = version


class DraftDeployed(Exception):
    """The draft became a replicator and can't be changed any more."""


class DeployRefused(Exception):
    """The assessment found errors. `problems` are all its problems."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("The assessment found errors.")
        self.problems = problems


class Undecided(Exception):
    """Columns lose something or are lost, and nobody accepted or excluded them. `count` is their
    number."""

    def __init__(self, count: int) -> None:
        super().__init__("Somebody has to decide about columns.")
        self.count = count


def _checked(fields: Mapping[str, Any]) -> None:
    errors = {k: "is not a field" for k in fields if k not in _FIELDS}
    for name, kind in _KINDS.items():
        if name in fields and not isinstance(fields[name], kind):
            errors[name] = f"must be {'text' if kind is str else 'a ' + kind.__name__}"
        elif name in _LENGTHS and len(fields.get(name, "")) > _LENGTHS[name]:
            many = len(fields[name])
            errors[name] = f"must be at most {_LENGTHS[name]} characters; it has {many}"
    if errors:
        raise InvalidConfig(errors)


def _fill_params(draft: Draft, role: str, fields: Mapping[str, Any]) -> None:
    kind = fields.get(f"{role}_kind", getattr(draft, f"{role}_kind"))
    is_new = kind != getattr(draft, f"{role}_kind")
    data = fields.get(f"{role}_params", {} if is_new else None)
    if not kind and data:
        raise InvalidConfig({f"{role}_params": f"needs {role}_kind beside it"})
    if not kind or data is None:
        return
    if not isinstance(data, Mapping):
        raise InvalidConfig({f"{role}_params": "must be an object"})
    try:
        known = {p.name for p in describe(plugin_of(role, kind).params)}
        if unknown := [name for name in data if name not in known]:
            # It might be a misspelt password, which would be kept and shown in clear.
            raise InvalidConfig({f"{role}_params.{name}": "is not a parameter" for name in unknown})
        require_plain(role, kind, data)
    except ReplicationError as err:
        raise InvalidConfig({f"{role}_kind": err.message.text}) from err
    params_store(draft, role, kind, data)


def _fill(draft: Draft, fields: Mapping[str, Any]) -> None:
    _checked(fields)
    for name in _PLAIN:
        if name in fields:
            setattr(draft, name, fields[name])
    for role in _ROLES:
        _fill_params(draft, role, fields)


@transaction.atomic
def draft_create(*, actor: User | None, **fields: Any) -> Draft:
    """Make a draft with the values that are already known. Incomplete params are kept as they
    are. `NoRight` where the actor may make no replicator into such a target."""
    require_make(actor, str(fields.get("target_kind", "")))
    draft = Draft(created_by=actor)
    _fill(draft, fields)
    draft.save()
    changes_record("draft_made", draft, ({}, set()), actor)
    return draft


def draft_update(*, draft: Draft, version: int, **fields: Any) -> Draft:
    """Change fields of the draft that the caller saw as `version`. Raises `StaleDraft` if its
    version differs now. A change without effect keeps the version. Raises and records `SecretAsked`
    if a stored secret would go to another place."""
    try:
        return _update(draft, version, fields)
    except SecretAsked as err:
        audit.record("secret_asked", audit.Thing.of(draft), new={"changed": list(err.moved)})
        raise


@transaction.atomic
def _update(draft: Draft, version: int, fields: Mapping[str, Any]) -> Draft:
    now = Draft.objects.select_for_update(no_key=True).get(pk=draft.pk)
    if now.replicator_id is not None:
        raise DraftDeployed
    if now.version != version:
        raise StaleDraft(now.version)
    before, audited = _content(now), audited_values(now)
    _fill(now, fields)
    if _content(now) != before:
        now.version += 1
        now.save()
        changes_record("draft_changed", now, audited)
    return now


def _content(draft: Draft) -> dict[str, Any]:
    """Everything that a person can change, secrets in clear."""
    kinds = {f"{role}_kind": getattr(draft, f"{role}_kind") for role in _ROLES}
    params = {role: params_of(draft, role) for role in _ROLES}
    return {**{name: getattr(draft, name) for name in _PLAIN}, **kinds, **params}


def draft_assess(*, draft: Draft) -> Report:
    """Assess the draft as it is, and keep the report as its last one. Raises InvalidConfig if the
    draft is incomplete, `Draft.DoesNotExist` if it was deleted meanwhile. Blocks while source and
    target answer."""
    report = assess(config_of(draft))
    with transaction.atomic():
        Draft.objects.select_for_update(no_key=True).get(pk=draft.pk)
        report_store(draft, report)
    return report


def draft_deploy(*, draft: Draft, actor: User | None, needs_decisions: bool = False) -> Replicator:
    """Make the replicator and start it. Deploying again returns the same replicator. Assesses
    first: raises `DeployRefused` on an error, and `Undecided` if `needs_decisions` and columns are
    neither accepted nor excluded. Also raises InvalidConfig and `NameTaken`."""
    done = _deployed(draft)
    if done is not None:
        return done
    name_require_free(draft.name)
    report = draft_assess(draft=draft)
    if report.has_errors:
        raise DeployRefused(report.problems)
    shown = report_of(draft) if needs_decisions else None
    if shown is not None and shown.undecided:
        raise Undecided(shown.undecided)
    return _deploy(draft, actor)


def replicator_make(*, actor: User | None, **definition: Any) -> Replicator:
    """Make and start a replicator from a whole definition. Raises what `draft_deploy` raises. A
    refused one leaves nothing behind."""
    draft = draft_create(actor=actor, **definition)
    try:
        return draft_deploy(draft=draft, actor=actor)
    except BaseException:
        draft_delete(draft=draft)
        raise


def _deployed(draft: Draft) -> Replicator | None:
    pk = Draft.objects.filter(pk=draft.pk).values_list("replicator_id", flat=True).get()
    return None if pk is None else Replicator.objects.filter(pk=pk).first()


@transaction.atomic
def _deploy(draft: Draft, actor: User | None) -> Replicator:
    now = Draft.objects.select_for_update(no_key=True).get(pk=draft.pk)
    done = _deployed(now)
    if done is not None:
        return done
    if now.version != draft.version:
        raise StaleDraft(now.version)
    replicator = replicator_create(
        actor=actor,
        name=now.name,
        description=now.description,
        source_kind=now.source_kind,
        source_params=params_of(now, "source"),
        target_kind=now.target_kind,
        target_params=params_of(now, "target"),
        tables=now.tables,
        options=now.options,
    )
    Draft.objects.filter(pk=now.pk).update(replicator_id=replicator.pk, updated_at=timezone.now())
    new = {"replicator": str(replicator.pk)}
    audit.record("draft_deployed", audit.Thing.of(now), actor=actor, new=new)
    return replicator_start(replicator=replicator, actor=actor)


@transaction.atomic
def draft_delete(*, draft: Draft) -> None:
    """Delete the draft. A replicator made from it stays. Idempotent."""
    if Draft.objects.filter(pk=draft.pk).delete()[0]:
        audit.record("draft_deleted", audit.Thing.of(draft))
