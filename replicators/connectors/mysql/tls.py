"""TLS of connections to MySQL and MariaDB by PyMySQL, and the authorities that are trusted."""

from __future__ import annotations

import os
import ssl
import stat
from functools import cache
from typing import Any

from pymysql.connections import Connection

from replicators.connectors import limits
from replicators.connectors.problems.errors import ReplicationError

CERTIFICATE_BYTES = 4 << 20


@cache
def _encrypting() -> ssl.SSLContext:
    """TLS that verifies no certificate. Made once: a copy opens a connection for each chunk."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Preferring(Connection):
    """Uses TLS if the server offers it."""

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return sslp if isinstance(sslp, ssl.SSLContext) else _encrypting()

    def _get_server_information(self) -> None:
        """Read the server's greeting, which comes first, under our time limits."""
        limits.watch(self._sock.fileno())
        super()._get_server_information()


def _certificates(path: str, code: str) -> str:
    """The text of a file of certificates. The file is opened non-blocking: a pipe would make us
    wait forever."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            text = _regular_text(fd, path, code)
        finally:
            os.close(fd)
    except OSError as err:
        reason = "is not there" if isinstance(err, FileNotFoundError) else "can't be read"
        raise ReplicationError(code, path=path, reason=reason) from err
    if not text.strip():  # with an empty text this machine's own certificates would be used
        raise ReplicationError(code, path=path, reason="is empty")
    return text


def _regular_text(fd: int, path: str, code: str) -> str:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise ReplicationError(code, path=path, reason="is not a regular file")
    if found.st_size > CERTIFICATE_BYTES:
        raise ReplicationError(code, path=path, reason="is too large for a file of certificates")
    with open(fd, "rb", closefd=False) as file:
        return file.read(CERTIFICATE_BYTES).decode("ascii", "ignore")


def context(mode: str, authority: str, *, failed: str, file: str) -> ssl.SSLContext | None:
    """The TLS rules of a mode. None means: use TLS if the server offers it. `authority`: a file
    with the certificates that are trusted; empty: this machine's. `failed` and `file` are the
    codes of the errors that are raised."""
    if mode == "require":
        return _encrypting()
    if mode == "verify-full":
        trusted = _certificates(authority, file) if authority else None
        try:
            return ssl.create_default_context(cadata=trusted)
        except (OSError, ValueError) as err:
            if trusted is None:
                raise ReplicationError(failed, sslmode=mode) from err
            reason = "holds no certificates in PEM form"
            raise ReplicationError(file, path=authority, reason=reason) from err
    return None


def connect(options: dict[str, Any], rules: ssl.SSLContext | None) -> Connection:
    """Open a connection with PyMySQL's options under these rules. Errors of PyMySQL and of sockets
    pass through."""
    return _Preferring(**options) if rules is None else _Preferring(**options, ssl=rules)
