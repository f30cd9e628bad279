"""Turns exceptions of Spark, Iceberg, Delta and the storage into error codes. The raw text stays in
`__cause__`."""

from __future__ import annotations

import re

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError, driver_of
from replicators.connectors.sql.steps import CODES
from replicators.targets.lakehouse.stores.kind import Store

_TABLE_OF_CODES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        *((re.escape(text), code) for text, code in CODES.items()),
        (
            r"no space left on device|disk quota exceeded|database or disk is full|ENOSPC",
            "target:storage-full",
        ),
        (
            r"NotAuthorizedException|UnauthorizedError|OAuthError|AuthorizationExpiredError",
            "target:catalog-refused",
        ),
        (
            r"UnrecognizedClientException|InvalidSignatureException|InvalidClientTokenId"
            r"|ExpiredTokenException|request signature we calculated|security token included",
            "target:catalog-refused",
        ),
        (
            r"ForbiddenException|ForbiddenError|glue\.model\.AccessDenied|perform: glue:",
            "target:catalog-rights",
        ),
        (
            r"permission denied|AccessDenied|AccessControlException|403 Forbidden|read-only file "
            r"system"
            r"|readonly database|Mkdirs failed|Operation not permitted",
            "target:not-writable",
        ),
        (
            r"CommitFailedException|ValidationException|Concurrent(Append|Write|Delete|Transaction|Modification|"
            r"Metadata)\w*|MetadataChangedException|ProtocolChangedException|database is "
            r"locked|SQLITE_BUSY",
            "target:conflict",
        ),
        (
            # A REST catalog or Glue; a commit may have been done
            r"glue\.model\.(Throttling|InternalService|OperationTimeout)|ServiceFailureException|ServiceUnavailable|RESTException|ServerError|"
            r"TTransportException|Failed to connect to Hive Metastore|"
            r"TooManyRequests|Max retries exceeded|Read timed out|Connection aborted",
            "target:catalog-unreachable",
        ),
        (r"types incompatible with the existing columns", "target:catalog-columns"),
        (
            r"CommitStateUnknown|UncheckedSQLException|SQLITE_CANTOPEN|unable to open "
            r"database|Connection refused"
            r"|UnknownHost|could not "
            r"connect|SQLTransientConnection|NotFoundException|FileNotFoundException"
            r"|terminating connection|server closed the connection|connection has been "
            r"closed|I/O error occurred while",
            "target:unreachable",
        ),
        (r"TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND|NoSuchTable", "target:table-missing"),
        (r"UNRESOLVED_COLUMN|DELTA_MERGE_UNRESOLVED_EXPRESSION", "target:column-missing"),
        (
            r"Cannot (connect to the Java|run program)|Connection reset by peer|SparkContext was "
            r"shut down",
            "run:spark",
        ),
    )
)


def code_of(err: BaseException) -> str:
    """The error code for a driver's exception."""
    raw = f"{type(err).__name__}: {err}"
    for pattern, code in _TABLE_OF_CODES:
        if pattern.search(raw):
            return code
    return "internal:unexpected"


def is_missing(err: BaseException) -> bool:
    """Whether the exception means that the table does not exist."""
    return (
        re.search(
            r"TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND|NoSuchTable|PATH_NOT_FOUND", str(err)
        )
        is not None
    )


def translate(
    err: BaseException, table: TableId | None = None, store: Store | None = None
) -> ReplicationError:
    """The error to show for a driver's exception. Raise it `from` that exception. `store`: where
    the warehouse lies; one whose keys are lent knows its own errors."""
    if isinstance(err, ReplicationError):
        return err
    if isinstance(err, ImportError):
        return ReplicationError("target:driver-missing", driver=driver_of(err))
    code = (store.code_of_run(str(err)) if store else "") or code_of(err)
    is_of_rights = code in {"target:catalog-rights", "target:lent-rights"}
    facts = {"act": "do what the run asks for"} if is_of_rights else {}
    return ReplicationError(code, table=table, name_of_error=type(err).__name__, **facts)
