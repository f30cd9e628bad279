"""Requests to a REST catalog that are signed: settings, secrets, and the tests' own check of
signatures. No server."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.exceptions import ForbiddenError
from requests import Request
from requests.structures import CaseInsensitiveDict

from replicators.connectors.params import InvalidParams, parse
from replicators.targets.lakehouse import PLUGIN, remote
from replicators.targets.lakehouse.params import LakehouseParams
from tests.signatures import Signer
from tests.stores import Keys

SIGNED = {
    "warehouse": "/w",
    "catalog": "rest",
    "catalog_uri": "https://glue.eu-west-1.amazonaws.com/iceberg",
    "catalog_signing": "glue",
    "catalog_region": "eu-west-1",
}
LOGIN = {"catalog_user": "AKIA", "catalog_password": "the-s3cret"}
OF_S3 = {"warehouse": "s3://b/w", "s3_access_key": "AKIA", "s3_secret_key": "the-s3cret"}


@pytest.mark.parametrize("login", [LOGIN, OF_S3], ids=["of its own", "those of S3"])
def test_no_setting_has_the_keys_that_sign(login: dict[str, str]) -> None:
    """Guards `spark_conf`: its settings are seen by whoever sees Spark's pages."""
    params = LakehouseParams(**{**SIGNED, **login})  # type: ignore[arg-type]
    conf = PLUGIN.spark_conf(params)
    own = {k.removeprefix("spark.sql.catalog.lakehouse."): v for k, v in conf.items()}
    assert (
        own.items()
        >= {
            "rest.auth.type": "sigv4",
            "rest.signing-name": "glue",
            "rest.signing-region": "eu-west-1",
            "rest.access-key-id": "env:REPLICATOR_CATALOG_ACCESS_KEY",
            "rest.secret-access-key": "env:REPLICATOR_CATALOG_SECRET_KEY",
        }.items()
    )
    assert not {"credential", "token", "scope"} & own.keys()
    assert not any("s3cret" in value for value in conf.values())
    assert PLUGIN.driver_environment(params) == {
        "REPLICATOR_CATALOG_ACCESS_KEY": "AKIA",
        "REPLICATOR_CATALOG_SECRET_KEY": "the-s3cret",
    }
    assert "s3cret" not in repr(params.server)
    assert {"auth-2", "http-auth-aws-2", "glue-2"} < set(PLUGIN.jars(params))
    assert len(PLUGIN.jars(params)) == len(set(PLUGIN.jars(params)))
    found = params.server.properties()
    assert found["client.secret-access-key"] == "the-s3cret"
    assert found["rest.signing-name"] == "glue"


def test_without_keys_the_environments_sign() -> None:
    """Guards roles of machines: no setting names keys that are not there."""
    params = LakehouseParams(**SIGNED)  # type: ignore[arg-type]
    assert not any("access-key" in name for name in PLUGIN.spark_conf(params))
    assert PLUGIN.driver_environment(params) == {}
    assert not any("key" in name for name in params.server.properties())


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"catalog_token": "t"}, "catalog_token"),
        ({"catalog_scope": "s"}, "catalog_scope"),
        ({"catalog_token_uri": "https://x/t"}, "catalog_token_uri"),
        ({"catalog_user": "me"}, "catalog_password"),
        ({"catalog_signing": "s3"}, "catalog_signing"),
        ({"catalog_signing": "none"}, "catalog_region"),
        ({"catalog": "jdbc", "catalog_uri": "sqlite:////c.db", "catalog_region": ""},
         "catalog_signing"),
    ],
)  # fmt: skip
def test_a_fault_in_the_fields_of_signing_is_named(values: dict[str, str], faulty: str) -> None:
    """Guards the form: a token beside a signature would be sent by one client and not by the
    other."""
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, {**SIGNED, **values})
    assert list(caught.value.errors) == [faulty]


def test_a_signature_that_is_refused_is_no_missing_right() -> None:
    """Guards `fault`: Amazon says 403 to both."""
    said = ForbiddenError("InvalidSignatureException: the signature is another")
    assert remote.fault(said) == "target:catalog-refused"
    assert remote.fault(ForbiddenError("AccessDeniedException: no")) == "target:catalog-rights"


def signed(signer: Signer, body: bytes) -> Any:
    """A request as a client sends it."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    url = "http://127.0.0.1:5/v1/main/namespaces/a%2Fb/tables?x=1&a=2"
    made = AWSRequest("POST", url, {"Host": "127.0.0.1:5"}, body)
    keys = Credentials(signer.keys.access, signer.keys.secret)
    SigV4Auth(keys, signer.service, signer.region).add_auth(made)
    return Request("POST", url, headers=dict(made.headers)).prepare()


def test_the_check_of_signatures_can_fail() -> None:
    """Guards the tests: a check that accepts everything proves nothing."""
    signer = Signer(Keys("AKIA", "secret"), "eu-west-1", "glue")
    sent = signed(signer, b"body")

    def fault(body: bytes = b"body", path: str = sent.path_url, **more: str) -> str:
        return signer.fault("POST", path, CaseInsensitiveDict({**sent.headers, **more}), body)

    assert fault() == ""
    assert fault(body=b"other") == "the signature is another"
    assert fault(path="/v1/main/namespaces/a%2Fb/tables?x=2&a=2") == "the signature is another"
    assert fault(Authorization="Bearer x") == "no signature"
    old = {"X-Amz-Date": "20200101T000000Z"}
    assert fault(**old) == "signed at another time"
    other = Signer(Keys("AKIA", "another"), "eu-west-1", "glue")
    assert other.fault("POST", sent.path_url, sent.headers, b"body") == "the signature is another"
    for one in (Signer(signer.keys, "eu-west-2", "glue"), Signer(signer.keys, "eu-west-1", "s3")):
        assert "for another service" in one.fault("POST", sent.path_url, sent.headers, b"body")
