"""How a bucket of S3 is reached, or of a server that speaks its protocol: endpoint, region and keys
are fields of a target. Where they name none, the SDKs of S3 read this program's environment. Opens
nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from replicators.connectors.params import param

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_SCHEME = "s3://"
_ROLE = re.compile(r"default|arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+(,arn:aws[\w:/+=.@-]+)*")
Codes = Sequence[tuple[str, str]]
"""Patterns of a store's errors, and what they mean."""
NO_BUCKET = "NO_SUCH_BUCKET"
"""What this program says itself where a bucket is not there."""
_CODES: Codes = (
    (r"NO_?SUCH_?BUCKET", "target:bucket-missing"),
    (
        r"INVALID_?ACCESS_?KEY_?ID|INVALID_?CLIENT_?TOKEN_?ID|SIGNATURE_?DOES_?NOT_?MATCH"
        r"|NO_?CREDENTIALS|AUTH_?FAILURE|InvalidAccessKeyId",
        "target:bucket-keys",
    ),
    (r"ACCESS[_ ]?DENIED|HTTP status 403", "target:bucket-rights"),
)
FIELDS = ("s3_endpoint", "s3_region", "s3_access_key", "s3_secret_key")


def is_s3(url: str) -> bool:
    """Whether a folder lies there."""
    return url.startswith(_SCHEME)


def bucket_of(url: str) -> tuple[str, str]:
    """The bucket, and the path that begins with it. The URL may name a server behind the bucket and
    an @."""
    place, slash, rest = url.partition("://")[2].partition("/")
    bucket = place.partition("@")[0]
    return bucket, f"{bucket}{slash}{rest}"


def code_of(text: str, table: Codes) -> str:
    """The code for a store's error."""
    found = (code for pattern, code in table if re.search(pattern, text, re.IGNORECASE))
    return next(found, "target:unreachable")


@dataclass(frozen=True, slots=True)
class Store:
    """How a bucket is reached. What is empty comes from the environment."""

    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)

    @property
    def is_named(self) -> bool:
        """Whether the replicator names anything of it."""
        return any((self.endpoint, self.region, self.access_key, self.secret_key))

    @property
    def where(self) -> str:
        """The server's address; empty for Amazon's."""
        return (
            self.endpoint
            or os.environ.get("AWS_ENDPOINT_URL_S3")
            or os.environ.get("AWS_ENDPOINT_URL")
            or ""
        )

    @property
    def in_region(self) -> str:
        """The region; empty where nobody names one."""
        return (
            self.region
            or os.environ.get("AWS_REGION")
            or os.environ.get("AWS_DEFAULT_REGION")
            or ""
        )

    def system(self, url: str) -> FileSystem | None:
        """The file system that the fields lead to; None where the URL alone does. Amazon itself
        says in which region a bucket is."""
        from pyarrow import fs

        if not is_s3(url) or not self.is_named:
            return None
        resolved = "" if self.in_region or self.where else fs.resolve_s3_region(bucket_of(url)[0])
        return fs.S3FileSystem(
            access_key=self.access_key or None,
            secret_key=self.secret_key or None,
            endpoint_override=self.where or None,
            region=self.in_region or resolved or None,
        )

    def code(self, text: str) -> str:
        """The code for the store's error. The SDK names some by words, others by the answer's
        number."""
        return code_of(text, _CODES)


def endpoint_fault(text: str) -> str:
    """What is wrong with a server's address, as a sentence; empty where nothing is."""
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError:
        return "must be an address: https://host:port"
    is_fine = found.scheme in {"http", "https"} and found.hostname and not found.path.strip("/")
    if not text or (is_fine and "@" not in found.netloc and not (found.query or found.fragment)):
        return ""
    return "must be an address, without a login, a path and ?: https://host:port"


def role_fault(text: str) -> str:
    """What is wrong with the name of a role by which Redshift reads a bucket; empty where nothing
    is."""
    if not text or _ROLE.fullmatch(text):
        return ""
    return "must be `default`, or look like arn:aws:iam::123456789012:role/name"


class HasStore(Protocol):
    """Params with the fields of a store."""

    @property
    def s3_endpoint(self) -> str: ...
    @property
    def s3_region(self) -> str: ...
    @property
    def s3_access_key(self) -> str: ...
    @property
    def s3_secret_key(self) -> str: ...


def s3_endpoint(group: str = "") -> Any:
    """The server's address."""
    return param(
        "S3 endpoint",
        group=group,
        help="Address of a server of your own that speaks the protocol of S3, such as MinIO or "
        "Ceph: https://storage.example:9000. Empty: Amazon S3, or what AWS_ENDPOINT_URL says",
        default="",
        note="for a bucket of S3",
        addresses=True,
        is_movable=True,
        secrets_go="enter it in S3 secret key",
        check=endpoint_fault,
    )


def s3_region(group: str = "") -> Any:
    """The bucket's region."""
    return param(
        "S3 region",
        group=group,
        help="For example eu-central-1. Empty: what AWS_REGION says, or the bucket itself",
        default="",
        note="for a bucket of S3",
        is_movable=True,
    )


def s3_access_key(group: str = "") -> Any:
    """The key's name."""
    return param(
        "S3 access key",
        group=group,
        help="Empty: the environment of web and workers has the keys, or the machine has a role",
        default="",
        note="for a bucket of S3",
        addresses=True,
        is_movable=True,
    )


def s3_secret_key(group: str = "") -> Any:
    """The key."""
    return param(
        "S3 secret key", group=group, default="", secret=True, note="with an S3 access key"
    )


def named(params: HasStore) -> Sequence[str]:
    """The fields that are filled in."""
    return [n for n in FIELDS if getattr(params, n)]


def faults(params: HasStore) -> dict[str, str]:
    """What is wrong with the fields together."""
    odd = [n for n in FIELDS if any(c.isspace() for c in getattr(params, n))]
    if odd or bool(params.s3_access_key) == bool(params.s3_secret_key):
        return dict.fromkeys(odd, "must not have spaces or line breaks")
    lacking = "s3_secret_key" if params.s3_access_key else "s3_access_key"
    return {lacking: "is required with the other key"}
