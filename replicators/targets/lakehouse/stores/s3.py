"""What Spark and the formats' own readers need for a warehouse on S3, or on a server that speaks
its protocol. Endpoint, region and keys are those of the replicator. Where it names none, the SDKs
of S3 read this program's environment. Iceberg reads and writes its files itself; Delta, and
whatever Spark reads by its path, go through Hadoop. Opens nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from replicators.connectors import stores
from replicators.connectors.stores import FIELDS, Codes, HasStore, faults
from replicators.targets.lakehouse.servers import HTTP
from replicators.targets.lakehouse.stores.kind import Store, private

__all__ = ["FIELDS", "JARS", "S3", "SCHEMES", "faults", "of"]

SCHEMES = ("s3", "s3a", "s3n")
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
ICEBERG_JARS = ("kms-2",)
"""What Iceberg's own way needs beside them: one of its classes names KMS."""
KEYS = ("s3_access_key", "s3_secret_key")
PROFILE = "replicator"
FROM_FILE = "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider"
_FROM_ENVIRONMENT = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_ANY_REGION = "us-east-1"
_FIRST_WAIT = "500"
"""Milliseconds before a request is tried again; the next of five waits are longer."""
_CODES_OF_RUN: Codes = (
    (r"Service: S3, Status Code: 40[13]", "target:not-writable"),
    (r"AWS Error (\w*(ACCESS_DENIED|ACCESS_KEY|SIGNATURE|CREDENTIALS)|.*HTTP status 403)",
     "target:not-writable"),
    (r"Unable to load credentials|Profile file contained no credentials", "target:not-writable"),
    (r"Service: S3, Status Code: (404|5\d\d)|SdkClientException: Unable to execute HTTP request"
     r"|AWS Error |Path does not exist '", "target:unreachable"),
)  # fmt: skip
"""What the SDK says inside Iceberg's exceptions, and pyarrow's of another language inside
pyiceberg's."""


@dataclass(frozen=True, slots=True)
class S3(stores.Store, Store):
    """A bucket of S3, and what each reader is told of it."""

    is_tried: ClassVar[bool] = True
    jars: ClassVar[tuple[str, ...]] = JARS
    iceberg_jars: ClassVar[tuple[str, ...]] = ICEBERG_JARS

    @property
    def is_read_soon(self) -> bool:
        """See `Store`. pyiceberg does not look for a region."""
        return bool(self.where or self.in_region)

    def spark_conf(self) -> dict[str, str]:
        """See `Store`. A server of one's own is asked by paths: it has no host names for
        buckets."""
        found = {f"spark.hadoop.fs.{name}.impl": _FILE_SYSTEM for name in SCHEMES}
        if self.in_region:
            found["spark.hadoop.fs.s3a.endpoint.region"] = self.in_region
        if self.where:
            found["spark.hadoop.fs.s3a.endpoint"] = self.where
            found["spark.hadoop.fs.s3a.path.style.access"] = "true"
        if self.access_key:
            found["spark.hadoop.fs.s3a.aws.credentials.provider"] = FROM_FILE
        return found

    def catalog_conf(self) -> dict[str, str]:
        """See `Store`. Who gives the keys is always named, so that none are taken which a catalog
        lends unasked. Without a region Amazon says where the bucket is, as it tells Hadoop."""
        found = {
            **files_conf(self.where, self.in_region or _ANY_REGION),
            "client.credentials-provider": FROM_FILE if self.access_key else _FROM_ENVIRONMENT,
        }
        return found if self.where else {**found, "s3.cross-region-access-enabled": "true"}

    def driver_properties(self, folder: str) -> dict[str, str]:
        """The keys as a file of the SDKs."""
        if not self.access_key:
            return {}
        text = (
            f"[{PROFILE}]\naws_access_key_id = {self.access_key}\n"
            f"aws_secret_access_key = {self.secret_key}\n"
        )
        path = private(Path(folder) / "s3-credentials", text)
        return {"aws.sharedCredentialsFile": path, "aws.profile": PROFILE}

    def iceberg_properties(self) -> dict[str, str]:
        """See `Store`."""
        found = {
            "s3.endpoint": self.where,
            "s3.region": self.in_region,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
        }
        return {name: value for name, value in found.items() if value}

    def delta_options(self) -> dict[str, str]:
        """See `Store`."""
        found = {
            "AWS_ENDPOINT_URL": self.where,
            "AWS_REGION": self.in_region,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }
        if self.where.startswith("http://"):
            found["AWS_ALLOW_HTTP"] = "true"
        return {name: value for name, value in found.items() if value}

    def code_of_run(self, text: str) -> str:
        """See `Store`."""
        return next((code for said, code in _CODES_OF_RUN if re.search(said, text)), "")


def files_conf(endpoint: str, region: str) -> dict[str, str]:
    """The settings of a catalog whose files Iceberg reads and writes itself. What is empty is left
    out."""
    found = {
        "io-impl": _FILE_IO,
        **HTTP,
        "client.region": region,
        "s3.endpoint": endpoint,
        "s3.path-style-access": "true" if endpoint else "",
        "s3.retry.min-wait-ms": _FIRST_WAIT,
    }
    return {name: value for name, value in found.items() if value}


def of(params: HasStore) -> S3:
    """The bucket that the fields name."""
    named = (params.s3_endpoint, params.s3_region, params.s3_access_key, params.s3_secret_key)
    return S3(*named)
