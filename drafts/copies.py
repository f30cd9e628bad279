"""A draft from a replicator that exists: the same definition under a free name, secrets included, to be changed and deployed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from drafts.models import Draft
from drafts.services import draft_create
from replicators.config import InvalidConfig
from replicators.connectors.errors import ReplicationError
from replicators.models import Replicator
from replicators.pages import go, may_edit
from replicators.people import person
from replicators.services import params_of

NAME_CHARACTERS = 64


def _free_name(name: str) -> str:
    """`<name> (copy)`, numbered where that is taken, and cut to fit."""
    taken = set(Replicator.objects.values_list("name", flat=True))
    taken |= set(Draft.objects.filter(replicator_id=None).values_list("name", flat=True))
    number = 1
    while True:
        mark = " (copy)" if number == 1 else f" (copy {number})"
        found = name[: NAME_CHARACTERS - len(mark)] + mark
        if found not in taken:
            return found
        number += 1


def draft_from(*, replicator: Replicator, actor: User | None) -> Draft:
    """A new draft with the replicator's definition; the replicator stays as it is."""
    fields: dict[str, Any] = {
        "name": _free_name(replicator.name),
        "description": replicator.description,
        "tables": replicator.tables,
        "options": replicator.options,
    }
    for role in ("source", "target"):
        fields[f"{role}_kind"] = getattr(replicator, f"{role}_kind")
        fields[f"{role}_params"] = params_of(replicator, role)
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
    return go(request, reverse("drafts:draft", args=[draft.pk]), f"{draft.name} is a draft now.")
