"""A request that is sent twice with one `Idempotency-Key` is carried out once (IETF
draft-ietf-httpapi-idempotency-key-header).

A key belongs to a user. The answer of a success is kept for `KEPT` and sent again. A refusal
changed nothing, so its key may be used again with a corrected request. Where a process dies during
a request, the key is free again after `STUCK`.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from replicators.models import IdempotencyKey

HEADER = "Idempotency-Key"
KEPT = timedelta(hours=24)
STUCK = timedelta(minutes=5)
LONGEST = 255
PATTERN = "^[!-~]([ -~]{0,253}[!-~])?$"
_WRONG = f"{HEADER} must be 1 to {LONGEST} printable ASCII characters."


class KeyInUse(APIException):
    """The first request with this key is not answered yet."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "idempotency-key-in-use"
    default_detail = (
        "A request with this Idempotency-Key is being carried out. Send it again in some seconds."
    )
    wait = 2


class KeyReused(APIException):
    """The key was used for another request."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "idempotency-key-reused"
    default_detail = (
        "This Idempotency-Key was used for another request. Use a new key for each request."
    )


class Replayed(Exception):  # noqa: N818 (an answer, no error)
    """The request was carried out before. `response` is its answer."""

    def __init__(self, response: Response) -> None:
        super().__init__("carried out before")
        self.response = response


def begin(request: Request) -> IdempotencyKey | None:
    """Take the key of a POST that has one. `Replayed` where the request was carried out before;
    `KeyInUse`, `KeyReused`."""
    key = request.headers.get(HEADER)
    if key is None or request.method != "POST":
        return None
    if re.fullmatch(PATTERN, key) is None:
        raise ValidationError({HEADER: [_WRONG]})
    asked = {"user_id": request.user.pk, "key": key}
    fingerprint = _fingerprint(request)
    now = timezone.now()
    old = IdempotencyKey.objects.filter(**asked)
    old.filter(created_at__lt=now - KEPT).delete()
    old.filter(status=None, created_at__lt=now - STUCK).delete()
    try:
        with transaction.atomic():
            return IdempotencyKey.objects.create(**asked, fingerprint=fingerprint)
    except IntegrityError:
        raise _seen(old.first(), fingerprint) from None


def _seen(row: IdempotencyKey | None, fingerprint: str) -> Exception:
    if row is not None and row.fingerprint != fingerprint:
        return KeyReused()
    if row is None or row.status is None:
        return KeyInUse()
    return Replayed(Response(row.body, status=row.status, headers=row.headers))


def end(row: IdempotencyKey, response: Response) -> None:
    """Keep the answer of a success; delete the key of a refusal."""
    if not status.is_success(response.status_code):
        release(row)
        return
    row.status = response.status_code
    row.body = json.loads(JSONRenderer().render(response.data) or b"null")
    row.headers = {"Location": response["Location"]} if response.has_header("Location") else {}
    row.save(update_fields=["status", "body", "headers"])


def release(row: IdempotencyKey) -> None:
    """The request was not carried out: free its key."""
    IdempotencyKey.objects.filter(pk=row.pk).delete()


def expired(now: datetime) -> QuerySet[IdempotencyKey]:
    """The keys that have expired."""
    return IdempotencyKey.objects.filter(created_at__lt=now - KEPT)


def _fingerprint(request: Request) -> str:
    """A keyed digest, since a body may hold a password."""
    said = request.get_full_path().encode() + b"\n" + request.body
    return salted_hmac("replicators.idempotency", said, algorithm="sha256").hexdigest()
