"""TLS and logins of a search cluster: what is right writes, and what is wrong is named by Test
connection. A server before the real one asks for the login and speaks TLS."""

from __future__ import annotations

import base64
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from assessments.services import connection_test
from replicators.targets.elasticsearch.params import ElasticsearchParams
from tests.certificates import Authority
from tests.integration.test_elasticsearch_target import Index
from tests.search_proxies import before
from tests.search_server import SearchServer

pytestmark = [pytest.mark.integration, pytest.mark.django_db]
KEY = "a2V5Om9mLWEtdGVzdA=="
PASSWORD = "right-horse"  # noqa: S105  of a server that tests start
RIGHT = {f"ApiKey {KEY}", "Basic " + base64.b64encode(f"writer:{PASSWORD}".encode()).decode()}
READER = "Basic " + base64.b64encode(b"reader:r").decode()


def guard(path: str, headers: Message, data: bytes) -> int | None:
    """As a cluster with security: 401 without a login that is known, 403 without the right."""
    given = headers.get("Authorization", "")
    if given == READER:
        return 403
    return None if given in RIGHT else 401


def said_of(address: str, **params: Any) -> tuple[list[str], str]:
    """The codes that Test connection shows, and its texts."""
    params = {"address": address, **params}
    found = connection_test(role="target", kind="elasticsearch", params=params)
    return [p.code for p in found], " ".join(f"{p.message.text}" for p in found)


def test_a_login_writes_and_a_wrong_one_is_named(search_server: SearchServer) -> None:
    """Guards user, password and API key: each right one writes; a wrong one is named, and is in no
    text."""
    with before(search_server, guard) as url:
        for right in ({"user": "writer", "password": PASSWORD}, {"api_key": KEY}):
            assert said_of(url, **right)[0] == []
            index = Index(search_server)
            index.params = ElasticsearchParams(address=url, index=index.alias, replicas=0, **right)
            index.sink = index.open()
            index.begin((1, "a"))
            assert index.rows() == {} or index.rows() == {1: "a"}
            index.deliver([], 10)
            assert index.rows() == {1: "a"}
        for wrong in (
            {},
            {"user": "writer", "password": "wrong-horse"},
            {"user": "nobody", "password": PASSWORD},
            {"api_key": "d3JvbmctaG9yc2U="},
        ):
            codes, text = said_of(url, **wrong)
            assert codes == ["target:search-login"], wrong
            assert "horse" not in text and "d3Jvbmct" not in text
        assert said_of(url, user="reader", password="r")[0] == ["target:search-denied"]


def test_a_certificate_is_checked_and_what_is_wrong_with_it_is_named(
    search_server: SearchServer, tmp_path: Path
) -> None:
    """Guards TLS: the right authority is trusted, and each wrong certificate is named by its
    fault."""
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    login = {"api_key": KEY}
    with before(search_server, guard, ours.server()) as url:
        assert said_of(url, ca_file=str(ours.file), **login)[0] == []
        assert said_of(url, verify=False, **login)[0] == []
        assert said_of(url, ca_file=str(ours.file), api_key="d3Jvbmc=")[0] == [
            "target:search-login"
        ]
        for wrong in ({}, {"ca_file": str(other.file)}):
            codes, text = said_of(url, **login, **wrong)
            assert codes == ["target:search-tls"] and "authority" in text
        missing = said_of(url, ca_file=str(tmp_path / "missing.pem"), **login)[0]
        assert missing == ["target:place-unusable"]
        plain = said_of(url.replace("https", "http"), **login)[0]
        assert plain == ["target:unreachable"]
    with before(search_server, guard, ours.server(host="search.example")) as url:
        codes, text = said_of(url, ca_file=str(ours.file), **login)
        assert codes == ["target:search-tls"] and "another host" in text
        assert "search.example" not in text and "127.0.0.1" not in text
    with before(search_server, guard, ours.server(days=-1)) as url:
        codes, text = said_of(url, ca_file=str(ours.file), **login)
        assert codes == ["target:search-tls"] and "expired" in text
    with before(search_server, guard) as url:
        codes, text = said_of(url.replace("http", "https"), **login)
        assert codes == ["target:search-tls"] and "no TLS" in text
