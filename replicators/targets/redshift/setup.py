"""What an administrator does before tables can be copied into Redshift. Text only; makes no
connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicators.connectors.setup import SetupStep
from replicators.connectors.stores import bucket_of
from replicators.targets.redshift.naming import quoted


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The steps, with the names that are filled in so far; never with a secret."""

    def name(field: str, otherwise: str) -> str:
        return quoted((str(values.get(field) or otherwise),))

    user, database = name("user", "replicator"), name("database", "replicas")
    bucket = bucket_of(str(values.get("staging") or "s3://my-bucket"))[0]
    schema = str(values.get("schema") or "")
    grants = (f"GRANT USAGE, CREATE ON SCHEMA {quoted((schema,))} TO {user};",) if schema else ()
    return (
        SetupStep(
            "Make a user that may write",
            "Where somebody else made the schemas, it needs USAGE and CREATE on each of them.",
            (
                f"CREATE USER {user} PASSWORD '...';",
                f"GRANT CREATE, TEMPORARY ON DATABASE {database} TO {user};",
                *grants,
            ),
        ),
        SetupStep(
            "Let readers see fresh copies too",
            "A fresh copy is a new table, so grants on the table before it are gone. These last.",
            (f"ALTER DEFAULT PRIVILEGES FOR USER {user} GRANT SELECT ON TABLES TO GROUP readers;",),
        ),
        SetupStep(
            "Make a bucket in the same region, and a role that reads it",
            "Attach the role to the cluster or the workgroup. It needs s3:GetObject and "
            "s3:ListBucket. The keys of this program need s3:PutObject and s3:DeleteObject too. A "
            "lifecycle rule of a day removes what a process left that never came back.",
            (
                f"aws s3api create-bucket --bucket {bucket}",
                "aws redshift modify-cluster-iam-roles --cluster-identifier ... "
                "--add-iam-roles arn:aws:iam::123456789012:role/replicator-copy",
            ),
        ),
    )
