"""What Spark and pyiceberg need for a warehouse in a bucket of Google Cloud Storage. Without a
service account's key, they use the identity that the machine has. Opens nothing until it is asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import urlsplit

from replicators.connectors import google, limits
from replicators.connectors.params import param
from replicators.connectors.stores import Codes, code_of
from replicators.targets.lakehouse.stores import python_io
from replicators.targets.lakehouse.stores.kind import Store, private

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("gs", "gcs")
FIELDS = ("gcs_key", "gcs_endpoint")
JARS = ("gcs-connector-3",)
"""Google's own file system for Hadoop, with everything that it needs."""
_FILE_SYSTEM = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
_KEY_FILE = "replicator.gcs.key"
_SECONDS = 20.0
"""How long a request that fails for no lasting reason is tried again."""
_CODES: Codes = (
    (r"NO_?SUCH_?BUCKET|bucket does not exist|function=CreateResumableUpload.*status_code=404",
     "target:bucket-missing"),
    (r"invalid_grant|invalid_client|RefreshError|MalformedError|UNAUTHENTICATED"
     r"|status_code=401|Could not deserialize key|Could not create a OAuth2 access token"
     r"|[Cc]ould not (automatically determine|find default) credentials",
     "target:gcs-key"),
    (r"PERMISSION_DENIED|status_code=403", "target:gcs-rights"),
)  # fmt: skip


class HasBucket(Protocol):
    """Params with the fields of a bucket."""

    @property
    def format(self) -> str: ...
    @property
    def gcs_key(self) -> str: ...
    @property
    def gcs_endpoint(self) -> str: ...


def key(group: str) -> Any:
    """The field of a service account's key."""
    return param(
        "Service account key",
        group=group,
        help="The JSON file's content. Empty: the identity that the machine has (application "
        "default credentials: GOOGLE_APPLICATION_CREDENTIALS of web and workers, or the service "
        "account of the machine)",
        default="",
        secret=True,
        note="for a bucket of Google",
    )


def endpoint(group: str) -> Any:
    """The field of the service's address."""
    return param(
        "GCS endpoint",
        group=group,
        help="Only for a private endpoint or an emulator. An emulator's begins with http:// and "
        "needs no key. Empty: https://storage.googleapis.com",
        default="",
        note="for a bucket of Google",
        addresses=True,
        is_movable=True,
        secrets_go="enter it in Service account key",
    )


def faults(params: HasBucket) -> dict[str, str]:
    """What is wrong with the fields together."""
    where = params.gcs_endpoint
    found = {
        "gcs_key": google.key_fault(params.gcs_key),
        "gcs_endpoint": google.endpoint_fault(where, "storage.googleapis.com"),
        "format": "must be iceberg for a warehouse in gs://" if params.format == "delta" else "",
    }
    if params.gcs_key and where.startswith("http://"):
        found["gcs_key"] = "must be empty for an emulator: it would be sent without encryption"
    return {name: fault for name, fault in found.items() if fault}


def of(params: HasBucket) -> Gcs:
    """The bucket that the fields name."""
    return Gcs(params.gcs_endpoint, params.gcs_key)


@dataclass(frozen=True, slots=True)
class Gcs(Store):
    """A bucket of Google, and what each reader is told of it."""

    is_tried: ClassVar[bool] = True
    jars: ClassVar[tuple[str, ...]] = JARS

    where: str = ""
    key: str = field(default="", repr=False)

    @property
    def is_emulated(self) -> bool:
        """Whether nobody signs in."""
        return self.where.startswith("http://")

    def system(self, url: str) -> FileSystem:
        """pyarrow's file system. It takes a token for the key, and no key."""
        if not self.key:
            return self._system(anonymous=self.is_emulated)
        from pyarrow.fs import PyFileSystem

        from replicators.targets.lakehouse.stores.renewed import Renewed

        return PyFileSystem(Renewed(partial(_signed_in, self)))

    def _system(self, **who: Any) -> FileSystem:
        from pyarrow.fs import GcsFileSystem

        url = urlsplit(self.where)
        where = {"scheme": url.scheme, "endpoint_override": url.netloc} if self.where else {}
        patience = timedelta(seconds=limits.left(_SECONDS))
        return GcsFileSystem(retry_time_limit=patience, **where, **who)

    def spark_conf(self) -> dict[str, str]:
        """See `Store`. The key's file is named by a Java property, which Hadoop puts in."""
        prefix = "spark.hadoop.fs.gs."
        who = "SERVICE_ACCOUNT_JSON_KEYFILE" if self.key else "APPLICATION_DEFAULT"
        found = {
            f"{prefix}impl": _FILE_SYSTEM,
            f"{prefix}auth.type": "UNAUTHENTICATED" if self.is_emulated else who,
            # gcs-connector 3.1.9 calls a method that Hadoop 3.4 has no longer
            "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        }
        if self.key:
            found[f"{prefix}auth.service.account.json.keyfile"] = f"${{{_KEY_FILE}}}"
        if self.where:
            found[f"{prefix}storage.root.url"] = f"{self.where.rstrip('/')}/"
        return found

    def driver_properties(self, folder: str) -> dict[str, str]:
        """The key's file."""
        if not self.key:
            return {}
        return {_KEY_FILE: private(Path(folder) / "gcs-key.json", self.key)}

    def iceberg_properties(self) -> dict[str, str]:
        """pyiceberg has no setting for a key, so it asks this store for the file system."""
        return python_io.properties("gcs", {"where": self.where, "key": self.key})

    def code(self, text: str) -> str:
        """See `Store`."""
        return code_of(text, _CODES)


def _signed_in(store: Gcs) -> tuple[FileSystem, float]:
    """A file system with a new token, and the time when the token ends. OSError."""
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        found: Any = google.credentials_of(store.key, is_emulated=False)
        found.refresh(Request())
    except (GoogleAuthError, ValueError) as err:
        raise PermissionError(f"{type(err).__name__}: {err}") from err
    ends = found.expiry.replace(tzinfo=UTC)
    made = store._system(access_token=found.token, credential_token_expiration=ends)
    return made, ends.timestamp()


def from_json(text: str) -> Gcs:
    """The store that `iceberg_properties` wrote."""
    return Gcs(**json.loads(text))
