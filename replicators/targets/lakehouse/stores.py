"""What Spark and the formats' own readers need for a warehouse on S3, or on a server that speaks
its protocol. Endpoint, region and keys come from this program's environment, as the SDKs of S3 read
them; the keys are passed on to nobody. Opens nothing."""

from __future__ import annotations

import os

_SDK = (
    "annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol",
    "aws-xml-protocol", "checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth",
    "http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi", "http-client-spi",
    "identity-spi", "json-utils", "metrics-spi", "profiles", "protocol-core", "regions", "retries",
    "retries-spi", "s3", "s3-transfer-manager", "sdk-core", "sts", "third-party-jackson-core",
    "url-connection-client", "utils",
)  # fmt: skip
JARS = ("hadoop-aws-3", "eventstream-1", "reactive-streams-1", *(f"{name}-2" for name in _SDK))
"""Hadoop's file system of S3, and the part of the SDK that it needs."""
_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def is_s3(url: str) -> bool:
    """Whether a warehouse lies there."""
    return url.startswith("s3://")


def _endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""


def spark_conf(url: str) -> dict[str, str]:
    """The session's settings. A server of one's own is asked by paths: it has no host names for
    buckets."""
    if not is_s3(url):
        return {}
    found = {f"spark.hadoop.fs.{name}.impl": _FILE_SYSTEM for name in ("s3", "s3a", "s3n")}
    if _region():
        found["spark.hadoop.fs.s3a.endpoint.region"] = _region()
    if _endpoint():
        found["spark.hadoop.fs.s3a.endpoint"] = _endpoint()
        found["spark.hadoop.fs.s3a.path.style.access"] = "true"
    return found


def iceberg_properties(url: str) -> dict[str, str]:
    """What pyiceberg's file system asks for."""
    if not is_s3(url):
        return {}
    found = {"s3.endpoint": _endpoint(), "s3.region": _region()}
    return {name: value for name, value in found.items() if value}


def delta_options(url: str) -> dict[str, str]:
    """What deltalake's object store asks for beside the environment."""
    if not is_s3(url):
        return {}
    found = {"AWS_ENDPOINT_URL": _endpoint(), "AWS_REGION": _region()}
    if _endpoint().startswith("http://"):
        found["AWS_ALLOW_HTTP"] = "true"
    return {name: value for name, value in found.items() if value}
