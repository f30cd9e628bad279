"""Maps errors of PyMySQL and of sockets to `ReplicationError`s by a table of rules. A driver's text
never gets into them."""

from __future__ import annotations

import re

from replicators.connectors.model.schema import TableId
from replicators.connectors.mysql.rules import Codes, Rule, number_of, text_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.mysql.params import MysqlTargetParams

CONNECT_SECONDS = 5
LOCK_SECONDS = 30
DENIED = frozenset({1044, 1045, 1142, 1143, 1227})
RULES = (
    Rule("target:storage-full", (1021, 1114, 1030), r"full|no space|28"),
    Rule("target:conflict", (1213, 1020, 1050, 1637, 3572)),
    Rule("target:mysql-lock", (1205, 1099, 1100)),
    Rule("target:mysql-login", (1045, 1698, 1251, 1862, 3118, 4151)),
    Rule("target:mysql-right", (1044, 1142, 1143, 1227, 1370)),
    Rule("target:mysql-read-only", (1290, 1792, 1836, 3989)),
    Rule("target:table-missing", (1146, 1051, 1109, 1049, 1932)),
    Rule("target:column-missing", (1054,)),
    Rule("target:mysql-statement-log", (1665,)),
    Rule("target:mysql-packet", (1153, 1301)),
    Rule("target:mysql-value", (1118, 1264, 1292, 1300, 1366, 1367, 1406, 1411, 1441, 3854)),
    Rule("target:mysql-constraint", (1048, 1062, 1216, 1217, 1364, 1451, 1452, 3819, 4025)),
    Rule("target:mysql-trigger", (1644,)),
    Rule("target:mysql-table-changed", (1060, 1091, 1265, 1347, 1348, 1471, 1846, 3105)),
    Rule("target:mysql-connections", (1040, 1203, 1226)),
    Rule("target:mysql-cancelled", (1317, 3024, 1969)),
    Rule("target:mysql-tls", (2026, 3159)),
    Rule("target:mysql-tls", (2003,), r"\bSSL\b|certificate"),
    Rule("target:mysql-host", (2003, 2005), r"name resolution|not known|getaddrinfo|service"),
    Rule("target:timeout", (2003, 2013), r"timed out|timeout"),
    Rule("target:mysql-unreachable", (2003, 2002)),
    Rule("target:mysql-lost", (0, 2006, 2013, 2014, 2055, 1053, 1077, 1080, 1152, 1158, 1159, 1160,
                               1161, 1927, 4031)),
)  # fmt: skip
CODES = Codes(RULES, "target:mysql-tls", "target:timeout", "target:mysql-lost")
REASONS = {
    1118: "the row is larger than the server's pages hold",
    1264: "a number or a date is out of range",
    1292: "a date or a time is out of range",
    1300: "a text is not valid UTF-8",
    1366: "a value can't be read as the column's type",
    1406: "a value is too long for the column",
    1411: "a value can't be read as the column's type",
}
_COLUMN = re.compile(r"(?:for|too long for) column '([^']+)' at row")


class Refused(ValueError):
    """A value that MySQL has no form for. `reason` is the end of a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def code_of(err: BaseException) -> str:
    """The error code for a driver's error; `internal:unexpected` where no rule fits."""
    return "target:mysql-value" if isinstance(err, Refused) else CODES.code_of(err)


def _reason(err: BaseException) -> str:
    """Why the server refused a value, with its column where the server names it. What it says of
    the value itself is not used."""
    if isinstance(err, Refused):
        return err.reason
    number = number_of(err)
    reason = REASONS.get(number, f"its number is {number}")
    column = _COLUMN.search(text_of(err))
    return f"column {column[1].rsplit('.', 1)[-1].strip('`')}: {reason}" if column else reason


def translate(
    err: BaseException, params: MysqlTargetParams | None = None, *, table: TableId | None = None
) -> Exception:
    """The `ReplicationError` for `err`; raise it `from err`. An error that is a `ReplicationError`
    already is returned unchanged."""
    if isinstance(err, ReplicationError):
        return err
    code = code_of(err)
    known: dict[str, object] = {}
    if params is not None:
        known = {
            "host": params.host,
            "port": params.port,
            "user": params.user,
            "sslmode": params.tls,
            "seconds": LOCK_SECONDS if code == "target:mysql-lock" else CONNECT_SECONDS,
        }
    if code == "target:mysql-value":
        known["reason"] = _reason(err)
    if code == "internal:unexpected":
        known["name_of_error"] = f"{type(err).__name__} {number_of(err)}".strip()
    return ReplicationError(code, table=table, **known)
