"""The settings of an Elasticsearch target. Parsing only; nothing is opened here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.addresses import Place, Url
from replicators.connectors.params import InvalidParams, param
from replicators.targets.elasticsearch.naming import name_fault

TEXT, OBJECTS = "text", "objects"
REFRESH = {"1 second": "1s", "5 seconds": "5s", "30 seconds": "30s", "1 minute": "60s"}
_PLACEHOLDER = re.compile(r"\{(schema|table)\}")


def _address_fault(text: str) -> str:
    for one in text.split(","):
        try:
            url = Url.parse(one.strip())
        except ValueError as err:
            return f"{err}: write http://host:9200 or https://host:9200"
        if url.scheme not in {"http", "https"}:
            return "must begin with http:// or https://"
        if not url.host or url.user or url.query:
            return "must be host and port alone; user, password and key have fields of their own"
    return ""


def _index_fault(text: str) -> str:
    plain = _PLACEHOLDER.sub("x", text)
    if "{" in plain or "}" in plain:
        return "may have the placeholders {schema} and {table} only"
    return name_fault(plain)


@dataclass(frozen=True, slots=True)
class ElasticsearchParams:
    """The cluster, who writes to it, and how indexes are called and made."""

    address: str = param(
        "Address",
        help="Of the cluster, for example https://search.example:9200. Several addresses of one "
        "cluster are separated by commas.",
        addresses=True,
        is_movable=True,
        secrets_go="enter it in Password or API key",
        check=_address_fault,
    )
    user: str = param("User", default="", addresses=True)
    password: str = param("Password", default="", secret=True)
    api_key: str = param(
        "API key",
        help="In its encoded form, in place of user and password",
        default="",
        secret=True,
    )
    ca_file: str = param(
        "CA file",
        help="Certificates in PEM form that prove the server; empty: those of this machine",
        default="",
        is_movable=True,
    )
    verify: bool = param(
        "Check the server's certificate", default=True, addresses=True, is_movable=True
    )
    index: str = param(
        "Index",
        help="The name under which a table is searched. {schema} and {table} are replaced.",
        default="{table}",
        check=_index_fault,
    )
    json: str = param(
        "JSON documents",
        help="text: kept as text and not searched. objects: their fields are searched; fields of "
        "one name must have one type.",
        default=TEXT,
        choices=(TEXT, OBJECTS),
    )
    refresh: str = param(
        "Refresh",
        help="How soon a written document is found by searches",
        default="1 second",
        choices=tuple(REFRESH),
        is_movable=True,
    )
    shards: int = param("Shards of new indexes", default=1, minimum=1, maximum=1024)
    replicas: int = param("Replicas of new indexes", default=1, minimum=0, maximum=20)
    bulk_megabytes: int = param(
        "Megabytes a request",
        help="About the size of a bulk request",
        default=5,
        minimum=1,
        maximum=90,
    )

    def __post_init__(self) -> None:
        if self.api_key and (self.user or self.password):
            raise InvalidParams({"api_key": "must be empty where a user or a password is given"})
        if self.password and not self.user:
            raise InvalidParams({"user": "is required where a password is given"})

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses, without a trailing slash."""
        return tuple(a.strip().rstrip("/") for a in self.address.split(","))


def places(params: ElasticsearchParams) -> tuple[Place, ...]:
    """The cluster's hosts, and the file of certificates."""
    found = []
    for text in params.urls:
        url = Url.parse(text)
        port = url.port or (443 if url.scheme == "https" else 80)
        found.append(Place("host", url.host, "Address", port=port))
    if params.ca_file:
        found.append(Place("file", params.ca_file, "CA file"))
    return tuple(found)
