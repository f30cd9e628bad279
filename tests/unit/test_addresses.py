"""Where a secret stands in an address, however it is written, and which addresses every driver
reads alike."""

from __future__ import annotations

import time
from typing import Any

import pytest

from replicators.connectors.addresses import Url, hidden, holds_secret, host_fault
from replicators.connectors.params import (
    MASK,
    InvalidParams,
    masked,
    parse,
    revealing,
    unmasked,
)
from replicators.targets.lakehouse.params import LakehouseParams

SECRET = "hunter2/+x"
HOLDING = [
    f"s3://KEY:{SECRET}@bucket/warehouse",
    f"s3://KEY%3A{SECRET}@bucket/warehouse",
    f"postgresql://me:{SECRET}@db/catalog",
    f"postgresql://me:p@{SECRET}@db/catalog",
    f"postgresql://db/catalog?password={SECRET}",
    f"postgresql://db/catalog?sslmode=require&p%61ssword={SECRET}",
    f"postgresql://db/catalog?p%2561ssword={SECRET}",
    f"postgresql://db/catalog?ssl%50assword={SECRET}",
    f"s3://bucket?secret_key={SECRET}",
    f"s3://bucket?access_key={SECRET}",
    f"s3://bucket?SESSION+TOKEN={SECRET}",
    f"abfss://c@account.dfs.core.windows.net/w?sig={SECRET}",
    f"host=db user=me password='{SECRET}'",
    f"me:{SECRET}@db",
    f"a://u:{SECRET}@h,b://u:{SECRET}@h",
]
PLAIN = [
    "/data/warehouse",
    "/data/key=1/w",
    "s3a://bucket/warehouse",
    "s3://bucket/user:me@home",
    "abfss://container@account.dfs.core.windows.net/w",
    "hdfs://name:8020/warehouse",
    "postgresql://me@db:5432/catalog?sslmode=require",
    "sqlite:////data/catalog.db",
    "::1",
    "db.example",
]


@pytest.mark.parametrize("text", HOLDING)
def test_a_secret_in_an_address_is_seen_and_hidden(text: str) -> None:
    """Guards the one parser: each of these was stored and shown in clear."""
    assert holds_secret(text)
    shown = hidden(text)
    assert "hunter2" not in shown and MASK in shown
    assert hidden(shown) == shown


@pytest.mark.parametrize("text", PLAIN)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert not holds_secret(text) and hidden(text) == text


@pytest.mark.parametrize("name", ["warehouse", "catalog_uri", "catalog_user", "namespace"])
@pytest.mark.parametrize("text", HOLDING)
def test_it_is_refused_with_the_place_where_it_belongs_and_not_repeated(
    name: str, text: str
) -> None:
    (reported,) = revealing(LakehouseParams, {name: text}).values()
    assert "hunter2" not in reported and reported.startswith("must not contain a password or key")
    where = "environment" if name == "warehouse" else "enter it in Catalog password"
    assert where in reported


def test_what_was_stored_earlier_is_shown_masked_and_comes_back_as_it_is() -> None:
    stored: dict[str, Any] = {"warehouse": HOLDING[0], "catalog_password": "x",
        "history_minutes": 5}  # fmt: skip
    shown = masked(LakehouseParams, stored)
    assert "hunter2" not in str(shown) and shown["catalog_password"] == MASK
    assert unmasked(LakehouseParams, shown, stored) == stored
    other = {**shown, "warehouse": f"s3://OTHER:{MASK}@bucket"}
    assert "hunter2" not in str(unmasked(LakehouseParams, other, stored))


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("postgresql://me@db:5432/catalog", "db"),
        ("postgresql://[fe80::1]/catalog", "fe80::1"),
        ("s3a://bucket/w", "bucket"),
        ("sqlite:////data/c.db", ""),
    ],
)
def test_a_plain_url_is_read(text: str, host: str) -> None:
    assert Url.parse(text).host == host


@pytest.mark.parametrize(
    "text",
    [
        "no url", "://h", "a b://h", "postgresql://a@b@c/d", "postgresql://h:1:2/d",
        "postgresql://h:99999/d",
        "postgresql://h1,h2/d", "postgresql://h\\@evil/d", "postgresql://h#@evil/d",
        "postgresql://u:p@h/d",
        "postgresql://h /d", "postgresql://h\n/d",
    ],
)  # fmt: skip
def test_a_url_that_drivers_read_differently_is_refused(text: str) -> None:
    """Guards what is asked before something is opened: it must speak of the place that the driver
    goes to."""
    with pytest.raises(ValueError, match=r"^(is not|must)") as caught:
        Url.parse(text)
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"warehouse": "relative/w"}, "warehouse"),
        ({"warehouse": "~/w"}, "warehouse"),
        ({"warehouse": "s3://b?endpoint_override=http://169.254.169.254"}, "warehouse"),
        ({"warehouse": "s3://b/w?region=x"}, "warehouse"),
        ({"warehouse": "http://h/w"}, "warehouse"),
        ({"warehouse": "file://host/w"}, "warehouse"),
        ({"catalog_uri": "sqlite:////data/%2e%2e/var/own.db"}, "catalog_uri"),
        ({"catalog_uri": "sqlite:////data/c.db?mode=memory"}, "catalog_uri"),
        ({"catalog_uri": "sqlite://host//data/c.db"}, "catalog_uri"),
        ({"catalog_uri": "postgresql://db/c?host=evil"}, "catalog_uri"),
        ({"catalog_uri": "postgresql://db/c?h%6fst=evil"}, "catalog_uri"),
        ({"catalog_uri": "postgresql://db/c?loggerFile=/etc/x"}, "catalog_uri"),
        ({"catalog_uri": "postgresql://db/c?socketFactory=x.Y"}, "catalog_uri"),
    ],
)
def test_addresses_that_lead_elsewhere_by_the_way_are_refused(
    values: dict[str, str], field: str
) -> None:
    """Guards against query strings that name another host, a file that is written or a class that
    is loaded, and against paths that two drivers read differently."""
    whole: dict[str, Any] = {"warehouse": "/w", "catalog_uri": "sqlite:////w/c.db", **values}
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, whole)
    assert list(caught.value.errors) == [field]


@pytest.mark.parametrize(
    "text", ["postgres://me:pw@db/x", "db/x", "me@db", "db x", "db?x", "db;x", "", "a,,b"]
)
def test_a_host_is_a_host_alone(text: str) -> None:
    assert "pw" not in host_fault(text) and host_fault(text).startswith("must be")


@pytest.mark.parametrize(
    "text", ["db.example", "10.0.0.1", "::1", "fe80::1%eth0", "a.b,c.d", "x_y"]
)
def test_hosts_are_taken(text: str) -> None:
    assert host_fault(text) == ""


@pytest.mark.parametrize("piece", ["a", "://", "a=", "password", ":@", "%3a", "u:p@h,"])
def test_twice_the_text_takes_about_twice_the_time(piece: str) -> None:
    """Guards the patterns, which are given whatever a program sends."""

    def seconds(count: int) -> float:
        text, best = piece * (count // len(piece)), float("inf")
        for _ in range(5):
            began = time.process_time()
            hidden(text)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(100_000) < 3 * seconds(50_000) + 0.002
