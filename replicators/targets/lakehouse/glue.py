"""What Spark and pyiceberg need to reach AWS Glue's catalog. It is asked with the keys of S3: one
identity for tables and files. Where the replicator names none, the SDKs read this program's
environment. Opens nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from replicators.targets.lakehouse.servers import HTTP
from replicators.targets.lakehouse.stores.s3 import FROM_FILE

JARS = ("glue-2", "kms-2", "aws-json-protocol-2")
"""The part of the SDK that Iceberg's Glue catalog needs beside that of S3."""


@dataclass(frozen=True, slots=True)
class Glue:
    """A region's catalog, and who asks it."""

    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        """The server's address; empty for Amazon's."""
        return (
            self.endpoint
            or os.environ.get("AWS_ENDPOINT_URL_GLUE")
            or os.environ.get("AWS_ENDPOINT_URL")
            or ""
        )

    def spark_conf(self, warehouse: str) -> dict[str, str]:
        """The catalog's settings in Spark, without keys. The assessment checks names. Staging
        tables have names that Athena can't write, and Glue can."""
        found = {
            "type": "glue",
            "warehouse": warehouse,
            **HTTP,
            "glue.skip-name-validation": "true",
            "glue.skip-archive": "true",
        }
        if self.region:
            found["client.region"] = self.region
        if self.where:
            found["glue.endpoint"] = self.where
        if self.access_key:
            found["client.credentials-provider"] = FROM_FILE
        return found
