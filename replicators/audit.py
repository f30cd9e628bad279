"""The audit trail: who did what to which object, from where, and what the values were before. Rows
are only added. They hold no foreign keys, so that they outlive the objects that they are about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.http import HttpRequest
from django.utils import timezone

from replicators.connectors.addresses import MASK, hidden

Actor = AbstractBaseUser | AnonymousUser | None
CHANGED = f"{MASK} (changed)"
PRUNED = "audit_pruned"
LONGEST_TEXT = 2_000
LONGEST_LIST = 200
LONGEST_ROW = 100_000
_SECRET_NAME = re.compile(r"password|passwd|secret|token|credential", re.IGNORECASE)
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class How(models.TextChoices):
    """The way by which somebody acted."""

    PAGE = "page", "Page"
    REST = "rest", "REST"
    TOKEN = "token", "REST token"  # noqa: S105 - a word of the trail, no secret
    ADMINISTRATION = "administration", "Administration"
    COMMAND = "command", "Command"
    PROGRAM = "program", "The program itself"


class AuditKept(Exception):
    """Rows of the audit trail can't be changed or deleted."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise AuditKept("Rows of the audit trail are neither changed nor deleted.")


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    """Allows reading and adding only."""

    update = delete = bulk_update = update_or_create = _refuse
    adelete = aupdate = abulk_update = aupdate_or_create = _refuse


class AuditEntry(models.Model):
    """One action. `through` is the name of the token or command. `old_values` and `new_values` hold
    only what changed, with secrets masked. `pruned_before`: this row says that older rows were
    deleted, and lets the database delete them."""

    at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)
    actor_id = models.CharField(max_length=40, blank=True)
    actor = models.CharField(max_length=150, blank=True, db_index=True)
    how = models.CharField(max_length=20, choices=How.choices)
    through = models.CharField(max_length=100, blank=True)
    act = models.CharField(max_length=60, db_index=True)
    object_kind = models.CharField(max_length=40, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_name = models.CharField(max_length=255, blank=True)
    old_values = models.JSONField(default=dict, blank=True)
    new_values = models.JSONField(default=dict, blank=True)
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    pruned_before = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(AuditQuerySet)()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=["object_kind", "object_id"], name="audit_by_object"),)
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.actor} {self.act}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Only adds a new row."""
        if not self._state.adding:
            _refuse()
        super().save(*args, **{**kwargs, "force_insert": True})

    delete = _refuse


@dataclass(frozen=True, slots=True)
class Thing:
    """The object of an action."""

    kind: str
    id: str = ""
    name: str = ""

    @classmethod
    def of(cls, row: models.Model) -> Thing:
        """A row of a model by its kind, key and name."""
        return cls(str(row._meta.model_name), str(row.pk), str(row))


@dataclass(frozen=True, slots=True)
class Person:
    """A user by key and name; the user may no longer exist."""

    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """The way by which an action comes in. `who` is asked when an action is recorded, since a
    request learns late who sent it."""

    how: str = How.PROGRAM
    through: Callable[[], str] = str
    who: Callable[[], Actor] = lambda: None
    address: str = ""
    request_id: str = ""


_origin: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 - frozen


@contextmanager
def acting(origin: Origin) -> Iterator[None]:
    """Everything that is recorded inside has this origin."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


@contextmanager
def commanded(name: str) -> Iterator[None]:
    """A command of `manage.py` asked for everything inside."""
    with acting(Origin(how=How.COMMAND, through=lambda: name)):
        yield


def origin_of(request: HttpRequest, address: str) -> Origin:
    """The origin of a request: page, administration, or REST with or without a token."""
    found = _REQUEST_ID.fullmatch(request.headers.get("X-Request-ID", ""))
    how = How.PAGE
    if request.path.startswith(("/api/v1/", "/metrics")):
        how = How.REST
    elif request.path.startswith("/admin/"):
        how = How.ADMINISTRATION
    return Origin(
        how=how,
        through=lambda: str(getattr(request, "auth", None) or ""),
        who=lambda: getattr(request, "user", None),
        address=address,
        request_id=found[0] if found else "",
    )


