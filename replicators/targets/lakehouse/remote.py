"""pyiceberg's client of a REST catalog, with limits of time, and its faults as error codes."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.response import ErrorResponse
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    ForbiddenError,
    OAuthError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from requests import HTTPError, PreparedRequest, Response, Session
from requests.adapters import BaseAdapter
from requests.exceptions import RequestException

from replicators.connectors import limits
from replicators.targets.lakehouse.servers import ANSWER_SECONDS, CONNECT_SECONDS, DELEGATION

_REFUSED = (UnauthorizedError, AuthorizationExpiredError, OAuthError)
_AWAY = (ServerError, ServiceUnavailableError, TooManyRequestsError)


_UNSIGNED = re.compile(
    r"InvalidSignature|SignatureDoesNotMatch|UnrecognizedClient|InvalidClientTokenId|ExpiredToken"
    r"|MissingAuthenticationToken|security token"
)
"""How services of Amazon refuse a signature. They do so with a 403."""


def _limit(adapter: BaseAdapter) -> None:
    """End the adapter's requests that are not answered in time."""
    send = adapter.send

    def limited(request: PreparedRequest, *args: Any, **more: Any) -> Response:
        more["timeout"] = (limits.left(CONNECT_SECONDS), limits.left(ANSWER_SECONDS))
        return send(request, *args, **more)

    adapter.send = limited  # type: ignore[method-assign]


class Catalog(RestCatalog):
    """It asks for keys of the store only where its properties say so: a server that makes some for
    each answer takes its time. It reads no password of this machine's user."""

    def _create_session(self) -> Session:
        session: Session = super()._create_session()
        session.trust_env = False
        if f"header.{DELEGATION}" not in self.properties:
            session.headers.pop(DELEGATION, None)
        for adapter in session.adapters.values():
            _limit(adapter)
        return session

    def _init_sigv4(self, session: Session) -> None:
        from boto3 import Session as Identity

        mine = self.properties.get("client.access-key-id")
        if not mine and Identity().get_credentials() is None:
            raise UnauthorizedError("nothing has keys to sign with")
        super()._init_sigv4(session)


def fault(err: BaseException) -> str:
    """The code of what a client's exception says about the server; empty where it says nothing."""
    if isinstance(err, _REFUSED) or (
        isinstance(err, ForbiddenError) and _UNSIGNED.search(str(err))
    ):
        return "target:catalog-refused"
    if isinstance(err, ForbiddenError):
        return "target:catalog-rights"
    if isinstance(err, _AWAY) or (isinstance(err, RequestException) and _is_away(err)):
        return "target:catalog-unreachable"
    return ""


def fault_of_opening(err: BaseException) -> str:
    """As `fault`, for a catalog that is opened: its first answer must be that of a catalog."""
    known = fault(err)
    answer = err.__cause__.response if isinstance(err.__cause__, HTTPError) else None
    if answer is not None and not _is_of_catalog(answer):
        return "target:catalog-unknown"
    if known:
        return known
    if answer is not None and answer.status_code in {400, 404}:
        return "target:catalog-warehouse"
    is_answer = isinstance(err, (ValidationError, RequestException, KeyError, AttributeError))
    return "target:catalog-unknown" if is_answer else ""


def _is_away(err: RequestException) -> bool:
    return err.response is None


def _is_of_catalog(answer: Response) -> bool:
    """Whether an error's answer has the form of a catalog's. A proxy may answer for one that is
    away or asks for a login."""
    if answer.status_code in {401, 403, 419, 429} or answer.status_code >= 500:
        return True
    try:
        ErrorResponse.model_validate_json(answer.text)
    except ValidationError:
        return '"error"' in answer.text and "oauth" in str(answer.url)
    return True
