"""Makes a draft from an existing replicator: the same definition, secrets included, under a free
name and in a free namespace, to change and deploy."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.http import require_POST

from assessments.report import Support, table_report
from drafts.models import Draft
from drafts.services import draft_create
from replicators.config import InvalidConfig, plugin_of, target_plugin
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.pages import go, may_edit
from replicators.people import person
from replicators.selectors import plugin_params
from replicators.services import params_of
from runners.models import Table

NAME_CHARACTERS = 64


def _free_name(name: str) -> str:
    """`<name> (copy)`, with a number if that is taken, and cut to fit."""
    taken = set(Replicator.objects.values_list("name", flat=True))
    taken |= set(Draft.objects.filter(replicator_id=None).values_list("name", flat=True))
    number = 1
    while True:
        mark = " (copy)" if number == 1 else f" (copy {number})"
        found = name[: NAME_CHARACTERS - len(mark)] + mark
        if found not in taken:
            return found
        number += 1


def _free_namespace(replicator: Replicator, params: dict[str, Any]) -> str:
    """A free namespace for the copy, since two replicators can't write to one table. The present
    value is returned in two cases: the target has no namespaces, or tables of several schemas could
    not share one."""
    now = str(params.get("namespace") or "")
    known = {p.name for p in plugin_params(plugin_of("target", replicator.target_kind))}
    names = [t["name"] for t in replicator.tables]
    if "namespace" not in known or (not now and len(set(names)) < len(names)):
        return now
    rows = [*Replicator.objects.values_list("target_params", flat=True)]
    rows += Draft.objects.filter(replicator_id=None).values_list("target_params", flat=True)
    taken = {str(row.get("namespace") or "") for row in rows}
    base = now or slugify(replicator.name).replace("-", "_") or "replicator"
    number = 1
    while True:
        found = f"{base}_copy" if number == 1 else f"{base}_copy{number}"
        if found not in taken:
            return found
        number += 1


def _accepted(replicator: Replicator) -> list[list[str]]:
    """The columns whose loss somebody accepted: in the replicator's draft, or by letting the
    replicator copy them."""
    drafts = Draft.objects.filter(replicator_id=replicator.pk).values_list("accepted", flat=True)
    found = {tuple(column) for accepted in drafts for column in accepted}
    fit = target_plugin(replicator.target_kind).fits
    for row in Table.objects.shown().filter(replicator=replicator):
        if row.schema is None:
            continue
        report = table_report(TableSchema.from_json(row.schema), fit, ())
        lost = (c.name for c in report.columns if c.support is not Support.YES)
        found |= {(row.schema_name, row.name, name) for name in lost}
    return [list(column) for column in sorted(found)]


def draft_from(*, replicator: Replicator, actor: User | None) -> Draft:
    """A new draft with the replicator's definition, the decisions about its columns, and its own
    namespace. The replicator stays as it is."""
    fields: dict[str, Any] = {
        "name": _free_name(replicator.name),
        "description": replicator.description,
        "tables": replicator.tables,
        "options": replicator.options,
        "accepted": _accepted(replicator),
    }
    for role in ("source", "target"):
        fields[f"{role}_kind"] = getattr(replicator, f"{role}_kind")
        fields[f"{role}_params"] = params_of(replicator, role)
    namespace = _free_namespace(replicator, fields["target_params"])
    if namespace:
        fields["target_params"]["namespace"] = namespace
    return draft_create(actor=actor, **fields)


@may_edit
@require_POST
def duplicate(request: HttpRequest, pk: str) -> HttpResponse:
    """Make the draft and open it."""
    found = get_object_or_404(Replicator, pk=pk)
    try:
        draft = draft_from(replicator=found, actor=person(request))
    except InvalidConfig as err:
        messages.error(request, " ".join(err.errors.values()))
        return go(request, found.get_absolute_url())
    except ReplicationError as err:  # its secrets can't be read
        messages.error(request, f"{err.message.text} {err.message.suggestion}")
        return go(request, found.get_absolute_url())
    url = reverse("drafts:draft-target", args=[draft.pk])
    return go(request, f"{url}?copied=yes", f"{draft.name} is a draft now.")
