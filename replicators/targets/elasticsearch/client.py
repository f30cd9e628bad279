"""Requests to a cluster. Faults of the network and of the cluster become error codes; what the
cluster said stays in `__cause__`."""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.elasticsearch.errors import BUSY, Answer, busy, error_of, is_blocked, said
from replicators.targets.elasticsearch.params import ElasticsearchParams

CONNECT_SECONDS, READ_SECONDS = 10.0, 120.0
PATIENCE_SECONDS = 120.0
"""For so long a request that the cluster is too busy for, or not there for, is repeated here."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
LINES = "application/x-ndjson"
_HARMLESS = frozenset({"_bulk", "_mget", "_search", "_refresh", "_settings"})
"""Documents have versions, so that a bulk request may come twice."""
NOT_FOUND = 404
TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class Pause:
    """Waits longer and longer, until the patience is over."""

    until: float
    patience: float

    @classmethod
    def begin(cls, patience: float) -> Pause:
        """From now on."""
        return cls(time.monotonic() + patience, patience)

    def wait(self, tries: int) -> bool:
        """Wait for the next try; False where there is no time left for it."""
        seconds = min(LONGEST_WAIT, FIRST_WAIT * 2**tries)
        if time.monotonic() + seconds > self.until:
            return False
        time.sleep(seconds)
        return True


class Search:
    """A cluster. A request that finds an address dead goes to the next one."""

    def __init__(
        self,
        params: ElasticsearchParams,
        *,
        patience: float = PATIENCE_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._urls = list(params.urls)
        self._patience = patience
        self._headers = _login(params)
        verified: dict[str, Any] = {}
        if not params.verify:
            verified = {"cert_reqs": "CERT_NONE", "assert_hostname": False}
        elif params.ca_file:
            if not os.path.isfile(params.ca_file):
                reason = "the file of certificates is not there"
                raise ReplicationError("target:place-unusable", path=params.ca_file, reason=reason)
            verified = {"ca_certs": params.ca_file}
        self._pool = urllib3.PoolManager(
            maxsize=4,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
            **verified,
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        act: str = "",
        table: TableId | None = None,
        accepts: Collection[int] = (),
    ) -> Answer:
        """A request; the answer, if it went well or has one of the statuses that are accepted.
        `act` says in an error what was asked: "make an index"."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.send(method, path, data, "application/json")
        if answer.status < 300 or answer.status in accepts:
            return answer
        raise error_of(answer, act, table)

    def send(self, method: str, path: str, data: bytes | None, kind: str = LINES) -> Answer:
        """A request. It is repeated while the cluster is too busy for it, or not there: a node that
        is started again is away for less than our patience."""
        pause, tries = Pause.begin(self._patience), 0
        while True:
            try:
                answer = self._once(method, path, data, kind)
            except (HTTPError, OSError) as err:
                if not _may_repeat(method, path, err) or not pause.wait(tries):
                    raise ReplicationError("target:unreachable") from err
            else:
                if answer.status not in BUSY or is_blocked(answer):
                    return answer
                if not pause.wait(tries):
                    raise busy(answer.status, self._patience) from said(answer)
            tries += 1

    def pause(self) -> Pause:
        """For documents that are repeated."""
        return Pause.begin(self._patience)

    def _once(self, method: str, path: str, data: bytes | None, kind: str) -> Answer:
        headers = {**self._headers, **({"Content-Type": kind} if data is not None else {})}
        for left in range(len(self._urls) - 1, -1, -1):
            try:
                got = self._pool.request(
                    method, self._urls[0] + path, body=data, headers=headers, redirect=False
                )
                if got.status < 300 and not got.data:
                    raise ProtocolError("The answer broke off before its body.")
                return Answer(got.status, got.data)
            except urllib3.exceptions.SSLError as err:
                raise ReplicationError("target:search-tls", reason=_untrusted(err)) from err
            except (HTTPError, OSError):
                self._urls = [*self._urls[1:], self._urls[0]]  # other threads read it meanwhile
                if not left:
                    raise
        raise AssertionError("there is an address")


def _may_repeat(method: str, path: str, error: Exception) -> bool:
    """Whether a request that had no answer may be sent again: it never arrived, or comes to the
    same where it arrives twice."""
    if isinstance(error, NewConnectionError):
        return True
    return method in {"GET", "DELETE"} or path.partition("?")[0].rpartition("/")[2] in _HARMLESS


_HOST_DIFFERS, _ADDRESS_DIFFERS, _EXPIRED = 62, 64, 10
"""Codes of OpenSSL."""


def _untrusted(error: BaseException) -> str:
    """Why there is no encrypted connection, without the server's name."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return "what answers at this port speaks no TLS, or another version of it"
    known = {
        _HOST_DIFFERS: "its certificate is one for another host",
        _ADDRESS_DIFFERS: "its certificate is one for another host",
        _EXPIRED: "its certificate has expired",
    }
    otherwise = "its certificate is not signed by an authority that this program trusts"
    return known.get(cause.verify_code, otherwise)


def _login(params: ElasticsearchParams) -> dict[str, str]:
    if params.api_key:
        return {"Authorization": f"ApiKey {params.api_key}"}
    if params.user:
        pair = base64.b64encode(f"{params.user}:{params.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}
