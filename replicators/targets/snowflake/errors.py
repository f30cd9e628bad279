"""Maps errors of Snowflake's driver to `ReplicationError`s. The driver's text never gets into
them."""

from __future__ import annotations

from typing import Any

from snowflake.connector import errors

from replicators.connectors.mysql.rules import Rule
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.snowflake.params import SnowflakeParams

FAULTS = (errors.Error, OSError)
RULES = (
    Rule("target:snowflake-login", pattern=r"incorrect username|jwt token|user .*(locked|disabled)"
         r"|multi-factor|not allowed to access|role .* not granted"),
    Rule("target:snowflake-account", (250001, 250003, 251001, 251011, 290403, 290404)),
    Rule("target:snowflake-quota", (90073,)),
    Rule("target:snowflake-warehouse", (606, 90064)),
    Rule("target:snowflake-warehouse", pattern=r"no active warehouse|warehouse .* not exist"),
    Rule("target:conflict", (625,)),
    Rule("target:column-missing", (904,)),
    Rule("target:snowflake-right", (3001, 3041)),
    Rule("target:table-missing", (2003, 2043)),
    Rule("target:snowflake-cancelled", (604, 630)),
)  # fmt: skip
STATES = (
    ("22", "target:snowflake-value"),
    ("42501", "target:snowflake-right"),
    ("42S02", "target:table-missing"),
    ("08", "target:snowflake-account"),
    ("57", "target:snowflake-cancelled"),
    ("40", "target:conflict"),
)
"""The codes by the beginning of an SQLSTATE, where no rule fits."""


def is_lost(err: BaseException) -> bool:
    """Whether the session can't be used any more."""
    ends = (errors.OperationalError, errors.InterfaceError, errors.InternalError, OSError)
    return isinstance(err, ends) or 390000 <= (getattr(err, "errno", None) or 0) < 400000


def code_of(err: BaseException) -> str:
    """The error code for a driver's error."""
    number, state = getattr(err, "errno", None) or -1, getattr(err, "sqlstate", None) or ""
    for rule in RULES:
        if rule.fits(number, str(err)):
            return rule.code
    found = next((code for head, code in STATES if state.startswith(head)), "")
    if found:
        return found
    return "target:snowflake-account" if is_lost(err) else "target:snowflake-refused"


def translate(err: BaseException, params: SnowflakeParams) -> Exception:
    """The `ReplicationError` for `err`; raise it `from err`."""
    code = code_of(err)
    known: dict[str, Any] = {
        "account": params.account,
        "user": params.user,
        "warehouse": params.warehouse,
        "role": params.role,
        "number": getattr(err, "errno", None) or type(err).__name__,
    }
    return ReplicationError(code, **known)
