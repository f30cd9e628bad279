"""How AWS Glue's catalog is reached, and what its answers mean. No server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import InvalidParams, parse
from replicators.targets.lakehouse import PLUGIN, aws, catalog
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.errors import code_of
from replicators.targets.lakehouse.params import LakehouseParams, places
from replicators.targets.lakehouse.writer import LakehouseWriter

GLUE = {"warehouse": "s3://bucket/lake", "catalog": "glue"}
KEYS = {"s3_access_key": "AKIA", "s3_secret_key": "the-s3cret"}


def settings(params: LakehouseParams) -> dict[str, str]:
    """The catalog's own in Spark."""
    conf = PLUGIN.spark_conf(params)
    return {k.removeprefix("spark.sql.catalog.lakehouse."): v for k, v in conf.items()}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says nothing of Amazon."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_GLUE",
        "AWS_ENDPOINT_URL_S3"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


def test_glue_is_asked_with_the_keys_of_s3_which_no_setting_has(tmp_path: Path) -> None:
    """Guards `spark_conf`: its settings are seen by whoever sees Spark's pages."""
    more = {"catalog_region": "eu-west-1", "s3_region": "us-east-1", "catalog_uri": "http://glue:5"}
    params = LakehouseParams(**GLUE, **KEYS, **more)  # type: ignore[arg-type]
    found = settings(params)
    assert found.items() >= {
        "type": "glue",
        "warehouse": "s3://bucket/lake",
        "client.region": "eu-west-1",
        "glue.endpoint": "http://glue:5",
        "client.credentials-provider":
            "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider",
    }.items()  # fmt: skip
    assert not any("s3cret" in v or "AKIA" in v for v in found.values())
    properties = PLUGIN.driver_properties(params, str(tmp_path))
    assert "the-s3cret" in Path(properties["aws.sharedCredentialsFile"]).read_text()
    assert "s3cret" not in repr(params.glue)
    assert {"glue-2", "hadoop-aws-3"} < set(PLUGIN.jars(params))
    assert "glue-2" not in PLUGIN.jars(LakehouseParams(warehouse="s3://b/l", format="delta"))
    assert PLUGIN.modules(params)[0] == "pyiceberg.catalog.glue"
    assert ("host", "glue", 5) in [(p.kind, p.value, p.port) for p in places(params)]


def test_a_run_begins_with_glues_own_address() -> None:
    """Guards the writer: an empty address is no file, and no database is asked for tables."""
    params = LakehouseParams(**GLUE)  # type: ignore[arg-type]
    assert catalog.path(params) == ""
    LakehouseWriter(params, spark=None)
    assert catalog.Reader(params).opened() is None


def test_what_no_field_says_of_glue_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards roles of machines: without keys, the SDK looks for the identity itself."""
    plain = settings(LakehouseParams(**GLUE))  # type: ignore[arg-type]
    assert not plain.keys() & {"client.region", "glue.endpoint"}
    assert plain["client.credentials-provider"].endswith(".DefaultCredentialsProvider")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://moto:5000")
    found = settings(LakehouseParams(**GLUE))  # type: ignore[arg-type]
    assert (found["client.region"], found["glue.endpoint"]) == ("eu-central-1", "http://moto:5000")


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"warehouse": "/data/lake"}, "warehouse"),
        ({"catalog_uri": "postgresql://host/db"}, "catalog_uri"),
        ({"catalog_user": "me"}, "catalog_user"),
        ({"catalog_password": "w"}, "catalog_password"),
        ({"catalog_token": "t"}, "catalog_token"),
        ({"catalog_region": "a\nb"}, "catalog_region"),
        ({"catalog": "jdbc", "catalog_uri": "sqlite:////c.db", "catalog_region": "eu"},
         "catalog_region"),
    ],
)  # fmt: skip
def test_a_fault_in_glues_fields_is_named(values: dict[str, str], faulty: str) -> None:
    """Guards the form: a field that Glue does not use would be believed to work."""
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, {**GLUE, **values})
    assert list(caught.value.errors) == [faulty]


def answer(code: str, text: str = "") -> ClientError:
    """As botocore raises it."""
    return ClientError({"Error": {"Code": code, "Message": text}}, "GetTable")


@pytest.mark.parametrize(
    ("err", "code"),
    [
        (answer("UnrecognizedClientException"), "catalog-refused"),
        (answer("403", "<Code>SignatureDoesNotMatch</Code>"), "catalog-refused"),
        (NoCredentialsError(), "catalog-refused"),
        (answer("AccessDeniedException", "not authorized to perform: glue:GetTable"),
         "catalog-rights"),
        (answer("ThrottlingException", "Rate exceeded"), "catalog-unreachable"),
        (EndpointConnectionError(endpoint_url="http://x"), "catalog-unreachable"),
        (answer("404", "no page"), "catalog-unknown"),
    ],
)  # fmt: skip
def test_an_answer_of_glue_has_a_code(err: Exception, code: str) -> None:
    """Guards the texts: whoever lacks a right is told which one, and nobody waits for a key."""
    assert aws.fault_of_opening(err) == f"target:{code}"
    wrapped = ValueError("Failed to drop old table")
    wrapped.__cause__ = err
    assert aws.fault(wrapped) == ("" if code == "catalog-unknown" else f"target:{code}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("services.glue.model.AccessDeniedException: perform: glue:CreateTable", "catalog-rights"),
        ("GlueException: UnrecognizedClientException: token", "catalog-refused"),
        ("services.glue.model.ThrottlingException: Rate exceeded", "catalog-unreachable"),
        ("s3: AccessDenied", "not-writable"),
    ],
)
def test_an_error_of_spark_with_glue_has_a_code(text: str, code: str) -> None:
    """Guards `code_of`: a right that is missing in Glue is not one of the bucket."""
    assert code_of(RuntimeError(text)) == f"target:{code}"


@pytest.mark.parametrize(
    ("schema", "name", "more", "word"),
    [
        ("shop", "items", {}, ""),
        ("shop", "Items", {}, "upper case"),
        ("shop", "Items", {"name_case": "lower"}, ""),
        ("my-shop", "items", {}, "other characters"),
        ("shop", "i" * 250, {}, "too long"),
    ],
)
def test_a_name_that_glue_cannot_have_is_reported(
    schema: str, name: str, more: dict[str, Any], word: str
) -> None:
    """Guards names: Glue writes them in lower case, so that two tables could become one."""
    table = TableSchema(TableId(schema, name), (Column("id", Int(64), "bigint"),), ("id",))
    checks = LakehouseChecks(LakehouseParams(**GLUE, **more))  # type: ignore[arg-type]
    found = checks._unfit([table])
    assert [word in dict(p.facts)["reason"] for p in found] == ([True] if word else [])
