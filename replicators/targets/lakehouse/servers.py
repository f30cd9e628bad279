"""What Spark and pyiceberg need to reach an Iceberg catalog that speaks REST. No secret is in
Spark's settings or in arguments: a setting names a variable of the JVM's environment. Opens
nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicators.connectors.addresses import Url

TOKENS = "v1/oauth/tokens"
"""Where a catalog answers for tokens itself."""
CREDENTIAL = "REPLICATOR_CATALOG_CREDENTIAL"
BEARER = "REPLICATOR_CATALOG_TOKEN"
KEY_ID = "REPLICATOR_CATALOG_ACCESS_KEY"
KEY = "REPLICATOR_CATALOG_SECRET_KEY"
CONNECT_SECONDS, ANSWER_SECONDS = 10, 120
HTTP = {
    "http-client.type": "urlconnection",
    "http-client.urlconnection.connection-timeout-ms": str(1000 * CONNECT_SECONDS),
    "http-client.urlconnection.socket-timeout-ms": str(1000 * ANSWER_SECONDS),
}
"""Of Amazon's clients that Iceberg makes: the one that is among the jars, with its limits."""
DELEGATION = "X-Iceberg-Access-Delegation"
"""The header by which a client asks for keys of the store."""
PYTHON_FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"


@dataclass(frozen=True, slots=True)
class CatalogServer:
    """A catalog server, and who asks it: an OAuth2 client, the holder of a token, somebody who
    signs requests with the keys `client` and `secret` (SigV4, for the service `signing`), or
    nobody. Who signs without keys has those of the environment."""

    uri: str
    warehouse: str = ""
    client: str = ""
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    token_uri: str = ""
    scope: str = ""
    signing: str = ""
    region: str = ""

    def spark_conf(self) -> dict[str, str]:
        """The catalog's settings in Spark. Iceberg puts the environment's value in place of
        `env:NAME`. A client asks for a new token as it asked for the first one: not every server
        of tokens can exchange one for another."""
        found = {
            "type": "rest",
            "uri": self.uri,
            "rest-metrics-reporting-enabled": "false",
            "rest.client.connection-timeout-ms": str(1000 * CONNECT_SECONDS),
            "rest.client.socket-timeout-ms": str(1000 * ANSWER_SECONDS),
            **self._named,
        }
        if self.signing:
            return found | self._signed()
        if self.client or self.token:
            found["rest.auth.type"] = "oauth2"
        if self.client:
            found |= {"credential": f"env:{CREDENTIAL}", "token-exchange-enabled": "false"}
        elif self.token:
            found |= {"token": f"env:{BEARER}", "token-refresh-enabled": "false"}
        else:
            found["rest.auth.type"] = "none"
        return found

    def _signed(self) -> dict[str, str]:
        found = {
            "rest.auth.type": "sigv4",
            "rest.auth.sigv4.delegate-auth-type": "none",
            "rest.signing-name": self.signing,
        }
        if self.region:
            found["rest.signing-region"] = self.region
        if self.client:
            found["rest.access-key-id"] = f"env:{KEY_ID}"
            found["rest.secret-access-key"] = f"env:{KEY}"
        return found

    def environment(self) -> dict[str, str]:
        """The variables that `spark_conf` names."""
        if self.client and self.signing:
            return {KEY_ID: self.client, KEY: self.secret}
        if self.client:
            return {CREDENTIAL: self._credential}
        return {BEARER: self.token} if self.token else {}

    def properties(self) -> dict[str, str]:
        """The catalog's settings in pyiceberg."""
        found = {"uri": self.uri, "py-io-impl": PYTHON_FILE_IO, **self._named}
        if self.signing:
            signed = {
                "rest.sigv4-enabled": "true",
                "rest.sigv4.max-retries": "0",
                "rest.signing-name": self.signing,
                "rest.signing-region": self.region,
                "client.region": self.region,
                "client.access-key-id": self.client,
                "client.secret-access-key": self.secret,
            }
            return found | {name: value for name, value in signed.items() if value}
        if self.client:
            found["credential"] = self._credential
        elif self.token:
            found["token"] = self.token
        return found

    @property
    def _credential(self) -> str:
        return f"{self.client}:{self.secret}"

    @property
    def _named(self) -> Mapping[str, str]:
        found = {"warehouse": self.warehouse}
        if self.client and not self.signing:
            own = f"{self.uri.rstrip('/')}/{TOKENS}"
            found |= {"oauth2-server-uri": self.token_uri or own, "scope": self.scope}
        return {name: value for name, value in found.items() if value}


def address_fault(text: str) -> str:
    """What is wrong with an address of the web, as a sentence; empty where nothing is."""
    if not text:
        return ""
    try:
        url = Url.parse(text)
    except ValueError as err:
        return str(err)
    if url.scheme not in {"http", "https"} or not url.host:
        return "must begin with https:// or http:// and a host"
    return "must not have a login or ?" if url.user or url.query or "?" in text else ""
