"""Turns what BigQuery answers into error codes, by the answer's `reason`. The service's own text
stays in `__cause__`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from replicators.connectors.problems.errors import ReplicationError, driver_of
from replicators.connectors.sql.steps import CODES

CHECK = re.compile(r"replicator check failed: (target:[a-z0-9-]+)")
"""What a failed `Check` of a script says. The code is the check's."""
_CONFLICT = re.compile(
    r"aborted due to concurrent update|could not serialize access|concurrent (?:dml|update|"
    r"transaction)|transaction is aborted",
    re.IGNORECASE,
)
_BYTES = re.compile(r"bytes ?billed", re.IGNORECASE)
_COLUMN = re.compile(r"unrecognized name|column .* (?:not found|is not present)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reason:
    """What a reason means. `is_passing`: the same job may succeed at once, so it is repeated under
    a new id before anybody is told."""

    code: str
    is_passing: bool = False


REASONS: dict[str, Reason] = {
    "accessDenied": Reason("target:bigquery-denied"),
    "backendError": Reason("target:bigquery-backend", is_passing=True),
    "badRequest": Reason("target:bigquery-refused"),
    "billingNotEnabled": Reason("target:bigquery-billing"),
    "billingTierLimitExceeded": Reason("target:bigquery-cost"),
    "bytesBilledLimitExceeded": Reason("target:bigquery-cost"),
    "blocked": Reason("target:bigquery-quota"),
    "dailyLimitExceeded": Reason("target:bigquery-quota"),
    "duplicate": Reason("target:conflict"),
    "internalError": Reason("target:bigquery-backend", is_passing=True),
    "invalid": Reason("target:bigquery-refused"),
    "invalidQuery": Reason("target:bigquery-refused"),
    "invalidUser": Reason("target:bigquery-credentials"),
    "jobBackendError": Reason("target:bigquery-backend", is_passing=True),
    "jobInternalError": Reason("target:bigquery-backend", is_passing=True),
    "jobRateLimitExceeded": Reason("target:bigquery-quota", is_passing=True),
    "notFound": Reason("target:table-missing"),
    "notImplemented": Reason("target:bigquery-refused"),
    "proxyAuthenticationRequired": Reason("target:unreachable"),
    "quotaExceeded": Reason("target:bigquery-quota"),
    "rateLimitExceeded": Reason("target:bigquery-quota", is_passing=True),
    "resourceInUse": Reason("target:conflict"),
    "resourcesExceeded": Reason("target:bigquery-refused"),
    "responseTooLarge": Reason("target:bigquery-refused"),
    "stopped": Reason("target:bigquery-backend"),
    "tableUnavailable": Reason("target:bigquery-backend", is_passing=True),
    "timeout": Reason("target:timeout", is_passing=True),
}
"""Every reason that BigQuery documents."""
_UNKNOWN = Reason("target:bigquery-refused")
_BY_STATUS = {
    401: Reason("target:bigquery-credentials"),
    403: Reason("target:bigquery-denied"),
    404: Reason("target:table-missing"),
    409: Reason("target:conflict"),
    429: Reason("target:bigquery-quota", is_passing=True),
}


def reasons_of(err: BaseException) -> list[dict[str, Any]]:
    """The errors that the service told, each with `reason` and `message`, the main one first."""
    found = getattr(err, "errors", None)
    return [e for e in found if isinstance(e, dict)] if isinstance(found, list | tuple) else []


def reason_of(err: BaseException) -> tuple[str, Reason]:
    """The reason's name and meaning."""
    for told in reasons_of(err):
        name = str(told.get("reason", ""))
        if name in REASONS:
            return name, REASONS[name]
    status = int(getattr(err, "code", 0) or 0)
    if status >= 500:
        return "backendError", REASONS["backendError"]
    return str(status or "unknown"), _BY_STATUS.get(status, _UNKNOWN)


def code_of(err: BaseException) -> str:
    """The error code of what a driver raised."""
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError
    from requests.exceptions import RequestException

    if isinstance(err, GoogleAPICallError):
        return _of_call(err)
    if isinstance(err, DefaultCredentialsError | RefreshError):
        return "target:bigquery-credentials"
    if isinstance(err, RetryError) and err.cause is not None:
        return code_of(err.cause)
    if isinstance(err, GoogleAuthError | RequestException | OSError | RetryError | TimeoutError):
        return "target:unreachable"
    return "internal:unexpected"


def _of_call(err: BaseException) -> str:
    text = _texts(err)
    failed = CHECK.search(text)
    if failed:
        return failed[1]
    for mark, code in CODES.items():
        if mark in text:
            return code
    name, reason = reason_of(err)
    if name in {"invalidQuery", "invalid", "jobBackendError"} and _CONFLICT.search(text):
        return "target:conflict"
    if name in {"invalidQuery", "badRequest"} and _BYTES.search(text):
        return "target:bigquery-cost"
    if name == "invalidQuery" and _COLUMN.search(text):
        return "target:column-missing"
    return reason.code


def _texts(err: BaseException) -> str:
    told: Iterable[str] = (str(e.get("message", "")) for e in reasons_of(err))
    return "\n".join([*told, str(err)])


def is_passing(err: BaseException) -> bool:
    """Whether a repeat of the same job may succeed at once."""
    from google.api_core.exceptions import GoogleAPICallError

    if not isinstance(err, GoogleAPICallError):
        return False
    name, reason = reason_of(err)
    return reason.is_passing and _of_call(err) == reason.code and name != "timeout"


def translate(err: BaseException, project: str) -> ReplicationError:
    """The error to show for what a driver raised. Raise it `from` that."""
    if isinstance(err, ReplicationError):
        return err
    if isinstance(err, ImportError):
        return ReplicationError("target:driver-missing", driver=driver_of(err))
    code = code_of(err)
    return ReplicationError(
        code, project=project, reason=reason_of(err)[0], name_of_error=type(err).__name__
    )