def record(
    act: str,
    thing: Thing,
    *,
    actor: Actor | Person = None,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
    secret: Collection[str] = (),
    pruned_before: datetime | None = None,
) -> AuditEntry:
    """Add a row, inside the transaction of the action. Without `actor`, the actor is the user of
    the request, if there is one. The values named in `secret`, and those whose names look like
    secrets, are stored as the mask."""
    origin = _origin.get()
    who = _person(actor or origin.who())
    through = _text(origin.through())[:100]
    return AuditEntry.objects.create(
        actor_id=who.id,
        actor=_text(who.name)[:150],
        how=How.TOKEN if origin.how == How.REST and through else origin.how,
        through=through,
        act=act,
        object_kind=thing.kind,
        object_id=_text(thing.id)[:64],
        object_name=_text(thing.name)[:255],
        old_values=_shown(old or {}, secret),
        new_values=_shown(new or {}, secret),
        address=origin.address[:64],
        request_id=origin.request_id,
        pruned_before=pruned_before,
    )


def _person(actor: Actor | Person) -> Person:
    if isinstance(actor, Person):
        return actor
    if actor is None or not actor.is_authenticated:
        return Person()
    return Person(str(actor.pk), actor.get_username())


def asked_by(act: str, thing: Thing) -> Person:
    """Who did this action to the thing last; nobody where no row says so."""
    found = AuditEntry.objects.filter(act=act, object_kind=thing.kind, object_id=thing.id).first()
    return Person() if found is None else Person(found.actor_id, found.actor)


def changed(
    before: Mapping[str, Any], after: Mapping[str, Any], secret: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What differs: the old values and the new ones. Of a secret, only that it changed. Both are
    empty where nothing changed."""
    names = [n for n in {**before, **after} if before.get(n) != after.get(n)]
    old = {n: _masked(n, before[n], secret, MASK) for n in names if n in before}
    new = {
        n: _masked(n, after[n], secret, CHANGED if n in before else MASK)
        for n in names
        if n in after
    }
    return old, new


def _masked(name: str, value: Any, secret: Collection[str], mask: str) -> Any:
    is_secret = name in secret or _SECRET_NAME.search(name)
    if is_secret and isinstance(value, str) and value:
        return value if value in {MASK, CHANGED} else mask
    return value


def _text(value: str) -> str:
    """The text, changed so that every database can store it."""
    return value.replace("\0", "").encode("utf-8", "replace").decode()


def _shown(values: Mapping[str, Any], secret: Collection[str]) -> dict[str, Any]:
    """The values as JSON, with secrets masked and long texts and lists cut. Values that do not fit
    into a row are left out; their number is given."""
    plain = json.loads(json.dumps(dict(values), default=str), parse_constant=str)
    found: dict[str, Any] = {}
    room = LONGEST_ROW
    for number, (name, value) in enumerate(plain.items()):
        reported = _cut(_masked(name, value, secret, MASK))
        room -= len(name) + len(json.dumps(reported))
        if number == LONGEST_LIST or room < 0:
            return {**found, "…": f"and {len(plain) - number} more"}
        found[_text(name)[:LONGEST_TEXT]] = reported
    return found


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        text = hidden(_text(value[: 10 * LONGEST_TEXT]))
        return text[:LONGEST_TEXT] + ("…" if len(text) > LONGEST_TEXT else "")
    if isinstance(value, list):
        left = len(value) - LONGEST_LIST
        more = [f"… and {left} more"] if left > 0 else []
        return [_cut(v) for v in value[:LONGEST_LIST]] + more
    if isinstance(value, dict):
        return {_text(k): _cut(_masked(k, v, (), MASK)) for k, v in value.items()}
    return value


def prune(now: datetime | None = None, portion: int = 5_000) -> int:
    """Delete a portion of the rows older than `REPLICATOR_AUDIT_SECONDS` (0: all are kept), after
    adding a row that says so. Returns how many."""
    if not settings.AUDIT_SECONDS:
        return 0
    now = now or timezone.now()
    limit = datetime.fromtimestamp(now.timestamp() - settings.AUDIT_SECONDS, tz=now.tzinfo)
    old = AuditEntry.objects.filter(at__lt=limit).order_by()
    keys = list(old.values_list("pk", flat=True)[:portion])
    if not keys:
        return 0
    record(
        PRUNED,
        Thing("audit"),
        new={"rows": len(keys), "before": limit.isoformat()},
        pruned_before=limit,
    )
    found = AuditEntry.objects.filter(pk__in=keys)
    return int(found._raw_delete(found.db))
