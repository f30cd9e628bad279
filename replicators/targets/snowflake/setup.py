"""What an administrator does in Snowflake before tables can be copied into it. Text only; makes no
connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.setup import SetupStep
from replicators.targets.snowflake.naming import quoted


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps, with the names that are filled in so far; never with a secret."""

    def name(field: str, otherwise: str) -> str:
        return quoted((str(values.get(field) or otherwise),))

    database, warehouse = name("database", "REPLICAS"), name("warehouse", "REPLICATION")
    user, role = name("user", "REPLICATOR"), name("role", "REPLICATOR")
    schema = str(values.get("schema") or "")
    return (
        SetupStep(
            "Make a database and a warehouse",
            "The warehouse sleeps after a minute without work, and wakes by itself.",
            (
                f"CREATE DATABASE IF NOT EXISTS {database};",
                f"CREATE WAREHOUSE IF NOT EXISTS {warehouse} WAREHOUSE_SIZE = XSMALL "
                "AUTO_SUSPEND = 60 AUTO_RESUME = TRUE INITIALLY_SUSPENDED = TRUE;",
            ),
        ),
        SetupStep(
            "Make a role that may write",
            "OPERATE is for suspending the warehouse. Whoever makes a table owns it: let no other "
            "role make the tables of the copies.",
            (
                f"CREATE ROLE IF NOT EXISTS {role};",
                f"GRANT USAGE, OPERATE ON WAREHOUSE {warehouse} TO ROLE {role};",
                f"GRANT USAGE, CREATE SCHEMA ON DATABASE {database} TO ROLE {role};",
                *_of_schema(database, schema, role),
            ),
        ),
        SetupStep(
            "Make a user with a key",
            "Enter the content of rsa_key.p8 as the private key. The public key is what stands "
            "between the first and the last line of rsa_key.pub.",
            (
                "openssl genrsa 2048 | openssl pkcs8 -topk8 -inform PEM -nocrypt -out rsa_key.p8",
                "openssl rsa -in rsa_key.p8 -pubout -out rsa_key.pub",
                f"CREATE USER {user} TYPE = SERVICE DEFAULT_ROLE = {role} "
                "RSA_PUBLIC_KEY = 'MIIB...';",
                f"GRANT ROLE {role} TO USER {user};",
            ),
        ),
    )


def _of_schema(database: str, schema: str, role: str) -> tuple[str, ...]:
    """The rights on a schema that somebody else made."""
    if not schema:
        return ()
    place = f"{database}.{quoted((schema,))}"
    rights = "USAGE, CREATE TABLE, CREATE VIEW, CREATE STAGE"
    return (f"GRANT {rights} ON SCHEMA {place} TO ROLE {role};",)
