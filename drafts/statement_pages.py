"""The page that carries out a statement, and the statement of a replicator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from drafts.models import Draft
from drafts.statements.errors import StatementError
from drafts.statements.examples import GROUPS
from drafts.statements.services import Outcome, statement_run
from drafts.statements.shown import has_secrets, statement_of
from replicators.api.errors import answer_of
from replicators.connectors.problems.problem import ProblemJson
from replicators.models import Replicator
from replicators.pages import may_view, render_page
from replicators.people import person
from replicators.permissions import NoRight

LISTED = 200
"""The most names of sources that the page offers."""


@dataclass(slots=True)
class _Asked:
    """What was typed, and what came of it. `error`: where the text is wrong. `refused`: why
    nothing was done though the text can be read."""

    text: str = ""
    source: str = ""
    status: int = 200
    outcome: Outcome | None = None
    error: StatementError | None = None
    refused: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    problems: list[ProblemJson] = field(default_factory=list)


@sensitive_post_parameters("statement")
@may_view
@require_http_methods(["GET", "POST"])
def statements(request: HttpRequest) -> HttpResponse:
    """The field, the examples and the answer. The button of an example writes it into the field."""
    asked = _Asked()
    if request.method == "POST":
        asked.text = request.POST.get("statement", "").replace("\r\n", "\n")
        asked.source = request.POST.get("source", "").strip()
        act = request.POST.get("act", "")
        example = _examples().get(act)
        if example is not None:
            asked.text = example
        elif act == "run":
            _run(request, asked)
    statement = asked.outcome.statement if asked.outcome else ""
    context = {
        "section": "statements",
        "asked": asked,
        "sources": _sources(),
        "groups": [
            (title, [(f"example:{n}:{i}", e) for i, e in enumerate(examples)])
            for n, (title, examples) in enumerate(GROUPS)
        ],
        "statement": statement,
        "has_secrets": has_secrets(statement),
    }
    panel = "drafts/partials/_statements.html"
    response = render_page(request, "drafts/statements.html", panel, context, asked.status)
    response["Cache-Control"] = "no-store"
    return response


def _examples() -> dict[str, str]:
    return {
        f"example:{n}:{i}": example.text
        for n, (_, examples) in enumerate(GROUPS)
        for i, example in enumerate(examples)
    }


def _sources() -> list[str]:
    """The names that FROM SOURCE takes."""
    names: set[str] = set()
    for model in (Replicator, Draft):
        rows = model._default_manager.exclude(source_kind="").exclude(name="")
        names.update(rows.order_by("name").values_list("name", flat=True)[:LISTED])
    return sorted(names)[:LISTED]


def _run(request: HttpRequest, asked: _Asked) -> None:
    try:
        asked.outcome = statement_run(text=asked.text, actor=person(request), source=asked.source)
    except StatementError as err:
        asked.status, asked.error = 400, err
    except NoRight as err:
        asked.status, asked.refused = 403, str(err)
    except Exception as err:
        answer = answer_of(err)
        if answer is None:
            raise
        asked.status, asked.refused = answer.status, answer.message
        asked.fields, asked.problems = answer.fields, answer.problems
    else:
        if asked.outcome.act != "shown":
            asked.text = ""


@may_view
@require_GET
def statement_card(request: HttpRequest, pk: str) -> HttpResponse:
    """The statement that makes a replicator, as a card of its page of configuration. Without
    JavaScript, a page."""
    found = get_object_or_404(Replicator, pk=pk)
    text = statement_of(found)
    context: dict[str, Any] = {
        "section": "replicators",
        "replicator": found,
        "statement": text,
        "has_secrets": has_secrets(text),
    }
    panel = "drafts/partials/_statement.html"
    return render_page(request, "drafts/statement.html", panel, context)
