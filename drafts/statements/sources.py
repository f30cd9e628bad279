"""Which source a statement means: that of a replicator or draft, by its name, or one written as an
address."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from drafts.models import Draft
from drafts.statements.addresses import params_given
from drafts.statements.errors import StatementError
from drafts.statements.tokens import Kind, Token
from drafts.statements.tree import Create
from replicators.config import plugins_of
from replicators.connectors.uris import scheme_of
from replicators.models import Replicator
from replicators.permissions import NoRight, can_change
from replicators.services import params_of

NO_SOURCE = (
    "Expected FROM SOURCE before INTO: the name of a replicator that reads the same source, or the "
    "source's address in quotes."
)
NOT_YOUR_SOURCE = (
    "Your user may use the sources of its own replicators only: write the source's address."
)


@dataclass(frozen=True, slots=True)
class Source:
    """A source's kind and raw params, secrets in clear. `places`: where the statement says each
    param."""

    kind: str
    params: dict[str, Any]
    places: dict[str, int] = field(default_factory=dict)


def source_of(statement: Create, asked: str, actor: User | None) -> Source:
    """The source of the statement's FROM SOURCE, or else the one called `asked`. `NoRight`
    where it is that of a replicator or draft which the actor may not change."""
    token = statement.source
    if token is None and asked:
        return _named(statement.text, asked, statement.into.at, actor)
    if token is None:
        raise StatementError(NO_SOURCE, statement.text, statement.into.at)
    if token.kind is Kind.TEXT and _is_address(token.value):
        return _written(statement.text, token)
    return _named(statement.text, token.value, token.at, actor)


def _is_address(text: str) -> bool:
    begin = text.partition(":")[0].lower()
    return ":" in text and ("://" in text or begin in plugins_of("source"))


def _written(text: str, token: Token) -> Source:
    scheme_of(token.value)
    kind, given = params_given(text, "source", token)
    params = {g.name: g.value for g in given}
    return Source(kind, params, {g.name: token.inside(g.at) for g in given})


def _named(text: str, name: str, at: int, actor: User | None) -> Source:
    rows: list[Replicator] | list[Draft] = list(Replicator.objects.filter(name=name))
    rows = rows or list(Draft.objects.filter(name=name, replicator_id=None))
    if len(rows) > 1:
        raise StatementError(
            f"Several drafts are called `{name}`: name another one, or write the source's address.",
            text,
            at,
        )
    if not rows or not rows[0].source_kind:
        known = sorted(Replicator.objects.values_list("name", flat=True)[:6])
        more = f" There are: {', '.join(f'`{n}`' for n in known[:5])}." if known else ""
        more += " Others exist too." if len(known) > 5 else ""
        raise StatementError(
            f"No replicator or draft with a source is called `{name[:64]}`.{more}", text, at
        )
    if actor is not None and not can_change(actor, rows[0]):
        raise NoRight(NOT_YOUR_SOURCE)
    return Source(rows[0].source_kind, params_of(rows[0], "source"))
