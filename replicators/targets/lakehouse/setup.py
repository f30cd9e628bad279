"""Steps to prepare a lakehouse before it can be written. Text only; nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.setup import SetupStep

_SERVER = SetupStep(
    "Let the catalog's server in",
    "Make an OAuth2 client in the REST catalog that may create and drop namespaces, and create, "
    "change, rename, list and drop tables in them. The server writes the tables' metadata files: "
    "it must be able to write in the warehouse, and allow tables in folders below it.",
)


_LENDER = SetupStep(
    "Let the catalog lend its keys",
    "No keys of the bucket are entered. Let the catalog lend this client keys of S3 with each "
    "table (vended credentials) that may list the bucket, and read, write and delete in the "
    "table's folder.",
)


_GLUE = SetupStep(
    "Let this program use Glue",
    "Give the user of the S3 keys, or the role of the machine, these rights on the catalog, its "
    "databases and tables. The databases are made where they are missing.",
    (
        "glue:GetDatabase glue:GetDatabases glue:CreateDatabase glue:DeleteDatabase",
        "glue:GetTable glue:GetTables glue:CreateTable glue:UpdateTable glue:DeleteTable",
    ),
)


_HIVE = SetupStep(
    "Let this program use the Hive metastore",
    "The metastore is asked without a login: this machine must reach its port, 9083. It makes a "
    "folder for each namespace, so it must be able to write in the warehouse. A metastore of Hive "
    "older than 2.3.10, or of 3, needs its locks: leave Hive locks on. For Iceberg it must let "
    "columns change:",
    ("hive.metastore.disallow.incompatible.col.type.changes=false",),
)


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps for the chosen format."""
    place = SetupStep(
        "Choose a warehouse",
        "A folder that this program and its Spark may write, or a bucket of S3: "
        "`s3://bucket/warehouse`. For a bucket, enter region and keys (and the endpoint of a "
        "server of your own). What you leave empty comes from AWS_REGION, AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL of web and workers, or from the machine's "
        "role. For a bucket of Google (`gs://bucket/warehouse`), enter the key of a service "
        "account with the roles Storage Object User and Storage Legacy Bucket Reader there, or "
        "give them to the machine's identity. For a container of Azure "
        "(`abfss://container@account.dfs.core.windows.net/warehouse`), enter the account's key or "
        "a SAS token, or grant the machine's identity the role Storage Blob Data Contributor. "
        "For a folder in HDFS (`hdfs://namenode:8020/warehouse`), enter the namenode's HTTP "
        "address and the user who owns the folder. Tables appear below the warehouse; nothing that "
        "is there already is touched.",
    )
    if values.get("format", "iceberg") != "iceberg":
        return (place, _HIVE) if values.get("delta_catalog") == "hive" else (place,)
    if values.get("catalog") == "rest":
        lent = values.get("store_keys") == "lent"
        return (place, _SERVER, _LENDER) if lent else (place, _SERVER)
    if values.get("catalog") == "glue":
        return (place, _GLUE)
    if values.get("catalog") == "hive":
        return (place, _HIVE)
    user = str(values.get("catalog_user") or "lakehouse")
    role = '"' + user.replace('"', '""') + '"'
    return (
        place,
        SetupStep(
            "Choose a catalog",
            "A database that lists the Iceberg tables. To begin with, a file is enough: "
            "`sqlite:////data/catalog.db`. For several readers use PostgreSQL:",
            (
                f"CREATE ROLE {role} WITH LOGIN PASSWORD 'choose one';",
                f"CREATE DATABASE lakehouse_catalog OWNER {role};",
            ),
        ),
    )
