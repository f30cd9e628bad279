"""Maps errors of PyMySQL, of sockets and of the binlog dump to `ReplicationError`s by a table of
rules. A driver's text never gets into them."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId
from replicators.connectors.mysql import sql
from replicators.connectors.mysql.rules import Codes, Rule
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.params import MysqlParams

CONNECT_SECONDS = 5


RULES = (
    Rule(
        "source:server-id-in-use",
        (),
        r"same server_(uuid|id)|server_id/server_uuid as this|already connected",
    ),
    Rule(
        "source:position-lost",
        (1236,),
        r"could not find|purged|position > file size|not in the (master|source)|impossible "
        r"position|more transactions",
    ),
    Rule("source:log-damaged", (1236,), r"corrupt|checksum|crc|bogus data|read error|event too"),
    Rule("source:position-lost", (1236,)),
    Rule("source:setting", (1381,)),
    Rule("source:login-refused", (1045, 1698, 1251, 1862, 3118, 4151)),
    Rule("source:database-missing", (1049,)),
    Rule("source:login-refused", (1044,)),
    Rule("source:right-missing", (1227, 1370, 3869)),
    Rule("source:select-right", (1142, 1143)),
    Rule("source:table-missing", (1146, 1051, 1109)),
    Rule("source:tablespace-missing", (1812, 1813, 1814, 1932)),
    Rule("source:connections-used-up", (1040, 1203, 1226)),
    Rule("source:table-altered", (1054, 1412)),
    Rule("source:timeout", (1205, 3024, 1969, 1028, 3168)),
    Rule("source:tls", (2026, 3159)),
    Rule("source:tls", (2003,), r"\bSSL\b|certificate"),
    Rule("source:unknown-host", (2003, 2005), r"name resolution|not known|getaddrinfo|Name or "
                                              r"service"),
    Rule("source:timeout", (2003, 2013), r"timed out|timeout"),
    Rule("source:unreachable", (2003, 2002)),
    Rule("source:connection-lost",
    (0, 2006, 2013, 2014, 2055, 1053, 1077, 1080, 1152, 1158, 1159, 1160, 1161, 1317, 1927, 4031)),
)  # fmt: skip


CODES = Codes(RULES, "source:tls", "source:timeout", "source:connection-lost")


def code_of(err: BaseException) -> str:
    """The error code for a driver's error; `internal:unexpected` where no rule fits."""
    return CODES.code_of(err)


def translate(
    err: BaseException,
    params: MysqlParams | None = None,
    *,
    table: TableId | None = None,
    **facts: object,
) -> Exception:
    """The `ReplicationError` for `err`; raise it `from err`. An error that is a `ReplicationError`
    already is returned unchanged."""
    if isinstance(err, ReplicationError):
        return err
    code = code_of(err)
    known: dict[str, object] = {}
    if params is not None:
        user = f"{sql.literal(params.user)}@'%'"
        known = {
            "host": params.host,
            "port": params.port,
            "database": params.database,
            "user": params.user,
            "sslmode": params.tls,
            "seconds": CONNECT_SECONDS,
            "right": "REPLICATION SLAVE",
            "statement": f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user};",
        }
    if table is not None:
        known["quoted"] = sql.table(table)
    if code == "source:position-lost":
        known["reason"] = "the server no longer has the binlog file, or it was reset"
    if code == "internal:unexpected":
        number = next((a for a in getattr(err, "args", ()) if isinstance(a, int)), "")
        known["name_of_error"] = f"{type(err).__name__} {number}".strip()
    if code == "source:setting":
        known |= {"setting": "log_bin", "value": "OFF", "wanted": "ON"}
    return ReplicationError(code, table=table, **{**known, **facts})
