"""The only place that turns an exception into an answer: `{"code", "message", "fields",
"problems"}`.

The apps above add their own exceptions with `answers`, so nothing here knows them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_handler
from rest_framework.views import set_rollback

from replicators.api.idempotency import KeyInUse, Replayed
from replicators.config import InvalidConfig
from replicators.connectors.params import InvalidParams
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, ProblemJson
from replicators.permissions import NoRight


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an exception. `fields` maps a field's path to its sentences. `retry_after`: the
    seconds after which the same request may get another answer; 0 where waiting does not help."""

    status: int
    code: str
    message: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    problems: list[ProblemJson] = field(default_factory=list)
    retry_after: int = 0

    def body(self) -> dict[str, Any]:
        """The body that every error has."""
        return {
            "code": self.code,
            "message": self.message,
            "fields": self.fields,
            "problems": self.problems,
        }

    def response(self, headers: dict[str, str] | None = None) -> Response:
        wait = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
        return Response(self.body(), status=self.status, headers={**wait, **(headers or {})})


_TABLE: dict[type[Exception], Callable[[Any], Answer]] = {}


def answers(kind: type[Exception]) -> Callable[[Callable[[Any], Answer]], Callable[[Any], Answer]]:
    """Register the function that answers exceptions of `kind`."""

    def register(make: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
        _TABLE[kind] = make
        return make

    return register


def error_to_json(error: ReplicationError) -> ProblemJson:
    """A `ReplicationError` in the form of a problem."""
    return Problem(error.code, table=error.table, facts=tuple(error.facts.items())).to_json()


_DATABASE = "The application's own database does not answer, or is busy. Try again in some seconds."
_STATUS = {
    "source:table-missing": 404,
    "source:timeout": 504,
    "target:timeout": 504,
    "config:unknown-kind": 400,
    "config:not-now": 409,
    "config:name-taken": 409,
    "config:another-server": 409,
}
_AREAS = {"source": 502, "target": 502, "internal": 502, "config": 400}


@answers(ReplicationError)
def _replication_error(error: ReplicationError) -> Answer:
    message = error.message
    code = _STATUS.get(error.code) or _AREAS.get(error.code.split(":", 1)[0], 409)
    fields = {k: [v] for k, v in getattr(error, "errors", {}).items()}
    text = f"{message.text} {message.suggestion}".strip()
    return Answer(code, error.code, text, fields, [error_to_json(error)])


@answers(InvalidParams)
def _invalid_params(error: InvalidParams) -> Answer:
    fields = {f"params.{k}": [v] for k, v in error.errors.items()}
    return _invalid(fields)


@answers(InvalidConfig)
def _invalid_config(error: InvalidConfig) -> Answer:
    return _invalid({k: [v] for k, v in error.errors.items()})


@answers(DjangoValidationError)
def _django_validation(error: DjangoValidationError) -> Answer:
    return _invalid(getattr(error, "message_dict", None) or {"": error.messages})


@answers(exceptions.ParseError)
def _parse_error(error: exceptions.ParseError) -> Answer:
    cause = error.__cause__ or error.__context__
    where = ""
    if isinstance(cause, json.JSONDecodeError):
        where = f": {cause.msg.lower()} at line {cause.lineno}, column {cause.colno}"
    text = f"The body is not valid JSON{where}. Send one JSON object in UTF-8."
    if isinstance(cause, RecursionError | UnicodeEncodeError) or cause is None:
        text = str(error.detail)
    return Answer(status.HTTP_400_BAD_REQUEST, "invalid-json", text)


@answers(exceptions.ValidationError)
def _drf_validation(error: exceptions.ValidationError) -> Answer:
    return _invalid(dict(_flatten("", error.detail)))


@answers(Http404)
def _not_found(error: Http404) -> Answer:
    return Answer(status.HTTP_404_NOT_FOUND, "not-found", "There is nothing at this address.")


@answers(PermissionDenied)
def _denied(error: PermissionDenied) -> Answer:
    return Answer(status.HTTP_403_FORBIDDEN, "permission-denied", "Your user may not do this.")


@answers(NoRight)
def _no_right(error: NoRight) -> Answer:
    return Answer(status.HTTP_403_FORBIDDEN, "permission-denied", str(error))


@answers(OperationalError)
@answers(InterfaceError)
def _database(error: Exception) -> Answer:
    return Answer(status.HTTP_503_SERVICE_UNAVAILABLE, "database-busy", _DATABASE, retry_after=5)


def _invalid(fields: dict[str, list[str]]) -> Answer:
    def sentence(name: str, texts: list[str]) -> str:
        text = texts[0].rstrip(".")
        return f"{name}: {text}." if name else f"{text}."

    message = " ".join(sentence(name, texts) for name, texts in list(fields.items())[:3])
    return Answer(
        status.HTTP_400_BAD_REQUEST, "invalid", message or "Something is missing.", fields
    )


def _flatten(path: str, detail: Any) -> list[tuple[str, list[str]]]:
    if isinstance(detail, dict):
        found = []
        for name, inner in detail.items():
            is_own = name == "non_field_errors"
            found += _flatten(path if is_own else f"{path}.{name}".lstrip("."), inner)
        return found
    if isinstance(detail, list) and any(isinstance(d, dict | list) for d in detail):
        return [pair for i, d in enumerate(detail) for pair in _flatten(f"{path}[{i}]", d)]
    texts = detail if isinstance(detail, list) else [detail]
    return [(path, [str(t) for t in texts])]


def _find(error: Exception) -> Callable[[Any], Answer] | None:
    return next((_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE), None)


def answer_of(error: Exception) -> Answer | None:
    """The answer to this exception; None where it is unknown here."""
    make = None if _is_ours(error) else _find(error)
    return None if make is None else make(error)


def _is_ours(error: Exception) -> bool:
    """Whether this is a fault of ours: SQLite lacks a table or column that no migration made yet.
    Waiting does not mend that."""
    return isinstance(error, OperationalError) and "no such " in str(error)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook. An exception that is unknown here goes on to Django as a 500."""
    if isinstance(error, Replayed):
        return error.response
    answer = answer_of(error)
    if answer is not None:
        set_rollback()
        return answer.response()
    known = drf_handler(error, context)
    if known is None or not isinstance(error, exceptions.APIException):
        return known
    code = str(getattr(error, "default_code", "error")).replace("_", "-")
    headers = {k: known[k] for k in ("WWW-Authenticate", "Retry-After") if known.has_header(k)}
    if isinstance(error, KeyInUse):
        headers["Retry-After"] = str(error.wait)
    return Answer(known.status_code, code, str(error.detail)).response(headers)
