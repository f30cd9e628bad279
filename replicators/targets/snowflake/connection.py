"""Connections to the target, and the settings of their sessions."""

from __future__ import annotations

import logging
import textwrap
from typing import Any

from cryptography.hazmat.primitives import serialization
from snowflake import connector
from snowflake.connector import SnowflakeConnection as Connection

from replicators.connectors import limits
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.snowflake.errors import FAULTS, translate
from replicators.targets.snowflake.naming import quoted
from replicators.targets.snowflake.params import SnowflakeParams

__all__ = ["Connection", "connect", "rows"]

logging.getLogger("snowflake.connector").setLevel(logging.WARNING)  # it logs statements, and more
CONNECT_SECONDS = 20.0
ANSWER_SECONDS = 120
"""How long the driver asks again while no answer comes. A statement may take longer: the driver
asks for its state."""
SETTINGS = {
    "TIMEZONE": "UTC",
    "QUOTED_IDENTIFIERS_IGNORE_CASE": False,
    "LOCK_TIMEOUT": 60,
    "TIME_OUTPUT_FORMAT": "HH24:MI:SS.FF6",
    "TIMESTAMP_NTZ_OUTPUT_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF6",
    "JSON_INDENT": 0,
    "QUERY_TAG": "replicators",
}


def connect(params: SnowflakeParams) -> Connection:
    """Open a session in autocommit. ReplicationError where that fails."""
    seconds = int(limits.left(CONNECT_SECONDS))
    options: dict[str, Any] = {
        "account": params.account,
        "user": params.user,
        "host": params.url.host,
        "port": params.port,
        "protocol": params.url.scheme,
        "database": quoted((params.database,)),
        "warehouse": quoted((params.warehouse,)),
        "role": quoted((params.role,)) if params.role else None,
        "autocommit": True,
        "login_timeout": seconds,
        "network_timeout": seconds if limits.statement_seconds() else ANSWER_SECONDS,
        "client_session_keep_alive": True,
        "session_parameters": {**SETTINGS, "CLIENT_TELEMETRY_ENABLED": False},
        "application": "replicators",
        "platform_detection_timeout_seconds": 0.0,  # it would ask the cloud's metadata addresses
    }
    if params.private_key:
        options |= {"authenticator": "SNOWFLAKE_JWT", "private_key": _key(params)}
    else:
        options["password"] = params.password
    try:
        return connector.connect(**options)
    except FAULTS as err:
        raise translate(err, params) from err


def _key(params: SnowflakeParams) -> bytes:
    """The key as the driver wants it. A form may have taken the line ends out of it."""
    begin, end = params.private_key.index("KEY-----") + 8, params.private_key.rindex("-----END")
    body = "".join(params.private_key[begin:end].split())
    head, tail = params.private_key[:begin].strip(), params.private_key[end:].strip()
    text = "\n".join([head, *textwrap.wrap(body, 64), tail, ""])
    try:
        found = serialization.load_pem_private_key(
            text.encode(), params.passphrase.encode() or None
        )
    except (ValueError, TypeError):
        raise ReplicationError("target:snowflake-key") from None
    return found.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def rows(connection: Connection, text: str) -> list[dict[str, Any]]:
    """The rows of a statement, by the names of their columns in lower case. The driver's errors
    pass through."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        names = [d[0].lower() for d in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
