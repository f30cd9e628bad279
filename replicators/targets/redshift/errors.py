"""Maps errors of psycopg and Redshift to `ReplicationError`s by a table of rules. Redshift gives
many errors the state XX000, so most rules read the text. It never gets into them."""

from __future__ import annotations

from typing import Any

import psycopg

from replicators.connectors.postgres.params import facts
from replicators.connectors.postgres.rules import Rule, code_by, name_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.stores import bucket_of
from replicators.targets.redshift.params import RedshiftParams

FAULTS = (psycopg.Error,)
RULES = (
    Rule("target:conflict", "", r"\b1023\b|serializable isolation|could not serialize|\b1018\b"),
    Rule("target:conflict", "40"),
    Rule("target:redshift-role", "", r"not authorized to assume|iam role .*(invalid|not|empty)"
         r"|default iam role|not associated"),
    Rule("target:bucket-missing", "", r"NoSuchBucket|bucket does not exist"),
    Rule("target:bucket-keys", "", r"InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken"),
    Rule("target:redshift-region", "", r"PermanentRedirect|must be addressed|incorrect region"),
    Rule("target:redshift-file", "", r"NoSuchKey|specified key does not exist"),
    Rule("target:redshift-read", "", r"S3ServiceException|Status 40[13]|Access ?Denied"),
    Rule("target:redshift-full", "53100"),
    Rule("target:redshift-full", "", r"disk full"),
    Rule("target:redshift-connections", "53300"),
    Rule("target:redshift-connections", "", r"too many connections|connection limit"),
    Rule("target:redshift-cancelled", "57014"),
    Rule("target:redshift-lost", "57P"),
    Rule("target:redshift-dependent", "2BP01"),
    Rule("target:table-missing", "42P01"),
    Rule("target:table-missing", "3F000"),
    Rule("target:column-missing", "42703"),
    Rule("target:redshift-right", "42501"),
    Rule("target:redshift-login", "28"),
    Rule("target:redshift-database", "3D000"),
    Rule("target:redshift-value", "22"),
    Rule("target:redshift-value", "", r"Spectrum Scan Error|stl_load_errors|sys_load_error"
         r"|DDL length|invalid json|exceeds"),
    Rule("target:redshift-login", "", r"authentication failed|no password supplied|pg_hba"),
    Rule("target:redshift-database", "", r"database \".*\" does not exist"),
    Rule("target:redshift-lost", "", r"server closed the connection|connection is (lost|closed)"
         r"|connection is bad|no connection to the server|could not (send|receive) data"
         r"|reset by peer|broken pipe|EOF detected|terminating connection|lost synchronization"),
    Rule("target:redshift-host", "", r"translate host name|resolve host|name resolution|not known"
         r"|timeout expired|timed out|refused|unreachable|No route|connection to server"),
    Rule("target:redshift-host", "", r"SSL|certificate"),
    Rule("target:redshift-lost", "08"),
    Rule("target:redshift-refused"),
)  # fmt: skip


def code_of(err: BaseException) -> str:
    """The error code for a driver's error."""
    return code_by(RULES, err)


def translate(err: BaseException, params: RedshiftParams) -> Exception:
    """The `ReplicationError` for `err`; raise it `from err`."""
    if isinstance(err, ReplicationError):
        return err
    known: dict[str, Any] = {
        **facts(params),
        "bucket": bucket_of(params.folder)[0],
        "folder": params.folder,
        "role": params.role or "none",
        "act": "read from",
        "number": name_of(err),
    }
    return ReplicationError(code_of(err), **known)


def plain(err: psycopg.Error, secret: str) -> psycopg.Error:
    """The same error without the statement that it may quote: a COPY with keys holds a secret."""
    told = str(err).partition("\nLINE ")[0]
    made = type(err)(told.replace(secret, "***") if secret else told)
    made.sqlstate = err.sqlstate
    return made
