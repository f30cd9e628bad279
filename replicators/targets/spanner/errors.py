"""Turns what Spanner and Google's library raise into error codes. The service's own text stays in
`__cause__`."""

from __future__ import annotations

import re

from google.api_core import exceptions as google
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError

from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.spanner.params import SpannerParams

FAULTS = (google.GoogleAPICallError, google.RetryError, GoogleAuthError, OSError)
LOST = r"session not found"
"""What the service says of a session that it forgot."""
_TEXTS = (
    (LOST, "target:spanner-unreachable"),
    (r"table not found", "target:table-missing"),
    (r"column not found", "target:column-missing"),
    (r"(database|instance|project) not found|dialect", "target:spanner-database"),
    (r"too many mutations|maximum (?:commit )?size|exceeds the maximum", "target:spanner-limit"),
    (r"permission|iam", "target:spanner-right"),
)
"""Read where the status says too little."""
_STATUS: tuple[tuple[type[Exception], str], ...] = (
    (google.Unauthenticated, "target:spanner-credentials"),
    (google.Forbidden, "target:spanner-right"),
    (google.Aborted, "target:conflict"),
    (google.ResourceExhausted, "target:spanner-quota"),
    (google.TooManyRequests, "target:spanner-quota"),
    (google.ServerError, "target:spanner-unreachable"),
    (google.Cancelled, "target:spanner-unreachable"),
    (DefaultCredentialsError, "target:spanner-credentials"),
    (RefreshError, "target:spanner-credentials"),
    (google.RetryError, "target:spanner-unreachable"),
    (OSError, "target:spanner-unreachable"),
    (GoogleAuthError, "target:spanner-unreachable"),
)


def code_of(err: BaseException) -> str:
    """The error code of what was raised."""
    if isinstance(err, google.RetryError) and isinstance(err.cause, FAULTS):
        return code_of(err.cause)
    for kind, code in _STATUS:
        if isinstance(err, kind):
            return code
    found = (code for text, code in _TEXTS if re.search(text, str(err), re.IGNORECASE))
    return next(found, "target:spanner-refused")


def translate(err: BaseException, params: SpannerParams) -> ReplicationError:
    """The error to show. Raise it `from` that."""
    return ReplicationError(
        code_of(err),
        project=params.project,
        instance=params.instance,
        database=params.database,
        name_of_error=type(err).__name__,
    )
