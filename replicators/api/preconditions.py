"""`ETag`, `If-None-Match` and `If-Match` (RFC 9110, 8.8 and 13): a change applies only to the
version that its sender read, and to none newer."""

from __future__ import annotations

import hashlib
from typing import Any

from django.utils.http import parse_etags
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response


class PreconditionFailed(APIException):
    """What `If-Match` names is not what is there."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "precondition-failed"
    default_detail = (
        "It was changed since you read it. Read it again, then repeat your change "
        "with the new ETag."
    )


def etag(data: Any) -> str:
    """A strong tag of an answer's content: two answers have the same tag only if they are equal."""
    return f'"{hashlib.sha256(JSONRenderer().render(data)).hexdigest()[:32]}"'


def tagged(request: Request, data: Any) -> Response:
    """The answer with its tag; 304 without a body where the client already has it."""
    tag = etag(data)
    seen = parse_etags(request.headers.get("If-None-Match", ""))
    if request.method == "GET" and ("*" in seen or tag in {t.removeprefix("W/") for t in seen}):
        return Response(status=status.HTTP_304_NOT_MODIFIED, headers={"ETag": tag})
    return Response(data, headers={"ETag": tag})


def has_condition(request: Request) -> bool:
    """Whether the request names the version that it is meant for."""
    return "If-Match" in request.headers


def require_match(request: Request, data: Any) -> None:
    """`PreconditionFailed` where the request is meant for another version than `data`. Weak tags
    never match."""
    if not has_condition(request):
        return
    wanted = parse_etags(request.headers["If-Match"])
    if "*" not in wanted and etag(data) not in wanted:
        raise PreconditionFailed
