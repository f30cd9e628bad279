"""The settings of a files target. Parsing only; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.addresses import Place
from replicators.connectors.locations import folder_of, location_fault, location_places
from replicators.connectors.params import InvalidParams, param
from replicators.connectors.stores import is_s3, role_fault

PARQUET, JSON_LINES = "Parquet", "JSON lines"
LENGTHS = {
    "10 seconds": 10,
    "1 minute": 60,
    "5 minutes": 300,
    "15 minutes": 900,
    "1 hour": 3600,
    "1 day": 86400,
}
COMPRESSIONS = ("automatic", "zstd", "gzip", "snappy", "none")


@dataclass(frozen=True, slots=True)
class FilesParams:
    """The location of the files, their format, and the time span of one bucket."""

    location: str = param(
        "Location",
        help="Folder or object store that holds the files, for example /data/changes or "
        "s3://bucket/changes. "
        "Settings and keys of a store are read from this program's environment.",
        secrets_go="a store's settings and keys are read from this program's environment",
        check=location_fault,
    )
    format: str = param("Format", default=PARQUET, choices=(PARQUET, JSON_LINES))
    bucket: str = param(
        "Time bucket",
        help="Changes that were committed within this time lie in one folder. It is closed once "
        "nothing older can come.",
        default="1 minute",
        choices=tuple(LENGTHS),
    )
    compression: str = param(
        "Compression",
        help="Automatic: zstd for Parquet (snappy where Redshift copies it), gzip for JSON lines",
        default="automatic",
        choices=COMPRESSIONS,
    )
    before_images: bool = param(
        "Keep before images",
        help="Whole old rows are written too, of tables whose source sends them",
        default=True,
    )

    copy_role: str = param(
        "COPY for Redshift",
        help="The IAM role by which Redshift reads the bucket: its ARN, or `default`. Each closed "
        "bucket of time then has a file copy.sql that loads it. For Parquet in S3. Empty: none",
        default="",
        is_movable=True,
        check=role_fault,
    )

    def __post_init__(self) -> None:
        if self.copy_role and not (self.format == PARQUET and is_s3(self.root)):
            raise InvalidParams({"copy_role": "is only for Parquet files in s3://"})
        if self.format == JSON_LINES and self.compression == "snappy":
            raise InvalidParams({"compression": "must be another one: JSON lines can't use snappy"})

    @property
    def root(self) -> str:
        """The location without a trailing slash. A local location is a path."""
        return folder_of(self.location)

    @property
    def codec(self) -> str:
        """Arrow's name of the compression; empty for none."""
        if self.compression == "automatic" and self.copy_role:
            return "snappy"
        if self.compression == "automatic":
            return "zstd" if self.format == PARQUET else "gzip"
        return "" if self.compression == "none" else self.compression

    @property
    def ending(self) -> str:
        """The ending of the files' names."""
        if self.format == PARQUET:
            return ".parquet"
        return ".jsonl" + {"gzip": ".gz", "zstd": ".zst"}.get(self.codec, "")

    @property
    def bucket_seconds(self) -> int:
        """The length of a bucket in seconds."""
        return LENGTHS[self.bucket]

    @property
    def merge_seconds(self) -> float:
        """The time between two deliveries that suits the bucket: each makes a file of every table,
        so a bucket has about six of them, or one a minute."""
        return float(max(1, min(60, self.bucket_seconds // 6)))


def places(params: FilesParams) -> tuple[Place, ...]:
    """The folder or the server that holds the files."""
    return location_places(params.location, "Location")
