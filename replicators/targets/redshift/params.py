"""Parameters of a Redshift target, as a person fills them in; no connection is made here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors import server_fields
from replicators.connectors.addresses import Place, host_fault, host_place, one_name_of_s3
from replicators.connectors.locations import location_fault
from replicators.connectors.params import InvalidParams, param
from replicators.connectors.server_fields import password, tls
from replicators.connectors.stores import (
    Store,
    faults,
    is_s3,
    role_fault,
    s3_access_key,
    s3_endpoint,
    s3_region,
    s3_secret_key,
)
from replicators.connectors.view_fields import current_views, view_suffix

MERGE_SECONDS = 60.0
"""The time between two merges of a table. Each writes files and commits, which costs some seconds
there however few rows there are."""
LONGEST = 127
"""Most bytes of a name."""
DEFAULT_ROLE = "default"


def _schema_fault(text: str) -> str:
    if len(text.encode()) > LONGEST:
        return f"must be at most {LONGEST} bytes long: Redshift has no longer names"
    return "must not begin with pg_: Redshift keeps such names" if text.startswith("pg_") else ""


def _staging_fault(text: str) -> str:
    fault = location_fault(text)
    if fault:
        return fault
    if not is_s3(one_name_of_s3(text)):
        return "must be a folder in a bucket of S3: s3://bucket/folder"
    return "must not have quotes and backslashes" if set("'\"\\") & set(text) else ""


@dataclass(frozen=True, slots=True)
class RedshiftParams:
    """A database of a cluster or a workgroup, the user that writes it, and a folder for files on
    their way."""

    host: str = server_fields.host(
        "The endpoint without port and database, such as "
        "name.abc123.eu-central-1.redshift.amazonaws.com.",
        host_fault,
        is_movable=True,
    )
    database: str = param("Database", help="The database that holds the copies.")
    user: str = param("User", help="A user that may make schemas and tables.", addresses=True)
    staging: str = param(
        "Staging folder",
        help="A folder in a bucket of the same region, for example s3://bucket/replicator. Files "
        "wait there until they are loaded.",
        secrets_go="the keys of S3 have fields of their own",
        is_movable=True,
        check=_staging_fault,
    )
    port: int = server_fields.port(5439)
    password: str = password()
    sslmode: str = tls(is_movable=True)
    role: str = param(
        "IAM role",
        help="The role by which Redshift reads the folder: its ARN, or `default`. Empty: the S3 "
        "keys are sent with each COPY.",
        default="",
        addresses=True,
        is_movable=True,
        check=role_fault,
    )
    s3_endpoint: str = s3_endpoint()
    s3_region: str = s3_region()
    s3_access_key: str = s3_access_key()
    s3_secret_key: str = s3_secret_key()
    schema: str = param(
        "Schema",
        help="Where the tables appear; empty: one schema for each schema of the source.",
        default="",
        check=_schema_fault,
    )
    current_views: bool = current_views()
    view_suffix: str = view_suffix()

    def __post_init__(self) -> None:
        errors = faults(self)
        if not self.role and not self.s3_access_key:
            errors["role"] = "give an IAM role or the S3 keys"
        if set("'\\;") & set(self.s3_access_key + self.s3_secret_key):
            errors |= {"s3_access_key": "must not have quotes, backslashes and semicolons"}
        if errors:
            raise InvalidParams(errors)

    @property
    def folder(self) -> str:
        """The staging folder, with one name for all readers and no slash at its end."""
        return one_name_of_s3(self.staging).rstrip("/")

    @property
    def store(self) -> Store:
        """How this program reaches the bucket."""
        return Store(self.s3_endpoint, self.s3_region, self.s3_access_key, self.s3_secret_key)

    @property
    def authorization(self) -> str:
        """How COPY may read the bucket. It may hold a secret: never log it."""
        if self.role == DEFAULT_ROLE:
            return "IAM_ROLE default"
        if self.role:
            return f"IAM_ROLE '{self.role}'"
        keys = f"aws_access_key_id={self.s3_access_key};aws_secret_access_key={self.s3_secret_key}"
        return f"CREDENTIALS '{keys}'"


def places(params: RedshiftParams) -> tuple[Place, ...]:
    """The database, and the server of the bucket where it is named."""
    found = [Place("host", params.host, "Host", params.port, params.database)]
    if params.s3_endpoint:
        found.append(host_place(params.s3_endpoint, "S3 endpoint"))
    return tuple(found)
