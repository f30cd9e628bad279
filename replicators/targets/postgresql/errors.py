"""Maps errors of psycopg and libpq to `ReplicationError`s by a table of rules, most by SQLSTATE. A
driver's text never gets into them."""

from __future__ import annotations

import re

from replicators.connectors.model.schema import TableId
from replicators.connectors.postgres.params import Server
from replicators.connectors.postgres.params import facts as facts_of
from replicators.connectors.postgres.rules import Rule, code_by, name_of, state_of
from replicators.connectors.problems.errors import ReplicationError

LOCK_SECONDS = 30
RULES = (
    Rule("target:storage-full", "53100"),
    Rule("target:storage-full", "", r"no space left on device|disk quota exceeded"),
    Rule("target:postgresql-memory", "53200"),
    Rule("target:postgresql-connections", "53300"),
    Rule("target:postgresql-connections", "", r"too many (clients|connections)|connection slots"),
    Rule("target:postgresql-lock", "55P03"),
    Rule("target:postgresql-lock", "55006"),
    Rule("target:postgresql-lost", "57P"),
    Rule("target:postgresql-lost", "25P03"),
    Rule("target:postgresql-lost", "25P04"),
    Rule("target:postgresql-cancelled", "57014"),
    Rule("target:conflict", "40"),
    Rule("target:conflict", "42P07"),
    Rule("target:conflict", "42P06"),
    Rule("target:conflict", "23505", r"pg_(class|type|namespace|attribute)_"),
    Rule("target:conflict", "XX000", r"tuple concurrently (updated|deleted)"),
    Rule("target:table-missing", "42P01"),
    Rule("target:table-missing", "3F000"),
    Rule("target:column-missing", "42703"),
    Rule("target:postgresql-table-changed", "42804"),
    Rule("target:postgresql-table-changed", "42846"),
    Rule("target:postgresql-table-changed", "42883"),
    Rule("target:postgresql-table-changed", "22001"),
    Rule("target:postgresql-table-changed", "42809"),
    Rule("target:postgresql-table-changed", "428C9"),
    Rule("target:postgresql-read-only", "25006"),
    Rule("target:postgresql-read-only", "", r"recovery is in progress|(during|in) recovery$"),
    Rule("target:postgresql-right", "42501"),
    Rule("target:postgresql-value", "22"),
    Rule("target:postgresql-constraint", "23"),
    Rule("target:postgresql-limit", "54"),
    Rule("target:postgresql-dependent", "2BP01"),
    Rule("target:postgresql-dependent", "42P16"),
    Rule("target:postgresql-dependent", "0A000", r"used by a view or rule|used in .*(view|policy)"),
    Rule("target:postgresql-trigger", "P0"),
    Rule("target:postgresql-trigger", "09000"),
    Rule("target:postgresql-trigger", "27000"),
    Rule("target:postgresql-login", "28"),
    Rule("target:postgresql-database", "3D000"),
    Rule(
        "target:postgresql-host", "", r"translate host name|resolve host|name resolution|not known"
    ),
    Rule("target:timeout", "", r"timeout expired|timed out"),
    Rule(
        "target:postgresql-login",
        "",
        r"authentication failed|no password supplied|pg_hba\.conf"
        r"|role \".*\" does not exist|not permitted to log in",
    ),
    Rule("target:postgresql-database", "", r"database \".*\" does not exist"),
    Rule(
        "target:postgresql-lost",
        "",
        r"server closed the connection|connection is (lost|closed)|the connection is bad"
        r"|no connection to the server|could not (send|receive) data|reset by peer|broken pipe"
        r"|EOF detected|lost synchronization|terminating connection",
    ),
    Rule("target:postgresql-unreachable", "", r"starting up|shutting down|recovery mode"),
    Rule("target:postgresql-tls", "", r"SSL|certificate|TLS"),
    Rule(
        "target:postgresql-unreachable",
        "",
        r"refused|No such file|unreachable|No route|connection to server",
    ),
    Rule("target:postgresql-lost", "08"),
)
_COLUMN = re.compile(r"^COPY .*?, line \d+, column ([^:\n]+)")
REASONS = {
    "22021": "a text has a NUL character, or is not valid in the database's encoding",
    "22P05": "a text has a character that the database's encoding has no form for",
    "22P02": "a text can't be read as the column's type",
    "22P03": "a value can't be read as the column's type",
    "22003": "a number is out of range",
    "22008": "a time or date is out of range",
    "22007": "a time or date can't be read",
    "2203": "a JSON document can't be read",
    "54000": "an index entry or a value is too large",
    "54001": "a statement is too complex",
    "54011": "there are too many columns, or a row is too large",
}


def code_of(err: BaseException) -> str:
    """The error code for a driver's error; `internal:unexpected` where no rule fits."""
    return code_by(RULES, err)


def reason_of(err: BaseException) -> str:
    """Why the server refused a value, as the end of a sentence, with the column where the server
    names it. What it says of the value itself is not used."""
    own = getattr(err, "reason", None)  # of our own encoder
    if own:
        return str(own)
    state = state_of(err)
    found = [text for begin, text in REASONS.items() if state.startswith(begin)]
    reason = found[0] if found else f"its code is {state}"
    column = _COLUMN.search(str(getattr(getattr(err, "diag", None), "context", None) or ""))
    return f"column {column[1]}: {reason}" if column else reason


def translate(
    err: BaseException,
    params: Server | None = None,
    *,
    table: TableId | None = None,
    **facts: object,
) -> Exception:
    """The `ReplicationError` for `err`; raise it `from err`. An error that is a `ReplicationError`
    already is returned unchanged."""
    if isinstance(err, ReplicationError):
        return err
    code = code_of(err)
    known: dict[str, object] = {} if params is None else facts_of(params)
    match code:
        case "target:postgresql-lock":
            known["seconds"] = LOCK_SECONDS
        case "target:postgresql-value" | "target:postgresql-limit":
            known["reason"] = reason_of(err)
        case "target:postgresql-constraint":
            diagnosis = getattr(err, "diag", None)
            known["constraint"] = getattr(diagnosis, "constraint_name", None) or "not named"
        case "internal:unexpected":
            known["name_of_error"] = name_of(err)
    return ReplicationError(code, table=table, **{**known, **facts})
